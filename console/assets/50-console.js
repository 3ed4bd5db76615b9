// The script of the console. Pages are complete without it: it keeps them up to date, and adds keys and copying.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const store = {
    get(k) { try { return localStorage.getItem(k); } catch { return null; } },
    set(k, v) { try { localStorage.setItem(k, v); } catch { /* not kept */ } },
  };

  // Times: the server writes the time of day, and the script the duration.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const span = (s) => {
    s = Math.max(0, Math.floor(s));
    for (let i = 0; i < units.length; i++) {
      const [n, u] = units[i];
      if (s < n && n > 1) continue;
      const rest = i + 1 < units.length ? Math.floor((s % n) / units[i + 1][0]) : 0;
      return Math.floor(s / n) + " " + u + (rest && s < 10 * n ? " " + rest + " " + units[i + 1][1] : "");
    }
    return "0 s";
  };
  const tick = (root) => {
    for (const t of root.querySelectorAll("time[data-ago], time[data-in]")) {
      const d = (Date.now() - Date.parse(t.dateTime)) / 1000;
      const text = t.dataset.ago !== undefined ? (d < 1 ? "now" : span(d) + " ago") : (d > 0 ? "due" : "in " + span(-d));
      if (t.textContent !== text) t.textContent = text;
    }
  };
  tick(document);
  setInterval(() => { if (!document.hidden) tick(document); }, 1000);

  // Changes. Idiomorph keeps focus, selection and scroll positions.
  let held = new Map();
  const over = () => document.querySelector("[data-rows]:hover");
  const flash = [];
  const morph = (el, html) => {
    if (el instanceof SVGElement) { // a part of a drawing: it is parsed as one, and has no state of its own
      const t = document.createElement("template");
      t.innerHTML = "<svg>" + html + "</svg>";
      el.replaceChildren(...t.content.firstChild.childNodes);
      return;
    }
    const open = new Set([...el.querySelectorAll("details[open]")].map((d) => d.dataset.keep || d.id).filter(Boolean));
    const marked = el.querySelector(".here");
    const key = marked && marked.id;
    Idiomorph.morph(el, html, {
      morphStyle: "innerHTML", ignoreActiveValue: true,
      callbacks: {
        beforeNodeMorphed(was, now) {
          if (was.nodeType !== 1) return true;
          if (was.isEqualNode(now)) return false;
          if (was.tagName === "TIME" && was.dateTime === now.dateTime) return false;
          if (was.tagName === "DETAILS" && (was.id || was.dataset.keep)) now.toggleAttribute("open", was.open);
          if ((was.tagName === "INPUT" || was.tagName === "TEXTAREA" || was.tagName === "SELECT") && was.dataset.dirty) return false;
          if (was.matches("td, dd, .value, [data-flash]") && was.textContent.trim() !== now.textContent.trim()) flash.push(was);
          return true;
        },
      },
    });
    for (const d of el.querySelectorAll("details")) if (open.has(d.dataset.keep || d.id)) d.open = true;
    if (key && $(key)) $(key).classList.add("here");
    tick(el);
    for (const f of flash.splice(0)) {
      f.classList.remove("changed");
      void f.offsetWidth;
      f.classList.add("changed");
      setTimeout(() => f.classList.remove("changed"), 700);
    }
    document.dispatchEvent(new CustomEvent("settle:part", { detail: el }));
  };
  // Rows do not move under the pointer: a list waits until the pointer has left it, or the visitor wants it.
  const take = (id, html) => {
    const el = $(id);
    if (!el) return;
    const list = over();
    if (list && el.contains(list) && rowsOf(html) !== rowsOf(el.innerHTML)) {
      held.set(id, html);
      offer();
      return;
    }
    held.delete(id);
    morph(el, html);
  };
  const rowsOf = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html;
    return [...t.content.querySelectorAll("[data-rows] [id]")].map((e) => e.id).join(" ");
  };
  const release = () => { const all = held; held = new Map(); for (const [id, html] of all) if ($(id)) morph($(id), html); offer(); };
  let pill = null;
  const offer = () => {
    if (!held.size) { pill?.remove(); pill = null; return; }
    if (pill) return;
    pill = document.createElement("button");
    pill.type = "button"; pill.className = "button newer"; pill.textContent = "There is news: show it";
    pill.addEventListener("click", release);
    $("page").prepend(pill);
  };
  document.addEventListener("pointerout", (e) => { if (held.size && !e.relatedTarget?.closest?.("[data-rows]")) release(); });
  document.addEventListener("input", (e) => { if (e.target.form) e.target.dataset.dirty = "1"; });

  // On a narrow screen, the navigation is scrolled to the page that is open.
  const rail = document.querySelector("header nav"), open = rail?.querySelector("[aria-current]");
  if (open && rail.scrollWidth > rail.clientWidth) rail.scrollLeft = open.offsetLeft - (rail.clientWidth - open.offsetWidth) / 2;

  // One stream for the page that is open, none while it is hidden or paused.
  const live = $("live"), stale = $("stale"), page = $("page"), pause = $("pause");
  let source = null, seen = $("main").dataset.seen, paused = false, lostSince = 0, told = "";
  const say = (state, text) => { if (live && (live.dataset.state !== state || text !== told)) { live.dataset.state = state; live.textContent = told = text; } };
  const old = (text) => { stale.hidden = !text; if (stale.textContent !== text) stale.textContent = text; page.classList.toggle("old", !!text); };
  const connect = () => {
    if (!live || source || document.hidden || paused) return;
    const url = new URL(location.href);
    url.searchParams.set("_seen", seen); url.searchParams.delete("_said"); url.hash = "";
    source = new EventSource(url);
    source.addEventListener("open", () => { lostSince = 0; say("live", "live"); });
    source.addEventListener("part", (e) => {
      const p = JSON.parse(e.data);
      if (e.lastEventId) seen = $("main").dataset.seen = e.lastEventId;
      take(p.id, p.html);
    });
    source.addEventListener("status", (e) => {
      const s = JSON.parse(e.data);
      if (s.title) document.title = s.title + " · settle";
      old(s.stale ? Math.round(s.age / 1000) + " s old, retrying: " + s.stale : "");
      if (s.stale) say("lost", "out of date"); else say("live", "live");
    });
    source.addEventListener("gone", () => location.reload());
    source.addEventListener("error", () => {
      lostSince = lostSince || Date.now();
      say("lost", "connection lost, retrying");
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(connect, 2000); }
    });
  };
  const close = () => { source?.close(); source = null; };
  setInterval(() => { if (lostSince && Date.now() - lostSince > 1500) old(Math.round((Date.now() - lostSince) / 1000) + " s old: the console does not answer; retrying"); }, 1000);
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else { connect(); tick(document); } });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => { if (e.persisted) connect(); });
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Go on" : "Pause";
      if (paused) { close(); say("paused", "paused"); } else connect();
    });
  }
  connect();

  // Copying.
  document.addEventListener("click", async (e) => {
    const b = e.target.closest("[data-copy]");
    if (!b) return;
    try { await navigator.clipboard.writeText(b.dataset.copy); } catch {
      const t = document.createElement("textarea");
      t.value = b.dataset.copy; document.body.append(t); t.select(); document.execCommand("copy"); t.remove();
    }
    b.classList.add("copied");
    const was = b.dataset.was || (b.dataset.was = b.textContent);
    if (!b.classList.contains("id")) b.textContent = "Copied";
    setTimeout(() => { b.classList.remove("copied"); if (!b.classList.contains("id")) b.textContent = was; }, 1200);
  });

  // Keys.
  const rows = () => [...document.querySelectorAll("[data-open]")].filter((r) => r.offsetParent !== null);
  const here = () => document.querySelector(".here[data-open]");
  const mark = (row) => { here()?.classList.remove("here"); if (row) { row.classList.add("here"); (row.querySelector("a, button") || row).focus({ preventScroll: true }); row.scrollIntoView({ block: "nearest" }); } };
  const step = (by) => { const all = rows(); if (!all.length) return; const at = all.indexOf(here()); mark(all[Math.min(all.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))]); };
  let went = false;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || store.get("settle-keys") === "off") return;
    if (e.target.closest("input, textarea, select, [contenteditable]")) { if (e.key === "Escape") e.target.blur(); return; }
    if (went) {
      went = false;
      const to = [...document.querySelectorAll("header nav a")].find((a) => a.textContent.trim().toLowerCase().startsWith(e.key));
      if (to) { e.preventDefault(); to.click(); }
      return;
    }
    switch (e.key) {
      case "j": step(1); break;
      case "k": step(-1); break;
      case "g": went = true; setTimeout(() => { went = false; }, 1500); break;
      case "Enter": { if (e.target.closest("a, button, summary")) return; const r = here(); if (!r) return; location.href = r.dataset.open; break; }
      case "w": { const w = here()?.querySelector("[data-why], .more") || document.querySelector("[data-key='w']"); if (!w) return; w.click(); break; }
      case "x": { const x = here()?.querySelector("input[type=checkbox]"); if (!x) return; x.click(); break; }
      default: {
        const t = [...document.querySelectorAll("[data-key]")].find((el) => el.dataset.key === e.key);
        if (!t) return;
        if (t.tagName === "INPUT") { t.focus(); t.select(); } else t.click();
      }
    }
    e.preventDefault();
  });
  const keys = $("keys");
  if (keys) {
    const label = () => { keys.textContent = store.get("settle-keys") === "off" ? "Turn the keys on in this browser" : "Turn the keys off in this browser"; };
    keys.hidden = false; label();
    keys.addEventListener("click", () => { store.set("settle-keys", store.get("settle-keys") === "off" ? "on" : "off"); label(); });
  }
})();
