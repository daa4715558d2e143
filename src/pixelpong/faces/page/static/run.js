// One run: its result, its health, a game of its agent, its curves, its configuration.
import {
  build, buildProblem, buildTerms, follow, formatCount, formatNumber, formatOption, formatSeconds,
  isPong, listReturns, nameOption, rewrite,
} from "./parts.js";
import { mountCurves } from "./charts.js";
import { ReelView, findAgent, nameAgent } from "./viewer.js";

/**
 * The view of a run; if an `agent` is given, of that agent's game alone. The `game` is named by
 * SEED/EPISODE; by default it is the first of an evaluation.
 */
export function mountRun(element, signal, id, agent = null, game = "") {
  const title = build("h1", {}, id), state = build("span");
  const problem = build("p", { class: "problem", role: "alert" });
  const result = build("p", { class: "verdict" }), health = build("ul", { class: "health" });
  const play = build("a", { class: "button primary", href: `#play/${id}/best` }, "Play against it");
  const facts = build("div"), stage = build("div", { class: "games" });
  const curves = build("section"), rest = build("section");
  const note = build("p", { class: "quiet" }, "No update has finished yet.");
  const parts = [result, note, curves, build("p", {}, play), facts, health, rest];
  const both = build("div", { class: "both" });
  element.classList.toggle("watching", agent !== null);
  element.append(build("div", { class: "row heading" }, title, state), problem, both);
  document.title = `${id} · pixelpong`;
  const games = new ReelView(stage, agent ?? "best", game), drawCurves = mountCurves(curves);
  signal.addEventListener("abort", () => games.leave());
  follow(`api/runs/${id}`, signal, (run) => {
    problem.replaceChildren(...buildProblem(run.trouble, run.isGone));
    for (const part of parts) part.hidden = agent !== null || !run.id;
    arrange(both, run.is_live && agent === null, stage, ...parts);
    stage.hidden = !run.id;
    if (!run.id) return;
    const watched = agent && findAgent(run, agent);
    title.textContent = watched ? `Watch ${nameAgent(run, watched)}` : run.name;
    document.title = `${title.textContent} · pixelpong`;
    if (!run.isGone) games.update(run);
    if (agent) return;
    Object.assign(state, { textContent: run.state, className: `state ${run.state}` });
    play.hidden = run.isGone || !run.agents.length;
    health.hidden = run.isGone;
    const className = run.state === "won" ? "verdict sign good" : "verdict";
    Object.assign(result, { textContent: capitalize(run.verdict), className });
    rewrite(facts, listFacts(run), () => [buildTerms("facts number", listFacts(run))]);
    rewrite(health, run.health, () => run.health.map(buildFinding));
    note.hidden = run.columns.update?.length > 0;
    const { name, target, game, scores } = run, members = [addEvaluations(run)];
    drawCurves([{ name, target, game, scores, members }]);
    rewrite(rest, run.config, () => [buildConfiguration(run)]);
  });
}

/** While a run learns, its curves come first, with the game next to them; later its result. */
function arrange(both, isLive, stage, result, note, curves, play, facts, health, rest) {
  const isArranged = both.childElementCount > 0;
  if (isArranged && both.classList.contains("live") === isLive) return;
  both.classList.toggle("live", isLive);
  const side = build("div", { class: "view" }, stage, play, facts, health);
  both.replaceChildren(...(isLive
    ? [result, note, curves, side, rest] : [result, play, facts, health, stage, curves, note, rest]));
}

/** The columns of the metrics, with the mean returns at the updates that were evaluated. */
function addEvaluations({ columns, evaluations }) {
  const evaluated = (columns.update ?? []).map(() => null);
  for (const { update, mean_return: mean } of evaluations) {
    evaluated[columns.update?.findLastIndex((number) => number <= update)] = mean;
  }
  return { ...columns, evaluated_return: evaluated };
}

function capitalize(words) {
  return words[0].toUpperCase() + words.slice(1);
}

function listFacts(run) {
  const newest = (name) => run.columns[name]?.findLast((value) => value !== null);
  const won = newest("points_won_1000"), share = 100 * (run.human_normalised ?? NaN);
  return [
    ...listReturns(run),
    isPong(run)
      ? ["points won, last 1,000", won == null ? "–" : `${(100 * won).toFixed(1)} %`]
      : ["human-normalised", `${formatNumber(share, { maximumFractionDigits: 0 })} %`],
    ["steps played", formatCount(run.steps)], ["update", formatCount(run.update)],
    ["episodes", formatCount(run.episodes)],
    ["speed, steps per second", formatCount(newest("steps_per_second"))],
    ["time in total", formatSeconds(run.total_seconds)],
    ...(run.seconds_to_win === null ? [] : [
      ["time to the win, estimated", `about ${formatSeconds(run.seconds_to_win)}`],
    ]),
  ];
}

function buildFinding({ level, title, text, advice }) {
  const name = level === "good" ? title : `${capitalize(level)}: ${title}`;
  const words = build("strong", {}, `${name}.`);
  const more = advice && build("p", { class: "quiet" }, advice);
  const all = build("div", {}, build("p", {}, words, " ", text), more);
  return build("li", { class: `health-item sign ${level}` }, all);
}

function buildConfiguration({ config, versions, machine }) {
  const tables = Object.entries({ Configuration: config, Versions: versions, Machine: machine });
  return build(
    "details", {}, build("summary", {}, build("h2", {}, "Configuration and versions")),
    tables.flatMap(([title, content]) => {
      const terms = Object.entries(content).map(([name, value]) => (
        [nameOption(name), formatOption(name, value)]
      ));
      return [build("h3", {}, title), buildTerms("config", terms)];
    }),
  );
}
