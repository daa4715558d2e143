// The choice of an episode: a replay of the training, or a game of the agent of some update. The
// slider shows the same agent as it learns.
import { FOLLOW_MS, announce, build, formatCount, formatSigned, getJson, rewrite } from "./parts.js";
import { mount } from "./viewer.js";

const SETTLE_MS = 300;
const RETRY_MS = 3000;

// Fills `element`; call `update(run)` when there are more agents and replays.
export class Episodes {
  constructor(element, run) {
    Object.assign(this, { viewer: null, shown: null, mode: null, agents: [], isTouched: false, since: 0 });
    this.build(element, run);
    this.update(run);
  }

  unmount() {
    this.request?.abort();
    clearTimeout(this.timer);
    this.viewer?.unmount();
  }

  build(element, run) {
    const radio = (value) => build("input", { type: "radio", name: "episode-mode", value, onchange: () => this.setMode(value) });
    this.modes = { replay: radio("replay"), agent: radio("agent") };
    this.replays = build("select", { onchange: () => this.choose() }); // its first is the newest
    this.slider = build("input", { type: "range", min: 0, max: 0, step: 1, value: 0, oninput: () => this.slide() });
    this.sliderWords = build("output", { class: "number quiet" });
    this.parts = {
      replay: build("div", { class: "chooser-part" }, build("label", {}, "Replay ", this.replays)),
      agent: build("div", { class: "chooser-part" }, build("label", {}, "The agent as it was", this.slider), this.sliderWords),
    };
    this.outcome = build("p", { class: "outcome" });
    this.stage = build("div", { class: "viewer-place" });
    element.append(
      build(
        "fieldset", { class: "modes" }, build("legend", { class: "unseen" }, "Which episode"),
        build("label", {}, this.modes.replay, "Replays of the training"), build("label", {}, this.modes.agent, run.is_offline ? "The best agent" : "See the same agent learn"),
      ),
      this.parts.replay, this.parts.agent, this.outcome, this.stage,
    );
  }

  update(run) {
    this.run = run;
    this.listReplays(run.replays);
    this.listAgents(run.agents);
    this.modes.replay.disabled = !run.replays.length;
    this.modes.agent.disabled = !run.agents.length;
    const first = run.is_offline ? ["agent", "replay"] : ["replay", "agent"]; // a file begins with its best agent
    if (this.mode === null) this.setMode(first.find((mode) => !this.modes[mode].disabled) ?? null);
    else if (run.is_live && performance.now() - this.since > FOLLOW_MS) this.followNewest();
  }

  listReplays(replays) {
    const describe = ({ episode, update, episode_return: result, steps }) => `episode ${episode}: ${formatSigned(result)} · update ${update} · ${formatCount(steps)} steps`;
    const known = [["newest", "the newest"], ...[...replays].reverse().map((each) => [String(each.episode), describe(each)])];
    const chosen = this.replays.value;
    rewrite(this.replays, known, () => known.map(([value, words]) => build("option", { value, selected: value === chosen }, words)));
  }

  listAgents(agents) {
    const chosen = this.agent?.update, place = agents.findIndex((agent) => agent.update === chosen);
    this.agents = agents;
    this.slider.max = Math.max(0, agents.length - 1);
    this.slider.value = place < 0 || !this.isTouched ? agents.length - 1 : place;
    this.slider.parentElement.hidden = agents.length < 2;
    this.describeAgent();
  }

  get agent() {
    return this.agents[Number(this.slider.value)];
  }

  setMode(mode) {
    this.mode = mode;
    for (const name of ["replay", "agent"]) {
      this.modes[name].checked = name === mode;
      this.parts[name].hidden = name !== mode;
    }
    if (mode) this.choose();
    else this.say(this.run.problem ? "" : "Nothing to show yet: the first replay or checkpoint appears here by itself.");
  }

  slide() {
    this.isTouched = true;
    this.describeAgent();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.choose(), SETTLE_MS);
  }

  describeAgent() {
    if (!this.agent) return;
    const { update, steps, estimated_return: value } = this.agent;
    const text = `update ${update}, ${formatCount(steps)} steps played${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}`;
    rewrite(this.sliderWords, text, () => [text]);
    this.slider.setAttribute("aria-valuetext", text);
  }

  // The address of the chosen reel, and the text to show until it arrives.
  wanted() {
    const base = `/api/runs/${this.run.id}/reels`;
    if (this.mode === "agent") {
      const { update } = this.agent;
      return { path: `${base}/agent/${update}`, word: `The agent of update ${update} is playing an episode, which takes some seconds…` };
    }
    const episode = this.replays.value === "newest" ? this.run.replays.at(-1).episode : this.replays.value;
    return { path: `${base}/replay/${episode}`, word: `Episode ${episode} is being played again, which takes some seconds…` };
  }

  async choose() {
    this.since = performance.now();
    const { path, word } = this.wanted();
    this.request?.abort();
    clearTimeout(this.timer);
    const { signal } = (this.request = new AbortController());
    this.say(word, true);
    try {
      const reel = await getJson(path, signal);
      if (!signal.aborted) this.show(path, reel);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.say(error.message);
      if (error.isGone || error.status === 503) this.timer = setTimeout(() => this.choose(), RETRY_MS);
    }
  }

  show(path, reel) {
    this.shown = path;
    const [lost, won] = reel.points.at(-1);
    const who = this.mode === "agent" ? `Agent of update ${reel.agent_update}, greedy` : `Episode ${reel.episode} of the training, update ${reel.update}`;
    this.say(`${who}: return ${formatSigned(reel.episode_return)} (${won} points won, ${lost} lost) in ${formatCount(reel.steps - 1)} steps.`);
    announce(`${who} is shown, return ${formatSigned(reel.episode_return)}.`);
    this.viewer?.unmount();
    this.viewer = mount(this.stage, reel, { onend: () => this.followNewest() });
  }

  // While you watch the newest, the next newest follows.
  followNewest() {
    const isNewest = this.mode === "agent" ? !this.isTouched : this.mode === "replay" && this.replays.value === "newest";
    if (isNewest && this.wanted().path !== this.shown) this.choose();
  }

  say(text, isBusy = false) {
    this.outcome.textContent = text;
    this.outcome.classList.toggle("busy", isBusy);
    this.stage.setAttribute("aria-busy", isBusy);
  }
}
