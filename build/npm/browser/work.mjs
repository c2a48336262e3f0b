// What a person does about work that Bots give each other: say how it goes on at a
// limit, instruct it, stop it.
import { api, base, tell, call, waiting, until, open, equal, holds, scenario, shoot, narrow, accessible, done } from "./browser.mjs";

const mail = (to) => call("desk__send_email", { to, subject: "Hello", body: "The report." }, "Ann asked for it.");
const give = (task, limits = { timeMs: 3_600_000 }) => `/call openbot_delegate ${JSON.stringify({ task, limits })}`;
const given = (chat, status) => until(`the work of ${chat} is ${status}`, async () => (await api("GET", `/v1/chats/${chat}/delegations`)).find((d) => d.status === status));
const heard = (chat, part) => until(`${chat} hears of ${part}`, async () => (await api("GET", `/v1/chats/${chat}/items`)).find((i) => i.kind === "notice" && i.text.includes(part)));
const decided = (id) => until("the Request is decided", async () => { const r = await api("GET", "/v1/requests/" + id); return r.status !== "pending" && r; });
// Work that stands at its limit of one step, with a piece below it that waits for an answer.
const atLimit = async (title) => {
  const chat = await tell(give(`${give(mail("below@example.test"))}\n/call openbot_list_bots\n/then\n/say Done.`, { timeMs: 3_600_000, steps: 1 }), { title });
  const work = await until("the work is paused", async () => (await api("GET", `/v1/chats/${chat}/delegations`)).find((d) => d.pause?.request));
  return { chat, work, request: work.pause.request };
};

await scenario("work at a limit is stopped with a question", async () => {
  const page = await open();
  const { chat, work, request } = await atLimit("Send the report");
  await page.locator("#row-" + request).waitFor();
  await page.goto(base + "/requests/" + request);
  holds("the Request", await page.locator("#detail").innerText(), "go on past its limit");
  holds("the Request", await page.locator("#detail").innerText(), "Limit reached");
  holds("the words", await page.locator("#words-ask-once").innerText(), "whoever gave it gets your reason as a question");
  await page.fill("#reason", "Which week do you mean?");
  await accessible(page, "the question at a limit");
  await shoot(page, "ask-1280-light");
  await page.click('#detail button[value="ask-once"]');
  await page.locator("#detail .outcome").waitFor();
  holds("the outcome", await page.locator("#detail").innerText(), "Stopped with a question by you");
  holds("the outcome", await page.locator("#detail").innerText(), "Which week do you mean?");
  const r = await decided(request);
  equal("the answer", `${r.status} ${r.decision.decision} ${r.decision.reason}`, "denied ask Which week do you mean?");
  await given(chat, "cancelled");
  const [below] = await api("GET", `/v1/chats/${work.chat}/delegations`);
  equal("the work below", below.status, "cancelled");
  await heard(chat, "Which week do you mean?");
  await page.goto(base + "/chats/" + chat);
  holds("the giving Chat", await page.locator("#chat").innerText(), "Which week do you mean?");
  await page.context().close();
});

await scenario("a question needs words", async () => {
  const page = await open({ expected: [422] });
  const { request } = await atLimit("Send it again");
  await page.goto(base + "/requests/" + request);
  await page.click('#detail button[value="ask-once"]');
  await page.locator("#toast .notice.bad").waitFor();
  holds("what is missing", await page.locator("#toast").innerText(), "must hold the question");
  equal("it still waits", (await api("GET", "/v1/requests/" + request)).status, "pending");
  await page.fill("#reason", "Take two more steps, and be brief.");
  await page.click('#detail button[value="allow-once"]');
  await page.locator("#detail .outcome").waitFor();
  equal("the status", (await decided(request)).status, "allowed");
  await page.context().close();
});

await scenario("work is instructed and stopped, and the pages of others follow", async () => {
  const chat = await tell(give(mail("work@example.test")), { title: "A piece of work" });
  const work = await until("it waits", async () => (await api("GET", `/v1/chats/${chat}/delegations`))[0]);
  const [request] = await waiting(work.chat);
  const [page, watching, inbox] = [await open(), await open(), await open()];
  await watching.goto(base + "/work?chat=" + chat);
  await watching.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  await inbox.locator("#row-" + request.id).waitFor();
  await page.goto(base + "/work?chat=" + chat);
  const piece = page.locator(`[id="${work.id}"] .piece`).first();
  await piece.locator("summary", { hasText: "Instruct it" }).click();
  await page.fill(`[id="text-${work.id}"]`, "Leave the attachment out.");
  await accessible(page, "instructions");
  await narrow(page, "instructions");
  await piece.locator("button", { hasText: "Send" }).click();
  await page.waitForURL(base + "/chats/" + work.chat + "*");
  const said = page.locator("#chat .said.me", { hasText: "Leave the attachment out." });
  await said.waitFor();
  holds("what was just sent", await said.innerText(), "not read yet");
  await page.goto(base + "/work?chat=" + chat);
  await piece.locator("summary", { hasText: "Stop it" }).click();
  holds("before it is stopped", await piece.innerText(), "Stop this work and all work below it?");
  await shoot(page, "stop-1280-light");
  await piece.locator("button", { hasText: "Stop the work" }).click();
  await given(chat, "cancelled");
  await page.waitForURL(base + "/work?chat=" + chat + "*");
  await page.locator(`[id="${work.id}"]`, { hasText: "cancelled" }).waitFor();
  await watching.locator(`[id="${work.id}"]`, { hasText: "cancelled" }).waitFor();
  await until("its Request left the list", async () => (await inbox.locator("#row-" + request.id).count()) === 0);
  equal("its Request", (await api("GET", "/v1/requests/" + request.id)).status, "cancelled");
  await heard(chat, "A person stopped it.");
  for (const p of [page, watching, inbox]) await p.context().close();
});

await scenario("without scripts work is stopped too, on a phone", async () => {
  const chat = await tell(give(mail("plain@example.test")), { title: "Another piece" });
  const work = await until("it is given", async () => (await api("GET", `/v1/chats/${chat}/delegations`))[0]);
  const [request] = await waiting(work.chat);
  const page = await open({ javaScriptEnabled: false, viewport: { width: 360, height: 740 }, hasTouch: true });
  await page.goto(base + "/work?chat=" + chat);
  await page.locator(`[id="${work.id}"] summary`, { hasText: "Stop it" }).click();
  await narrow(page, "the question before it is stopped");
  await page.locator(`[id="${work.id}"] button`, { hasText: "Stop the work" }).click();
  await given(chat, "cancelled");
  equal("its Request", (await decided(request.id)).status, "cancelled");
  await page.context().close();
});

await scenario("what waits for two Members leaves both lists", async () => {
  const before = (await api("GET", "/v1/settings")).escalation;
  const bob = await api("POST", "/v1/members", { name: "Bob", permissions: ["write", "*"] });
  const secret = (await api("POST", "/v1/tokens", { name: "Bob's", member: bob.id, scopes: ["write", "*"] })).token;
  await api("PATCH", "/v1/settings", { escalation: { afterMs: 1000, member: bob.id } });
  const his = await open({ as: secret });
  const [request] = await waiting(await tell(mail("two@example.test")));
  await his.locator("#row-" + request.id).waitFor();
  await his.locator(`#detail [data-request="${request.id}"]`).waitFor();
  equal("his title", await his.title(), "(1) Requests · OpenBot");
  await api("POST", "/v1/requests/" + request.id, { expected: request.revision, decision: "deny", reason: "I was there first." });
  await his.locator("#detail .outcome").waitFor();
  holds("what he sees", await his.locator("#detail").innerText(), "I was there first.");
  await until("his list is empty", async () => (await his.locator("#list .row").count()) === 0);
  await his.context().close();
  await api("PATCH", "/v1/settings", { escalation: before });
});

await done();
