// The replay viewer: an episode, with what the network saw and thought; or a film, the game alone.
//
// `mount(element, reel)` shows a reel; faces/page/reel.py describes it.
import { build, buildHelp, formatSigned } from "./parts.js";
import { FIELD, SCREEN, buildSightKey, drawField, drawSaliency, drawScreen, drawTriangle, readColours, unpackPictures } from "./pictures.js";

const THUMB = 12; // pixels of the timeline's thumb, as in style.css
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const viewerTaste = { speed: 1, hasSaliency: false }; // kept from one replay to the next

// Show a reel. `options.onend` is called at its end.
export function mount(element, reel, options = {}) {
  let player = null, isGone = false;
  element.replaceChildren(build("p", { class: "quiet" }, "Unpacking the replay…"));
  unpackPictures(reel).then(
    (pictures) => { if (!isGone) player = new Player(element, reel, pictures, options); },
    () => element.replaceChildren(build("p", { class: "problem" }, "This replay cannot be unpacked: it is damaged, or the browser is too old.")),
  );
  return {
    unmount() {
      isGone = true;
      player?.leave();
      element.replaceChildren();
    },
  };
}

class Player {
  constructor(element, reel, pictures, options) {
    Object.assign(this, { reel, pictures, options, step: 0, isPlaying: false, timer: null });
    this.last = reel.steps - 1;
    this.isFilm = !reel.field;
    this.unit = this.isFilm ? "frame" : "step";
    this.hasValue = !this.isFilm && reel.values.some((value) => value !== null);
    this.moments = listPoints(reel.points);
    this.root = build(
      "div", { class: "viewer", role: "group", "aria-label": reel.title, onkeydown: (event) => this.key(event) },
      build("div", { class: "stage" }, this.buildScreen(), this.isFilm ? [] : [this.buildSight(), this.buildThoughts()]), this.buildTimeline(), this.buildControls(),
    );
    element.replaceChildren(this.root);
    this.colours = readColours(this.root);
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => this.drawTimeline(), sizes = new ResizeObserver(redraw);
    scheme.addEventListener("change", redraw);
    sizes.observe(this.timeline);
    this.stopListening = () => { scheme.removeEventListener("change", redraw); sizes.disconnect(); };
    this.explain();
    this.describe();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  leave() {
    this.pause();
    this.stopListening();
  }

  // A colour of the style sheet.
  colour(name) {
    return getComputedStyle(this.root).getPropertyValue(`--${name}`).trim();
  }

  buildScreen() {
    this.screen = build("canvas", {
      class: "screen", role: "img", "aria-label": "The game as the emulator draws it",
      width: SCREEN.columns * SCREEN.scale, height: SCREEN.rows * SCREEN.scale,
    });
    this.score = build("span", { class: "number" });
    return build("figure", { class: "screen-part" }, this.screen, build("figcaption", {}, build("strong", {}, "The game"), this.score));
  }

  buildSight() {
    const side = FIELD.side * FIELD.cell;
    this.sight = build("canvas", {
      class: "sight", role: "img", width: side, height: side,
      "aria-label": "What the network sees: pixels that appeared, stayed and vanished",
    });
    const caption = build("figcaption", {}, build("strong", {}, "What the network sees"), (this.sightKey = build("div")));
    return build("figure", { class: "sight-part" }, this.sight, caption);
  }

  buildThoughts() {
    this.bars = this.reel.action_names.map((name) => {
      const fill = build("span", { class: "fill" }), share = build("span", { class: "number" });
      const row = build(
        "li", { class: `action ${name}` }, build("span", {}, `${SYMBOLS[name] ?? ""} ${name}`),
        build("span", { class: "bar", "aria-hidden": "true" }, fill), share,
      );
      return { row, fill, share };
    });
    [this.value, this.largest] = ["value", "largest"].map(() => build("dd", { class: "number" }));
    const { is_own: isOwn, agent_update: update } = this.reel;
    return build(
      "div", { class: "thoughts" }, build("h3", {}, "What it makes of it"),
      build("ul", { class: "actions" }, this.bars.map((bar) => bar.row)),
      build("dl", {}, build("dt", {}, "Value of the point ", buildHelp("value")), this.value, build("dt", {}, "Strongest pixel ", buildHelp("saliency")), this.largest),
      !this.hasValue && build("p", { class: "quiet" }, "This network judges no positions: it has no value."),
      build("p", { class: "quiet" }, isOwn ? "This shows exactly the agent that played." : `This shows the agent from update ${update}, the closest one saved.`),
    );
  }

  buildTimeline() {
    this.timeline = build("canvas", { "aria-hidden": "true" });
    this.range = build("input", {
      type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": this.isFilm ? "Frame of the rally" : "Step of the episode",
      oninput: () => { this.show(Number(this.range.value)); this.describe(); },
    });
    const curve = this.hasValue ? "value of the point, from −1 to 1" : "probability of up, from 0 to 1";
    return build(
      "div", { class: "timeline" }, build("div", { class: "timeline-strip" }, this.timeline, this.range),
      !this.isFilm && build("p", { class: "quiet" }, `The line is the ${curve}. ▲ is a point won, ▼ a point lost.`),
    );
  }

  buildControls() {
    const button = (label, name, action) =>
      build("button", { type: "button", "aria-label": name, title: name, onclick: action }, label);
    this.playButton = build("button", { type: "button", class: "primary", onclick: () => this.toggle() });
    this.speed = build(
      "select", { onchange: () => { viewerTaste.speed = Number(this.speed.value); } },
      SPEEDS.map((speed) => build("option", { value: speed, selected: speed === viewerTaste.speed }, `${speed}×`)),
    );
    const overlay = build("input", {
      type: "checkbox", checked: viewerTaste.hasSaliency,
      onchange: () => { viewerTaste.hasSaliency = overlay.checked; this.explain(); },
    });
    this.place = build("span", { class: "number quiet place" });
    return build(
      "div", { class: "controls" },
      button("⇤", "Point before", () => this.jump(-1)), button("−1", `One ${this.unit} back`, () => this.nudge(-1)),
      this.playButton, button("+1", `One ${this.unit} on`, () => this.nudge(1)), button("⇥", "Next point", () => this.jump(1)),
      build("label", {}, "Speed ", this.speed),
      !this.isFilm && build("label", { class: "check" }, overlay, "What moved the decision"), this.place,
    );
  }

  // Show or hide what each pixel adds to the decision.
  explain() {
    this.sightKey?.replaceChildren(buildSightKey(viewerTaste.hasSaliency));
    this.show(this.step);
  }

  key(event) {
    if (event.key !== " " || event.target.matches("button, select, input[type=checkbox]")) return;
    event.preventDefault();
    this.toggle();
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
    const rate = this.reel.steps_per_second * viewerTaste.speed;
    if (this.clock === null) this.clock = now;
    const due = Math.min(Math.floor(((now - this.clock) / 1000) * rate), Math.ceil(rate));
    if (due > 0) {
      this.clock += (due / rate) * 1000;
      if (now - this.clock > 1000) this.clock = now; // the page was hidden
      this.show(Math.min(this.last, this.step + due));
    }
    if (this.step >= this.last) {
      this.pause();
      this.options.onend?.();
    } else this.timer = requestAnimationFrame((later) => this.tick(later));
  }

  nudge(steps) {
    this.pause();
    this.show(Math.max(0, Math.min(this.last, this.step + steps)));
    this.describe();
  }

  jump(direction) {
    const steps = this.moments.map((moment) => moment.step);
    const ahead = direction > 0 ? steps.find((step) => step > this.step) : steps.findLast((step) => step < this.step);
    this.show(ahead ?? (direction > 0 ? this.last : 0));
    this.describe();
  }

  // Text about the position for screen readers, after a person has moved it; not during play.
  describe() {
    this.range.setAttribute("aria-valuetext", `${this.unit} ${this.step} of ${this.last}, ${this.tellScore()}`);
  }

  tellScore() {
    const [left, right] = this.reel.sides ?? ["opponent", "agent"], [lost, won] = this.reel.points[this.step];
    return `${left} ${lost} : ${won} ${right}`;
  }

  show(step) {
    this.step = step;
    drawScreen(this.screen, this.pictures.screen.at(step), this.reel.palette);
    if (!this.isFilm) this.showThoughts(step);
    this.range.value = step;
    this.root.dataset.step = step;
    this.score.textContent = this.tellScore();
    this.place.textContent = `${this.unit} ${step} of ${this.last}`;
  }

  showThoughts(step) {
    drawField(this.sight, this.pictures.field.at(step), this.colours);
    if (viewerTaste.hasSaliency) drawSaliency(this.sight, this.pictures.saliency.at(step), this.colours);
    this.tellThoughts();
  }

  tellThoughts() {
    const { probabilities, actions, action_codes: codes, values, saliency_max: largest } = this.reel;
    this.bars.forEach((bar, index) => {
      const share = probabilities[this.step][index], isTaken = actions[this.step] === codes[index];
      bar.fill.style.width = `${100 * share}%`;
      bar.share.textContent = `${(100 * share).toFixed(0)} %${isTaken ? " ✓" : ""}`;
      bar.row.classList.toggle("taken", isTaken);
    });
    this.value.textContent = formatSigned(values[this.step], 2);
    this.largest.textContent = largest[this.step].toFixed(2);
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
    if (!this.isFilm) drawCurve(context, this.reel, x, height, this.colour("note"));
    for (const { step, isWon } of this.moments) {
      context.fillStyle = this.colour(isWon ? "accent" : "warn");
      drawTriangle(context, x(step), isWon ? 7 : height - 7, 5, isWon);
    }
  }
}

// The steps at which a point ended.
function listPoints(points) {
  const moments = [];
  for (let step = 1; step < points.length; step += 1) {
    const [lost, won] = points[step];
    if (won > points[step - 1][1]) moments.push({ step, isWon: true });
    if (lost > points[step - 1][0]) moments.push({ step, isWon: false });
  }
  return moments;
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
