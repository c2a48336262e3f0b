// What the pages of the inbox do beyond links and forms. Everything here is a
// convenience: each page works without it.
(() => {
  "use strict";
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement.dataset.root; // ends in a slash

  // ---- Times: countdowns and ages, from the server's numbers.
  const units = [[172800e3, 86400e3, "days"], [7200e3, 3600e3, "hours"], [120e3, 60e3, "minutes"], [0, 1e3, "s"]];
  const rough = (ms) => {
    const [, unit, name] = units.find(([from]) => ms >= from);
    return Math.max(0, Math.round(ms / unit)) + " " + name;
  };
  const left = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
    if (d > 1) return d + " d " + h + " h";
    if (s >= 3600) return Math.floor(s / 3600) + " h " + m + " min";
    return m + ":" + String(s % 60).padStart(2, "0") + " min";
  };
  // soon looks at once when it is asked to, and then again at most every so many
  // milliseconds: many events are one look, and events without end still let it look.
  const soon = (look, apart) => {
    let last = 0, timer = 0;
    return () => {
      if (timer) return;
      timer = setTimeout(() => { timer = 0; last = Date.now(); look(); }, Math.max(0, last + apart - Date.now()));
    };
  };
  const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const tick = () => {
    const now = Date.now();
    for (const t of all("time[data-at]")) set(t, now - t.dataset.at < 1000 ? "now" : rough(now - t.dataset.at) + " ago");
    for (const t of all("time[data-until]")) {
      const ms = t.dataset.until - now;
      set(t, ms > 0 ? "in " + left(ms) : "now");
      t.closest(".clock")?.classList.toggle("soon", ms < 600e3);
    }
  };

  // ---- The list of Requests.
  const list = () => $("#list");
  const rows = () => all("#list .row");
  const shown = () => $("#detail article[data-request]")?.dataset.request;
  const ticks = () => all("#selection input[type=checkbox]");

  const mark = () => {
    const id = shown();
    for (const row of rows()) {
      const here = row.dataset.id === id;
      row.classList.toggle("here", here);
      const link = $("a", row);
      here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }
  };
  const count = () => {
    const picked = ticks().filter((t) => t.checked);
    if (!$("#picked")) return;
    set($("#picked"), picked.length ? picked.length + " selected" : "None selected");
    const equal = $("#equal"), first = picked[0]?.closest(".row") || $("#list .row.here");
    const like = first ? rows().filter((r) => r.dataset.like === first.dataset.like) : [];
    equal.hidden = like.length < 2 || like.every((r) => $("input", r).checked);
    set(equal, "Select the " + like.length + " like this");
    $("#review").disabled = !picked.length;
  };
  const wait = (number) => {
    for (const b of all(".badge")) {
      b.hidden = String(number) === "0";
      b.dataset.number = number;
      b.childNodes[1].textContent = number;
    }
  };
  const badge = () => {
    const head = $("#list .list-head");
    if (!head || $("#search")?.defaultValue) return;
    const number = head.dataset.number;
    if (!head.dataset.more) wait(number);
    if (list()) document.title = (number === "0" ? "" : "(" + number + ") ") + "Requests · OpenBot";
  };

  // A new list comes at once, unless somebody is about to click into it.
  let busy = false, again = false;
  const refresh = async () => {
    const at = list();
    if (!at) return;
    if (busy) { again = true; return; }
    busy = true;
    const url = new URL(location.pathname.startsWith(root + "requests") ? root : location.href, location.origin);
    const search = $("#search")?.defaultValue;
    if (search) url.searchParams.set("q", search);
    if (shown()) url.searchParams.set("shown", shown());
    const picked = new Set(ticks().filter((t) => t.checked).map((t) => t.value));
    const focus = document.activeElement?.closest?.(".row")?.id;
    const typed = document.activeElement?.id === "search" ? $("#search").value : null;
    const scroll = $(".rows", at)?.scrollTop;
    const before = $(".list-head", at);
    await htmx.ajax("GET", url.pathname + url.search, { target: "#list", swap: "innerHTML", source: at });
    if ($(".list-head", at) === before) { // the server could not be reached
      busy = false;
      setTimeout(refresh, 2000);
      return;
    }
    for (const t of ticks()) t.checked = picked.has(t.value);
    if (typed !== null) { $("#search").value = typed; $("#search").focus(); }
    if (focus && document.getElementById(focus)) $("a", document.getElementById(focus)).focus({ preventScroll: true });
    if (scroll && $(".rows", at)) $(".rows", at).scrollTop = scroll;
    mark(); count(); badge(); tick();
    busy = false;
    if (again) { again = false; refresh(); }
  };
  const relist = soon(() => refresh(), 250);
  const arrived = () => {
    const at = list();
    if (!at) return;
    if (at.matches(":hover") && ticks().some((t) => t.checked)) {
      const pill = $("#arrived");
      pill.hidden = false;
      set(pill, "Show what changed");
      return;
    }
    relist();
  };

  // ---- Events of the server.
  let seen = "";
  const live = (name, handle) => document.addEventListener(name, (e) => {
    if (e.target.id !== "live") return;
    let data = {};
    try { data = JSON.parse(e.detail.data); } catch { return; }
    seen = e.detail.id || seen;
    handle(data);
  });
  // The extension connects again by itself once it was connected; a first try that
  // fails, or a stream that ended, is begun anew where the last event was.
  let connecting = 0;
  const connect = () => {
    const old = $("#live");
    if (!old) return;
    const fresh = old.cloneNode();
    fresh.removeAttribute("data-htmx-powered");
    fresh.classList.remove("htmx-request");
    if (seen) fresh.setAttribute("hx-sse:connect", root + "live?afterSequence=" + seen);
    old.replaceWith(fresh);
    htmx.process(fresh);
  };
  const later = (e) => {
    if (e.target.id !== "live" || !e.target.isConnected) return;
    clearTimeout(connecting);
    connecting = setTimeout(connect, 2000);
  };
  document.addEventListener("htmx:error", later);
  document.addEventListener("htmx:sse:close", later);
  document.addEventListener("htmx:sse:error", (e) => { if (e.detail?.status === 401) location.reload(); });
  const show = async (id) => {
    const before = $("#detail").firstElementChild;
    await htmx.ajax("GET", root + "requests/" + id, { target: "#detail", swap: "innerHTML", source: $("#detail") });
    if ($("#detail").firstElementChild === before) setTimeout(() => { if ($("#detail").firstElementChild === before) show(id); }, 2000);
  };
  const typing = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName) && document.activeElement.type !== "checkbox";
  const forPeople = (ev) => ev.approver?._tag === "Person"; // what a Bot decides waits for nobody here
  live("request.pending", (ev) => {
    arrived();
    const come = !$("#detail article") || ev.subject === shown(); // one that is shown came up from a Bot
    if (list() && forPeople(ev) && come && !$("#detail form")) show(ev.subject);
    if (!list()) bump(ev, 1);
  });
  live("request.decided", (ev) => {
    arrived();
    if (ev.subject === shown() && $("#detail article").dataset.open === "true" && !answering) show(ev.subject);
    if (!list()) bump(ev, -1);
  });
  const bump = (ev, by) => {
    if (!forPeople(ev)) return;
    const number = $(".badge")?.dataset.number;
    if (number && !number.endsWith("+")) wait(Math.max(0, Number(number) + by));
  };
  const talk = soon(() => htmx.ajax("GET", location.pathname, { target: "#chat", swap: "innerMorph", source: $("#chat") }), 250);
  for (const kind of ["message", "turn.status", "call.status"]) live(kind, (ev) => {
    const chat = $("#chat");
    if (chat && chat.dataset.chat === ev.chat) talk();
  });

  // Not while somebody has a form of it open.
  const work = soon(() => {
    const at = $("#work");
    if (!at) return;
    if ($("details[open]", at) || at.contains(document.activeElement)) setTimeout(work, 2000);
    else htmx.ajax("GET", location.pathname + location.search, { target: "#work", swap: "innerHTML", source: at });
  }, 300);
  for (const kind of ["delegation.status", "request.pending", "request.decided"]) live(kind, work);

  let answering = false;
  document.addEventListener("htmx:before:request", (e) => { if (e.target.matches?.("form.answer, form.bulk-form")) answering = true; });
  document.addEventListener("htmx:finally:request", (e) => {
    if (!answering || e.detail?.ctx?.request?.method !== "POST") return;
    answering = false;
    refresh();
  });
  document.addEventListener("htmx:after:swap", () => { mark(); count(); tick(); });
  // What the page asks by itself neither hides what was wrong nor says that it could not:
  // it is tried again.
  const byItself = (e) => /^(live|list|detail|chat|work)$/.test(e.target.id);
  document.addEventListener("htmx:after:request", (e) => { if (e.detail?.ctx?.response?.status < 400 && !byItself(e)) $("#toast")?.replaceChildren(); });
  document.addEventListener("htmx:error", (e) => {
    if (byItself(e)) return;
    const p = document.createElement("p");
    p.className = "notice bad";
    p.textContent = "The server could not be reached. Try again.";
    $("#toast")?.replaceChildren(p);
  });
  document.addEventListener("change", (e) => { if (e.target.closest("#selection")) count(); });
  document.addEventListener("click", (e) => {
    if (e.target.id === "arrived") refresh();
    if (e.target.id === "equal") {
      const first = ticks().find((t) => t.checked)?.closest(".row") || $("#list .row.here");
      for (const r of rows()) if (r.dataset.like === first?.dataset.like) $("input", r).checked = true;
      count();
    }
    const row = e.target.closest?.("#list .row a");
    if (row && !e.metaKey && !e.ctrlKey) $("#main").classList.add("picked");
    if (e.target.closest?.("a.back") && list()) { e.preventDefault(); $("#main").classList.remove("picked"); history.replaceState(null, "", root); }
    const copy = e.target.closest?.("[data-copy]");
    if (copy) navigator.clipboard?.writeText(document.getElementById(copy.dataset.copy).textContent).then(() => set(copy, "Copied"));
    const ask = e.target.closest?.("[data-confirm]");
    if (ask && !confirm(ask.dataset.confirm)) e.preventDefault();
  }, true);

  // ---- Keys. An answer goes to the Request that is shown, never to one that is
  // still on its way.
  let last = 0;
  const move = (by) => {
    const at = rows(), here = at.findIndex((r) => r.dataset.id === shown());
    if (here >= 0) last = here;
    const next = at[here < 0 ? Math.min(last, at.length - 1) : here + by];
    if (!next) return;
    $("a", next).click();
    next.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    if (e.key === "Escape" && typing()) { document.activeElement.blur(); return; }
    if (typing() || $("dialog[open]")) return;
    const press = (key) => {
      const button = $(`#detail form.answer button[data-key="${key}"]:not(:disabled)`);
      if (!button || $("#list .htmx-request, #detail.htmx-request")) return false;
      key === "d" ? $("#reason").focus() : button.click();
      return true;
    };
    switch (e.key) {
      case "j": move(1); break;
      case "k": move(-1); break;
      case "a": case "d": if (e.repeat || !press(e.key)) return; break;
      case "x": { const t = $("#list .row.here input"); if (!t) return; t.checked = !t.checked; count(); break; }
      case "/": if (!$("#search")) return; $("#search").focus(); break;
      case "?": $("#keys")?.showModal(); break;
      default: return;
    }
    e.preventDefault();
  });

  const begin = () => { mark(); count(); tick(); setInterval(tick, 1000); $("#chat-end")?.scrollIntoView({ block: "end" }); };
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", begin) : begin();
})();
