// The pictures of the game and of what a network sees, as faces/look/reel.py encodes them.

const COLUMNS = 160; // of the screen
const SIDE = 80, CELL = 6; // columns of what the network sees; size of each when drawn
const PLAYER = 16; // added to the class of a cell in the player's figure, in games but Pong

// What the values of a field and of saliency look like: a name, and how opaque it is.
const LOOKS = {
  field: (state) => [[null, "stayed", "appeared", "vanished"][state], 1],
  saliency: (value, [more, less]) => (
    Math.abs(value) < 16 ? [] : [value > 0 ? more : less, 0.5 + Math.abs(value) / 254]
  ),
};
const FULL = [[0, 0, CELL, CELL]], HALF = CELL / 2;
const CHEQUERED = [[0, 0, HALF, HALF], [HALF, HALF, HALF, HALF]];
const STAMPS = { // parts [x, y, width, height], as in films
  appeared: FULL, stayed: [[0, CELL / 3, CELL, CELL / 3]], vanished: CHEQUERED,
  up: FULL, down: CHEQUERED, for: FULL, against: CHEQUERED,
};

/** The series of pictures of a reel, by name. */
export async function unpackPictures(packed) {
  const unpacked = Object.entries(packed.shapes).map(async ([name, [rows, columns]]) => {
    const bytes = Uint8Array.from(atob(packed[name]), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const view = new DataView(await new Response(stream).arrayBuffer());
    return [name, new Pictures(view, rows * columns)];
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
  const rows = indices.length / COLUMNS;
  const image = new ImageData(COLUMNS, rows), dots = new Uint32Array(image.data.buffer);
  if (canvas.height !== rows) canvas.height = rows;
  const colours = palette.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  indices.forEach((colour, index) => { dots[index] = colours[colour]; });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The "field" of a reel or its "saliency", with a stamp for each pixel or cell. */
export function drawSight(canvas, layer, values, { colours, cell_colours: classes }) {
  const context = canvas.getContext("2d"), sides = classes ? ["for", "against"] : ["up", "down"];
  Object.assign(canvas, { width: SIDE * CELL, height: (values.length / SIDE) * CELL }); // clears it
  if (classes && layer === "field") return void drawCells(context, values, classes);
  new Int8Array(values.buffer).forEach((value, index) => {
    const [name, opacity] = LOOKS[layer](value, sides);
    if (!name) return;
    const left = (index % SIDE) * CELL, top = Math.floor(index / SIDE) * CELL;
    Object.assign(context, { fillStyle: colours[name], globalAlpha: opacity });
    for (const [x, y, ...size] of STAMPS[name]) context.fillRect(left + x, top + y, ...size);
  });
}

/** Cells in the colours of their `classes`, and a frame around the player's figure. */
function drawCells(context, values, classes) {
  const own = [];
  values.forEach((value, index) => {
    if (!value) return;
    const column = index % SIDE, row = Math.floor(index / SIDE);
    if (value >= PLAYER) own.push([column, row]);
    context.fillStyle = classes[(value % PLAYER) - 1];
    context.fillRect(column * CELL, row * CELL, CELL, CELL);
  });
  if (!own.length) return;
  const [left, top, right, bottom] = [0, 1].map((axis) => Math.min(...own.map((at) => at[axis])))
    .concat([0, 1].map((axis) => Math.max(...own.map((at) => at[axis])) + 1));
  Object.assign(context, { strokeStyle: "#ffffff", lineWidth: 2 });
  const size = [(right - left) * CELL + 2, (bottom - top) * CELL + 2];
  context.strokeRect(left * CELL - 1, top * CELL - 1, ...size);
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
