// What a person does in the inbox.
import { api, base, tell, call, waiting, until, open, equal, holds, fail, scenario, shoot, narrow, accessible, done } from "./browser.mjs";

const mail = (to, reason = "Ann asked for it.") => call("desk__send_email", { to, subject: "Hello", body: "The report." }, reason);
const decided = (id) => until("the Request is decided", async () => { const r = await api("GET", "/v1/requests/" + id); return r.status !== "pending" && r; });
const detail = (page) => page.locator("#detail");

await scenario("a person signs in", async () => {
  const page = await open();
  equal("the address", page.url(), base + "/");
  await page.goto(base + "/tokens");
  await page.click("text=Make a link");
  const link = await page.locator("#link").textContent();
  await page.context().close();
  const other = await open({ storageState: undefined, expected: [401] });
  await other.context().clearCookies();
  await other.goto(link);
  await other.click("button.primary");
  await other.locator("#list").waitFor();
  await other.click(".wide-menu button.link");
  await other.locator("#token").waitFor();
  await other.context().close();
});

await scenario("a Request arrives while the page is open, and is allowed with a key", async () => {
  const page = await open();
  holds("the empty inbox", await detail(page).textContent(), "Nothing waits for your answer");
  const chat = await tell(mail("ann@example.test"));
  const [request] = await waiting(chat);
  await page.locator("#row-" + request.id).waitFor();
  await page.locator(`#detail [data-request="${request.id}"]`).waitFor();
  equal("the title", await page.title(), "(1) Requests · OpenBot");
  equal("the badge", (await page.locator(".wide-menu .badge").textContent()).replace(/\D/g, ""), "1");
  holds("the Request", await detail(page).innerText(), "ann@example.test");
  await page.keyboard.press("a");
  await page.locator("#detail .outcome").waitFor();
  holds("the outcome", await detail(page).innerText(), "Allowed by you, once");
  equal("the status", (await decided(request.id)).status, "allowed");
  await until("the list is empty", async () => (await page.locator("#list .row").count()) === 0);
  equal("the title after", await page.title(), "Requests · OpenBot");
  await page.context().close();
});

await scenario("a Request is denied with a reason, by keys", async () => {
  const page = await open();
  const [request] = await waiting(await tell(mail("bob@example.test")));
  const [second] = await waiting(await tell(mail("eve@example.test")));
  await page.locator("#row-" + second.id).waitFor();
  await page.goto(base + "/requests/" + second.id);
  await page.keyboard.press("j");
  await page.locator(`#detail [data-request="${request.id}"]`).waitFor();
  equal("the address", page.url(), base + "/requests/" + request.id);
  await page.keyboard.press("k");
  await page.locator(`#detail [data-request="${second.id}"]`).waitFor();
  await page.keyboard.press("j");
  await page.locator(`#detail [data-request="${request.id}"]`).waitFor();
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("a"); // not while the list of keys is open
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.type("not a today");
  await page.keyboard.press("Enter");
  await page.locator("#detail .outcome").waitFor();
  const r = await decided(request.id);
  equal("the answer", r.decision.decision + " " + r.decision.reason, "deny not a today");
  equal("the other still waits", (await api("GET", "/v1/requests/" + second.id)).status, "pending");
  await api("POST", "/v1/requests/" + second.id, { expected: 0, decision: "deny" });
  await page.context().close();
});

await scenario("a stale answer loses, and sees who answered", async () => {
  const [request] = await waiting(await tell(mail("carl@example.test")));
  const quiet = await open({ expected: [409], broken: true });
  await quiet.route("**/live*", (route) => route.abort()); // so that the page stays old
  await quiet.goto(base + "/requests/" + request.id);
  await api("POST", "/v1/requests/" + request.id, { expected: 0, decision: "deny", reason: "I was faster." });
  await quiet.click('#detail button[value="allow-once"]');
  await quiet.locator("#detail .notice.bad").first().waitFor();
  const text = await detail(quiet).innerText();
  holds("the stale page", text, "Your answer did not count.");
  holds("the stale page", text, "Denied by you");
  holds("the stale page", text, "I was faster.");
  await quiet.context().close();
});

await scenario("somebody else's answer shows while one looks", async () => {
  const page = await open();
  const [request] = await waiting(await tell(mail("dora@example.test")));
  await page.goto(base + "/requests/" + request.id);
  await page.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  await api("POST", "/v1/requests/" + request.id, { expected: 0, decision: "deny", reason: "Seen elsewhere." });
  await page.locator("#detail .outcome").waitFor();
  holds("the page", await detail(page).innerText(), "Seen elsewhere.");
  equal("the buttons are gone", await page.locator("#detail form.answer").count(), 0);
  await page.context().close();
});

await scenario("equal ones are answered at once, with a result for each", async () => {
  const page = await open();
  const chat = await tell([mail("one@example.test"), mail("two@example.test"), mail("three@example.test")].join("\n"));
  const list = await waiting(chat, 3);
  const other = await tell(call("desk__read_thing", { id: "7" }, "To know."));
  const [odd] = await waiting(other);
  await page.goto(base + "/requests/" + list[0].id);
  await page.locator("#row-" + odd.id).waitFor();
  await page.keyboard.press("x");
  equal("selected", await page.locator("#picked").textContent(), "1 selected");
  await page.click("#equal");
  equal("selected", await page.locator("#picked").textContent(), "3 selected");
  await page.click("#review");
  await page.locator("#detail .bulk-form, .bulk-form").waitFor();
  holds("the form", await detail(page).innerText(), "Answer 3 Requests at once");
  await accessible(page, "many at once");
  await shoot(page, "many-1280-light");
  await api("POST", "/v1/requests/" + list[1].id, { expected: 0, decision: "deny" });
  await page.click('.bulk-form button[value="allow-once"]');
  await page.locator("#detail .results").waitFor();
  const text = await page.locator("#detail .results").innerText();
  equal("allowed", text.split("Allowed by you, once").length - 1, 2);
  holds("the results", text, "Your answer did not count: Denied by you");
  equal("the other still waits", (await api("GET", "/v1/requests/" + odd.id)).status, "pending");
  await api("POST", "/v1/requests/" + odd.id, { expected: 0, decision: "deny" });
  await page.context().close();
});

await scenario("each scope says what it lets happen, and does it", async () => {
  const page = await open();
  const bot = await api("POST", "/v1/bots", { name: "Programmer", role: "Writes code", instructions: "" });
  const [request] = await waiting(await tell(mail("ann@example.test"), { bot: bot.id }));
  await page.goto(base + "/requests/" + request.id);
  const words = () => page.locator(".more-ways").innerText();
  await page.click(".more-ways summary");
  holds("the words", await words(), "every send_email of Programmer on desk, whatever its arguments, in every Chat, until you revoke it or desk changes");
  holds("the words", await words(), "every send_email of Programmer on desk, whatever its arguments, in this Chat");
  await shoot(page, "scopes-1280-light");
  await page.click('button[value="allow-lifetime"]');
  await page.locator("#detail .outcome").waitFor();
  holds("the outcome", await detail(page).innerText(), "Allowed by you, until revoked");
  const grants = await api("GET", "/v1/grants");
  equal("Grants", grants.length, 1);
  await page.goto(base + "/grants");
  holds("the Grants", await page.locator("main").innerText(), "every send_email of Programmer on desk");
  await page.click("button:text-is(\"Revoke\")");
  await until("the Grant is revoked", async () => (await api("GET", "/v1/grants")).length === 0);
  await page.context().close();
});

await scenario("what happens while the line is broken is not missed", async () => {
  const page = await open({ broken: true });
  await page.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  await page.context().setOffline(true);
  const [request] = await waiting(await tell(mail("gone@example.test")));
  await page.context().setOffline(false);
  await page.locator("#row-" + request.id).waitFor({ timeout: 20_000 });
  await api("POST", "/v1/requests/" + request.id, { expected: 0, decision: "deny" });
  await page.context().close();
});

await scenario("the number in the menu counts what waits for the person alone", async () => {
  const editor = await api("POST", "/v1/bots", { name: "Editor", role: "Looks first", instructions: "/decide allow once It is fine." });
  const helper = await api("POST", "/v1/bots", { name: "Helper", role: "Helps", instructions: "", owner: editor.id });
  const page = await open();
  await page.goto(base + "/bots");
  const number = async () => Number(await page.locator(".wide-menu .badge").getAttribute("data-number"));
  const before = await number();
  await page.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  const [request] = await waiting(await tell(mail("up@example.test"), { bot: helper.id })); // a Bot has it first
  equal("endorsements", request.endorsements.length, 1);
  const [last] = await waiting(await tell(mail("last@example.test"))); // its event comes after those
  await until("both are counted", async () => (await number()) >= before + 2);
  equal("the number", await number(), before + 2);
  for (const r of [request, last]) await api("POST", "/v1/requests/" + r.id, { expected: r.revision, decision: "deny" });
  await until("both are gone", async () => (await number()) <= before);
  equal("the number after", await number(), before);

  // The empty inbox waits for what the person can answer, and passes by what a Bot denies.
  await page.goto(base + "/");
  equal("what waits", await page.locator("#list .row").count(), 0);
  await page.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  const strict = await api("POST", "/v1/bots", { name: "Strict", role: "Denies", instructions: "/decide deny once No." });
  const below = await api("POST", "/v1/bots", { name: "Below", role: "Asks", instructions: "", owner: strict.id });
  const chat = await tell(mail("never@example.test"), { bot: below.id });
  await until("a Bot denied it", async () => (await api("GET", `/v1/chats/${chat}/turns`)).every((t) => t.status === "Completed"));
  const [mine] = await waiting(await tell(mail("mine@example.test")));
  await page.locator(`#detail [data-request="${mine.id}"]`).waitFor();
  await api("POST", "/v1/requests/" + mine.id, { expected: 0, decision: "deny" });
  await page.context().close();
});

await scenario("events without end do not keep a new Request away", async () => {
  const page = await open();
  const [shown] = await waiting(await tell(mail("first@example.test")));
  await page.goto(base + "/requests/" + shown.id);
  await page.locator("#live[data-htmx-powered]").waitFor({ state: "attached" });
  const more = await page.evaluateHandle(() => setInterval(() => document.getElementById("live")
    .dispatchEvent(new CustomEvent("request.pending", { bubbles: true, detail: { data: "{}" } })), 20));
  const [request] = await waiting(await tell(mail("second@example.test")));
  await page.locator("#row-" + request.id).waitFor({ timeout: 10_000 });
  await page.evaluate((timer) => clearInterval(timer), more);
  for (const r of [shown, request]) await api("POST", "/v1/requests/" + r.id, { expected: 0, decision: "deny" });
  await page.context().close();
});

await scenario("without scripts the pages answer too", async () => {
  const page = await open({ javaScriptEnabled: false });
  const [request] = await waiting(await tell(mail("plain@example.test")));
  await page.goto(base + "/");
  await page.click(`#row-${request.id} a`);
  await page.fill("#reason", "No script needed.");
  await page.click('button[value="deny-once"]');
  holds("the outcome", await page.locator("#detail").innerText(), "No script needed.");
  equal("the status", (await decided(request.id)).status, "denied");
  await page.context().close();
});

await scenario("a phone shows one column", async () => {
  const page = await open({ viewport: { width: 360, height: 740 }, hasTouch: true });
  const [request] = await waiting(await tell(mail("phone@example.test")));
  await page.locator("#row-" + request.id).waitFor();
  equal("the detail is beside the list", await page.locator("#detail article").isVisible(), false);
  await narrow(page, "the list");
  await page.click(`#row-${request.id} a`);
  await page.locator(`#detail [data-request="${request.id}"]`).waitFor();
  await until("the list makes room", async () => !(await page.locator("#list").isVisible()));
  await narrow(page, "the Request");
  await shoot(page, "phone-request-360-light");
  await page.click("a.back");
  equal("back at the list", await page.locator("#list").isVisible(), true);
  await page.click(`#row-${request.id} a`);
  await page.click('button[value="allow-once"]');
  await page.locator("#detail .outcome").waitFor();
  equal("the status", (await decided(request.id)).status, "allowed");
  await page.context().close();
});

await scenario("a Chat goes on while one looks", async () => {
  const page = await open();
  await page.goto(base + "/chats");
  await page.fill("#text", mail("chat@example.test"));
  await page.fill("#title", "A talk");
  await page.click("text=Start a Chat");
  await page.waitForURL(/\/chats\/chat_/);
  await page.locator("#chat .called.waiting").waitFor();
  const chat = page.url().match(/chat_[0-9a-f]+/)[0];
  const [request] = await waiting(chat);
  await api("POST", "/v1/requests/" + request.id, { expected: 0, decision: "allow" });
  await page.locator("#chat .called.succeeded").waitFor();
  holds("the Chat", await page.locator("#chat").innerText(), "Allowed by you");
  await page.context().close();
});

await done();
