// One run: its verdict, an episode, its curves, a moment explained, its configuration. The exported
// page shows it too, from the answers in its file.
import { announce, build, buildHelp, buildTable, describeState, formatAgo, formatCount, formatDuration, formatSigned, formatValue, getJson, listReturns, repeat, rewrite, warnAbove } from "./parts.js";
import { mountCurves } from "./charts.js";
import { Episodes } from "./episodes.js";
import { mountMoment } from "./moment.js";
import { mountWeights } from "./weights.js";

const MAX_ROWS = 4000;
const NEWEST = ["update", "steps", "episodes", "estimated_return", "mean_return_100", "points_won_1000"];
const LEVELS = { good: ["✓", "Good"], note: ["i", "Note"], warning: ["!", "Warning"] };

// The view of a run; if it cannot be read, it shows why and tries again from time to time.
export function mountRun(element, id) {
  document.title = "Run · pixelpong";
  const stop = new AbortController();
  let view = null;
  element.append(build("p", { class: "quiet" }, "Reading the run…"));
  const ask = async () => {
    if (view) return; // from now on it gets events
    try {
      const run = await getJson(`/api/runs/${id}`, stop.signal);
      if (run.problem) throw new Error(run.problem);
      warnAbove(null);
      view = new RunView(element, run, stop.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      element.replaceChildren(
        build("h1", {}, "This run cannot be shown"), build("p", { class: "problem" }, error.message),
        build("p", {}, "It may be deleted, moved, or just starting: this page tries again by itself. ", build("a", { href: "#runs" }, "Back to the list"), "."),
      );
      return false;
    }
  };
  repeat(ask, 60, stop.signal);
  return { unmount: () => { stop.abort(); view?.leave(); } };
}

class RunView {
  constructor(element, run, signal) {
    Object.assign(this, { run, signal, columns: {}, source: null, wait: 1, isLost: false });
    document.title = `${run.name} · pixelpong`;
    this.build(element);
    this.show();
    this.connect();
  }

  leave() {
    clearTimeout(this.retry);
    this.source?.close();
    for (const part of [this.curves, ...this.followers]) part.unmount();
  }

  build(element) {
    const { run } = this, isOnline = !run.is_offline;
    this.state = build("span", { class: "state" });
    this.verdict = build("p", { class: "verdict" });
    this.actions = build("p", { class: "actions-line" });
    this.facts = new Facts();
    this.health = build("ul", { class: "health" });
    this.note = build("p", { class: "quiet" }, "No update is finished yet: the curves begin with the first.");
    this.evaluations = build("section");
    const [episodes, moment, weights] = ["episodes", "weights", "weights"].map((name) => build("div", { class: name })), curves = build("section");
    const hasEpisodes = isOnline || run.agents.length + run.replays.length > 0, hasAgent = isOnline || run.agents.length > 0;
    const isPong = /pong/i.test(run.environment ?? ""), isPlain = run.config.algorithm === "reinforce";
    element.replaceChildren(...[
      isOnline && build("p", { class: "quiet" }, build("a", { href: "#runs" }, "← All runs")),
      build("div", { class: "run-title" }, build("h1", {}, run.name), this.state), this.verdict, run.note && build("p", { class: "quiet" }, run.note), this.actions,
      (run.left_out ?? []).map((text) => build("p", { class: "problem" }, `Left out: ${text}`)), this.facts.element, this.health,
      hasEpisodes && build("section", {}, build("h2", {}, "Watch it"), episodes), curves, this.note, this.evaluations,
      hasAgent && isPong && build("section", {}, build("h2", {}, "What the agent expects ", buildHelp("value")), moment),
      isOnline && build("details", { class: "configuration", open: isPlain }, build("summary", {}, build("h2", {}, "First layer")), weights),
      buildConfiguration(run),
    ].flat().filter(Boolean));
    this.curves = mountCurves(curves);
    this.followers = [hasEpisodes && new Episodes(episodes, run), hasAgent && isPong && mountMoment(moment, run), isOnline && mountWeights(weights, run)].filter(Boolean);
  }

  // Show changes in the light part of the run.
  take(part) {
    Object.assign(this.run, part);
    for (const follower of this.followers) follower.update(this.run);
    this.show();
  }

  show() {
    const { run, columns } = this, state = describeState(run);
    this.state.textContent = state.word;
    this.state.className = `state ${state.kind}`;
    rewrite(this.verdict, run.verdict, () => tellVerdict(run));
    this.facts.update({ ...run, ...findNewest(columns) });
    rewrite(this.health, run.health, () => run.health.map(buildFinding));
    const agent = run.agents.at(-1)?.update ?? null;
    rewrite(this.actions, [agent, run.problem], () => (run.problem ? [] : buildActions(run, agent)));
    this.note.hidden = Boolean(columns.update?.length || run.problem);
    this.curves.update([{ name: run.name, columns, evaluations: run.evaluations, target: run.target, greedy: run.greedy }]);
    this.evaluations.hidden = !run.evaluations.length;
    rewrite(this.evaluations, run.evaluations.map((line) => line.update), () => buildEvaluations(run.evaluations));
  }

  // Read the metrics so far, then listen for events.
  async connect() {
    const path = `/api/runs/${this.run.id}`;
    try {
      if (!this.columns.update) {
        this.columns = (await getJson(`${path}/metrics?after=0`, this.signal)).columns;
        this.show();
      } else if (this.isLost) await this.refresh();
    } catch (error) {
      if (error.name !== "AbortError") this.connectLater(error);
      return;
    }
    if (this.signal.aborted || this.run.is_offline) return;
    this.source = new EventSource(`${path}/events?after=${this.columns.update?.at(-1) ?? 0}`);
    this.source.onopen = () => this.connected();
    this.source.addEventListener("metrics", (event) => this.hear(JSON.parse(event.data)));
    this.source.addEventListener("summary", (event) => this.hearSummary(JSON.parse(event.data)));
    this.source.onerror = () => this.connectLater(new Error("The connection to the server is lost."));
  }

  hear({ after, columns }) {
    this.columns = mergeColumns(this.columns, columns, after);
    if (columns.update?.length) this.run.modified = Date.now() / 1000;
    this.show();
  }

  hearSummary(summary) {
    const newest = (run) => `${run.agents?.at(-1)?.update} ${run.is_live}`;
    const isNews = newest(summary) !== newest(this.run);
    this.take(summary);
    if (summary.problem) warnAbove(`This run cannot be read any more: ${summary.problem}`);
    if (isNews) this.refresh().catch(() => {}); // evaluations come with checkpoints
  }

  connected() {
    if (this.isLost) announce("Connected again.");
    Object.assign(this, { isLost: false, wait: 1 });
    if (!this.run.problem) warnAbove(null);
  }

  connectLater(error) {
    this.source?.close();
    if (this.signal.aborted) return;
    this.isLost = true;
    const isDeleted = error.status === 404;
    if (isDeleted) this.take({ problem: error.message, is_live: false });
    warnAbove(isDeleted ? "This run is not there any more: deleted or moved. This page shows what was read before." : `${error.message} Trying again by itself.`);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), 1000 * this.wait);
    this.wait = Math.min(8, 2 * this.wait);
  }

  // Read everything again, for facts without events.
  async refresh() {
    this.take(await getJson(`/api/runs/${this.run.id}`, this.signal));
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

// The newest figures of the metrics, which arrive before the summary.
function findNewest(columns) {
  const last = NEWEST.map((name) => [name, columns[name]?.findLast((value) => value !== null)]);
  return Object.fromEntries(last.filter(([, value]) => value !== undefined));
}

function buildActions({ id, preset, environment, update, is_offline: isOffline, was_live: wasLive }, agent) {
  if (isOffline) {
    const moment = update ? `as it stood at update ${formatCount(update)}` : "no update yet";
    return [[preset, environment, moment, wasLive && "still being trained then"].filter(Boolean).join(" · ")];
  }
  if (agent === null) return ["No checkpoint is saved yet: when one is, you can watch and play it."];
  if (!/pong/i.test(environment ?? "")) return [`${environment} is a toy: you can watch it below, but not play it.`];
  return [
    build("a", { class: "button primary", href: `#play/${id}/${agent}` }, "Play against it"),
    build("a", { class: "button", href: `#watch/${id}/${agent}` }, "Watch a live game"),
  ];
}

// The verdict as pixelpong says it everywhere: "Won: greedy return +18.3 over 200 games …".
function tellVerdict({ state, verdict, problem }) {
  if (problem || !verdict) return [];
  return [state === "won" && build("span", { class: "sign", "aria-hidden": "true" }, "✓"), build("span", {}, verdict[0].toUpperCase() + verdict.slice(1), " ", buildHelp("greedy return"))].filter(Boolean);
}

// The figures at the top; only what changes is written, so that an open "?" stays.
class Facts {
  constructor() {
    this.element = build("dl", { class: "facts" });
    this.cells = new Map();
  }

  update(run) {
    const won = run.points_won_1000, facts = [
      ...listReturns(run).map(({ name, text }) => [name, text]),
      ["points won, last 1,000", won == null ? "–" : `${(100 * won).toFixed(1)} %`, "point"],
      ["steps played", formatCount(run.steps), "step"],
      ["update", formatCount(run.update ?? 0)],
      ["episodes", formatCount(run.episodes ?? 0), "episode"],
      ["steps per second", formatCount(run.steps_per_second)],
      ["time left", run.is_live ? formatDuration(run.seconds_left) : "not training", null],
      ["written", formatAgo(run.modified), null],
    ];
    for (const [name, text, term = name] of facts) {
      if (!this.cells.has(name)) {
        this.cells.set(name, build("dd", { class: "number" }));
        this.element.append(build("div", { class: "fact", "data-fact": name }, build("dt", {}, name, " ", term && buildHelp(term)), this.cells.get(name)));
      }
      rewrite(this.cells.get(name), text, () => [text]);
    }
  }
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
  return [build("h2", {}, "Evaluations ", buildHelp("evaluation")), buildTable("Evaluations", ["update", "greedy return", "95 % interval", "deviation", "games"], rows)];
}

function buildConfiguration(run) {
  const groups = [["Configuration", run.config], ["Versions", run.versions], ["Machine", run.machine], ["SHA-256", run.hashes]];
  const tables = groups.filter(([, content]) => content && Object.keys(content).length).map(([title, content]) => build(
    "div", { class: "config-group" }, build("h3", {}, title),
    build("dl", { class: "config" }, Object.entries(content).map(([name, value]) => build("div", {}, build("dt", {}, name), build("dd", {}, formatValue(value))))),
  ));
  return build("details", { class: "configuration" }, build("summary", {}, build("h2", {}, "Configuration, versions and hashes")), tables);
}
