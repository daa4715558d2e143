// The replay viewer: an episode beside what the network saw and made of it.
//
// `mount(element, reel)` shows a reel, which is described in faces/page/reel.py.
import { build, formatSigned } from "./parts.js";

const SCREEN = { rows: 210, columns: 160, scale: 3, fieldTop: 35, fieldStep: 2 };
const FIELD = { side: 80, cell: 6 };
const KINDS = [null, "stayed", "appeared", "vanished"]; // of a pixel of the field
const WHOLE_EVERY = 64; // steps between the pictures that are kept whole
const THUMB = 12; // pixels of the timeline's thumb, as in style.css
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const viewerTaste = { speed: 1, hasSaliency: true }; // kept from one replay to the next

// Show a reel. `options.onend` is called when it has been played to its end.
export function mount(element, reel, options = {}) {
  let player = null, isGone = false;
  element.replaceChildren(build("p", { class: "quiet" }, "Unpacking the replay…"));
  const sizes = { screen: SCREEN.rows * SCREEN.columns, field: FIELD.side ** 2, saliency: FIELD.side ** 2 };
  const unpacked = Object.entries(sizes).map(async ([name, size]) => [name, new Pictures(await inflate(reel[name]), size)]);
  Promise.all(unpacked).then(
    (pictures) => { if (!isGone) player = new Player(element, reel, Object.fromEntries(pictures), options); },
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

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new DataView(await new Response(stream).arrayBuffer());
}

// Pictures coded as differences; some are kept whole, to go back to.
class Pictures {
  constructor(view, size) {
    Object.assign(this, { view, current: new Uint8Array(size), starts: [], whole: [], step: -1 });
    for (let place = 0; place + 1 < view.byteLength; place += 2 + 3 * view.getUint16(place, true)) this.starts.push(place);
    while (this.step < this.starts.length - 1) {
      this.advance();
      if (this.step % WHOLE_EVERY === 0) this.whole.push(this.current.slice());
    }
  }

  // The picture of a step; the array is the same at every call.
  at(step) {
    if (step < this.step || step >= this.step + WHOLE_EVERY) {
      const key = Math.floor(step / WHOLE_EVERY);
      this.current.set(this.whole[key]);
      this.step = key * WHOLE_EVERY;
    }
    while (this.step < step) this.advance();
    return this.current;
  }

  advance() {
    this.step += 1;
    const start = this.starts[this.step], count = this.view.getUint16(start, true);
    const places = start + 2, values = places + 2 * count;
    for (let each = 0; each < count; each += 1) {
      this.current[this.view.getUint16(places + 2 * each, true)] = this.view.getUint8(values + each);
    }
  }
}

class Player {
  constructor(element, reel, pictures, options) {
    Object.assign(this, { reel, pictures, options, step: 0, isPlaying: false, timer: null });
    this.last = reel.steps - 1;
    this.palette = reel.palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
    this.hasValue = reel.values.some((value) => value !== null);
    this.small = build("canvas", { width: SCREEN.columns, height: SCREEN.rows });
    this.moments = listPoints(reel.points);
    this.root = build(
      "div", { class: "viewer", role: "group", "aria-label": reel.title, onkeydown: (event) => this.key(event) },
      build("div", { class: "stage" }, this.buildScreen(), this.buildSight(), this.buildThoughts()), this.buildTimeline(), this.buildControls(),
    );
    element.replaceChildren(this.root);
    this.colours = Object.fromEntries(["up", "down", "appeared", "stayed", "vanished"].map((name) => [name, this.colour(name)]));
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => this.drawTimeline(), sizes = new ResizeObserver(redraw);
    scheme.addEventListener("change", redraw);
    sizes.observe(this.timeline);
    this.stopListening = () => { scheme.removeEventListener("change", redraw); sizes.disconnect(); };
    this.show(0);
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
    const key = (sign, kind, word) => build("li", {}, build("span", { class: `key ${kind}`, "aria-hidden": "true" }, sign), word);
    const kinds = ["appeared", "stayed", "vanished"].map((kind) => key("", kind, kind));
    const caption = build(
      "figcaption", {}, build("strong", {}, "What the network sees"),
      build("ul", { class: "legend" }, kinds, key("▲", "up", "for up"), key("▼", "down", "for down")),
    );
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
      build("dl", {}, build("dt", {}, "Value of the point"), this.value, build("dt", {}, "Strongest pixel, in logits"), this.largest),
      !this.hasValue && build("p", { class: "quiet" }, "This network judges no positions: it has no value."),
      build("p", { class: "quiet" }, isOwn ? "This shows exactly the agent that played." : `This shows the agent from update ${update}, the closest one saved.`),
    );
  }

  buildTimeline() {
    this.timeline = build("canvas", { "aria-hidden": "true" });
    this.range = build("input", {
      type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "Step of the episode",
      oninput: () => { this.show(Number(this.range.value)); this.describe(); },
    });
    const curve = this.hasValue ? "value of the point, from −1 to 1" : "probability of up, from 0 to 1";
    return build(
      "div", { class: "timeline" }, build("div", { class: "timeline-strip" }, this.timeline, this.range),
      build("p", { class: "quiet" }, `The line is the ${curve}. ▲ is a point won, ▼ a point lost.`),
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
      onchange: () => { viewerTaste.hasSaliency = overlay.checked; this.show(this.step); },
    });
    this.place = build("span", { class: "number quiet place" });
    return build(
      "div", { class: "controls" },
      button("⇤", "Point before", () => this.jump(-1)), button("−1", "One step back", () => this.nudge(-1)),
      this.playButton, button("+1", "One step on", () => this.nudge(1)), button("⇥", "Next point", () => this.jump(1)),
      build("label", {}, "Speed ", this.speed),
      build("label", { class: "check" }, overlay, "What moved the decision"), this.place,
    );
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

  // What a screen reader says of the place, when a person has moved it; not while it plays.
  describe() {
    const [lost, won] = this.reel.points[this.step];
    this.range.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}, ${won} points won, ${lost} lost`);
  }

  show(step) {
    this.step = step;
    const saliency = viewerTaste.hasSaliency ? this.pictures.saliency.at(step) : null;
    this.drawScreen(this.pictures.screen.at(step), saliency);
    this.drawSight(this.pictures.field.at(step), saliency);
    this.tellThoughts();
    this.range.value = step;
    this.root.dataset.step = step;
    const [lost, won] = this.reel.points[step];
    this.score.textContent = `opponent ${lost} : ${won} agent`;
    this.place.textContent = `step ${step} of ${this.last}`;
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

  drawScreen(indices, saliency) {
    const small = this.small.getContext("2d"), large = this.screen.getContext("2d");
    const image = small.createImageData(SCREEN.columns, SCREEN.rows);
    const dots = new Uint32Array(image.data.buffer);
    for (let place = 0; place < dots.length; place += 1) dots[place] = this.palette[indices[place]];
    small.putImageData(image, 0, 0);
    large.imageSmoothingEnabled = false;
    large.drawImage(this.small, 0, 0, this.screen.width, this.screen.height);
    if (saliency) this.drawSaliency(large, saliency, SCREEN.scale * SCREEN.fieldStep, SCREEN.fieldTop * SCREEN.scale);
  }

  drawSight(field, saliency) {
    const context = this.sight.getContext("2d"), { side, cell } = FIELD;
    context.clearRect(0, 0, this.sight.width, this.sight.height);
    for (let place = 0; place < field.length; place += 1) {
      if (field[place]) this.drawPixel(context, KINDS[field[place]], (place % side) * cell, Math.floor(place / side) * cell);
    }
    if (saliency) this.drawSaliency(context, saliency, cell, 0);
  }

  // Told apart by colour and by shape: full, a dot, an outline.
  drawPixel(context, kind, x, y) {
    const size = FIELD.cell;
    context.fillStyle = context.strokeStyle = this.colours[kind];
    if (kind === "appeared") context.fillRect(x, y, size, size);
    else if (kind === "stayed") context.fillRect(x + 2, y + 2, size - 4, size - 4);
    else context.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }

  // A triangle a pixel: which way it points is what it speaks for, its area is how loud.
  drawSaliency(context, saliency, size, top) {
    for (let place = 0; place < saliency.length; place += 1) {
      const value = (saliency[place] << 24) >> 24; // as int8
      if (Math.abs(value) < 4) continue;
      context.fillStyle = value > 0 ? this.colours.up : this.colours.down;
      const x = ((place % FIELD.side) + 0.5) * size, y = top + (Math.floor(place / FIELD.side) + 0.5) * size;
      drawTriangle(context, x, y, 1.5 * size * Math.sqrt(Math.abs(value) / 127), value > 0);
    }
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
    for (const { step, isWon } of this.moments) {
      context.fillStyle = this.colour(isWon ? "accent" : "warn");
      drawTriangle(context, x(step), isWon ? 7 : height - 7, 5, isWon);
    }
  }
}

// The steps at which a point was made.
function listPoints(points) {
  const moments = [];
  for (let step = 1; step < points.length; step += 1) {
    const [lost, won] = points[step];
    if (won > points[step - 1][1]) moments.push({ step, isWon: true });
    if (lost > points[step - 1][0]) moments.push({ step, isWon: false });
  }
  return moments;
}

function drawTriangle(context, x, y, radius, isUp) {
  const tip = isUp ? -radius : radius;
  context.beginPath();
  context.moveTo(x, y + tip);
  context.lineTo(x - radius * 0.9, y - tip * 0.7);
  context.lineTo(x + radius * 0.9, y - tip * 0.7);
  context.fill();
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
