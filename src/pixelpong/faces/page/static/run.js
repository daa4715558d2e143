// One run: how it stands, an episode of it, its curves, its first layer, its configuration.
import { build, formatSigned } from "./viewer.js";
import { AXES, mountCurves } from "./charts.js";
import { announce, describeReturn, describeState, formatAgo, formatCount, formatDuration, formatValue, getJson, repeat, warnAbove } from "./parts.js";
import { mountEpisodes } from "./episodes.js";
import { mountWeights } from "./weights.js";

const MAX_ROWS = 4000;
const LEVELS = { good: ["✓", "Good"], note: ["i", "Note"], warning: ["!", "Warning"] };

// The view of a run; where it cannot be read, it says why and asks again now and then.
export function mountRun(element, id) {
  document.title = "Run · pixelpong";
  const stop = new AbortController();
  let view = null;
  element.append(build("p", { class: "quiet" }, "Reading the run…"));
  const ask = async () => {
    if (view) return; // from now on it is told what is new
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
    this.episodes = mountEpisodes(this.episodesPlace, run);
    this.weights = mountWeights(this.weightsPlace, run);
    this.curves = mountCurves(this.curvesPlace);
    this.show();
    this.connect();
  }

  leave() {
    clearTimeout(this.retry);
    this.source?.close();
    for (const part of [this.episodes, this.weights, this.curves]) part.unmount();
  }

  build(element) {
    const { run } = this, place = (name) => build("div", { class: name });
    this.state = build("span", { class: "state" });
    this.facts = new Facts();
    this.health = build("ul", { class: "health" });
    this.note = build("p", { class: "quiet" });
    this.evaluations = place("evaluations");
    [this.episodesPlace, this.curvesPlace, this.weightsPlace] = ["episodes", "curves", "weights"].map(place);
    const axis = build(
      "select", { onchange: () => this.curves.setAxis(axis.value) },
      Object.entries(AXES).map(([name, { title }]) => build("option", { value: name }, title)),
    );
    const head = (title, ...rest) => build("div", { class: "section-head" }, build("h2", {}, title), rest);
    this.actions = build("p", { class: "actions-line" });
    element.replaceChildren(
      build("p", { class: "crumbs" }, build("a", { href: "#runs" }, "← All runs")),
      build("div", { class: "run-title" }, build("h1", {}, run.name), this.state), this.actions,
      this.facts.element, this.health,
      build("section", {}, head("Watch it"), this.episodesPlace),
      build("section", {}, head("Curves", build("label", {}, "Over ", axis)), this.note, this.curvesPlace),
      this.evaluations,
      build("section", {}, head("First layer"), this.weightsPlace),
      buildConfiguration(run),
    );
  }

  // What has changed in the light part of the run.
  take(part) {
    Object.assign(this.run, part);
    this.episodes.update(this.run);
    this.weights.update(this.run);
    this.show();
  }

  show() {
    const { run } = this, state = describeState(run);
    this.state.textContent = state.word;
    this.state.className = `state ${state.kind}`;
    this.facts.show(run, this.newest());
    showHealth(this.health, run.health ?? []);
    const agent = run.agents?.at(-1)?.update;
    const isSame = this.actionsOf === agent;
    if (!isSame || !this.actions.childNodes.length) this.showActions(agent);
    const count = this.columns.update?.length ?? 0;
    this.note.hidden = count > 0;
    this.note.textContent = "No update is finished yet: the curves begin with the first.";
    this.curves.update([{ name: run.name, columns: this.columns, evaluations: run.evaluations }]);
    this.evaluations.replaceChildren(...buildEvaluations(run.evaluations ?? []));
  }

  showActions(agent) {
    this.actionsOf = agent;
    const { id, environment } = this.run;
    if (agent === undefined) this.actions.textContent = "No checkpoint is saved yet: when one is, you can watch and play it.";
    else if (!/pong/i.test(environment ?? "")) this.actions.textContent = `${environment} is a toy: it can be watched below, but not played.`;
    else {
      this.actions.replaceChildren(
        build("a", { class: "button primary", href: `#play/${id}/${agent}` }, "Play against it"),
        build("a", { class: "button", href: `#watch/${id}/${agent}` }, "Watch a live game"),
      );
    }
  }

  newest() {
    const last = (name) => this.columns[name]?.findLast((value) => value !== null);
    const names = ["update", "steps", "episodes", "estimated_return", "mean_return_100", "points_won_1000"];
    return Object.fromEntries(names.map((name) => [name, last(name)]).filter(([, value]) => value !== undefined));
  }

  // Read what there is, then listen to what comes.
  async connect() {
    const { id } = this.run;
    try {
      if (!this.columns.update) {
        const { columns } = await getJson(`/api/runs/${id}/metrics?after=0`, this.signal);
        this.columns = columns;
        this.show();
      } else if (this.isLost) await this.refresh();
    } catch (error) {
      if (error.name !== "AbortError") this.connectLater(error);
      return;
    }
    if (this.signal.aborted) return;
    this.source = new EventSource(`/api/runs/${id}/events?after=${this.columns.update?.at(-1) ?? 0}`);
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
    warnAbove(isDeleted ? "This run is not there any more: deleted or moved. Shown is what was read before." : `${error.message} Trying again by itself.`);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), 1000 * this.wait);
    this.wait = Math.min(8, 2 * this.wait);
  }

  // The whole again, for what no event tells.
  async refresh() {
    this.take(await getJson(`/api/runs/${this.run.id}`, this.signal));
  }
}

// Rows of `more` after those of `columns` up to the update `after`: where a run was resumed from an
// earlier one, what came later no longer holds.
export function mergeColumns(columns, more, after) {
  const old = columns.update ?? [], cut = old.findIndex((update) => update > after);
  const kept = cut < 0 ? old.length : cut, count = more.update?.length ?? 0;
  const isLong = kept + count > MAX_ROWS;
  const merged = {};
  for (const name of new Set([...Object.keys(columns), ...Object.keys(more)])) {
    const before = columns[name]?.slice(0, kept) ?? Array(kept).fill(null);
    const all = before.concat(more[name] ?? Array(count).fill(null));
    merged[name] = isLong ? all.filter((_, place) => (all.length - 1 - place) % 2 === 0) : all;
  }
  return merged;
}

// The figures at the top; only what changes is written anew.
class Facts {
  constructor() {
    this.cells = new Map();
    this.element = build("dl", { class: "facts" });
  }

  show(run, newest) {
    const now = { ...run, ...newest }, best = describeReturn(now);
    this.set(best.of, best.text);
    this.set("points won, last 1,000", now.points_won_1000 == null ? "–" : `${(100 * now.points_won_1000).toFixed(1)} %`);
    this.set("steps played", formatCount(now.steps));
    this.set("update", formatCount(now.update ?? 0));
    this.set("episodes", formatCount(now.episodes ?? 0));
    this.set("steps a second", formatCount(now.steps_per_second));
    const left = now.seconds_left == null ? "not known" : formatDuration(now.seconds_left);
    this.set("time left", now.is_live ? left : "not training");
    this.set("written", formatAgo(now.modified));
  }

  set(name, text) {
    const key = name.includes("return") || name.includes("episode yet") ? "return" : name;
    if (!this.cells.has(key)) {
      const cell = { name: build("dt", {}), text: build("dd", { class: "number" }) };
      this.cells.set(key, cell);
      this.element.append(build("div", { class: "fact", "data-fact": key }, cell.name, cell.text));
    }
    const cell = this.cells.get(key);
    if (cell.name.textContent !== name) cell.name.textContent = name;
    if (cell.text.textContent !== text) cell.text.textContent = text;
  }
}

function showHealth(list, health) {
  const key = JSON.stringify(health);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...health.map(({ level, title, text, advice }) => {
    const [sign, word] = LEVELS[level] ?? LEVELS.note;
    return build(
      "li", { class: `health-item ${level}` }, build("span", { class: "sign", "aria-hidden": "true" }, sign),
      build("div", {}, build("p", {}, build("strong", {}, `${word}: ${title}.`), " ", text), advice && build("p", { class: "quiet" }, advice)),
    );
  }));
}

function buildEvaluations(lines) {
  if (!lines.length) return [];
  const rows = lines.slice(-10).reverse().map((line) => build(
    "tr", {}, build("td", {}, formatCount(line.update)), build("td", {}, formatSigned(line.mean_return, 2)),
    build("td", {}, line.ci95 ? `${formatSigned(line.ci95[0], 1)} … ${formatSigned(line.ci95[1], 1)}` : "–"), build("td", {}, `${line.returns?.length ?? line.episodes ?? "–"}`),
  ));
  const head = ["update", "mean return", "95 % interval", "episodes"].map((word) => build("th", { scope: "col" }, word));
  const table = build("table", {}, build("thead", {}, build("tr", {}, head)), build("tbody", {}, rows));
  return [build("section", {}, build("div", { class: "section-head" }, build("h2", {}, "Evaluations")), build("div", { class: "scroller", role: "region", tabindex: "0", "aria-label": "Evaluations" }, table))];
}

function buildConfiguration(run) {
  const groups = [["Configuration", run.config], ["Versions", run.versions], ["Machine", run.machine], ["Hashes", run.hashes]];
  const tables = groups.filter(([, content]) => content && Object.keys(content).length).map(([title, content]) => build(
    "div", { class: "config-group" }, build("h3", {}, title),
    build("dl", { class: "config" }, Object.entries(content).map(([name, value]) => build("div", {}, build("dt", {}, name), build("dd", {}, formatValue(value))))),
  ));
  return build("details", { class: "configuration" }, build("summary", {}, build("h2", {}, "Configuration, versions and hashes")), tables);
}
