// The page: which view the address names, the list of runs, the comparison.
//
//     #runs   #run/ID   #compare/ID,ID   #play/ID/UPDATE   #watch/ID/UPDATE
import { build, buildTable, describeReturn, describeState, formatAgo, formatCount, formatValue, getJson, repeat, warnAbove } from "./parts.js";
import { mountCurves } from "./charts.js";
import { mountGame } from "./play.js";
import { mountRun } from "./run.js";

const LIST_SECONDS = 3;
const MAX_COMPARED = 6;
const ticked = new Set(); // ids of the runs to be compared, kept when you come back to the list

const main = document.getElementById("main");
const VIEWS = {
  runs: mountList, run: mountRun, compare: mountComparison,
  play: (...place) => mountGame("play", ...place), watch: (...place) => mountGame("watch", ...place),
};
let leave = null;

function route() {
  const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (name === "main") return; // the skip link
  const isFirst = leave === null;
  leave?.();
  warnAbove(null);
  const view = build("div", { class: "view" });
  main.replaceChildren(view);
  const mounted = name in VIEWS ? VIEWS[name](view, ...rest) : mountList(view);
  leave = () => mounted.unmount();
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.hash.slice(1).split("/")[0] === (name || "runs");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (isFirst) return;
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function mountList(element) {
  document.title = "Runs · pixelpong";
  const stop = new AbortController(), rows = new Map();
  const list = build("ul", { class: "runs", "aria-label": "Runs" }), bar = buildCompareBar();
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
  const link = build("a", { class: "button primary" }, "Compare"), words = build("span");
  const element = build("div", { class: "compare-bar" }, words, link);
  const update = () => {
    element.hidden = ticked.size === 0;
    link.hidden = ticked.size < 2;
    link.href = `#compare/${[...ticked].join(",")}`;
    words.textContent = `${ticked.size} ticked${ticked.size < 2 ? ": tick another to compare" : ""}`;
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
  const state = build("span"), facts = build("span", { class: "quiet" }), figure = build("span", { class: "return-figure" });
  const mark = build("span", { class: "meter-mark" }), meter = build("span", { class: "meter", "aria-hidden": "true" }, mark);
  const element = build(
    "li", { class: "run-row", "data-run": run.id }, build("label", { class: "tick" }, box),
    build("div", {}, build("div", { class: "run-head" }, build("a", { class: "run-name", href: `#run/${run.id}` }, run.name), state), facts),
    build("div", { class: "run-return" }, figure, meter),
  );
  const update = (now) => {
    const { word, kind } = describeState(now), best = describeReturn(now), place = Math.max(-21, Math.min(21, best.value));
    state.textContent = word;
    state.className = `state ${kind}`;
    box.disabled = Boolean(now.problem);
    facts.textContent = now.problem ?? [
      now.preset, now.environment, `update ${formatCount(now.update ?? 0)}`, `${formatCount(now.steps)} steps`,
      `${formatCount(now.episodes)} episodes`, `written ${formatAgo(now.modified)}`,
    ].filter(Boolean).join(" · ");
    figure.replaceChildren(...(now.problem ? [] : [build("strong", { class: "number" }, best.text), build("span", { class: "quiet" }, ` ${best.of}`)]));
    meter.hidden = Boolean(now.problem) || best.value === null;
    mark.style.left = `${(100 * (place + 21)) / 42}%`;
  };
  return { element, update };
}

function mountComparison(element, ids = "") {
  document.title = "Comparison · pixelpong";
  const stop = new AbortController(), chosen = [...new Set(ids.split(",").filter(Boolean))].slice(0, MAX_COMPARED);
  const problem = build("p", { class: "problem" }), table = build("div");
  element.append(build("h1", {}, "Comparison"), problem);
  const curves = mountCurves(element);
  element.append(build("h2", {}, "How they differ"), table);
  const ask = async () => {
    const answers = await Promise.allSettled(chosen.map((id) => readCompared(id, stop.signal)));
    if (stop.signal.aborted) return;
    const found = answers.flatMap((answer) => answer.value ?? []), failed = answers.flatMap((answer) => answer.reason ?? []);
    warnAbove(failed.some((error) => error.isGone) ? `${failed[0].message} Trying again by itself.` : null);
    problem.textContent = failed.map((error) => error.message).join(" ") || (found.length > 1 ? "" : "Tick at least two runs in the list.");
    curves.update(found.map(({ run, columns }) => ({ name: run.name, columns })));
    table.replaceChildren(buildDifferences(found.map(({ run }) => run)));
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
  const options = names.map((name) => [name, ...runs.map((run) => formatValue(run.config?.[name]))]);
  const line = (title, tell) => [title, ...runs.map(tell)];
  return buildTable("How the runs differ", ["", ...runs.map((run) => build("a", { href: `#run/${run.id}` }, run.name))], [
    line("state", (run) => describeState(run).word), line("return", (run) => describeReturn(run).text),
    line("steps played", (run) => formatCount(run.steps)), line("episodes played", (run) => formatCount(run.episodes)),
    ...options.filter(([, ...values]) => new Set(values).size > 1),
  ]);
}

addEventListener("hashchange", route);
route();
