// The pictures of the game and of what a network sees, as faces/look/reel.py encodes them.

const ROWS = 210, COLUMNS = 160; // of the screen; the field in it is a square
const SIDE = 80, CELL = 6; // pixels of the field that the network sees; size of each when drawn
const SIZES = { screen: ROWS * COLUMNS, field: SIDE ** 2, saliency: SIDE ** 2 };

// What the values of a field and of saliency look like: a name, and how opaque it is.
const LOOKS = {
  field: (state) => [[null, "stayed", "appeared", "vanished"][state], 1],
  saliency: (value) => (
    Math.abs(value) < 16 ? [] : [value > 0 ? "up" : "down", 0.5 + Math.abs(value) / 254]
  ),
};
const FULL = [[0, 0, CELL, CELL]], HALF = CELL / 2;
const CHEQUERED = [[0, 0, HALF, HALF], [HALF, HALF, HALF, HALF]];
const STAMPS = { // parts [x, y, width, height], as in films
  appeared: FULL, stayed: [[0, CELL / 3, CELL, CELL / 3]], vanished: CHEQUERED,
  up: FULL, down: CHEQUERED,
};

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
  const count = view.getUint16(start, true), indices = start + 2, values = indices + 2 * count;
  for (let number = 0; number < count; number += 1) {
    picture[view.getUint16(indices + 2 * number, true)] = view.getUint8(values + number);
  }
  return values + count;
}

class Pictures {
  constructor(view, size) {
    Object.assign(this, { view, current: new Uint8Array(size), next: 0, step: -1 });
  }

  /** The picture of a step; the array is the same at every call. */
  at(step) {
    if (step < this.step) { // from the start again, which takes some milliseconds
      this.current.fill(0);
      Object.assign(this, { next: 0, step: -1 });
    }
    for (; this.step < step; this.step += 1) {
      this.next = applyDifference(this.current, this.view, this.next);
    }
    return this.current;
  }
}

/** Palette indices as a picture; `palette` is a list of [red, green, blue]. */
export function drawScreen(canvas, indices, palette) {
  const image = new ImageData(COLUMNS, ROWS), dots = new Uint32Array(image.data.buffer);
  const colours = palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  indices.forEach((colour, index) => { dots[index] = colours[colour]; });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** A "field" or its "saliency", with a stamp for each pixel; `colours` are a reel's. */
export function drawSight(canvas, layer, values, colours) {
  const context = canvas.getContext("2d");
  canvas.width = canvas.height = SIDE * CELL; // which clears it
  new Int8Array(values.buffer).forEach((value, index) => {
    const [name, opacity] = LOOKS[layer](value);
    if (!name) return;
    const left = (index % SIDE) * CELL, top = Math.floor(index / SIDE) * CELL;
    Object.assign(context, { fillStyle: colours[name], globalAlpha: opacity });
    for (const [x, y, ...size] of STAMPS[name]) context.fillRect(left + x, top + y, ...size);
  });
}

/**
 * An answer at each height of the paddle: a row of parts [from, to, colour] of the width, with the
 * ball and the paddle as they were.
 */
export function drawRows(canvas, { heights, paddle_rows: size }, { ball, paddle }, rows) {
  const context = canvas.getContext("2d"), side = SIDE * CELL, scale = side / COLUMNS;
  const width = side - 5 * scale, thickness = (heights[1] - heights[0]) * scale;
  canvas.width = canvas.height = side; // which clears it
  rows.forEach((parts, index) => {
    const top = (heights[index] + size / 2 - 1) * scale;
    for (const [from, to, colour] of parts) {
      context.fillStyle = colour;
      context.fillRect(from * width, top, (to - from) * width, thickness);
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
