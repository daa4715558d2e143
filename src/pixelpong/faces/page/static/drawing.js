// A stand-in for plotly where its 4.8 MB are too many: draws what charts.js asks of it for one run
// as SVG. For the offline export, which joins the files: no name here is used at the top level of
// the others.
import { build } from "./viewer.js";

const SVG_DASHES = { dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4", longdashdot: "12 3 2 3" };
const DRAWING_MARGIN = { left: 48, right: 12, top: 8, bottom: 38 };
const TICK_STEPS = [1, 2, 2.5, 5, 10];

// What charts.js needs of plotly.
export const smallPlotly = {
  async react(element, traces, layout) {
    element.data = traces;
    element.drawing ??= new Drawing(element);
    element.drawing.take(traces, layout);
  },
  purge(element) {
    element.drawing?.leave();
    delete element.drawing;
    delete element.data;
  },
};

function buildSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Whole steps of 1, 2, 2.5 or 5 times a power of ten, some `count` of them between the ends.
function listTicks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * TICK_STEPS.find((each) => each * power >= rough * 0.999);
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number += 1) ticks.push(number * step);
  return ticks;
}

// 1500000 → "1.5M", −0.25 → "−0.25", 0.25 → "25 %" where shares are told.
function tellTick(value, isShare) {
  if (isShare) return `${Math.round(100 * value)} %`;
  const size = Math.abs(value);
  const [divisor, sign] = size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  return Number((value / divisor).toPrecision(4)).toString().replace("-", "−") + sign;
}

function rangeOf(values) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  const low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!known.length) return [0, 1];
  const pad = high > low ? 0.05 * (high - low) : Math.abs(high) || 1;
  return [low >= 0 && low - pad < 0 ? 0 : low - pad, high + pad];
}

class Drawing {
  constructor(element) {
    this.place = element;
    this.legend = build("ul", { class: "drawing-legend" });
    this.canvas = build("div", { class: "drawing" });
    this.words = build("div", { class: "drawing-words", hidden: true, "aria-hidden": "true" });
    element.replaceChildren(this.canvas, this.legend, this.words);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.unpoint());
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(element);
  }

  leave() {
    this.sizes.disconnect();
    this.place.replaceChildren();
  }

  take(traces, layout) {
    Object.assign(this, { traces, layout });
    this.legend.hidden = !layout.showlegend;
    this.legend.replaceChildren(...traces.map((trace) => build("li", {}, this.sample(trace), trace.name)));
    this.draw();
  }

  sample(trace) {
    const content = trace.mode === "markers" ? this.markers(trace, [[4, 6], [11, 6], [18, 6]].slice(trace.marker.symbol ? 1 : 0, trace.marker.symbol ? 2 : 3)) : [this.stroke(trace, "M1 6H21")];
    return buildSvg("svg", { width: 22, height: 12, "aria-hidden": "true" }, ...content);
  }

  draw() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!this.traces || width < 80 || height < 60) return;
    const { left, right, top, bottom } = DRAWING_MARGIN, { xaxis, yaxis } = this.layout;
    this.xRange = xaxis.range ?? rangeOf(this.traces.flatMap((trace) => trace.x));
    this.yRange = yaxis.range ?? rangeOf(this.traces.flatMap((trace) => trace.y));
    const scale = ([low, high], from, to) => (value) => from + ((to - from) * (value - low)) / (high - low || 1);
    this.x = scale(this.xRange, left, width - right);
    this.y = scale(this.yRange, height - bottom, top);
    this.cursor = buildSvg("path", { stroke: yaxis.zerolinecolor, "stroke-dasharray": "3 3" });
    const svg = buildSvg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, ...this.grid(width, height));
    for (const trace of this.traces) svg.append(...this.curve(trace));
    svg.append(this.cursor);
    this.canvas.replaceChildren(svg);
  }

  grid(width, height) {
    const { left, right, top, bottom } = DRAWING_MARGIN, { xaxis, yaxis, font } = this.layout;
    const text = { fill: font.color, "font-size": 12, "font-family": font.family }, parts = [];
    for (const tick of listTicks(this.yRange, Math.max(2, height / 55))) {
      const y = this.y(tick), isZero = Math.abs(tick) < 1e-12;
      parts.push(buildSvg("path", { d: `M${left} ${y}H${width - right}`, stroke: isZero ? yaxis.zerolinecolor : yaxis.gridcolor }));
      parts.push(buildSvg("text", { ...text, x: left - 6, y: y + 4, "text-anchor": "end" }, tellTick(tick, yaxis.tickformat === ".0%")));
    }
    for (const tick of listTicks(this.xRange, Math.max(2, width / 75))) {
      const x = this.x(tick);
      parts.push(buildSvg("path", { d: `M${x} ${top}V${height - bottom}`, stroke: xaxis.gridcolor }));
      parts.push(buildSvg("text", { ...text, x: Math.min(x, width - 14), y: height - bottom + 16, "text-anchor": "middle" }, tellTick(tick, false)));
    }
    const title = { ...text, fill: xaxis.title.font.color, x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" };
    return [...parts, buildSvg("text", title, xaxis.title.text)];
  }

  curve(trace) {
    const [low, high] = this.yRange, clamp = (value) => Math.max(low, Math.min(high, value));
    const places = trace.x.flatMap((x, index) => {
      const y = trace.y[index];
      return x === null || y === null || y === undefined ? [] : [[this.x(x), this.y(clamp(y))]];
    });
    if (trace.mode === "markers") return this.markers(trace, places);
    if (!places.length) return [];
    return [this.stroke(trace, `M${places.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`)];
  }

  stroke({ line }, d) {
    const dash = SVG_DASHES[line.dash] ?? null;
    return buildSvg("path", { d, fill: "none", stroke: line.color, "stroke-width": line.width, "stroke-dasharray": dash, "stroke-linejoin": "round" });
  }

  // Dots as one path of round ends, diamonds as an outline each.
  markers({ marker }, places) {
    const { color, size, symbol } = marker;
    if (symbol?.startsWith("diamond")) {
      const r = size / 2 + 1, d = places.map(([x, y]) => `M${x} ${y - r}l${r} ${r} ${-r} ${r} ${-r} ${-r}z`).join("");
      return d ? [buildSvg("path", { d, fill: "none", stroke: color, "stroke-width": 2 })] : [];
    }
    const d = places.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h.01`).join("");
    const look = { fill: "none", stroke: color, "stroke-width": size, "stroke-linecap": "round", opacity: marker.opacity ?? 1 };
    return d ? [buildSvg("path", { d, ...look })] : [];
  }

  // Tell all values at the place nearest to the pointer.
  point(event) {
    if (!this.x || !this.traces.length) return;
    const across = event.clientX - this.canvas.getBoundingClientRect().left;
    const nearest = ({ x, y }) => x.reduce((best, value, index) => {
      if (value === null || y[index] == null) return best;
      return best < 0 || Math.abs(this.x(value) - across) < Math.abs(this.x(x[best]) - across) ? index : best;
    }, -1);
    const found = this.traces.map((trace) => [trace, nearest(trace)]).filter(([trace, index]) => index >= 0 && Math.abs(this.x(trace.x[index]) - across) < 12);
    if (!found.length) return this.unpoint();
    const [main, place] = found.at(-1), isShare = this.layout.yaxis.tickformat === ".0%";
    const value = (number) => (isShare ? `${(100 * number).toFixed(1)} %` : tellTick(number, false));
    this.cursor.setAttribute("d", `M${this.x(main.x[place])} ${DRAWING_MARGIN.top}V${this.canvas.clientHeight - DRAWING_MARGIN.bottom}`);
    this.words.replaceChildren(
      build("div", { class: "quiet" }, `${tellTick(main.x[place], false)} ${this.layout.xaxis.title.text}`),
      ...found.map(([trace, index]) => build("div", {}, this.sample(trace), ` ${trace.name}: `, build("strong", { class: "number" }, value(trace.y[index])))),
    );
    this.words.hidden = false;
    const room = this.canvas.clientWidth - this.words.offsetWidth - 4;
    this.words.style.left = `${Math.max(4, Math.min(room, across > room - 20 ? across - this.words.offsetWidth - 14 : across + 14))}px`;
  }

  unpoint() {
    this.words.hidden = true;
    this.cursor?.removeAttribute("d");
  }
}
