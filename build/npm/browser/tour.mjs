// The pictures of docs/tour.md, from a real server and its example App. That it gets to
// its end is a test: a tour that no one can walk any more is noticed.
import { api, base, tell, call, waiting, until, open, holds, equal, scenario, done } from "./browser.mjs";
import { mkdirSync } from "node:fs";

const folder = process.env.OPENBOT_TEST_TOUR;
mkdirSync(folder, { recursive: true });
const picture = async (page, name) => {
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled" });
};
const mail = (to, subject, body, reason) => call("example__send_email", { to, subject, body }, reason);
const report = (to) => mail(to, "Weekly report", "The figures of this week are attached to the note “Week 48”.", "You asked me to send the weekly report to everyone who reads it.");

const writer = await api("POST", "/v1/bots", { name: "Writer", role: "Writes and sends the weekly report", instructions: "Be brief." });
const editor = await api("POST", "/v1/bots", { name: "Editor", role: "Looks at what Writer sends", instructions: "/decide allow once The address is one of our readers." });
const helper = await api("POST", "/v1/bots", { name: "Archivist", role: "Keeps the notes", instructions: "", owner: editor.id });

let request, chat;
await scenario("1 a call waits", async () => {
  chat = await tell(report("ann@example.test") + "\n/say The report is out.", { bot: writer.id, title: "Weekly report" });
  [request] = await waiting(chat);
  const page = await open();
  await page.goto(base + "/requests/" + request.id);
  await page.locator(`#detail [data-request="${request.id}"]`).waitFor();
  holds("the Request", await page.locator("#detail").innerText(), "ann@example.test");
  await picture(page, "01-request");
  await page.context().close();
});

await scenario("2 what an answer would let happen", async () => {
  const page = await open();
  await page.goto(base + "/requests/" + request.id);
  await page.click(".more-ways summary");
  holds("the ways", await page.locator(".more-ways").innerText(), "until you revoke it");
  await page.locator(".more-ways").scrollIntoViewIfNeeded();
  await picture(page, "02-scopes");
  await page.keyboard.press("a");
  await page.locator("#detail .outcome").waitFor();
  await page.context().close();
});

await scenario("3 the Chat tells who decided", async () => {
  const page = await open();
  await until("the Turn ended", async () => (await api("GET", `/v1/chats/${chat}/turns`)).every((t) => t.status === "Completed"));
  await page.goto(base + "/chats/" + chat);
  await page.locator("text=The report is out.").first().waitFor();
  await picture(page, "03-chat");
  await page.context().close();
});

await scenario("4 many at once", async () => {
  const list = await waiting(await tell([report("bob@example.test"), report("carl@example.test"), report("dora@example.test")].join("\n"), { bot: writer.id, title: "More readers" }), 3);
  const page = await open();
  await page.goto(base + "/requests/selected?" + list.map((r) => "id=" + r.id).join("&"));
  await page.locator(".bulk-form").first().waitFor();
  await picture(page, "04-many");
  await page.context().close();
  for (const r of list) await api("POST", "/v1/requests/" + r.id, { expected: r.revision, decision: "deny", reason: "Not this week." });
});

await scenario("5 a Bot looks first", async () => {
  const [asked] = await waiting(await tell(call("example__write_note", { name: "Week 48", text: "Done." }, "To keep what was sent."), { bot: helper.id, title: "Keep a note" }));
  equal("endorsements", asked.endorsements.length, 1);
  const page = await open();
  await page.goto(base + "/requests/" + asked.id);
  await page.locator(`#detail [data-request="${asked.id}"]`).waitFor();
  await picture(page, "05-chain");
  await page.context().close();
  await api("POST", "/v1/requests/" + asked.id, { expected: asked.revision, decision: "allow" });
});

await scenario("6 a Rule in plain words", async () => {
  await api("POST", "/v1/rules", { bot: writer.id, text: "Never send_email to addresses outside example.test.", effect: "deny" });
  await until("the judge refused", async () => {
    const id = await tell(mail("eve@elsewhere.test", "Weekly report", "See the note.", "Eve asked for a copy."), { bot: writer.id, title: "A copy for Eve" });
    return until("the Turn ended", async () => (await api("GET", `/v1/chats/${id}/turns`)).every((t) => t.status === "Completed") && id);
  });
  const page = await open();
  await page.goto(base + "/rules");
  holds("the Rules", await page.locator("main").innerText(), "outside example.test");
  await picture(page, "06-rules");
  await page.context().close();
});

let given, limit;
await scenario("7 work that was given away", async () => {
  await api("PATCH", "/v1/settings", { modelPrices: { playbook: { inputMicrosPerToken: 900, outputMicrosPerToken: 900 } } });
  const give = (task, limits) => `/call openbot_delegate ${JSON.stringify({ task, limits })}`;
  const readers = give(report("ann@example.test"), { timeMs: 600_000 });
  const root = await tell(give(`${readers}\n/call openbot_list_bots\n/then\n/say Sent.`, { timeMs: 3_600_000, steps: 1, budgetMicros: 2_500_000 }), { title: "Send the weekly report" });
  given = await until("the work is paused", async () => (await api("GET", `/v1/chats/${root}/delegations`)).find((d) => d.pause?.request));
  limit = given.pause.request;
  const page = await open();
  await page.goto(`${base}/work?open=${given.id}`);
  await page.locator("main").waitFor();
  await picture(page, "07-work");
  await page.context().close();
});

await scenario("8 the question at a limit", async () => {
  const page = await open();
  await page.goto(base + "/requests/" + limit);
  await page.locator(`#detail [data-request="${limit}"]`).waitFor();
  await picture(page, "08-limit");
  await page.click('#detail button[value="allow-once"]');
  await page.locator("#detail .outcome").waitFor();
  await page.context().close();
});

await scenario("9 nothing is forgotten", async () => {
  const page = await open();
  await until("the log is chained", async () => (await api("GET", "/v1/audit?limit=5")).length > 0);
  await page.goto(base + "/audit");
  await page.locator("main").waitFor();
  await picture(page, "09-audit");
  await page.context().close();
});

await scenario("10 on a phone, at night", async () => {
  const [asked] = await waiting(await tell(report("felix@example.test"), { title: "One more reader" }));
  const page = await open({ viewport: { width: 360, height: 740 }, colorScheme: "dark", deviceScaleFactor: 2, hasTouch: true });
  await page.goto(base + "/requests/" + asked.id);
  await page.locator(`#detail [data-request="${asked.id}"]`).waitFor();
  await picture(page, "10-phone");
  await page.context().close();
});

await done();
