// Several runs: a comparison of those that were chosen, or a sweep.
import {
  FIGURES, build, buildScroller, buildTable, describeRun, follow, formatCount, formatSeconds,
  formatSigned, formatValue, rewrite, tellProblem,
} from "./parts.js";
import { mountCurves } from "./charts.js";

const MAX_CURVES = 6, MAX_RUNS = 64;

/** The view of a comparison; `ids` are joined by commas. */
export function mountComparison(element, signal, ids = "") {
  document.title = "Comparison · pixelpong";
  const chosen = [...new Set(ids.split(",").filter(Boolean))].slice(0, MAX_RUNS);
  element.append(build("h1", {}, "Comparison"));
  const remove = (id) => {
    const rest = chosen.filter((each) => each !== id).join(",");
    return build("a", { href: `#compare/${rest}`, "aria-label": `Remove ${id}` }, "Remove");
  };
  mountRuns(element, signal, remove)(chosen);
}

/** The view of a sweep. */
export function mountSweep(element, signal, name) {
  document.title = `${name} · pixelpong`;
  const problem = build("p", { class: "problem" }), summary = buildScroller("What came of it");
  const words = "Medians, and of the return the mean of the middle half; with 95 % intervals.";
  element.append(build("h1", {}, name), problem, summary, build("p", { class: "quiet" }, words));
  const followAll = mountRuns(element, signal);
  follow(`/api/sweeps/${name}`, signal, (sweep) => {
    problem.textContent = tellProblem(sweep);
    if (!sweep.settings) return;
    rewrite(summary, sweep.settings, () => [buildSettings(sweep.settings)]);
    followAll(sweep.runs);
  });
}

// What came of each configuration: of its seeds together.
function buildSettings(settings) {
  const tell = (found, format) => {
    const ends = found?.ci95 ? ` (${found.ci95.map(format).join(" to ")})` : "";
    return found ? format(found.middle) + ends : "–";
  };
  const rows = settings.map(({ label, won, trainings, steps, seconds, final_return: value }) => [
    label || "all seeds", `${won} of ${trainings}`, tell(steps, formatCount),
    tell(seconds, formatSeconds), tell(value, (each) => formatSigned(each, 1)),
  ]);
  const head = ["setting", "won", "steps to the win", "time to the win", "final return"];
  return buildTable(head, rows);
}

// Curves and a table of runs; returns what begins to follow those with some ids.
function mountRuns(element, signal, remove) {
  const runs = new Map(), problem = build("p", { class: "problem" });
  const table = buildScroller("The runs");
  const box = build("input", { type: "checkbox", checked: true, onchange: () => show() });
  const words = "Join runs that differ only in their seed: their mean, and from lowest to highest";
  const more = "One that has ended stays where it was.";
  const joins = build("label", { class: "row" }, box, `${words}. ${more}`);
  element.append(problem, joins);
  const drawCurves = mountCurves(element);
  element.append(build("h2", {}, "The runs"), table);
  const show = () => {
    const known = [...runs.values()].filter((run) => run.id);
    const series = listSeries(known, box.checked);
    joins.hidden = listSeries(known, true).length === known.length;
    const problems = [...runs].map(([id, run]) => tellProblem(run) && `${id}: ${tellProblem(run)}`);
    problem.textContent = [
      ...problems, remove && runs.size < 2 && "Select at least two runs in the list.",
      series.length > MAX_CURVES && `Only ${MAX_CURVES} of ${series.length} curves are shown.`,
    ].filter(Boolean).join(" ");
    drawCurves(series.slice(0, MAX_CURVES));
    const content = known.map(({ columns, text, ...run }) => run);
    rewrite(table, content, () => [buildRuns(known, remove)]);
  };
  return (ids) => {
    for (const id of ids.filter((each) => !runs.has(each))) {
      runs.set(id, {});
      follow(`/api/runs/${id}`, signal, (run) => { runs.set(id, run); show(); });
    }
    show();
  };
}

// A curve for each run, or for each group of seeds; of copies of one seed the first counts.
function listSeries(runs, isJoined) {
  const groups = Map.groupBy(runs, (run) => (isJoined && run.group) || run.id);
  return [...groups.values()].flatMap((group) => {
    const bySeed = Map.groupBy(group, ({ seed }) => seed);
    const members = [...bySeed.values()].map(([run]) => run);
    if (members.length < 2) return group;
    const { name, target } = members[0], columns = members.map((run) => run.columns);
    return [{ name: `${members.length} seeds like ${name}`, target, members: columns }];
  });
}

// A row for each run: its result, and the options in which they differ.
function buildRuns(runs, remove) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.config ?? {})))];
  const tell = (run, name) => formatValue(run.config?.[name]);
  const isOther = (name) => new Set(runs.map((run) => tell(run, name))).size > 1;
  const differing = names.filter(isOther), more = remove ? [""] : [];
  const rows = runs.map((run) => [
    build("a", { href: `#run/${run.id}` }, run.name), ...more.map(() => remove(run.id)),
    ...describeRun(run), ...differing.map((name) => tell(run, name)),
  ]);
  const options = differing.map((name) => `--${name.replaceAll("_", "-")}`);
  return buildTable(["run", ...more, ...FIGURES, ...options], rows);
}
