// The pictures of the game and of what a network sees, as faces/look/reel.py codes them.

const ROWS = 210, COLUMNS = 160; // of the screen; the field in it is as high as wide
const SIDE = 80, CELL = 6; // of the field that the network sees; of a pixel of it, drawn
const WHOLE_EVERY = 64; // steps between two complete pictures
const SIZES = { screen: ROWS * COLUMNS, field: SIDE ** 2, saliency: SIDE ** 2 };
const COLOURS = ["up", "down", "stay", "stayed", "appeared", "vanished"];

/** Give a canvas the size of a screen or of a field. */
export function sizeCanvas(canvas) {
  const isScreen = canvas.matches(".screen, .play-canvas");
  canvas.width = isScreen ? COLUMNS : SIDE * CELL;
  canvas.height = isScreen ? ROWS : SIDE * CELL;
}

/** The series of pictures of a reel, by name. */
export async function unpackPictures(packed) {
  const unpacked = Object.entries(SIZES).map(async ([name, size]) => {
    const bytes = Uint8Array.from(atob(packed[name]), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return [name, new Pictures(new DataView(await new Response(stream).arrayBuffer()), size)];
  });
  return Object.fromEntries(await Promise.all(unpacked));
}

/** Change a picture as the difference at `start` says; returns where that ends. */
export function applyDifference(picture, view, start = 0) {
  const count = view.getUint16(start, true), places = start + 2, values = places + 2 * count;
  for (let each = 0; each < count; each += 1) {
    picture[view.getUint16(places + 2 * each, true)] = view.getUint8(values + each);
  }
  return values + count;
}

// Some pictures are kept whole, for jumps back.
class Pictures {
  constructor(view, size) {
    Object.assign(this, { view, current: new Uint8Array(size), next: 0, step: -1, whole: [] });
    while (this.next < view.byteLength) {
      this.advance();
      if (this.step % WHOLE_EVERY === 0) this.whole.push([this.current.slice(), this.next]);
    }
  }

  advance() {
    this.next = applyDifference(this.current, this.view, this.next);
    this.step += 1;
  }

  /** The picture of a step; the array is the same at every call. */
  at(step) {
    if (step < this.step || step >= this.step + WHOLE_EVERY) {
      const key = Math.floor(step / WHOLE_EVERY), [whole, next] = this.whole[key];
      this.current.set(whole);
      Object.assign(this, { step: key * WHOLE_EVERY, next });
    }
    while (this.step < step) this.advance();
    return this.current;
  }
}

/** Palette indices as a picture; `palette` is a list of [red, green, blue]. */
export function drawScreen(canvas, indices, palette) {
  const image = new ImageData(COLUMNS, ROWS), dots = new Uint32Array(image.data.buffer);
  const colours = palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  indices.forEach((index, place) => { dots[place] = colours[index]; });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The colours of actions and pixels in the style sheet. */
export function readColours(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`)]));
}

/** The pixels differ in colour and in shape, as in films: full, a stripe, chequered. */
export function drawField(canvas, field, colours) {
  const context = canvas.getContext("2d"), kinds = [null, "stayed", "appeared", "vanished"];
  context.clearRect(0, 0, canvas.width, canvas.height);
  field.forEach((state, place) => {
    const kind = kinds[state], x = (place % SIDE) * CELL, y = Math.floor(place / SIDE) * CELL;
    context.fillStyle = colours[kind];
    if (kind === "appeared") context.fillRect(x, y, CELL, CELL);
    else if (kind === "stayed") context.fillRect(x, y + CELL / 3, CELL, CELL / 3);
    else if (kind) for (const step of [0, CELL / 2]) context.fillRect(x + step, y + step, CELL / 2, CELL / 2);
  });
}

/** One triangle per pixel: it points to the action it favours, and its area shows how much. */
export function drawSaliency(canvas, saliency, colours) {
  const context = canvas.getContext("2d");
  new Int8Array(saliency.buffer).forEach((value, place) => {
    if (Math.abs(value) < 4) return;
    const x = ((place % SIDE) + 0.5) * CELL, y = (Math.floor(place / SIDE) + 0.5) * CELL;
    const radius = 1.5 * CELL * Math.sqrt(Math.abs(value) / 127), tip = -Math.sign(value) * radius;
    const [left, right, base] = [x - 0.9 * radius, x + 0.9 * radius, y - 0.7 * tip];
    context.fillStyle = value > 0 ? colours.up : colours.down;
    context.fill(new Path2D(`M${x} ${y + tip}L${left} ${base}L${right} ${base}z`));
  });
}

/**
 * An answer at each height of the paddle: a row of parts [from, to, colour] of the width, with the
 * ball and the paddle as they were.
 */
export function drawRows(canvas, { heights, paddle_rows: size }, { ball, paddle }, rows) {
  const context = canvas.getContext("2d"), side = canvas.width, scale = side / COLUMNS;
  const room = side - 5 * scale, thickness = (heights[1] - heights[0]) * scale;
  context.clearRect(0, 0, side, side);
  rows.forEach((parts, place) => {
    const top = (heights[place] + size / 2 - 1) * scale;
    for (const [from, to, colour] of parts) {
      context.fillStyle = colour;
      context.fillRect(from * room, top, (to - from) * room, thickness);
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
