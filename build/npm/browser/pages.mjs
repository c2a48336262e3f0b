// Every page in light and dark, wide and narrow: it fits, can be used with a keyboard
// and a screen reader, loads nothing from elsewhere, does not jump, and is shown
// harmless whatever stands in it. A picture of each is left for people.
import { api, base, tell, call, waiting, until, open, fail, scenario, shoot, narrow, accessible, done } from "./browser.mjs";

// What others may write, everywhere it can stand.
const hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u001b[31m\u202egnp.exe\u200bpаypal **bold** [x](javascript:alert(3))\nsecond line";
const bot = await api("POST", "/v1/bots", { name: "Odd " + hostile.slice(0, 120), role: hostile, instructions: hostile });
const chat = await tell(call("desk__send_email", { to: hostile, subject: "x", body: "All is well. ".repeat(3000) + hostile }, hostile), { bot: bot.id, title: hostile });
const [odd] = await waiting(chat);
let deep = { end: hostile };
for (let i = 0; i < 60; i++) deep = { ["level " + i]: deep };
const [nested] = await waiting(await tell(call("desk__echo", deep, hostile)));
const program = `const first = await app.call("desk", "send_email", {to: "a@example.test"}, ${JSON.stringify(hostile)});\nreturn first;`;
const [coded] = await waiting(await tell(`/call openbot_run_code ${JSON.stringify({ program })}`));
const [planned] = await waiting(await tell(`/call openbot_plan ${JSON.stringify({ plan: hostile + "\n1. Read\n2. Write" })}`, { mode: "plan" }));
const answered = await tell(call("desk__echo", { text: hostile }, hostile));
const [echo] = await waiting(answered);
await api("POST", "/v1/requests/" + echo.id, { expected: 0, decision: "allow", reason: hostile });
await api("POST", "/v1/rules", { bot: bot.id, text: "Never do this: " + hostile, effect: "deny" });
await api("POST", "/v1/grants", { bot: bot.id, capability: { action: "bots.spawn", target: "*" }, decision: "allow", scope: "lifetime" });
await api("POST", "/v1/tokens", { name: hostile, scopes: ["read"] });
const connection = (await api("GET", "/v1/connections")).find((c) => c.name === "desk").id;

// Work that stands at its limit, with work below it, and a Request to give more.
const give = (task, limits) => `/call openbot_delegate ${JSON.stringify({ task, limits, reason: hostile })}`;
await api("PATCH", "/v1/settings", { modelPrices: { playbook: { inputMicrosPerToken: 900, outputMicrosPerToken: 900 } } });
const giving = await tell(give(`${give(call("desk__send_email", { to: hostile }) + "\n" + hostile, { timeMs: 600_000 })}\n/call openbot_list_bots\n/then\n${hostile}`, { timeMs: 3_600_000, steps: 1, budgetMicros: 2_500_000 }), { title: hostile });
const work = await until("the work is paused", async () => (await api("GET", `/v1/chats/${giving}/delegations`)).find((d) => d.pause?.request));
const writer = await api("POST", "/v1/bots", { name: "Writer " + hostile.slice(0, 100), role: "Writes.", instructions: "", shared: true });
const [wanted] = await waiting(await tell(`/call openbot_delegate ${JSON.stringify({ bot: writer.id, task: hostile, limits: { timeMs: 60_000, steps: 3 }, reason: hostile })}`));
const trigger = await api("POST", "/v1/triggers", { name: hostile.replaceAll("\n", " ").slice(0, 150), cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", task: hostile });
await api("POST", "/v1/triggers", { name: "From outside", kind: "webhook", task: hostile });

// A receiver that takes nothing: its messages stay, with what became of them.
const hook = await api("POST", "/v1/webhooks", { url: `${base}/hook/${"long".repeat(40)}?key=sesame`, events: ["request.pending", "request.decided", "request.expiring", "request.escalated", "delegation.paused", "delegation.ended"], organization: true });
await tell(call("desk__send_email", { to: hostile, subject: "x", body: "y" }, hostile));
await until("a message was tried", async () => (await api("GET", `/v1/webhooks/${hook.id}/deliveries`)).some((d) => d.tries > 0 && d.outcome));

const pages = { requests: "/", request: "/requests/" + odd.id, whole: "/requests/" + odd.id + "?whole=1", deep: "/requests/" + nested.id, program: "/requests/" + coded.id,
  plan: "/requests/" + planned.id, decided: "/requests/" + echo.id, selected: `/requests/selected?id=${odd.id}&id=${nested.id}`, chats: "/chats", chat: "/chats/" + chat, answered: "/chats/" + answered, bots: "/bots", bot: "/bots/" + bot.id,
  apps: "/apps", app: "/apps/" + connection, grants: "/grants", revoked: "/grants?revoked=true", rules: "/rules", history: "/history", settings: "/settings", tokens: "/tokens", docs: "/docs",
  work: `/work?open=${work.id}`, "work-chat": "/chats/" + giving, "work-own": "/chats/" + work.chat, continue: "/requests/" + work.pause.request, give: "/requests/" + wanted.id,
  usage: "/usage", audit: "/audit", triggers: "/triggers", trigger: "/triggers/" + trigger.id, webhooks: "/webhooks", webhook: "/webhooks/" + hook.id };

for (const scheme of ["light", "dark"]) for (const width of [1280, 360]) {
  await scenario(`every page, ${scheme}, ${width} px`, async () => {
    const page = await open({ colorScheme: scheme, viewport: { width, height: width > 800 ? 800 : 740 } });
    page.on("dialog", (d) => { fail("a page opened a dialog: " + d.message()); d.dismiss(); });
    page.on("request", (r) => { if (!r.url().startsWith(base + "/")) fail("a page loads " + r.url()); });
    for (const [name, path] of Object.entries(pages)) {
      const what = `${name}, ${scheme}, ${width} px`;
      const response = await page.goto(base + path, { waitUntil: "load" });
      if (response.status() !== 200) fail(`${what} gives ${response.status()}`);
      await narrow(page, what);
      if (await page.locator("img[src=x], #detail script, main script").count()) fail(`${what} made markup of a text`);
      const shown = await page.evaluate(() => document.body.innerText);
      if (/[\u001b\u202e\u200b]/.test(shown)) fail(`${what} shows a character that cannot be seen`);
      const shifted = await page.evaluate(() => globalThis.shifted);
      if (shifted > 0.02) fail(`${what} jumps by ${shifted}: ${(await page.evaluate(() => globalThis.shifts)).join(" | ")}`);
      await shoot(page, `${name}-${width}-${scheme}`);
      // Colours differ by the scheme and layout by the width: each is looked at once.
      if ((scheme === "light") === (width > 800)) {
        // All operations of the API are laid out alike; the first ones stand for them.
        if (name === "docs") await page.evaluate(() => document.querySelectorAll("main > section, main article").forEach((e, i) => i > 4 && e.remove()));
        await accessible(page, what);
      }
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).every((n) => Number(n) < 60));
      if (dark !== (scheme === "dark")) fail(`${what} has the colours of the other scheme`);
    }
    await page.context().close();
  });
}

await scenario("the first page is light", async () => {
  const page = await open();
  await page.context().close();
  const fresh = await open();
  let bytes = 0;
  const sizes = [];
  fresh.on("requestfinished", (r) => { if (!r.url().includes("/live")) sizes.push(r.sizes().then((s) => { bytes += s.responseBodySize; })); });
  await fresh.context().clearCookies({ name: "none" });
  const cdp = await fresh.context().newCDPSession(fresh);
  await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
  await fresh.goto(base + "/", { waitUntil: "load" });
  await Promise.all(sizes);
  if (bytes > 100_000 || bytes < 10_000) fail(`the first page takes ${bytes} bytes`);
  console.log(`the first page takes ${bytes} bytes`);
  await fresh.context().close();
});

await done();
