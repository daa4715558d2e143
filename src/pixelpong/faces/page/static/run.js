// One run: its result, its health, a game of its agent, its curves, its configuration. And the view
// that shows a game alone.
import { announce, build, buildTable, describeState, formatCount, formatSigned, formatValue, getJson, listReturns, repeat, rewrite, warnAbove } from "./parts.js";
import { mountCurves } from "./charts.js";
import { Games } from "./watch.js";

const LIVE_SECONDS = 1, REST_SECONDS = 5; // between two requests for news
const MAX_ROWS = 4000;
const LEVELS = { good: ["✓", "Good"], note: ["i", "Note"], warning: ["!", "Warning"] };

// Ask for a run again and again; `show(run)` is called with all that is known of it.
function follow(element, id, show) {
  const stop = new AbortController();
  let run = null, isLost = false;
  const ask = async () => {
    const query = run?.table ? `?after=${run.columns.update.at(-1) ?? 0}&table=${run.table}` : "";
    try {
      const news = await getJson(`/api/runs/${id}${query}`, stop.signal);
      run = { ...news, columns: mergeColumns(run?.columns ?? {}, news.columns ?? {}, news.after ?? 0) };
      if (isLost) announce("Connected again.");
      isLost = false;
      warnAbove(run.state === "damaged" && `This run cannot be read: ${run.problem}`);
      show(run);
    } catch (error) {
      if (error.name === "AbortError") return;
      isLost = true;
      const isDeleted = run && error.status === 404;
      if (run) warnAbove(isDeleted ? "This run is gone: deleted or moved. The page shows what was read before." : `${error.message} Trying again.`);
      else element.replaceChildren(
        build("h1", {}, "This run cannot be shown"), build("p", { class: "problem" }, error.message),
        build("p", {}, "It may be deleted, moved, or just starting: this page tries again. ", build("a", { href: "#runs" }, "Back to the list"), "."),
      );
      if (isDeleted && !run.isGone) show(Object.assign(run, { isGone: true, is_live: false }));
    }
  };
  repeat(ask, () => (run?.is_live || isLost ? LIVE_SECONDS : REST_SECONDS), stop.signal);
  return () => stop.abort();
}

// The view of a run.
export function mountRun(element, id) {
  document.title = "Run · pixelpong";
  element.append(build("p", { class: "quiet" }, "Reading the run…"));
  let view = null;
  const stop = follow(element, id, (run) => {
    view ??= new RunView(element, run);
    view.show(run);
  });
  return { unmount: () => { stop(); view?.leave(); } };
}

// The view of a game alone, of a run's agent or of one in the package.
export function mountWatch(element, id = "package", agent = "best") {
  document.title = "Watch · pixelpong";
  element.append(build("p", { class: "quiet" }, "Reading the agent…"));
  let games = null;
  const stop = follow(element, id, (run) => {
    if (!games) {
      const stage = build("div", { class: "games" });
      element.replaceChildren(build("h1", {}, `Watch ${run.name}`), stage);
      games = new Games(stage, run, agent);
    }
    games.update(run);
  });
  return { unmount: () => { stop(); games?.leave(); } };
}

class RunView {
  constructor(element, run) {
    document.title = `${run.name} · pixelpong`;
    this.state = build("span", { class: "state" });
    this.verdict = build("p", { class: "verdict" });
    this.actions = build("p", { class: "actions-line" });
    this.facts = build("dl", { class: "facts" });
    this.health = build("ul", { class: "health" });
    this.note = build("p", { class: "quiet" }, "No update is finished yet: the curves begin with the first.");
    this.evaluations = build("section");
    const games = build("div", { class: "games" }), curves = build("section");
    element.replaceChildren(
      build("p", { class: "quiet" }, build("a", { href: "#runs" }, "← All runs")),
      build("div", { class: "run-title" }, build("h1", {}, run.name), this.state), this.verdict, this.actions, this.facts, this.health,
      build("section", {}, build("h2", {}, "Watch it"), games), curves, this.note, this.evaluations, buildConfiguration(run),
    );
    this.curves = mountCurves(curves);
    this.games = new Games(games, run, "best");
  }

  leave() {
    this.curves.unmount();
    this.games.leave();
  }

  show(run) {
    const { columns } = run, state = describeState(run), isBroken = run.state === "damaged" || run.isGone;
    this.state.textContent = state.word;
    this.state.className = `state ${state.kind}`;
    rewrite(this.verdict, [run.verdict, isBroken], () => (isBroken ? [] : tellVerdict(run)));
    const facts = listFacts(run);
    rewrite(this.facts, facts, () => facts.map(([name, text]) => build("div", { class: "fact" }, build("dt", {}, name), build("dd", { class: "number" }, text))));
    rewrite(this.health, run.health, () => run.health.map(buildFinding));
    rewrite(this.actions, [run.agents.length > 0, isBroken], () => (run.agents.length && !isBroken ? [build("a", { class: "button primary", href: `#play/${run.id}/best` }, "Play against it")] : []));
    this.note.hidden = Boolean(columns.update?.length || isBroken);
    this.curves.update([{ name: run.name, columns, evaluations: run.evaluations, target: run.target, greedy: run.greedy }]);
    this.evaluations.hidden = !run.evaluations.length;
    rewrite(this.evaluations, run.evaluations.map((line) => line.update), () => buildEvaluations(run.evaluations));
    this.games.update(run);
  }
}

// Rows of `columns` up to the update `after`, then those of `more`: if a run was resumed from an
// earlier update, later rows are no longer valid.
export function mergeColumns(columns, more, after) {
  const old = columns.update ?? [], cut = old.findIndex((update) => update > after);
  const kept = cut < 0 ? old.length : cut, count = more.update?.length ?? 0;
  const isLong = kept + count > MAX_ROWS, merged = {};
  for (const name of new Set([...Object.keys(columns), ...Object.keys(more)])) {
    const before = columns[name]?.slice(0, kept) ?? Array(kept).fill(null);
    const all = before.concat(more[name] ?? Array(count).fill(null));
    merged[name] = isLong ? all.filter((_, place) => (all.length - 1 - place) % 2 === 0) : all;
  }
  return merged;
}

// The result in one sentence: "Won: greedy return +18.3 over 200 games …".
function tellVerdict({ state, verdict }) {
  if (!verdict) return [];
  return [state === "won" && build("span", { class: "sign", "aria-hidden": "true" }, "✓"), build("span", {}, verdict[0].toUpperCase() + verdict.slice(1))].filter(Boolean);
}

function listFacts(run) {
  const newest = (name) => run.columns[name]?.findLast((value) => value !== null), won = newest("points_won_1000");
  return [
    ...listReturns(run).map(({ name, text }) => [name, text]),
    ["points won, last 1,000", won == null ? "–" : `${(100 * won).toFixed(1)} %`],
    ["steps played", formatCount(run.steps)], ["update", formatCount(run.update)], ["episodes", formatCount(run.episodes)],
    ["steps per second", formatCount(newest("steps_per_second"))],
  ];
}

function buildFinding({ level, title, text, advice }) {
  const [sign, word] = LEVELS[level] ?? LEVELS.note;
  return build(
    "li", { class: `health-item ${level}` }, build("span", { class: "sign", "aria-hidden": "true" }, sign),
    build("div", {}, build("p", {}, build("strong", {}, `${word}: ${title}.`), " ", text), advice && build("p", { class: "quiet" }, advice)),
  );
}

function buildEvaluations(lines) {
  const rows = [...lines].reverse().map(({ update, mean_return: mean, ci95: [low, high], std, returns }) => [
    formatCount(update), formatSigned(mean, 2), `${formatSigned(low, 1)} … ${formatSigned(high, 1)}`, std?.toFixed(2) ?? "–", `${returns.length}`,
  ]);
  return [build("h2", {}, "Evaluations"), buildTable("Evaluations", ["update", "greedy return", "95 % interval", "deviation", "games"], rows)];
}

function buildConfiguration(run) {
  const tables = [["Configuration", run.config], ["Versions", run.versions], ["Machine", run.machine]].map(([title, content]) => build(
    "div", { class: "config-group" }, build("h3", {}, title),
    build("dl", { class: "config" }, Object.entries(content).map(([name, value]) => build("div", {}, build("dt", {}, name), build("dd", {}, formatValue(value))))),
  ));
  return build("details", { class: "configuration" }, build("summary", {}, build("h2", {}, "Configuration and versions")), tables);
}
