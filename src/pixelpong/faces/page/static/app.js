// The page: which view the address names, the list of runs, the comparison, the game's place.
//
//     #runs   #run/ID   #compare/ID,ID   #play/ID/UPDATE   #watch/ID/UPDATE
import { build } from "./viewer.js";
import { AXES, mountCurves } from "./charts.js";
import { describeReturn, describeState, formatAgo, formatCount, formatValue, getJson, repeat, warnAbove } from "./parts.js";
import { mountRun } from "./run.js";

const LIST_SECONDS = 3;
const MAX_COMPARED = 6;
const ticked = new Set(); // ids of the runs to be compared, kept when one comes back to the list

const main = document.getElementById("main");
const VIEWS = { runs: mountList, run: mountRun, compare: mountComparison, play: mountGame, watch: mountGame };
let leave = () => {};
let isFirst = true;

function route() {
  const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (name === "main") return; // the skip link
  leave();
  warnAbove(null);
  const view = build("div", { class: "view" });
  main.replaceChildren(view);
  const mounted = (VIEWS[name] ?? mountList)(view, ...(name in VIEWS ? rest : []), name);
  leave = () => mounted.unmount();
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.hash.slice(1).split("/")[0] === (name || "runs");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst) main.focus({ preventScroll: true });
  if (!isFirst) scrollTo(0, 0);
  isFirst = false;
}

// ---- the list of runs

function mountList(element) {
  document.title = "Runs · pixelpong";
  const stop = new AbortController(), rows = new Map();
  const list = build("ul", { class: "runs", "aria-label": "Runs" });
  const bar = buildCompareBar();
  const state = build("p", { class: "quiet" }, "Looking for runs…");
  element.append(build("h1", {}, "Runs"), state, bar.element, list);
  const ask = async () => {
    try {
      const { runs } = await getJson("/api/runs", stop.signal);
      warnAbove(null);
      showRuns(list, rows, runs, bar.update);
      state.replaceChildren(...(runs.length ? [`${runs.length} ${runs.length === 1 ? "run" : "runs"}, newest first.`] : buildEmpty()));
      state.className = runs.length ? "quiet" : "empty";
    } catch (error) {
      if (error.name !== "AbortError") warnAbove(`${error.message} Trying again by itself.`);
      return false;
    }
  };
  repeat(ask, LIST_SECONDS, stop.signal);
  return { unmount: () => stop.abort() };
}

function buildEmpty() {
  return [
    build("strong", {}, "No run here yet."), " Train one in another terminal, and it appears here by itself:",
    build("code", { class: "command" }, "pixelpong train --preset fast"),
    "Or look at the agent that came with the package: ", build("a", { href: "#watch/package/0" }, "watch it"), " or ",
    build("a", { href: "#play/package/0" }, "play against it"), ".",
  ];
}

function buildCompareBar() {
  const link = build("a", { class: "button primary", href: "#compare/" }, "Compare");
  const words = build("span", {});
  const element = build("div", { class: "compare-bar", hidden: true }, words, link);
  const update = () => {
    element.hidden = ticked.size === 0;
    const count = `${ticked.size} ticked`;
    words.textContent = ticked.size < 2 ? `${count}: tick another to compare` : count;
    link.hidden = ticked.size < 2;
    link.href = `#compare/${[...ticked].join(",")}`;
  };
  update();
  return { element, update };
}

// Rows stay where they are while they are the same, so that focus and ticks do.
function showRuns(list, rows, runs, onTick) {
  const known = new Set(runs.map((run) => run.id));
  for (const [id, row] of rows) {
    if (known.has(id)) continue;
    row.element.remove();
    rows.delete(id);
    ticked.delete(id);
  }
  runs.forEach((run, place) => {
    if (!rows.has(run.id)) rows.set(run.id, makeRow(run, onTick));
    const row = rows.get(run.id);
    row.update(run);
    if (list.children[place] !== row.element) list.insertBefore(row.element, list.children[place] ?? null);
  });
  onTick();
}

function makeRow(run, onTick) {
  const box = build("input", { type: "checkbox", checked: ticked.has(run.id), "aria-label": `Compare ${run.name}` });
  box.onchange = () => {
    if (box.checked && ticked.size >= MAX_COMPARED) box.checked = false;
    else if (box.checked) ticked.add(run.id);
    else ticked.delete(run.id);
    onTick();
  };
  const mark = build("span", { class: "state" }), facts = build("span", { class: "quiet facts-line" });
  const figure = build("span", { class: "return-figure" }), meter = buildMeter();
  const name = build("a", { class: "run-name", href: `#run/${run.id}` }, run.name);
  const element = build(
    "li", { class: "run-row", "data-run": run.id }, build("label", { class: "tick" }, box),
    build("div", { class: "run-words" }, build("div", { class: "run-head" }, name, mark), facts), build("div", { class: "run-return" }, figure, meter.element),
  );
  const update = (now) => {
    const state = describeState(now), best = describeReturn(now);
    mark.textContent = state.word;
    mark.className = `state ${state.kind}`;
    box.disabled = Boolean(now.problem);
    facts.textContent = now.problem ?? [
      now.preset, now.environment, `update ${formatCount(now.update ?? 0)}`, `${formatCount(now.steps)} steps`,
      `${formatCount(now.episodes)} episodes`, `written ${formatAgo(now.modified)}`,
    ].filter(Boolean).join(" · ");
    figure.replaceChildren(...(now.problem ? [] : [build("strong", { class: "number" }, best.text), build("span", { class: "quiet" }, ` ${best.of}`)]));
    meter.update(now.problem ? null : best.value);
  };
  return { element, update };
}

// Where a return lies between −21 and 21.
function buildMeter() {
  const mark = build("span", { class: "meter-mark" });
  const element = build("span", { class: "meter", "aria-hidden": "true" }, mark);
  const update = (value) => {
    element.hidden = value === null;
    if (value !== null) mark.style.left = `${(100 * (Math.max(-21, Math.min(21, value)) + 21)) / 42}%`;
  };
  return { element, update };
}

// ---- the comparison

function mountComparison(element, ids = "") {
  document.title = "Comparison · pixelpong";
  const stop = new AbortController(), chosen = [...new Set(ids.split(",").filter(Boolean))].slice(0, MAX_COMPARED);
  const plots = build("div", { class: "curves" }), curves = mountCurves(plots);
  const table = build("div", { class: "scroller", role: "region", tabindex: "0", "aria-label": "How the runs differ" });
  const problem = build("p", { class: "problem", hidden: true });
  const axis = build(
    "select", { onchange: () => curves.setAxis(axis.value) },
    Object.entries(AXES).map(([name, { title }]) => build("option", { value: name }, title)),
  );
  element.append(
    build("h1", {}, "Comparison"), problem, build("div", { class: "section-head" }, build("h2", {}, "Curves"), build("label", {}, "Over ", axis)),
    plots, build("h2", {}, "How they differ"), table,
  );
  const ask = async () => {
    try {
      const answers = await Promise.allSettled(chosen.map((id) => readCompared(id, stop.signal)));
      const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
      const failed = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
      if (stop.signal.aborted) return;
      warnAbove(failed.some((error) => error.isGone) ? `${failed[0].message} Trying again by itself.` : null);
      problem.hidden = found.length > 1 && !failed.length;
      problem.textContent = failed.length ? failed.map((error) => error.message).join(" ") : "Tick at least two runs in the list.";
      curves.update(found.map(({ run, columns }) => ({ name: run.name, columns })));
      table.replaceChildren(buildDifferences(found.map(({ run }) => run)));
    } catch (error) {
      return false;
    }
  };
  repeat(ask, 2 * LIST_SECONDS, stop.signal);
  return { unmount: () => { stop.abort(); curves.unmount(); } };
}

async function readCompared(id, signal) {
  const [run, { columns }] = await Promise.all([
    getJson(`/api/runs/${id}`, signal), getJson(`/api/runs/${id}/metrics?after=0`, signal),
  ]);
  return { run, columns };
}

function buildDifferences(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.config ?? {})))];
  const differing = names.filter((name) => new Set(runs.map((run) => formatValue(run.config?.[name]))).size > 1);
  const line = (title, read) => build("tr", {}, build("th", { scope: "row" }, title), runs.map((run) => build("td", {}, read(run))));
  return build(
    "table", {}, build("thead", {}, build("tr", {}, build("td", {}), runs.map((run) => build("th", { scope: "col" }, build("a", { href: `#run/${run.id}` }, run.name))))),
    build(
      "tbody", {}, line("state", (run) => describeState(run).word), line("return", (run) => describeReturn(run).text),
      line("steps", (run) => formatCount(run.steps)), line("episodes", (run) => formatCount(run.episodes)),
      differing.map((name) => line(name, (run) => formatValue(run.config?.[name]))),
    ),
  );
}

// ---- the game, which play.js shows

function mountGame(element, run = "package", agent = "0", mode = "play") {
  const word = mode === "watch" ? "Watch" : "Play";
  document.title = `${word} · pixelpong`;
  const stop = new AbortController(), place = build("div", { class: "game-place" }, build("p", { class: "quiet" }, "Loading the game…"));
  element.append(place);
  let game = null;
  const token = new URLSearchParams(location.search).get("token");
  const load = async () => {
    const module = await import("./play.js").catch(() => null);
    if (stop.signal.aborted) return;
    if (!module) {
      place.replaceChildren(build("h1", {}, word), build("p", { class: "problem" }, "The game's part of this page is missing. Is the package whole, and the server still running?"));
      return;
    }
    const about = await getJson(`/api/runs/${run}`, stop.signal).catch(() => null);
    if (stop.signal.aborted) return;
    place.replaceChildren();
    if (!document.getElementById("game-style")) {
      document.head.append(build("link", { id: "game-style", rel: "stylesheet", href: "/static/play.css" }));
    }
    game = module.mount(place, { run, agent, mode, agents: about?.opponents ?? about?.agents ?? [], token });
  };
  load();
  return { unmount: () => { stop.abort(); game?.unmount(); } };
}

addEventListener("hashchange", route);
route();
