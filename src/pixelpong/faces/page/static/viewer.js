// The replay viewer: an episode beside what the network saw and made of it.
//
// `mount(element, reel)` shows a reel, which is described in faces/page/reel.py. Used by the page and
// by the offline export, where the files are joined: imports and exports stand on single lines,
// and no name at the top level is used in charts.js too.

const SCREEN = { rows: 210, columns: 160, scale: 3, fieldTop: 35, fieldStep: 2 };
const FIELD = { side: 80, cell: 6 };
const STAYED_CELL = 1, APPEARED_CELL = 2, VANISHED_CELL = 3;
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const viewerTaste = { speed: 1, hasSaliency: true }; // kept from one replay to the next

// An element with attributes, listeners (`onclick: f`) and children.
export function build(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// A number with its sign, the minus as it is printed: "+0.50", "−21".
export function formatSigned(value, digits = 0) {
  if (value == null || !Number.isFinite(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

// Show a reel. `options.onend` is called when it has been played to its end.
export function mount(element, reel, options = {}) {
  let player = null, isGone = false;
  element.replaceChildren(build("p", { class: "quiet" }, "Unpacking the replay…"));
  const parts = ["screen", "field", "saliency"].map((name) => inflate(reel[name]));
  Promise.all(parts).then(
    ([screen, field, saliency]) => {
      if (isGone) return;
      const size = FIELD.side * FIELD.side;
      const pictures = {
        screen: new Pictures(screen, SCREEN.rows * SCREEN.columns),
        field: new Pictures(field, size),
        saliency: new Pictures(saliency, size),
      };
      player = new Player(element, reel, pictures, options);
    },
    () => element.replaceChildren(
      build("p", { class: "problem" }, "This replay cannot be unpacked: it is damaged, or the browser is too old."),
    ),
  );
  return {
    unmount() {
      isGone = true;
      if (player) player.leave();
      element.replaceChildren();
    },
  };
}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Pictures coded as differences; whole ones are kept now and then, to go back to.
class Pictures {
  constructor(bytes, size) {
    this.bytes = bytes;
    this.starts = [];
    for (let place = 0; place + 1 < bytes.length; place += 2 + 3 * this.word(place)) {
      this.starts.push(place);
    }
    this.every = Math.max(64, Math.ceil(this.starts.length / 128));
    this.whole = new Map();
    this.current = new Uint8Array(size);
    this.step = -1;
  }

  word(place) {
    return this.bytes[place] | (this.bytes[place + 1] << 8);
  }

  // The picture of a step; the array is the same at every call.
  at(step) {
    let key = Math.floor(step / this.every);
    while (key > 0 && !this.whole.has(key)) key -= 1;
    if (step < this.step || (this.whole.has(key) && key * this.every > this.step)) {
      if (this.whole.has(key)) this.current.set(this.whole.get(key));
      else this.current.fill(0);
      this.step = this.whole.has(key) ? key * this.every : -1;
    }
    while (this.step < Math.min(step, this.starts.length - 1)) this.advance();
    return this.current;
  }

  advance() {
    this.step += 1;
    const start = this.starts[this.step], count = this.word(start);
    const places = start + 2, values = places + 2 * count;
    for (let each = 0; each < count; each += 1) {
      this.current[this.word(places + 2 * each)] = this.bytes[values + each];
    }
    const key = this.step / this.every;
    if (Number.isInteger(key) && !this.whole.has(key)) this.whole.set(key, this.current.slice());
  }
}

class Player {
  constructor(element, reel, pictures, options) {
    Object.assign(this, { reel, pictures, options, step: 0, isPlaying: false, timer: null });
    this.last = reel.steps - 1;
    this.colours = reel.palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
    this.small = build("canvas", { width: SCREEN.columns, height: SCREEN.rows });
    this.moments = listPoints(reel.points);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.drawTimeline();
    this.scheme.addEventListener("change", this.redraw);
    this.root = this.buildAll();
    element.replaceChildren(this.root);
    this.sizes = new ResizeObserver(this.redraw);
    this.sizes.observe(this.timeline);
    this.show(0);
    this.describe();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  leave() {
    this.pause();
    this.sizes.disconnect();
    this.scheme.removeEventListener("change", this.redraw);
  }

  buildAll() {
    const stage = build("div", { class: "stage" }, this.buildScreen(), this.buildSight(), this.buildThoughts());
    return build(
      "div",
      { class: "viewer", role: "group", "aria-label": this.reel.title, onkeydown: (event) => this.key(event) },
      stage, this.buildTimeline(), this.buildControls(),
    );
  }

  buildScreen() {
    this.screen = build("canvas", {
      class: "screen", role: "img", "aria-label": "The game as the emulator draws it",
      width: SCREEN.columns * SCREEN.scale, height: SCREEN.rows * SCREEN.scale,
    });
    this.score = build("span", { class: "number" });
    const caption = build("figcaption", {}, build("strong", {}, "The game"), this.score);
    return build("figure", { class: "screen-part" }, this.screen, caption);
  }

  buildSight() {
    const side = FIELD.side * FIELD.cell;
    this.sight = build("canvas", {
      class: "sight", role: "img", width: side, height: side,
      "aria-label": "What the network sees: pixels that appeared, stayed and vanished",
    });
    const legend = [["appeared", "appeared"], ["stayed", "stayed"], ["vanished", "vanished"]]
      .map(([kind, word]) => build("li", {}, build("span", { class: `cell ${kind}`, "aria-hidden": "true" }), word));
    const moved = [["▲", "speaks for up", "for-up"], ["▼", "speaks for down", "for-down"]]
      .map(([sign, word, kind]) => build("li", { class: "saliency-key" }, build("span", { class: kind, "aria-hidden": "true" }, sign), word));
    const caption = build(
      "figcaption", {}, build("strong", {}, "What the network sees"),
      build("ul", { class: "legend" }, legend, moved),
    );
    return build("figure", { class: "sight-part" }, this.sight, caption);
  }

  buildThoughts() {
    this.bars = this.reel.action_names.map((name) => {
      const fill = build("span", { class: "fill" }), share = build("span", { class: "number" });
      const row = build(
        "li", { class: "action" }, build("span", { class: "action-name" }, `${SYMBOLS[name] ?? ""} ${name}`),
        build("span", { class: "bar", "aria-hidden": "true" }, fill), share,
      );
      return { row, fill, share };
    });
    this.value = build("dd", { class: "number" });
    this.largest = build("dd", { class: "number" });
    const hasValue = this.reel.values.some((value) => value !== null);
    return build(
      "div", { class: "thoughts" }, build("h3", {}, "What it makes of it"),
      build("ul", { class: "actions" }, this.bars.map((bar) => bar.row)),
      build(
        "dl", {}, build("dt", {}, "Value of the point"), this.value,
        build("dt", {}, "Strongest pixel, in logits"), this.largest,
      ),
      !hasValue && build("p", { class: "quiet" }, "This network judges no positions: it has no value."),
      this.buildOrigin(),
    );
  }

  buildOrigin() {
    const { is_own: isOwn, agent_update: update } = this.reel;
    const text = isOwn
      ? "Shown is the mind of the agent that played it, to the bit."
      : `Shown is the mind of the agent of update ${update}, the nearest that is kept to the one that played.`;
    return build("p", { class: "quiet" }, text);
  }

  buildTimeline() {
    this.timeline = build("canvas", { "aria-hidden": "true" });
    this.range = build("input", {
      type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "Step of the episode",
      oninput: () => { this.show(Number(this.range.value)); this.describe(); },
    });
    const hasValue = this.reel.values.some((value) => value !== null);
    const curve = hasValue ? "value of the point, −1 … 1" : "probability of up, 0 … 1";
    const words = `Line: ${curve}. ▲ point won, ▼ point lost.`;
    return build(
      "div", { class: "timeline" }, build("div", { class: "timeline-strip" }, this.timeline, this.range),
      build("p", { class: "quiet timeline-words" }, words),
    );
  }

  buildControls() {
    const button = (label, name, action) =>
      build("button", { type: "button", "aria-label": name, title: name, onclick: action }, label);
    this.playButton = button("", "Play", () => (this.isPlaying ? this.pause() : this.play()));
    this.playButton.classList.add("primary");
    this.speed = build(
      "select", { onchange: () => { viewerTaste.speed = Number(this.speed.value); } },
      SPEEDS.map((speed) => build("option", { value: speed, selected: speed === viewerTaste.speed }, `${speed}×`)),
    );
    const overlay = build("input", {
      type: "checkbox", checked: viewerTaste.hasSaliency,
      onchange: () => { viewerTaste.hasSaliency = overlay.checked; this.show(this.step); },
    });
    this.place = build("span", { class: "number place" });
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
    this.playButton.setAttribute("aria-label", name);
    this.playButton.title = name;
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
    for (let place = 0; place < dots.length; place += 1) dots[place] = this.colours[indices[place]];
    small.putImageData(image, 0, 0);
    large.imageSmoothingEnabled = false;
    large.drawImage(this.small, 0, 0, this.screen.width, this.screen.height);
    const size = SCREEN.scale * SCREEN.fieldStep;
    if (saliency) drawSaliency(large, saliency, size, SCREEN.fieldTop * SCREEN.scale);
  }

  drawSight(field, saliency) {
    const context = this.sight.getContext("2d");
    context.fillStyle = "#101010";
    context.fillRect(0, 0, this.sight.width, this.sight.height);
    for (let place = 0; place < field.length; place += 1) {
      if (field[place]) drawCell(context, field[place], (place % FIELD.side) * FIELD.cell, Math.floor(place / FIELD.side) * FIELD.cell);
    }
    if (saliency) drawSaliency(context, saliency, FIELD.cell, 0);
  }

  drawTimeline() {
    const canvas = this.timeline, density = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * density;
    canvas.height = height * density;
    const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    context.scale(density, density);
    const x = (step) => THUMB / 2 + ((width - THUMB) * step) / Math.max(1, this.last);
    context.fillStyle = colour("--line");
    context.fillRect(0, height / 2, width, 1);
    drawCurve(context, this.reel, x, height, colour("--note"));
    for (const { step, isWon } of this.moments) {
      context.fillStyle = colour(isWon ? "--accent" : "--warn");
      drawTriangle(context, x(step), isWon ? 7 : height - 7, 5, isWon);
    }
  }
}

const THUMB = 12; // pixels of the range's thumb, as in style.css

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

// Told apart by shape: full, a dot, an outline.
function drawCell(context, kind, x, y) {
  const size = FIELD.cell;
  if (kind === APPEARED_CELL) {
    context.fillStyle = "#f2f2f2";
    context.fillRect(x, y, size, size);
  } else if (kind === STAYED_CELL) {
    context.fillStyle = "#9a9a9a";
    context.fillRect(x + 2, y + 2, size - 4, size - 4);
  } else if (kind === VANISHED_CELL) {
    context.strokeStyle = "#bdbdbd";
    context.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }
}

// A triangle a pixel: which way it points is what it speaks for, its area is how loud.
function drawSaliency(context, saliency, size, top) {
  for (let place = 0; place < saliency.length; place += 1) {
    const value = saliency[place] > 127 ? saliency[place] - 256 : saliency[place];
    if (Math.abs(value) < 4) continue;
    context.fillStyle = value > 0 ? "#4aa8ff" : "#ff9a3d";
    const x = ((place % FIELD.side) + 0.5) * size, y = top + (Math.floor(place / FIELD.side) + 0.5) * size;
    drawTriangle(context, x, y, 1.5 * size * Math.sqrt(Math.abs(value) / 127), value > 0);
  }
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
