// The page: which view the address names, the list of runs, the comparison.
//
//     #runs   #run/ID   #compare/ID,ID   #play/ID/AGENT   #watch/ID/AGENT
import { build, buildTable, describeReturn, describeState, formatAgo, formatCount, formatValue, getJson, repeat, rewrite, warnAbove } from "./parts.js";
import { mountCurves } from "./charts.js";
import { mountGame } from "./play.js";
import { mountRun, mountWatch } from "./run.js";

const LIST_SECONDS = 3, COMPARE_SECONDS = 6;
const MAX_COMPARED = 6, MAX_TICKED = 64; // curves; runs, which groups of seeds make fewer
const ticked = new Set(); // ids of the runs to compare, kept when you return to the list

const main = document.getElementById("main");
const VIEWS = { runs: mountList, run: mountRun, compare: mountComparison, play: mountGame, watch: mountWatch };
let leave = null;

// The parts of the address after "#"; none if it is not in order. An id may have a slash in it.
function readAddress() {
  try {
    const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const agent = ["play", "watch"].includes(name) && rest.length > 1 ? [rest.pop()] : [];
    return rest.length ? [name, rest.join("/"), ...agent] : [name];
  } catch {
    return [];
  }
}

function route() {
  const [name, ...rest] = readAddress();
  if (name === "main") return; // the skip link
  const isFirst = leave === null;
  leave?.();
  warnAbove(null);
  const view = build("div", { class: "view" });
  main.replaceChildren(view);
  const mounted = Object.hasOwn(VIEWS, name ?? "") ? VIEWS[name](view, ...rest) : mountList(view);
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
      rewrite(state, runs.length, () => (runs.length ? [`${runs.length} ${runs.length === 1 ? "run" : "runs"}.`] : buildEmpty()));
      state.className = runs.length ? "quiet" : "empty";
    } catch (error) {
      if (error.name !== "AbortError") warnAbove(`${error.message} Trying again.`);
    }
  };
  repeat(ask, () => LIST_SECONDS, stop.signal);
  return { unmount: () => stop.abort() };
}

function buildEmpty() {
  return [
    build("strong", {}, "No runs yet."), " Train one in another terminal, and it appears here:",
    build("code", { class: "command" }, "pixelpong train --preset fast"),
    "Or look at the agents that came with the package: ", build("a", { href: "#watch/package/best" }, "watch"), " or ",
    build("a", { href: "#play/package/best" }, "play against one"), ".",
  ];
}

function buildCompareBar() {
  const link = build("a", { class: "button primary" }, "Compare"), words = build("span");
  const element = build("div", { class: "compare-bar" }, words, link);
  const update = () => {
    element.hidden = ticked.size === 0;
    link.hidden = ticked.size < 2;
    link.href = `#compare/${[...ticked].join(",")}`;
    words.textContent = `${ticked.size} selected${ticked.size < 2 ? ": select another to compare" : ""}`;
  };
  update();
  return { element, update };
}

// Unchanged rows stay in place, so that focus and ticks stay too.
function showRuns(list, rows, runs, onTick) {
  const known = new Set(runs.map((run) => run.id)), groups = Map.groupBy(runs, (run) => run.group ?? run.id);
  for (const [id, row] of rows) {
    if (known.has(id)) continue;
    row.element.remove();
    rows.delete(id);
    ticked.delete(id);
  }
  runs.forEach((run, place) => {
    if (!rows.has(run.id)) rows.set(run.id, makeRow(run, onTick));
    const row = rows.get(run.id);
    row.update(run, groups.get(run.group ?? run.id));
    if (list.children[place] !== row.element) list.insertBefore(row.element, list.children[place] ?? null);
  });
  onTick();
}

function makeRow(run, onTick) {
  const box = build("input", { type: "checkbox", checked: ticked.has(run.id), "aria-label": `Compare ${run.name}` });
  box.onchange = () => {
    if (box.checked && ticked.size >= MAX_TICKED) box.checked = false;
    else if (box.checked) ticked.add(run.id);
    else ticked.delete(run.id);
    onTick();
  };
  const state = build("span"), facts = build("span", { class: "quiet" }), figure = build("span", { class: "return-figure" });
  const seeds = build("a", { class: "seeds" });
  const element = build(
    "li", { class: "run-row", "data-run": run.id }, build("label", { class: "tick" }, box),
    build("div", {}, build("div", { class: "run-head" }, build("a", { class: "run-name", href: `#run/${run.id}` }, run.name), state, seeds), facts),
    build("div", { class: "run-return" }, figure),
  );
  const update = (now, group) => {
    const { word, kind } = describeState(now), best = describeReturn(now), count = countSeeds(group);
    state.textContent = word;
    state.className = `state ${kind}`;
    box.disabled = now.state === "damaged";
    facts.textContent = box.disabled ? now.problem : [
      now.preset, `seed ${now.seed}`, `update ${formatCount(now.update)}`, `${formatCount(now.steps)} steps`, `written ${formatAgo(now.modified)}`, now.problem,
    ].filter(Boolean).join(" · ");
    seeds.hidden = count < 2;
    seeds.href = `#compare/${group.map(({ id }) => id).join(",")}`;
    seeds.textContent = `one of ${count} seeds`;
    figure.replaceChildren(...(box.disabled ? [] : [build("strong", { class: "number" }, best.text), build("span", { class: "quiet" }, ` ${best.name}`)]));
  };
  return { element, update };
}

// Copies of one seed are one seed.
function countSeeds(runs) {
  return new Set(runs.map(({ seed }) => seed)).size;
}

function mountComparison(element, ids = "") {
  document.title = "Comparison · pixelpong";
  const stop = new AbortController(), chosen = [...new Set(ids.split(",").filter(Boolean))].slice(0, MAX_TICKED);
  const problem = build("p", { class: "problem" }), table = build("div");
  const box = build("input", { type: "checkbox", checked: true, onchange: () => show() });
  const joins = build("label", { class: "check" }, box, "Join runs that differ only in their seed: their mean, with a band from the lowest to the highest");
  element.append(build("h1", {}, "Comparison"), problem, joins);
  const curves = mountCurves(element);
  element.append(build("h2", {}, "How they differ"), table);
  let runs = [], problems = [];
  const show = () => {
    const series = listSeries(runs, box.checked);
    joins.hidden = listSeries(runs, true).length === runs.length;
    const left = series.length > MAX_COMPARED && `Only the first ${MAX_COMPARED} of ${series.length} curves are shown.`;
    problem.textContent = [...problems, left].filter(Boolean).join(" ") || (runs.length > 1 ? "" : "Select at least two runs in the list.");
    curves.update(series.slice(0, MAX_COMPARED));
    rewrite(table, runs.map(({ columns, ...run }) => run), () => [buildDifferences(runs)]);
  };
  const ask = async () => {
    const answers = await Promise.allSettled(chosen.map((id) => getJson(`/api/runs/${id}`, stop.signal)));
    if (stop.signal.aborted) return;
    runs = answers.flatMap(({ value }) => (value ? [value] : []));
    problems = answers.flatMap(({ reason }) => (reason ? [reason.message] : []));
    show();
  };
  repeat(ask, () => COMPARE_SECONDS, stop.signal);
  return { unmount: () => { stop.abort(); curves.unmount(); } };
}

// A curve for each run, or for each group of seeds; of copies of one seed the first counts.
function listSeries(runs, isJoined) {
  return [...Map.groupBy(runs, (run) => (isJoined && run.group) || run.id).values()].flatMap((group) => {
    const members = group.filter((run, place) => place === group.findIndex(({ seed }) => seed === run.seed)), [{ name, columns, target }] = members;
    if (members.length < 2) return group.map((run) => ({ name: run.name, target: run.target, columns: run.columns }));
    return [{ name: `${members.length} seeds like ${name}`, target, columns, members: members.map((each) => each.columns) }];
  });
}

function buildDifferences(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.config ?? {})))];
  const options = names.map((name) => [`--${name.replaceAll("_", "-")}`, ...runs.map((run) => formatValue(run.config?.[name]))]);
  const line = (title, tell) => [title, ...runs.map(tell)];
  return buildTable("How the runs differ", ["", ...runs.map((run) => build("a", { href: `#run/${run.id}` }, run.name))], [
    line("state", (run) => describeState(run).word), line("return", (run) => describeReturn(run).text),
    line("steps played", (run) => formatCount(run.steps)), line("episodes played", (run) => formatCount(run.episodes)),
    ...options.filter(([, ...values]) => new Set(values).size > 1),
  ]);
}

addEventListener("hashchange", route);
route();
