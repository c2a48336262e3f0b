// A real browser on a running server: what its tests share. It is started by the
// tests of the whole program, which give the addresses in the environment.
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const base = process.env.OPENBOT_TEST_BASE;
export const token = process.env.OPENBOT_TEST_TOKEN;
const shots = process.env.OPENBOT_TEST_SCREENSHOTS;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const browser = await chromium.launch({
  executablePath: process.env.OPENBOT_TEST_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});

let failures = 0;
export const fail = (what) => { failures++; console.log("FAIL " + what); };
export const equal = (what, got, want) => { if (got !== want) fail(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`); };
export const holds = (what, text, part) => { if (!String(text).includes(part)) fail(`${what}: ${JSON.stringify(part)} is not in ${JSON.stringify(String(text).slice(0, 2000))}`); };

// The API as a script calls it.
export const api = async (method, path, body) => {
  const response = await fetch(base + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${text}`);
  return text ? JSON.parse(text) : null;
};

// A Chat in which a Bot is told what to do, and the Requests that wait in it.
export const tell = async (text, chat = {}) => {
  const made = await api("POST", "/v1/chats", chat);
  await api("POST", `/v1/chats/${made.id}/messages`, { text });
  return made.id;
};
export const call = (tool, args, reason) => `/call ${tool} ${JSON.stringify({ ...args, openbot_reason: reason })}`;
export const until = async (what, so) => {
  const end = Date.now() + 20_000;
  for (;;) {
    const got = await so();
    if (got) return got;
    if (Date.now() > end) throw new Error("not in time: " + what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
export const waiting = (chat, n = 1) => until(`${n} Requests wait for the person in ${chat}`, async () => {
  const list = (await api("GET", "/v1/requests?status=pending&limit=200")).filter((r) => r.chat === chat && r.approver._tag === "Person");
  return list.length >= n && list;
});

// open gives a page that is signed in and reports every fault that the browser sees.
// expected lists statuses of answers that a test brings about; broken allows a line
// that breaks; as is the token of somebody else.
let session;
export const open = async (options = {}) => {
  const { expected = [], broken = false, as, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce", storageState: as ? undefined : session, ...rest });
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (e) => console.error("CSP violation: " + e.violatedDirective + " " + e.blockedURI));
    globalThis.shifted = 0;
    globalThis.shifts = [];
    const place = (r) => `${Math.round(r.x)},${Math.round(r.y)} ${Math.round(r.width)}x${Math.round(r.height)}`;
    const seen = (s) => `${s.node?.nodeName ?? "gone"}${s.node?.id ? "#" + s.node.id : ""}.${s.node?.className ?? ""} ${place(s.previousRect)} to ${place(s.currentRect)}`;
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) {
        if (e.hadRecentInput) continue;
        globalThis.shifted += e.value;
        globalThis.shifts.push(`${e.value.toFixed(4)} at ${Math.round(e.startTime)} ms: ${e.sources.map(seen).join("; ")}`);
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
  const page = await context.newPage();
  page.on("pageerror", (e) => fail("script error: " + e.stack));
  page.on("console", (m) => {
    if (!["error", "warning"].includes(m.type())) return;
    if (expected.some((status) => m.text().includes(`status of ${status} `)) || /net::ERR_|Failed to fetch/.test(m.text()) && broken) return;
    fail(`the browser says: ${m.text()} (${m.location().url})`);
  });
  if (session && !as) {
    await page.goto(base + "/");
    return page;
  }
  await page.goto(base + "/login");
  await page.fill("#token", as ?? token);
  await page.click("button.primary");
  await page.locator("#list").waitFor();
  if (!as) session = await context.storageState();
  return page;
};

// axe lists what keeps people with disabilities from using a page. Only serious and
// critical findings are faults; it is evaluated by the browser's tool, beside the
// page's own policy.
export const accessible = async (page, what) => {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })).violations
    .filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.target + " " + n.html.slice(0, 160) + " " + n.failureSummary).join(" | ")));
  for (const f of found) fail(`${what} is not accessible: ${f}`);
};

export const shoot = async (page, name) => {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: `${shots}/${name}.png` });
};

// narrow fails a page that is wider than its window.
export const narrow = async (page, what) => {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) fail(`${what} is ${over} px wider than the window`);
};

export const scenario = async (name, run) => {
  const began = Date.now();
  try { await run(); } catch (e) { fail(`${name}: ${e.stack}`); }
  console.log(`${name} (${Date.now() - began} ms)`);
};

export const done = async () => {
  await browser.close();
  process.exit(failures ? 1 : 0);
};
