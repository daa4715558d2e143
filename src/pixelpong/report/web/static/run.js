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
    if (view) return view.refresh();
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
  repeat(ask, 10, stop.signal);
  return { unmount: () => { stop.abort(); view?.leave(); } };
}

class RunView {
  constructor(element, run, signal) {
    Object.assign(this, { run, signal, columns: {}, source: null, wait: 1 });
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
      const after = this.columns.update?.at(-1) ?? 0;
      const { columns } = await getJson(`/api/runs/${id}/metrics?after=${after}`, this.signal);
      this.columns = mergeColumns(this.columns, columns);
      this.show();
    } catch (error) {
      if (error.name !== "AbortError") this.connectLater(error.message);
      return;
    }
    if (this.signal.aborted) return;
    this.source = new EventSource(`/api/runs/${id}/events?after=${this.columns.update?.at(-1) ?? 0}`);
    this.source.onopen = () => this.connected();
    this.source.addEventListener("metrics", (event) => this.hear(event));
    this.source.addEventListener("summary", (event) => this.take(JSON.parse(event.data)));
    this.source.onerror = () => this.connectLater("The connection to the server is lost.");
  }

  hear(event) {
    const content = JSON.parse(event.data);
    this.columns = mergeColumns(this.columns, content.columns ?? content);
    this.show();
  }

  connected() {
    if (this.wait > 1) announce("Connected again.");
    this.wait = 1;
    warnAbove(null);
  }

  connectLater(message) {
    this.source?.close();
    if (this.signal.aborted) return;
    warnAbove(`${message} Trying again by itself.`);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), 1000 * this.wait);
    this.wait = Math.min(8, 2 * this.wait);
  }

  // Now and then the whole, for what no event tells: evaluations, and whether it is still there.
  async refresh() {
    try {
      const run = await getJson(`/api/runs/${this.run.id}`, this.signal);
      if (run.problem) warnAbove(`This run cannot be read any more: ${run.problem}`);
      else this.take(run);
    } catch (error) {
      if (error.status === 404) warnAbove("This run is not there any more: deleted or moved. Shown is what was read before.");
      else if (error.name !== "AbortError") warnAbove(`${error.message} Trying again by itself.`);
      return false;
    }
  }
}

// Rows of `more` after those of `columns`; a run that was resumed goes on from an earlier update,
// and then what came after it no longer holds.
export function mergeColumns(columns, more) {
  const count = more.update?.length ?? 0;
  if (!count) return columns;
  const old = columns.update ?? [], cut = old.findIndex((update) => update >= more.update[0]);
  const kept = cut < 0 ? old.length : cut;
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
