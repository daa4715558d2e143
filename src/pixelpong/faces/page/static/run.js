// One run: its result, its health, a game of its agent, its curves, its configuration. And the view
// that shows a game alone.
import {
  build, buildScroller, buildTable, buildTerms, describeState, follow, formatCount, formatSigned,
  formatValue, listReturns, rewrite, tellProblem,
} from "./parts.js";
import { mountCurves } from "./charts.js";
import { Games } from "./viewer.js";

const MIN_GAMES = 10; // from which an interval is shown, as everywhere
const LEVELS = { good: ["✓", "Good"], note: ["i", "Note"], warning: ["!", "Warning"] };

/** The view of a game alone, of a run's agent or of one in the package. */
export function mountWatch(element, signal, id = "package", agent = "best") {
  document.title = "Watch · pixelpong";
  const heading = build("h1", {}, "Watch"), problem = build("p", { class: "problem" });
  const stage = build("div", { class: "games" });
  element.append(heading, problem, stage);
  const games = new Games(stage, agent);
  signal.addEventListener("abort", () => games.leave());
  follow(`/api/runs/${id}`, signal, (run) => {
    problem.textContent = tellProblem(run);
    if (!run.agents) return;
    heading.textContent = `Watch ${run.name}`;
    games.update(run);
  });
}

/** The view of a run. */
export function mountRun(element, signal, id) {
  document.title = "Run · pixelpong";
  const heading = build("h1", {}, id), state = build("span", { class: "state" });
  const problem = build("p", { class: "problem", role: "alert" });
  const verdict = build("p", { class: "verdict" }), health = build("ul", { class: "health" });
  const play = build("a", { class: "button primary", href: `#play/${id}/best` }, "Play against it");
  const facts = build("div"), stage = build("div", { class: "games" });
  const curves = build("section"), rest = build("section");
  const note = build("p", { class: "quiet" }, "No update is finished yet.");
  const parts = [
    verdict, build("p", {}, play), facts, health,
    build("section", {}, build("h2", {}, "Watch it"), stage), curves, note, rest,
  ];
  element.append(
    build("p", { class: "quiet" }, build("a", { href: "#runs" }, "← All runs")),
    build("div", { class: "row" }, heading, state), problem, ...parts,
  );
  const games = new Games(stage, "best"), drawCurves = mountCurves(curves);
  signal.addEventListener("abort", () => games.leave());
  follow(`/api/runs/${id}`, signal, (run) => {
    problem.textContent = tellProblem(run);
    for (const part of parts) part.hidden = !run.id;
    if (!run.id) return;
    document.title = `${run.name} · pixelpong`;
    heading.textContent = run.name;
    const { word, kind } = describeState(run);
    Object.assign(state, { textContent: word, className: `state ${kind}` });
    play.hidden = run.isGone || !run.agents.length;
    const sentence = run.verdict[0].toUpperCase() + run.verdict.slice(1);
    const sign = run.state === "won" ? [buildSign("✓")] : [];
    rewrite(verdict, sentence, () => [...sign, build("span", {}, sentence)]);
    rewrite(facts, listFacts(run), () => [buildTerms("facts number", listFacts(run))]);
    rewrite(health, run.health, () => run.health.map(buildFinding));
    note.hidden = run.columns.update?.length > 0;
    drawCurves([{ name: run.name, target: run.target, columns: addEvaluations(run) }]);
    if (!run.isGone) games.update(run);
    rewrite(rest, [run.evaluations, run.config], () => [
      ...buildEvaluations(run.evaluations), buildConfiguration(run),
    ]);
  });
}

/** The columns of the metrics, with the greedy returns at the updates that were evaluated. */
function addEvaluations({ columns, evaluations }) {
  const greedy = (columns.update ?? []).map(() => null);
  for (const { update, mean_return: mean } of evaluations) {
    greedy[columns.update?.findLastIndex((each) => each <= update)] = mean;
  }
  return { ...columns, greedy_return: greedy };
}

function buildSign(sign) {
  return build("span", { class: "sign", "aria-hidden": "true" }, sign);
}

function listFacts(run) {
  const newest = (name) => run.columns[name]?.findLast((value) => value !== null);
  const won = newest("points_won_1000");
  return [
    ...listReturns(run),
    ["points won, last 1,000", won == null ? "–" : `${(100 * won).toFixed(1)} %`],
    ["steps played", formatCount(run.steps)], ["update", formatCount(run.update)],
    ["episodes", formatCount(run.episodes)],
    ["speed, steps per second", formatCount(newest("steps_per_second"))],
  ];
}

function buildFinding({ level, title, text, advice }) {
  const [sign, word] = LEVELS[level] ?? LEVELS.note;
  return build(
    "li", { class: `health-item ${level}` }, buildSign(sign),
    build(
      "div", {}, build("p", {}, build("strong", {}, `${word}: ${title}.`), " ", text),
      advice && build("p", { class: "quiet" }, advice),
    ),
  );
}

function buildEvaluations(lines) {
  if (!lines.length) return [];
  const rows = lines.map(({ update, mean_return: mean, ci95: [low, high], std, games }) => [
    formatCount(update), formatSigned(mean, 2),
    games < MIN_GAMES ? "too few games" : `${formatSigned(low, 2)} … ${formatSigned(high, 2)}`,
    std?.toFixed(2) ?? "–", `${games}`,
  ]);
  const head = ["update", "greedy return", "95 % interval", "deviation", "games"];
  const scroller = buildScroller("Evaluations");
  scroller.append(buildTable(head, rows.reverse()));
  return [build("h2", {}, "Evaluations"), scroller];
}

function buildConfiguration({ config, versions, machine }) {
  const tables = Object.entries({ Configuration: config, Versions: versions, Machine: machine });
  return build(
    "details", {}, build("summary", {}, build("h2", {}, "Configuration and versions")),
    tables.flatMap(([title, content]) => {
      const terms = Object.entries(content).map(([name, value]) => [name, formatValue(value)]);
      return [build("h3", {}, title), buildTerms("config", terms)];
    }),
  );
}
