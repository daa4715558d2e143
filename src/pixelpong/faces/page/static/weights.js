// The first layer of an agent as pictures, one a hidden unit.
import { build, formatSigned, getJson, rewrite } from "./parts.js";

const SIDE = 80;

// `mountWeights(element, run)` loads them when they come into sight.
export function mountWeights(element, run) {
  const stop = new AbortController();
  const select = build("select", { onchange: () => load() }), label = build("label", {}, "Agent of update ", select);
  const note = build("p", { class: "quiet" }), grid = build("div", { class: "units" });
  element.append(label, note, grid);
  let isInSight = false, loaded = null;

  const load = async () => {
    const update = select.value;
    if (!isInSight || !update || loaded === update) return;
    loaded = update;
    note.textContent = "Reading the weights…";
    try {
      const { units, note: words } = await getJson(`/api/runs/${run.id}/weights/${update}`, stop.signal);
      note.textContent = `${words} Grey is nothing, the brighter the more it adds, the darker the more it takes away.`;
      grid.replaceChildren(...units.map(drawUnit));
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
      loaded = null;
    }
  };
  const update = ({ agents = [] }) => {
    const updates = agents.map((agent) => String(agent.update)).reverse(), chosen = select.value;
    rewrite(select, updates, () => updates.map((each) => build("option", { value: each, selected: each === chosen }, each)));
    label.hidden = !updates.length;
    if (!updates.length) note.textContent = "No checkpoint is saved yet.";
    else if (!loaded) load();
  };
  const sight = new IntersectionObserver(([entry]) => {
    isInSight = entry.isIntersecting;
    if (!loaded) load();
  });
  sight.observe(element);
  update(run);
  return { update, unmount: () => { stop.abort(); sight.disconnect(); } };
}

function drawUnit({ unit, weight, picture }) {
  const words = `unit ${unit}, weight ${formatSigned(weight, 2)}, ${weight > 0 ? "for up" : "for down"}`;
  const canvas = build("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": words, title: words });
  const context = canvas.getContext("2d"), image = context.createImageData(SIDE, SIDE);
  const bytes = atob(picture), dots = new Uint32Array(image.data.buffer);
  for (let place = 0; place < dots.length; place += 1) {
    const grey = 128 + ((bytes.charCodeAt(place) << 24) >> 24);
    dots[place] = (255 << 24) | (grey << 16) | (grey << 8) | grey;
  }
  context.putImageData(image, 0, 0);
  return build("figure", { class: "unit" }, canvas, build("figcaption", { "aria-hidden": "true" }, `${unit}: ${formatSigned(weight, 2)}`));
}
