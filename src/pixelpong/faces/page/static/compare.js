// Several runs side by side: the chosen ones, or those of a sweep.
import {
  RUN_COLUMNS, build, buildScroller, buildTable, describeRun, follow, formatCount, formatOption,
  formatReturn, formatSeconds, formatShare, nameOption, rewrite,
} from "./parts.js";
import { mountCurves } from "./charts.js";

const MAX_CURVES = 6;

/** The view of a comparison of runs and sweeps, by `ids` with commas between, or of one sweep. */
export function mountComparison(element, signal, ids = "", isSweep = false) {
  const chosen = ids.split(",").filter(Boolean), title = isSweep ? ids : "Comparison";
  const problem = build("p", { class: "problem" }), table = buildScroller("The runs");
  const summary = buildScroller("Results");
  const words = build("p", { class: "quiet" });
  const box = build("input", { type: "checkbox", checked: true, onchange: () => show() });
  const joining = "Group runs that differ only by seed "
    + "(mean and range, up to the end of the shortest)";
  const joins = build("label", { class: "row" }, box, joining);
  document.title = `${title} · pixelpong`;
  element.append(build("h1", {}, title), problem);
  if (isSweep) element.append(summary, words);
  element.append(joins);
  const curves = build("div"), drawCurves = mountCurves(curves);
  element.append(curves, build("h2", {}, "The runs"), table);
  let answer = {};
  const show = () => {
    const { runs = [], settings = [], suites = [], options } = answer;
    const groups = box.checked
      ? settings.map((setting) => setting.runs) : runs.map(({ id }) => [id]);
    const series = groups.map((group) => joinRuns(runs.filter(({ id }) => group.includes(id))));
    const isGone = (name) => !runs.some(({ id }) => id === name || id.startsWith(`${name}/`));
    curves.hidden = series.length === 0 || (runs.length < 2 && !isSweep);
    joins.hidden = settings.length === runs.length;
    problem.textContent = [
      answer.trouble, ...runs.map((run) => run.problem && `${run.id}: ${run.problem}`),
      runs.length && chosen.some(isGone) && `Gone: ${chosen.filter(isGone).join(", ")}.`,
      runs.length < 2 && !isSweep && "Select at least two runs in the list.",
      series.length > MAX_CURVES && `Only ${MAX_CURVES} of ${series.length} curves are shown.`,
    ].filter(Boolean).join(" ");
    drawCurves(series.slice(0, MAX_CURVES));
    const middle = suites.length ? "Means of the runs that are done" : "Medians";
    words.textContent = `${middle}; 95 % intervals from four runs up.`;
    rewrite(summary, [settings, suites], () => (
      suites.length ? suites.flatMap(buildSuite) : [buildSettings(settings, runs)]));
    const content = runs.map(({ columns, ...run }) => run);
    rewrite(table, content, () => [buildRuns(runs, options, isSweep ? [] : chosen)]);
  };
  follow(`api/several/${ids}`, signal, (newest) => { answer = newest; show(); });
}

function joinRuns(runs) {
  const [{ name, target, game, scores }] = runs, members = runs.map(({ columns }) => columns);
  const title = runs.length > 1 ? `${runs.length} seeds like ${name}` : name;
  return { name: title, target, game, scores, members };
}

// The result of each configuration, over all its seeds.
function buildSettings(settings, runs) {
  const describe = (summary, format) => {
    const interval = summary?.ci95 ? ` (${summary.ci95.map(format).join(" to ")})` : "";
    return summary ? format(summary.median) + interval : "–";
  };
  const rows = settings.map((setting) => {
    const { label, won, trainings, steps, seconds, final_return: value } = setting;
    const run = runs.find(({ id }) => setting.runs.includes(id));
    return [
      label || "all seeds", `${won} of ${trainings}`, describe(steps, formatCount),
      describe(seconds, formatSeconds), describe(value, (number) => formatReturn(number, run)),
    ];
  });
  const head = ["setting", "won", "steps to win", "time to win", "final return"];
  return buildTable(head, rows);
}

// The scores of several games, and the mean of all, as `pixelpong.faces.comparing` writes them.
function buildSuite({ label, games, all }) {
  const describe = (line) => {
    const { trainings, done, human_normalised: share, interquartile_mean: middle } = line;
    const interval = middle?.ci95 ? ` (${middle.ci95.map(formatShare).join(" to ")})` : "";
    const text = middle ? formatShare(middle.mean) + interval : "–";
    return [done === trainings ? `${done}` : `${done} of ${trainings}`, formatShare(share), text];
  };
  const rows = [...games, ...(games.length > 1 ? [{ ...all, game: "all" }] : [])].map((line) => {
    const [count, ...shares] = describe(line);
    const score = line.score === undefined ? "" : formatReturn(line.score, line); // "all" has none
    return [line.game, count, score, ...shares];
  });
  const head = ["game", "runs", "score", "human-normalised", "interquartile mean"];
  return [label && build("h2", {}, label), buildTable(head, rows)].filter(Boolean);
}

// A row for each run: its result, and the options in which they differ; those in `chosen` can be
// removed.
function buildRuns(runs, options, chosen) {
  const remove = (id) => {
    const rest = chosen.filter((other) => other !== id).join(",");
    const label = `Remove ${id}`;
    const link = { href: `#compare/${rest}`, class: "remove", "aria-label": label, title: label };
    return chosen.includes(id) && build("a", link, "×");
  };
  const rows = runs.map((run) => [
    [build("a", { href: `#run/${run.id}` }, run.name), remove(run.id)], ...describeRun(run),
    ...options.map((name) => formatOption(name, run.config[name])),
  ]);
  return buildTable(["run", ...RUN_COLUMNS, ...options.map(nameOption)], rows);
}
