// The first layer of an agent as pictures, one a hidden unit.
import { build, formatSigned } from "./viewer.js";
import { getJson } from "./parts.js";

const SIDE = 80;

// `mountWeights(element, run)` loads them when they come into sight.
export function mountWeights(element, run) {
  const stop = new AbortController();
  const select = build("select", { onchange: () => load() });
  const note = build("p", { class: "quiet" }, "Loaded when you come here."), grid = build("div", { class: "units" });
  element.replaceChildren(build("label", {}, "Agent of update ", select), note, grid);
  let key = "", isInSight = false, loaded = null;

  const load = async () => {
    const update = select.value;
    if (!update || loaded === update) return;
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
    const now = agents.map((agent) => agent.update).join();
    if (now === key) return;
    key = now;
    const chosen = select.value;
    select.replaceChildren(...[...agents].reverse().map((agent) => build("option", { value: agent.update }, agent.update)));
    if (agents.some((agent) => String(agent.update) === chosen)) select.value = chosen;
    element.classList.toggle("is-empty", !agents.length);
    if (!agents.length) note.textContent = "No checkpoint is saved yet.";
    else if (isInSight && !loaded) load();
  };
  const sight = new IntersectionObserver(([entry]) => {
    isInSight = entry.isIntersecting;
    if (isInSight && !loaded) load();
  });
  sight.observe(element);
  update(run);
  return { update, unmount: () => { stop.abort(); sight.disconnect(); } };
}

function drawUnit({ unit, weight, picture }) {
  const words = `unit ${unit}, weight ${formatSigned(weight, 2)}`;
  const canvas = build("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": words });
  const context = canvas.getContext("2d"), image = context.createImageData(SIDE, SIDE);
  const bytes = atob(picture), dots = new Uint32Array(image.data.buffer);
  for (let place = 0; place < dots.length; place += 1) {
    const value = (bytes.charCodeAt(place) << 24) >> 24;
    const grey = 128 + value;
    dots[place] = (255 << 24) | (grey << 16) | (grey << 8) | grey;
  }
  context.putImageData(image, 0, 0);
  return build("figure", { class: "unit" }, canvas, build("figcaption", { "aria-hidden": "true" }, `${unit}: ${formatSigned(weight, 2)}`));
}
