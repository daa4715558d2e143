// The choice of an agent whose game is shown: the best one, or the same agent at an earlier update.
import { announce, build, formatCount, formatSigned, getJson, rewrite } from "./parts.js";
import { mountViewer } from "./viewer.js";

const SETTLE_MS = 300; // after the slider was moved
const FOLLOW_MS = 20_000; // between two newer agents that are shown unasked

// Fills `element`; call `update(run)` when there are more agents.
export class Games {
  constructor(element, run, agent) {
    Object.assign(this, { run, agent, agents: [], viewer: null, shown: null, since: 0 });
    this.slider = build("input", { type: "range", min: 0, step: 1, oninput: () => this.slide() });
    this.words = build("output", { class: "number quiet" });
    this.chooser = build("div", { class: "chooser" }, build("label", {}, "Agent", this.slider), this.words);
    this.outcome = build("p", { class: "outcome" });
    this.stage = build("div", { class: "viewer-place" });
    element.append(this.chooser, this.outcome, this.stage);
  }

  leave() {
    this.request?.abort();
    clearTimeout(this.timer);
    this.viewer?.leave();
  }

  // The name of the chosen agent; "best" changes as it learns.
  get chosen() {
    const known = this.agents.map(({ which }) => which), newest = known.at(-1);
    const names = { best: known.includes(this.run.best) ? this.run.best : newest, latest: newest };
    return names[this.agent] ?? (known.includes(this.agent) ? this.agent : newest);
  }

  update(run) {
    Object.assign(this, { run, agents: run.isGone ? [] : run.agents });
    this.chooser.hidden = this.agents.length < 2;
    if (!this.agents.length && !this.shown) this.say(run.isGone ? "" : "No agent is saved yet: the first one appears here.");
    if (!this.agents.length) return;
    this.slider.max = this.agents.length - 1;
    this.slider.value = this.agents.findIndex(({ which }) => which === this.chosen);
    this.describe();
    if (this.shown !== this.chosen && performance.now() - this.since > FOLLOW_MS) this.choose();
    else if (!this.shown) this.choose();
  }

  slide() {
    this.agent = this.agents[Number(this.slider.value)].which;
    this.describe();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.choose(), SETTLE_MS);
  }

  describe() {
    const { which, strength, steps, estimated_return: value } = this.agents[Number(this.slider.value)];
    const name = which === strength || which === "best" ? strength : `update ${which}${which === this.run.best ? " (the best)" : ""}`;
    const text = `${name}: ${steps == null ? "" : `${formatCount(steps)} steps played`}${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}`;
    rewrite(this.words, text, () => [text]);
    this.slider.setAttribute("aria-valuetext", text);
  }

  async choose() {
    this.request?.abort();
    const which = this.chosen, request = new AbortController(), { signal } = request;
    Object.assign(this, { request, since: performance.now(), shown: which });
    this.say("The agent plays a game, which takes some seconds…", true);
    try {
      const reel = await getJson(`/api/runs/${this.run.id}/reels/${which}`, signal);
      if (!signal.aborted) this.show(which, reel);
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  show(which, reel) {
    const [lost, won] = reel.points.at(-1), who = Number(which) >= 0 ? `The agent after update ${which}` : this.run.id === "package" ? `The ${which} in the package` : "The agent";
    this.say(`${who}: return ${formatSigned(reel.episode_return)} (${won} points won, ${lost} lost) in ${formatCount(reel.steps - 1)} steps.`);
    announce(`${who} is shown, return ${formatSigned(reel.episode_return)}.`);
    this.viewer?.leave();
    this.viewer = mountViewer(this.stage, reel);
  }

  say(text, isBusy = false) {
    this.outcome.textContent = text;
    this.outcome.classList.toggle("busy", isBusy);
    this.stage.setAttribute("aria-busy", isBusy);
  }
}
