// The pictures of the game and of what a network sees, as faces/look/reel.py codes them.
import { build } from "./parts.js";

export const SCREEN = { rows: 210, columns: 160, scale: 3 };
export const FIELD = { side: 80, cell: 6 };
const KINDS = [null, "stayed", "appeared", "vanished"]; // of a pixel of the field
const NAMES = ["up", "down", "stay", "appeared", "stayed", "vanished"];
const FIELD_ROWS = 160; // of the screen
const WHOLE_EVERY = 64; // steps between two complete pictures
const SIZES = { screen: SCREEN.rows * SCREEN.columns, field: FIELD.side ** 2, saliency: FIELD.side ** 2 };

// The pictures of a reel.
export async function unpackPictures(packed) {
  const unpacked = Object.entries(SIZES).map(async ([name, size]) => [name, new Pictures(await inflate(packed[name]), size)]);
  return Object.fromEntries(await Promise.all(unpacked));
}

// The colours of actions and pixels in the style sheet.
export function readColours(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new DataView(await new Response(stream).arrayBuffer());
}

// Pictures coded as differences; some are complete, for jumps back.
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

// Palette indices as a picture.
export function drawScreen(canvas, indices, palette) {
  const { columns, rows } = SCREEN, small = build("canvas", { width: columns, height: rows }), image = small.getContext("2d").createImageData(columns, rows);
  const dots = new Uint32Array(image.data.buffer), colours = palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  for (let place = 0; place < dots.length; place += 1) dots[place] = colours[indices[place]];
  small.getContext("2d").putImageData(image, 0, 0);
  const large = canvas.getContext("2d");
  large.imageSmoothingEnabled = false;
  large.drawImage(small, 0, 0, canvas.width, canvas.height);
}

// The pixels differ in colour and in shape: full, a dot, an outline.
export function drawField(canvas, field, colours) {
  const context = canvas.getContext("2d"), { side, cell } = FIELD;
  context.clearRect(0, 0, canvas.width, canvas.height);
  field.forEach((state, place) => {
    const kind = KINDS[state], x = (place % side) * cell, y = Math.floor(place / side) * cell;
    context.fillStyle = context.strokeStyle = colours[kind];
    if (kind === "appeared") context.fillRect(x, y, cell, cell);
    else if (kind === "stayed") context.fillRect(x + 2, y + 2, cell - 4, cell - 4);
    else if (kind) context.strokeRect(x + 1, y + 1, cell - 2, cell - 2);
  });
}

// One triangle per pixel: it points to the action it favours, and its area shows how much.
export function drawSaliency(canvas, saliency, colours) {
  const context = canvas.getContext("2d"), size = FIELD.cell;
  saliency.forEach((byte, place) => {
    const value = (byte << 24) >> 24; // as int8
    if (Math.abs(value) < 4) return;
    context.fillStyle = value > 0 ? colours.up : colours.down;
    const x = ((place % FIELD.side) + 0.5) * size, y = (Math.floor(place / FIELD.side) + 0.5) * size;
    drawTriangle(context, x, y, 1.5 * size * Math.sqrt(Math.abs(value) / 127), value > 0);
  });
}

// What the agent would do at each height of its paddle: the shares of its actions, one beside the
// other.
export function drawChoices(canvas, reel, expectation, names, colours) {
  drawRows(canvas, reel, expectation, expectation.probabilities.map((shares) => {
    let from = 0;
    return names.map((name, place) => [from, (from += shares[place]), colours[name]]);
  }));
}

// How it expects the point to end, as bars from the middle.
export function drawValues(canvas, reel, expectation, colours) {
  drawRows(canvas, reel, expectation, expectation.values.map((value) => [[0.5, (value + 1) / 2, colours.stay]]));
}

// Rows as parts of the whole width, with the ball and the paddle as they were.
function drawRows(canvas, { heights, paddle_rows: size }, { ball, paddle }, rows) {
  const context = canvas.getContext("2d"), side = canvas.width, scale = side / FIELD_ROWS, room = side - 5 * scale;
  context.clearRect(0, 0, side, side);
  rows.forEach((parts, place) => {
    for (const [from, to, colour] of parts) {
      context.fillStyle = colour;
      context.fillRect(from * room, (heights[place] + size / 2 - 1) * scale, (to - from) * room, (heights[1] - heights[0]) * scale);
    }
  });
  context.fillStyle = "#5cba5c"; // as in the game
  context.fillRect(side - 4 * scale, paddle * scale, 4 * scale, size * scale);
  context.setLineDash([6, 6]);
  for (const [colour, offset] of [["#000000", 0], ["#ffffff", 6]]) {
    Object.assign(context, { strokeStyle: colour, lineWidth: 2, lineDashOffset: offset });
    context.strokeRect(-2, (ball[0] + 2) * scale, side + 4, 0);
  }
}

export function buildActionKey(names) {
  return build("ul", { class: "legend" }, names.map((name) => build("li", {}, build("span", { class: `key swatch ${name}`, "aria-hidden": "true" }), name)));
}

// What the signs in a picture of the field mean, as a list.
export function buildSightKey(hasSaliency = true) {
  const key = (sign, kind, word) => build("li", {}, build("span", { class: `key ${kind}`, "aria-hidden": "true" }, sign), word);
  const kinds = ["appeared", "stayed", "vanished"].map((kind) => key("", kind, kind));
  return build("ul", { class: "legend" }, kinds, hasSaliency && [key("▲", "up", "for up"), key("▼", "down", "for down")]);
}

export function drawTriangle(context, x, y, radius, isUp) {
  const tip = isUp ? -radius : radius;
  context.beginPath();
  context.moveTo(x, y + tip);
  context.lineTo(x - radius * 0.9, y - tip * 0.7);
  context.lineTo(x + radius * 0.9, y - tip * 0.7);
  context.fill();
}
