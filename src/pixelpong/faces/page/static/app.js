// The page: which view the address names, the list of runs, the comparison.
//
//     #runs   #run/ID   #compare/ID,ID   #play/ID/UPDATE   #watch/ID/UPDATE   #two   #tournaments   #tournament/ID
import { build, buildTable, describeReturn, describeState, formatAgo, formatCount, formatValue, getJson, repeat, rewrite, warnAbove } from "./parts.js";
import { mountCurves } from "./charts.js";
import { mountGame } from "./play.js";
import { mountRun } from "./run.js";
import { mountTournament, mountTournaments } from "./tournament.js";

const LIST_SECONDS = 3;
const MAX_COMPARED = 6, MAX_TICKED = 64; // curves; runs, which groups of seeds make fewer
const SPARK = { width: 120, height: 34 };
const SORTS = {
  newest: (run) => -run.modified, name: (run) => run.name, "best return": (run) => -(describeReturn(run).value ?? -99),
  state: (run) => describeState(run).word, preset: (run) => run.preset ?? "", seed: (run) => run.seed ?? -1, steps: (run) => -run.steps,
};
const sorting = { by: "newest", words: "" }; // kept when you return to the list
const ticked = new Set(); // ids of the runs to compare, kept when you return to the list

const main = document.getElementById("main");
const VIEWS = {
  runs: mountList, run: mountRun, compare: mountComparison, tournaments: mountTournaments, tournament: mountTournament,
  play: (...place) => mountGame("play", ...place), two: (view) => mountGame("two", view), watch: (...place) => mountGame("watch", ...place),
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
  let known = [];
  const show = () => showRuns(list, rows, chooseRuns(known), bar.update);
  const sort = build("select", { onchange: () => { sorting.by = sort.value; show(); } }, Object.keys(SORTS).map((name) => build("option", { value: name, selected: name === sorting.by }, name)));
  const filter = build("input", { type: "search", value: sorting.words, oninput: () => { sorting.words = filter.value; show(); } });
  const tools = build("div", { class: "choices" }, build("label", {}, "Sort by ", sort), build("label", {}, "Filter ", filter));
  element.append(build("div", { class: "section-head" }, build("h1", {}, "Runs"), tools), state, bar.element, list);
  const ask = async () => {
    try {
      const { runs } = await getJson("/api/runs", stop.signal);
      known = runs;
      warnAbove(null);
      show();
      tools.hidden = !runs.length;
      rewrite(state, runs.length, () => (runs.length ? [`${runs.length} ${runs.length === 1 ? "run" : "runs"}.`] : buildEmpty()));
      state.className = runs.length ? "quiet" : "empty";
    } catch (error) {
      if (error.name !== "AbortError") warnAbove(`${error.message} Trying again by itself.`);
      return false;
    }
  };
  repeat(ask, LIST_SECONDS, stop.signal);
  return { unmount: () => stop.abort() };
}

// The runs with the words of the filter, in order; each knows those that differ by the seed alone.
function chooseRuns(runs) {
  const words = sorting.words.toLowerCase().split(" "), key = SORTS[sorting.by], groups = Map.groupBy(runs, (run) => run.group ?? run.id);
  const order = (a, b) => (a < b ? -1 : Number(a > b));
  return runs.map((run) => ({ ...run, seeds: groups.get(run.group ?? run.id).map(({ id }) => id) }))
    .filter((run) => words.every((word) => `${run.name} ${run.preset} ${run.note} ${describeState(run).word} seed ${run.seed}`.toLowerCase().includes(word)))
    .sort((a, b) => order(key(a), key(b)));
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

// Unchanged rows stay in place, so that focus and ticks stay too.
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
    if (box.checked && ticked.size >= MAX_TICKED) box.checked = false;
    else if (box.checked) ticked.add(run.id);
    else ticked.delete(run.id);
    onTick();
  };
  const state = build("span"), facts = build("span", { class: "quiet" }), figure = build("span", { class: "return-figure" });
  const spark = build("span", { class: "spark", "aria-hidden": "true" }), seeds = build("a", { class: "seeds" });
  const element = build(
    "li", { class: "run-row", "data-run": run.id }, build("label", { class: "tick" }, box),
    build("div", {}, build("div", { class: "run-head" }, build("a", { class: "run-name", href: `#run/${run.id}` }, run.name), state, seeds), facts),
    spark, build("div", { class: "run-return" }, figure),
  );
  const update = (now) => {
    const { word, kind } = describeState(now), best = describeReturn(now);
    state.textContent = word;
    state.className = `state ${kind}`;
    box.disabled = Boolean(now.problem);
    facts.textContent = now.problem ?? [
      now.preset, `seed ${now.seed}`, now.environment, `update ${formatCount(now.update ?? 0)}`, `${formatCount(now.steps)} steps`,
      `${formatCount(now.episodes)} episodes`, `written ${formatAgo(now.modified)}`, now.note,
    ].filter(Boolean).join(" · ");
    seeds.hidden = now.seeds.length < 2;
    seeds.href = `#compare/${now.seeds.join(",")}`;
    seeds.textContent = `one of ${now.seeds.length} seeds`;
    figure.replaceChildren(...(now.problem ? [] : [build("strong", { class: "number" }, best.text), build("span", { class: "quiet" }, ` ${best.name}`)]));
    rewrite(spark, [now.curve, now.target], () => drawSpark(now));
  };
  return { element, update };
}

// A small curve of the return, with the line at its target.
function drawSpark({ curve, target }) {
  if (!(curve?.length > 1)) return [];
  const { width, height } = SPARK, last = curve.at(-1)[0] || 1, y = (value) => (height - 2) * (21 - value) / 42 + 1;
  const d = `M${curve.map(([steps, value]) => `${((width * steps) / last).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  const line = target == null ? [] : [build("svg:path", { class: "target", d: `M0 ${y(target)}H${width}` })];
  return [build("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}` }, line, build("svg:path", { class: "spark-line", d }))];
}

function mountComparison(element, ids = "") {
  document.title = "Comparison · pixelpong";
  const stop = new AbortController(), chosen = [...new Set(ids.split(",").filter(Boolean))].slice(0, MAX_TICKED);
  const problem = build("p", { class: "problem" }), table = build("div");
  let found = [];
  const box = build("input", { type: "checkbox", checked: true, onchange: () => show() });
  const joins = build("label", { class: "check" }, box, "Runs that differ by the seed alone: one curve, their mean; the band goes from the lowest to the highest");
  element.append(build("h1", {}, "Comparison"), problem, joins);
  const curves = mountCurves(element);
  element.append(build("h2", {}, "How they differ"), table);
  const show = () => {
    const series = listSeries(found, box.checked), hasSeeds = new Set(found.map(({ run }) => run.group)).size < found.length;
    joins.hidden = !hasSeeds;
    const left = series.length > MAX_COMPARED && `The first ${MAX_COMPARED} of ${series.length} curves are shown.`;
    problem.textContent = [...problems, left].filter(Boolean).join(" ") || (found.length > 1 ? "" : "Tick at least two runs in the list.");
    curves.update(series.slice(0, MAX_COMPARED));
    rewrite(table, found.map(({ run }) => run), () => [buildDifferences(found.map(({ run }) => run))]);
  };
  let problems = [];
  const ask = async () => {
    const answers = await Promise.allSettled(chosen.map((id) => readCompared(id, stop.signal)));
    if (stop.signal.aborted) return;
    found = answers.flatMap((answer) => answer.value ?? []);
    const failed = answers.flatMap((answer) => answer.reason ?? []);
    warnAbove(failed.some((error) => error.isGone) ? `${failed[0].message} Trying again by itself.` : null);
    problems = failed.map((error) => error.message);
    show();
  };
  repeat(ask, 2 * LIST_SECONDS, stop.signal);
  return { unmount: () => { stop.abort(); curves.unmount(); } };
}

// A curve a run, or a group of seeds.
function listSeries(found, isJoined) {
  const groups = [...Map.groupBy(found, ({ run }) => (isJoined && run.group) || run.id).values()], { target } = found[0]?.run ?? {};
  return groups.map((group) => {
    const [{ run, columns }] = group, name = group.length > 1 ? `${group.length} seeds like ${run.name}` : run.name;
    return { name, target, columns, ...(group.length > 1 && { members: group.map((each) => each.columns) }) };
  });
}

async function readCompared(id, signal) {
  const [run, { columns }] = await Promise.all([
    getJson(`/api/runs/${id}`, signal), getJson(`/api/runs/${id}/metrics?after=0`, signal),
  ]);
  return { run, columns };
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
