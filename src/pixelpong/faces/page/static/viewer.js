// The viewer: a game of an agent, with what the network sees, thinks, and expects.
//
// `mountViewer(element, reel)` shows a reel; faces/look/reel.py describes it.
import { build, formatSigned } from "./parts.js";
import { FIELD, SCREEN, buildActionKey, buildSightKey, drawChoices, drawField, drawSaliency, drawScreen, drawTriangle, drawValues, readColours, unpackPictures } from "./pictures.js";

const THUMB = 12; // pixels of the timeline's thumb, as in style.css
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const taste = { speed: 1, hasSaliency: false }; // kept from one game to the next

export function mountViewer(element, reel) {
  let player = null, isGone = false;
  element.replaceChildren(build("p", { class: "quiet" }, "Unpacking the game…"));
  unpackPictures(reel).then((pictures) => { if (!isGone) player = new Player(element, reel, pictures); });
  return {
    leave() {
      isGone = true;
      player?.leave();
      element.replaceChildren();
    },
  };
}

class Player {
  constructor(element, reel, pictures) {
    Object.assign(this, { reel, pictures, step: 0, isPlaying: false, timer: null, last: reel.steps - 1 });
    this.hasValue = reel.values.some((value) => value !== null);
    this.points = listPoints(reel.points);
    this.root = build(
      "div", { class: "viewer", role: "group", "aria-label": "A game of the agent" },
      build("div", { class: "stage" }, this.buildScreen(), this.buildSight(), this.buildThoughts()), this.buildTimeline(), this.buildControls(), this.buildExpectation(),
    );
    element.replaceChildren(this.root);
    this.colours = readColours(this.root);
    this.sizes = new ResizeObserver(() => this.drawTimeline());
    this.sizes.observe(this.timeline);
    this.explain();
    this.describe();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  leave() {
    this.pause();
    this.sizes.disconnect();
  }

  // A colour of the style sheet.
  colour(name) {
    return getComputedStyle(this.root).getPropertyValue(`--${name}`).trim();
  }

  buildScreen() {
    this.screen = buildPicture("screen", "The game as the emulator draws it", SCREEN.columns * SCREEN.scale, SCREEN.rows * SCREEN.scale);
    this.score = build("span", { class: "number" });
    return build("figure", { class: "screen-part" }, this.screen, build("figcaption", {}, build("strong", {}, "The game"), this.score));
  }

  buildSight() {
    this.sight = buildPicture("sight", "What the network sees: pixels that appeared, stayed and vanished");
    this.sightKey = build("div");
    return build("figure", { class: "sight-part" }, this.sight, build("figcaption", {}, build("strong", {}, "What the network sees"), this.sightKey));
  }

  buildThoughts() {
    this.bars = this.reel.action_names.map((name) => {
      const fill = build("span", { class: "fill" }), share = build("span", { class: "number" });
      const row = build(
        "li", { class: `action ${name}` }, build("span", {}, `${SYMBOLS[name]} ${name}`),
        build("span", { class: "bar", "aria-hidden": "true" }, fill), share,
      );
      return { row, fill, share };
    });
    this.value = build("dd", { class: "number" });
    return build(
      "div", { class: "thoughts" }, build("h2", {}, "What it decides"),
      build("ul", { class: "actions" }, this.bars.map((bar) => bar.row)),
      this.hasValue
        ? build("dl", {}, build("dt", {}, "Value: the outcome of the point that it expects, −1 to +1"), this.value)
        : build("p", { class: "quiet" }, "This network has no value: it does not judge positions."),
    );
  }

  buildTimeline() {
    this.timeline = build("canvas", { "aria-hidden": "true" });
    this.range = build("input", {
      type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "Step of the game",
      oninput: () => { this.show(Number(this.range.value)); this.describe(); },
    });
    const curve = this.hasValue ? "value, from −1 to 1" : "probability of up, from 0 to 1";
    return build(
      "div", { class: "timeline" }, build("div", { class: "timeline-strip" }, this.timeline, this.range),
      build("p", { class: "quiet" }, `The line is the ${curve}. ▲ is a point won, ▼ a point lost.`),
    );
  }

  buildControls() {
    const button = (label, name, onclick) => build("button", { type: "button", "aria-label": name, title: name, onclick }, label);
    this.playButton = build("button", { type: "button", class: "primary", onclick: () => this.toggle() });
    this.speed = build(
      "select", { onchange: () => { taste.speed = Number(this.speed.value); } },
      SPEEDS.map((speed) => build("option", { value: speed, selected: speed === taste.speed }, `${speed}×`)),
    );
    const overlay = build("input", {
      type: "checkbox", checked: taste.hasSaliency,
      onchange: () => { taste.hasSaliency = overlay.checked; this.explain(); },
    });
    this.place = build("span", { class: "number quiet place" });
    const points = this.points.map(({ step }) => step);
    return build(
      "div", { class: "controls" },
      button("⇤", "Previous point", () => this.jump(points, -1)), button("−1", "One step back", () => this.nudge(-1)),
      this.playButton, button("+1", "One step forward", () => this.nudge(1)), button("⇥", "Next point", () => this.jump(points, 1)),
      build("label", {}, "Speed ", this.speed), build("label", { class: "check" }, overlay, "What moved the decision"), this.place,
    );
  }

  // What the agent would do with its paddle elsewhere, each time the ball is about to reach it.
  buildExpectation() {
    const { expectations, action_names: names } = this.reel;
    if (!expectations.length) return null;
    const figure = (canvas, title, ...more) => build("figure", {}, canvas, build("figcaption", {}, build("strong", {}, title), more));
    this.choices = buildPicture("choices", "What the agent would do at each height of its paddle");
    this.outcomes = this.hasValue && buildPicture("outcomes", "How the agent expects the point to end, at each height of its paddle");
    const next = () => { this.pause(); this.jump(expectations.map(({ step }) => step), 1); };
    return build(
      "section", { class: "expectation" },
      build("div", { class: "section-head" }, build("h2", {}, "What the agent expects"), build("button", { type: "button", onclick: next }, "Next time the ball comes")),
      build("p", { class: "quiet" }, "Each time the ball is about to reach it, the same network is asked what it would do with its paddle at every other height: one row per height. Dashed: the ball. At the right edge: where the paddle was."),
      build(
        "div", { class: "expectation-parts" }, figure(this.choices, "What it would do", buildActionKey(names)),
        this.outcomes && figure(this.outcomes, "How it expects the point to end", build("span", { class: "quiet" }, "From −1, lost (left), to +1, won (right).")),
      ),
    );
  }

  // Show or hide what each pixel adds to the decision.
  explain() {
    this.sightKey.replaceChildren(buildSightKey(taste.hasSaliency));
    this.show(this.step);
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (this.step >= this.last) this.show(0);
    this.isPlaying = true;
    this.clock = null;
    this.timer = requestAnimationFrame((now) => this.tick(now));
    this.labelPlay("Pause", "❚❚");
  }

  pause() {
    this.isPlaying = false;
    cancelAnimationFrame(this.timer);
    this.labelPlay("Play", "▶");
    this.describe();
  }

  labelPlay(name, sign) {
    this.playButton.replaceChildren(build("span", { "aria-hidden": "true" }, sign), ` ${name}`);
    this.root.dataset.playing = this.isPlaying;
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
    if (this.step >= this.last) this.pause();
    else this.timer = requestAnimationFrame((later) => this.tick(later));
  }

  nudge(steps) {
    this.pause();
    this.show(Math.max(0, Math.min(this.last, this.step + steps)));
    this.describe();
  }

  jump(steps, direction) {
    const ahead = direction > 0 ? steps.find((step) => step > this.step) : steps.findLast((step) => step < this.step);
    this.show(ahead ?? (direction > 0 ? this.last : 0));
    this.describe();
  }

  // Text about the position for screen readers, after a person has moved it; not during play.
  describe() {
    this.range.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}, ${this.tellScore()}`);
  }

  tellScore() {
    const [lost, won] = this.reel.points[this.step];
    return `opponent ${lost} : ${won} agent`;
  }

  show(step) {
    this.step = step;
    drawScreen(this.screen, this.pictures.screen.at(step), this.reel.palette);
    drawField(this.sight, this.pictures.field.at(step), this.colours);
    if (taste.hasSaliency) drawSaliency(this.sight, this.pictures.saliency.at(step), this.colours);
    this.showThoughts();
    this.showExpectation();
    this.range.value = step;
    this.root.dataset.step = step;
    this.score.textContent = this.tellScore();
    this.place.textContent = `step ${step} of ${this.last}`;
  }

  showThoughts() {
    const { probabilities, actions, action_codes: codes, values } = this.reel;
    this.bars.forEach((bar, index) => {
      const share = probabilities[this.step][index], isTaken = actions[this.step] === codes[index];
      bar.fill.style.width = `${100 * share}%`;
      bar.share.textContent = `${(100 * share).toFixed(0)} %${isTaken ? " ✓" : ""}`;
      bar.row.classList.toggle("taken", isTaken);
    });
    this.value.textContent = formatSigned(values[this.step], 2);
  }

  // The newest answers, or the first ones; they stay until the ball comes again.
  showExpectation() {
    const { expectations, action_names: names } = this.reel;
    const now = expectations.findLast(({ step }) => step <= this.step) ?? expectations[0];
    if (!now || now === this.expectation) return;
    this.expectation = now;
    drawChoices(this.choices, this.reel, now, names, this.colours);
    if (this.outcomes) drawValues(this.outcomes, this.reel, now, this.colours);
  }

  drawTimeline() {
    const canvas = this.timeline, density = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * density;
    canvas.height = height * density;
    const context = canvas.getContext("2d");
    context.scale(density, density);
    const x = (step) => THUMB / 2 + ((width - THUMB) * step) / Math.max(1, this.last);
    context.fillStyle = this.colour("line");
    context.fillRect(0, height / 2, width, 1);
    drawCurve(context, this.reel, x, height, this.colour("note"));
    for (const { step, isWon } of this.points) {
      context.fillStyle = this.colour(isWon ? "accent" : "warn");
      drawTriangle(context, x(step), isWon ? 7 : height - 7, 5, isWon);
    }
  }
}

function buildPicture(name, words, width = FIELD.side * FIELD.cell, height = width) {
  return build("canvas", { class: name, role: "img", "aria-label": words, width, height });
}

// The steps at which a point ended.
function listPoints(points) {
  const ends = [];
  for (let step = 1; step < points.length; step += 1) {
    const [lost, won] = points[step];
    if (won > points[step - 1][1]) ends.push({ step, isWon: true });
    if (lost > points[step - 1][0]) ends.push({ step, isWon: false });
  }
  return ends;
}

function drawCurve(context, reel, x, height, colour) {
  const up = reel.action_names.indexOf("up"), margin = 12;
  const level = (step) => reel.values[step] ?? 2 * reel.probabilities[step][up] - 1;
  const every = Math.max(1, Math.floor(reel.steps / 2000));
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  context.beginPath();
  for (let step = 0; step < reel.steps; step += every) {
    const share = (1 - Math.max(-1, Math.min(1, level(step)))) / 2;
    context.lineTo(x(step), margin + share * (height - 2 * margin));
  }
  context.stroke();
}
