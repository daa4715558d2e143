// The first layer of an agent as pictures, one per hidden unit.
import { build, formatSigned } from "./parts.js";
import { mountOfAgent } from "./moment.js";

const UNIT_SIDE = 80;

export function mountWeights(element, run) {
  return mountOfAgent(element, run, "weights", "Reading the weights…", ({ units, note }) => [
    build("p", { class: "quiet" }, `${note} Grey is nothing, the brighter the more it adds, the darker the more it takes away.`),
    build("div", { class: "units" }, units.map(drawUnit)),
  ]);
}

function drawUnit({ unit, weight, picture }) {
  const words = `unit ${unit}, weight ${formatSigned(weight, 2)}, ${weight > 0 ? "for up" : "for down"}`;
  const canvas = build("canvas", { width: UNIT_SIDE, height: UNIT_SIDE, role: "img", "aria-label": words, title: words });
  const context = canvas.getContext("2d"), image = context.createImageData(UNIT_SIDE, UNIT_SIDE);
  const bytes = atob(picture), dots = new Uint32Array(image.data.buffer);
  for (let place = 0; place < dots.length; place += 1) {
    const grey = 128 + ((bytes.charCodeAt(place) << 24) >> 24);
    dots[place] = (255 << 24) | (grey << 16) | (grey << 8) | grey;
  }
  context.putImageData(image, 0, 0);
  return build("figure", { class: "unit" }, canvas, build("figcaption", { "aria-hidden": "true" }, `${unit}: ${formatSigned(weight, 2)}`));
}
