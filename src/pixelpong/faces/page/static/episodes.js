// Which episode of a run is shown: a replay of its training, or what the agent as it was at an
// update plays: the slider with which one sees the same agent learn.
import { build, formatSigned, mount } from "./viewer.js";
import { announce, formatCount, getJson } from "./parts.js";

const SETTLE_MS = 300;
const MAX_CACHED = 6;

// `mountEpisodes(element, run)`; `update(run)` when there are more agents and replays.
export function mountEpisodes(element, run) {
  const chooser = new Chooser(element, run);
  return { update: (now) => chooser.update(now), unmount: () => chooser.leave() };
}

class Chooser {
  constructor(element, run) {
    Object.assign(this, { run, viewer: null, shown: null, reels: new Map(), mode: null, agentCount: -1, replayKey: "" });
    this.stop = new AbortController();
    this.build(element);
    this.update(run);
  }

  leave() {
    this.stop.abort();
    this.request?.abort();
    clearTimeout(this.timer);
    this.viewer?.unmount();
  }

  build(element) {
    this.modes = ["replay", "agent"].map((mode) => build("input", { type: "radio", name: "episode-mode", value: mode, onchange: () => this.setMode(mode) }));
    const [replay, agent] = this.modes;
    this.replays = build("select", { onchange: () => this.choose() });
    this.slider = build("input", { type: "range", min: 0, max: 0, step: 1, value: 0, list: "agent-ticks", oninput: () => this.slide() });
    this.sliderWords = build("output", { class: "number slider-words" });
    this.outcome = build("p", { class: "outcome" });
    this.stage = build("div", { class: "viewer-place" });
    this.replayPart = build("div", { class: "chooser-part" }, build("label", {}, "Replay ", this.replays));
    this.agentPart = build("div", { class: "chooser-part agent-part" }, build("label", { class: "slider-label" }, build("span", {}, "The agent as it was"), this.slider), this.sliderWords);
    element.replaceChildren(
      build(
        "fieldset", { class: "modes" }, build("legend", { class: "unseen" }, "Which episode"),
        build("label", {}, replay, build("span", {}, "Replays of the training")), build("label", {}, agent, build("span", {}, "See the same agent learn")),
      ),
      this.replayPart, this.agentPart, this.outcome, this.stage,
    );
  }

  update(run) {
    this.run = run;
    this.listReplays(run.replays ?? []);
    this.listAgents(run.agents ?? []);
    this.modes[0].disabled = !run.replays?.length;
    this.modes[1].disabled = !run.agents?.length;
    if (this.mode === null && run.replays?.length) this.setMode("replay");
    else if (this.mode === null && run.agents?.length) this.setMode("agent");
    if (this.mode === null) this.say("Nothing to show yet: the first replay or checkpoint appears here by itself.");
    this.replayPart.hidden = this.mode !== "replay";
    this.agentPart.hidden = this.mode !== "agent";
  }

  listReplays(replays) {
    const key = replays.map((each) => each.episode).join();
    if (key === this.replayKey) return;
    this.replayKey = key;
    const chosen = this.replays.value;
    const words = ({ episode, update, episode_return: result, steps }) => `episode ${episode}: ${formatSigned(result)} · update ${update} · ${formatCount(steps)} steps`;
    const options = [...replays].reverse().map((each) => build("option", { value: each.episode }, words(each)));
    this.replays.replaceChildren(build("option", { value: "newest" }, "the newest"), ...options);
    this.replays.value = [...this.replays.options].some((option) => option.value === chosen) ? chosen : "newest";
  }

  listAgents(agents) {
    if (agents.length === this.agentCount && agents.at(-1)?.update === this.lastAgent) return;
    const chosen = this.agents?.[Number(this.slider.value)]?.update;
    Object.assign(this, { agents, agentCount: agents.length, lastAgent: agents.at(-1)?.update });
    this.slider.max = Math.max(0, agents.length - 1);
    const place = agents.findIndex((agent) => agent.update === chosen);
    this.slider.value = place < 0 ? agents.length - 1 : place;
    this.slider.disabled = agents.length < 2;
    this.describeAgent();
  }

  setMode(mode) {
    this.mode = mode;
    this.modes.forEach((input) => { input.checked = input.value === mode; });
    this.replayPart.hidden = mode !== "replay";
    this.agentPart.hidden = mode !== "agent";
    this.choose();
  }

  slide() {
    this.describeAgent();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.choose(), SETTLE_MS);
  }

  describeAgent() {
    const agent = this.agents?.[Number(this.slider.value)];
    if (!agent) return;
    const estimate = agent.estimated_return == null ? "" : `, estimated return ${formatSigned(agent.estimated_return, 1)}`;
    const text = `update ${agent.update}, ${formatCount(agent.steps)} steps played${estimate}`;
    this.sliderWords.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  // The address of the reel that is wanted, and a word about it.
  wanted() {
    const base = `/api/runs/${this.run.id}/reels`;
    if (this.mode === "agent") {
      const { update } = this.agents[Number(this.slider.value)];
      return { path: `${base}/agent/${update}`, word: `The agent of update ${update} is playing an episode, which takes some seconds…` };
    }
    const episode = this.replays.value === "newest" ? this.run.replays.at(-1).episode : Number(this.replays.value);
    return { path: `${base}/replay/${episode}`, word: `Episode ${episode} is being played again, which takes some seconds…` };
  }

  async choose() {
    const { path, word } = this.wanted();
    this.request?.abort();
    const request = (this.request = new AbortController());
    if (!this.reels.has(path)) this.say(word, true);
    try {
      const reel = this.reels.get(path) ?? (await getJson(path, request.signal));
      if (!request.signal.aborted) this.show(path, reel);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.say(error.message);
      if (error.isGone || error.status === 503) this.timer = setTimeout(() => this.choose(), 3000);
    }
  }

  show(path, reel) {
    this.reels.set(path, reel);
    if (this.reels.size > MAX_CACHED) this.reels.delete(this.reels.keys().next().value);
    this.shown = path;
    const [lost, won] = reel.points.at(-1);
    const who = this.mode === "agent" ? `Agent of update ${reel.agent_update}, greedy` : `Episode ${reel.episode} of the training, update ${reel.update}`;
    this.say(`${who}: return ${formatSigned(reel.episode_return)} (${won} points won, ${lost} lost) in ${formatCount(reel.steps - 1)} steps.`);
    announce(`${who} is shown, return ${formatSigned(reel.episode_return)}.`);
    this.viewer?.unmount();
    this.viewer = mount(this.stage, reel, { onend: () => this.followNewest() });
  }

  // Who watches the newest sees the next newest when this one is over.
  followNewest() {
    if (this.mode === "replay" && this.replays.value === "newest" && this.wanted().path !== this.shown) this.choose();
  }

  say(text, isBusy = false) {
    this.outcome.textContent = text;
    this.outcome.classList.toggle("busy", isBusy);
    this.stage.setAttribute("aria-busy", isBusy);
  }
}
