// A game of an agent with what the network sees, decides and expects; and the choice of the agent.
import { ask, build, formatCount, formatSigned, rewrite } from "./parts.js";
import { drawLine } from "./charts.js";
import {
  buildCanvas, buildKeys, drawField, drawRows, drawSaliency, drawScreen, readColours,
  unpackPictures,
} from "./pictures.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const FOLLOW_MS = 15_000; // until a newer agent is shown unasked
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const taste = { speed: 1, hasSaliency: false }; // kept from one game to the next

/** A menu of a run's agents by how strong they are; `choose` is called with the chosen one. */
export function buildChooser(run, chosen, choose) {
  const options = run.agents.map(({ which, strength, estimated_return: value }) => {
    const words = [
      strength, which !== strength && which !== "best" && `update ${which}`,
      value != null && `estimated return ${formatSigned(value, 1)}`,
      which !== "best" && which === run.best && "the best",
    ].filter(Boolean).join(", ");
    return build("option", { value: which, selected: which === chosen }, words);
  });
  const select = build("select", { onchange: () => choose(select.value) }, options);
  return build("label", { class: "chooser", hidden: options.length < 2 }, "Agent ", select);
}

/** The name of an agent in the list; "best" changes as it learns. */
export function findAgent({ agents, best }, agent) {
  const known = agents.map(({ which }) => which), wanted = agent === "best" ? best : agent;
  return known.includes(wanted) ? wanted : known.at(-1);
}

/** Games of a run's agents; call `update(run)` when there are more, and `leave` at the end. */
export class Games {
  constructor(element, agent) {
    Object.assign(this, { agent, shown: null, timer: null });
    this.chooser = build("div");
    this.outcome = build("p", { class: "outcome", role: "status" });
    this.stage = build("div", { class: "viewer-place" });
    element.append(this.chooser, this.outcome, this.stage);
  }

  leave() {
    this.request?.abort();
    clearTimeout(this.timer);
    this.player?.leave();
  }

  update(run) {
    const chosen = findAgent(run, this.agent);
    const choose = (which) => { this.agent = which; this.show(which); };
    this.run = run;
    rewrite(this.chooser, [run.agents, run.best], () => [buildChooser(run, chosen, choose)]);
    if (!chosen) this.say("No agent is saved yet: the first one appears here.");
    else if (chosen !== this.shown && !this.timer) this.show(chosen);
  }

  async show(which) {
    this.request?.abort();
    clearTimeout(this.timer);
    const again = () => { this.timer = null; this.update(this.run); };
    const request = new AbortController(), { signal } = request, { id } = this.run;
    Object.assign(this, { request, shown: which, timer: setTimeout(again, FOLLOW_MS) });
    this.say("The agent plays a game, which takes some seconds…", true);
    const reel = await ask(`/api/runs/${id}/reels/${which}`, signal);
    const pictures = reel.problem ? null : await unpackPictures(reel);
    if (signal.aborted) return;
    if (!pictures) {
      this.shown = null; // and it is asked for again
      this.say(reel.problem);
      return;
    }
    const [lost, won] = reel.points.at(-1), steps = formatCount(reel.steps - 1);
    const names = { package: `${which} in the package`, best: "agent" }; // best: of a file
    const name = names[id] ?? names[which] ?? `agent after update ${which}`;
    const result = `return ${formatSigned(reel.episode_return)} (${won} points won, ${lost} lost)`;
    this.say(`The ${name}: ${result} in ${steps} steps.`);
    this.player?.leave();
    this.player = new Player(this.stage, reel, pictures);
  }

  say(text, isBusy = false) {
    this.outcome.textContent = text;
    this.stage.setAttribute("aria-busy", isBusy);
  }
}

// Plays a reel; faces/look/reel.py describes it.
class Player {
  constructor(element, reel, pictures) {
    Object.assign(this, { reel, pictures, step: 0, isPlaying: false, last: reel.steps - 1 });
    this.hasValue = reel.values[0] !== null;
    const parts = [this.buildScreen(), this.buildSight(), this.buildThoughts()];
    this.root = build(
      "div", { class: "viewer", role: "group", "aria-label": "A game of the agent" },
      build("div", { class: "stage" }, parts), this.buildTimeline(), this.buildControls(),
      this.buildExpectation(),
    );
    element.replaceChildren(this.root);
    this.colours = readColours(this.root);
    this.explain();
    this.setPlaying(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  leave() {
    this.isPlaying = false;
    this.root.remove();
  }

  buildScreen() {
    this.screen = buildCanvas("screen", "The game as the emulator draws it", true);
    this.score = build("span", { class: "number" });
    return buildFigure(this.screen, "The game", this.score);
  }

  buildSight() {
    const words = "What the network sees: pixels that appeared, stayed and vanished";
    this.sight = buildCanvas("sight", words);
    this.sightKey = build("div");
    return buildFigure(this.sight, "What the network sees", this.sightKey);
  }

  buildThoughts() {
    this.bars = this.reel.action_names.map((name) => {
      const fill = build("span", { class: "fill" }), share = build("span", { class: "number" });
      const bar = build("span", { class: "bar", "aria-hidden": "true" }, fill);
      const word = build("span", {}, `${SYMBOLS[name]} ${name}`);
      return { row: build("li", { class: `action ${name}` }, word, bar, share), fill, share };
    });
    this.value = build("dd", { class: "number" });
    const meaning = build("dt", {}, "Value: how it expects the point to end, from −1 to +1");
    const none = build("p", { class: "quiet" }, "This network does not judge positions: no value.");
    return build(
      "div", { class: "thoughts" }, build("h2", {}, "What it decides"),
      build("ul", { class: "actions" }, this.bars.map(({ row }) => row)),
      this.hasValue ? build("dl", {}, meaning, this.value) : none,
    );
  }

  buildTimeline() {
    const { reel, last } = this, up = reel.action_names.indexOf("up");
    const x = (step) => (1000 * step) / last, curve = { colour: "note", width: 1.25 };
    const level = (step) =>
      (this.hasValue ? (1 - reel.values[step]) / 2 : 1 - reel.probabilities[step][up]);
    const line = Array.from({ length: reel.steps }, (_, step) => [x(step), 15 + 70 * level(step)]);
    this.points = reel.points.flatMap(([lost, won], step) => {
      const [lostBefore, wonBefore] = reel.points[Math.max(0, step - 1)];
      return lost > lostBefore || won > wonBefore ? [{ step, isWon: won > wonBefore }] : [];
    });
    const marks = this.points.map(({ step, isWon }) => build("svg:path", {
      class: isWon ? "won" : "lost", d: isWon ? `M${x(step)} 0v14` : `M${x(step)} 100v-14`,
    }));
    this.range = build("input", {
      type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Step of the game",
      oninput: () => this.go(Number(this.range.value)),
    });
    const box = { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" };
    const strip = build("svg:svg", box, drawLine(curve, line), marks);
    const name = this.hasValue ? "value, from −1 to 1" : "probability of up, from 0 to 1";
    return build(
      "div", { class: "timeline" }, build("div", { class: "timeline-strip" }, strip, this.range),
      build("p", { class: "quiet" }, `Line: the ${name}. Marks above: points won; below: lost.`),
    );
  }

  buildControls() {
    const steps = this.points.map(({ step }) => step);
    const button = (sign, name, onclick) =>
      build("button", { type: "button", "aria-label": name, title: name, onclick }, sign);
    const nudge = (steps) => { this.setPlaying(false); this.go(this.step + steps); };
    const toggle = () => this.setPlaying(!this.isPlaying);
    this.playButton = build("button", { type: "button", class: "primary", onclick: toggle });
    const speed = build(
      "select", { onchange: () => { taste.speed = Number(speed.value); } },
      SPEEDS.map((each) => (
        build("option", { value: each, selected: each === taste.speed }, `${each}×`)
      )),
    );
    const overlay = build("input", {
      type: "checkbox", checked: taste.hasSaliency,
      onchange: () => { taste.hasSaliency = overlay.checked; this.explain(); },
    });
    this.place = build("span", { class: "number quiet place" });
    return build(
      "div", { class: "controls" },
      button("⇤", "Previous point", () => this.jump(steps, -1)),
      button("−1", "One step back", () => nudge(-1)), this.playButton,
      button("+1", "One step forward", () => nudge(1)),
      button("⇥", "Next point", () => this.jump(steps, 1)), build("label", {}, "Speed ", speed),
      build("label", { class: "check" }, overlay, "What moved the decision"), this.place,
    );
  }

  // What the agent would do with its paddle elsewhere, each time the ball is about to reach it.
  buildExpectation() {
    const { expectations, action_names: names } = this.reel;
    if (!expectations.length) return null;
    const steps = expectations.map(({ step }) => step);
    const next = () => { this.setPlaying(false); this.jump(steps, 1); };
    this.choices = buildCanvas("choices", "What the agent would do at each height of its paddle");
    this.outcomes = buildCanvas("outcomes", "How it expects the point to end at each height");
    const keys = buildKeys(names.map((name) => ["", `swatch ${name}`, name]));
    const ends = build("span", { class: "quiet" }, "From −1, lost (left), to +1, won (right).");
    return build(
      "section", { class: "expectation" },
      build(
        "div", { class: "section-head" }, build("h2", {}, "What the agent expects"),
        build("button", { type: "button", onclick: next }, "Next time the ball comes"),
      ),
      build(
        "p", { class: "quiet" }, "Each time the ball is about to reach it, the same network is ",
        "asked what it would do with its paddle at every other height: one row per height. ",
        "Dashed: the ball. At the right edge: where the paddle was.",
      ),
      build(
        "div", { class: "expectation-parts" }, buildFigure(this.choices, "What it would do", keys),
        this.hasValue && buildFigure(this.outcomes, "How it expects the point to end", ends),
      ),
    );
  }

  // Show or hide what each pixel adds to the decision.
  explain() {
    const kinds = ["appeared", "stayed", "vanished"].map((kind) => ["", kind, kind]);
    const favours = [["▲", "favours up", "for up"], ["▼", "favours down", "for down"]];
    this.sightKey.replaceChildren(buildKeys(taste.hasSaliency ? [...kinds, ...favours] : kinds));
    this.show(this.step);
  }

  setPlaying(isPlaying) {
    Object.assign(this, { isPlaying, clock: null });
    if (isPlaying && this.step >= this.last) this.show(0);
    if (isPlaying) requestAnimationFrame((now) => this.tick(now));
    else this.go(this.step);
    const [sign, name] = isPlaying ? ["❚❚", "Pause"] : ["▶", "Play"];
    this.playButton.replaceChildren(build("span", { "aria-hidden": "true" }, sign), ` ${name}`);
    this.root.dataset.playing = isPlaying;
  }

  tick(now) {
    if (!this.isPlaying) return;
    const rate = this.reel.steps_per_second * taste.speed;
    this.clock ??= now;
    const due = Math.min(Math.floor(((now - this.clock) / 1000) * rate), Math.ceil(rate));
    if (due > 0) {
      this.clock += (due / rate) * 1000;
      if (now - this.clock > 1000) this.clock = now; // the page was hidden
      this.show(Math.min(this.last, this.step + due));
    }
    if (this.step >= this.last) this.setPlaying(false);
    else requestAnimationFrame((later) => this.tick(later));
  }

  jump(steps, direction) {
    const isAhead = (step) => direction * (step - this.step) > 0;
    const found = direction > 0 ? steps.find(isAhead) : steps.findLast(isAhead);
    this.go(found ?? (direction > 0 ? this.last : 0));
  }

  // Show a step that a person has chosen, and tell screen readers, which do not hear what plays.
  go(step) {
    this.show(Math.max(0, Math.min(this.last, step)));
    const words = `step ${this.step} of ${this.last}, ${this.score.textContent}`;
    this.range.setAttribute("aria-valuetext", words);
  }

  show(step) {
    const { reel, pictures, colours } = this, [lost, won] = reel.points[step];
    this.step = step;
    drawScreen(this.screen, pictures.screen.at(step), reel.palette);
    drawField(this.sight, pictures.field.at(step), colours);
    if (taste.hasSaliency) drawSaliency(this.sight, pictures.saliency.at(step), colours);
    this.bars.forEach(({ row, fill, share }, index) => {
      const percent = 100 * reel.probabilities[step][index];
      const isTaken = reel.actions[step] === reel.action_codes[index];
      fill.style.width = `${percent}%`;
      share.textContent = `${percent.toFixed(0)} %${isTaken ? " ✓" : ""}`;
      row.classList.toggle("taken", isTaken);
    });
    this.value.textContent = formatSigned(reel.values[step], 2);
    this.showExpectation();
    this.range.value = step;
    this.root.dataset.step = step;
    this.score.textContent = `opponent ${lost} : ${won} agent`;
    this.place.textContent = `step ${step} of ${this.last}`;
  }

  // The newest answers, or the first ones; they stay until the ball comes again.
  showExpectation() {
    const { expectations: all, action_names: names } = this.reel, { colours } = this;
    const now = all.findLast(({ step }) => step <= this.step) ?? all[0];
    if (!now || now === this.expectation) return;
    this.expectation = now;
    drawRows(this.choices, this.reel, now, now.probabilities.map((shares) => {
      let from = 0;
      return names.map((name, place) => [from, (from += shares[place]), colours[name]]);
    }));
    const ends = (now.values ?? []).map((value) => [[0.5, (value + 1) / 2, colours.stay]]);
    drawRows(this.outcomes, this.reel, now, ends);
  }
}

function buildFigure(canvas, title, ...more) {
  const caption = build("figcaption", {}, build("strong", {}, title), more);
  return build("figure", { class: `${canvas.className}-part` }, canvas, caption);
}
