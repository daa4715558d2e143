// Curves of one run or of several, drawn as SVG.
//
// `mountCurves(element)` gives an object whose `update(series)` draws them again in place, at most
// twice a second and only those in sight. Values are read with the pointer; the legend's buttons
// take curves out.
import { build, formatCount, formatSigned, rewrite } from "./parts.js";

const REDRAW_MS = 500;
const MARGIN = { left: 50, right: 12, top: 8, bottom: 38 };
const MAX_MARKS = 10; // on a compared curve, to tell it from others by shape
const POINTER_REACH = 12; // pixels
const TICK_STEPS = [1, 2, 2.5, 5, 10];
const DASHES = ["", "8 4", "2 3", "8 3 2 3", "14 4", "14 3 2 3"];
const DOT = "m-1.75 0a1.75 1.75 0 1 0 3.5 0a1.75 1.75 0 1 0-3.5 0z";
const DIAMOND = "m0-5l5 5l-5 5l-5-5z";
const SHAPES = ["m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.5-3.5h7v7h-7z", DIAMOND, "m0-5l5 9h-10z", "m-3.5-3.5l7 7m0-7l-7 7", "m0-5v10m-5-5h10"];

const tellPercent = (value) => `${(100 * value).toFixed(1)} %`;
const tellPlain = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString().replace("-", "−"));

// How a curve looks: a line has a width, marks have a shape.
const LOOKS = {
  dots: { colour: "quiet", shape: DOT, opacity: 0.55 },
  dotted: { colour: "series-3", width: 1.5, dash: "2 3" },
  dashed: { colour: "series-2", width: 1.5, dash: "7 4" },
  solid: { colour: "series-1", width: 2.25 },
  evaluation: { colour: "ink", width: 2, shape: DIAMOND, isOpen: true, hasNoLine: true },
};

const single = (id, title, unit, column, tell = tellPlain) =>
  ({ id, title, unit, tell, main: column, lines: [{ column, name: title.toLowerCase(), look: "solid" }] });

// What is drawn: columns of the metrics; `main` stands for the run when several are compared.
const CURVES = [
  {
    id: "return", title: "Return", unit: "points an episode", tell: (value) => formatSigned(value, 1), range: [-22, 22], main: "mean_return_100",
    lines: [
      { column: "mean_return", name: "episodes of the update", look: "dots" },
      { column: "running_mean", name: "running mean, 0.99", look: "dotted" },
      { column: "estimated_return", name: "estimate from the last 1,000 points", look: "dashed" },
      { column: "mean_return_100", name: "mean of the last 100 episodes", look: "solid" },
    ],
  },
  {
    id: "points", title: "Points won", unit: "share", tell: tellPercent, range: [-0.02, 1.02], main: "points_won_1000",
    lines: [
      { column: "points_won_share", name: "of the update", look: "dots" },
      { column: "points_won_1000", name: "of the last 1,000", look: "solid" },
    ],
  },
  single("entropy", "Entropy", "nats", "entropy"),
  single("kl", "KL divergence", "nats", "kl"),
  single("learning_rate", "Learning rate", "", "learning_rate"),
  single("grad_norm", "Gradient norm", "", "grad_norm"),
  single("speed", "Speed", "steps a second", "timing.steps_per_second", formatCount),
];

const AXES = {
  steps: { column: "steps", title: "steps of the agent" },
  update: { column: "update", title: "updates" },
  time: { column: "timing.wall_seconds", title: "minutes of training", divisor: 60 },
};

// A heading, a choice of the axis and all curves, empty until `update([{name, columns, evaluations}])`.
export function mountCurves(element) {
  const charts = CURVES.map((curve) => new Chart(curve));
  const options = Object.entries(AXES).map(([name, { title }]) => build("option", { value: name }, title));
  const axis = build("select", { onchange: () => charts.forEach((chart) => chart.take({ axis: AXES[axis.value] })) }, options);
  element.append(
    build("div", { class: "section-head" }, build("h2", {}, "Curves"), build("label", {}, "Over ", axis)),
    build("div", { class: "curves" }, charts.map((chart) => chart.figure)),
  );
  return {
    update: (series) => charts.forEach((chart) => chart.take({ series })),
    unmount: () => charts.forEach((chart) => chart.leave()),
  };
}

class Chart {
  constructor(curve) {
    Object.assign(this, { curve, series: [], axis: AXES.steps, hidden: new Set(), traces: [], drawn: -REDRAW_MS, timer: null });
    this.newest = build("span", { class: "number newest" });
    const point = (event) => this.point(event), leave = (event) => event.pointerType === "mouse" && this.unpoint(); // a finger's values stay
    this.unpoint = () => { this.words.hidden = true; this.cursor?.removeAttribute("d"); };
    this.plot = build("div", {
      class: "plot", role: "img", "aria-label": `${curve.title}: no figures yet`,
      onpointermove: point, onpointerdown: point, onpointerleave: leave,
    });
    this.legend = build("ul", { class: "chart-legend" });
    this.words = build("div", { class: "chart-words", hidden: true, "aria-hidden": "true" });
    const heading = build("h3", {}, curve.title, " ", build("span", { class: "quiet" }, curve.unit));
    this.figure = build("figure", { class: "curve", "data-curve": curve.id }, build("figcaption", {}, heading, this.newest), this.plot, this.legend, this.words);
    this.sight = new IntersectionObserver(([entry]) => {
      this.isInSight = entry.isIntersecting;
      if (this.isStale) this.plan();
    }, { rootMargin: "100px" });
    this.sight.observe(this.figure);
    this.sizes = new ResizeObserver(() => this.plan());
    this.sizes.observe(this.plot);
  }

  leave() {
    clearTimeout(this.timer);
    this.sight.disconnect();
    this.sizes.disconnect();
  }

  // Take new figures or another axis.
  take(news) {
    Object.assign(this, news);
    const hasAny = this.series.some(({ columns }) => this.curve.lines.some((line) => columns[line.column]?.some((value) => value !== null)));
    this.figure.hidden = !hasAny && this.series.some(({ columns }) => columns.update?.length > 0);
    this.plan();
  }

  // Draw soon, or when the chart comes into sight.
  plan() {
    this.isStale = true;
    if (!this.isInSight) return;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.draw();
    }, Math.max(0, this.drawn + REDRAW_MS - performance.now()));
  }

  draw() {
    Object.assign(this, { drawn: performance.now(), isStale: false });
    this.summarize();
    const all = this.listTraces();
    this.figure.dataset.points = Math.max(0, ...all.map((trace) => trace.points.length));
    rewrite(this.legend, all.length > 1 && all.map((trace) => trace.name), () => (all.length > 1 ? all.map((trace) => this.buildKey(trace)) : []));
    this.traces = all.filter((trace) => !this.hidden.has(trace.name));
    this.drawPlot(this.plot.clientWidth, this.plot.clientHeight);
  }

  summarize() {
    const { title, tell, main } = this.curve;
    const words = this.series.flatMap(({ name, columns }) => {
      const known = (columns[main] ?? []).filter((value) => value !== null);
      if (!known.length) return [];
      const [low, high] = findEnds(known), last = tell(known.at(-1));
      if (this.series.length === 1) this.newest.textContent = last;
      return `${name} newest ${last}, lowest ${tell(low)}, highest ${tell(high)}`;
    });
    this.plot.setAttribute("aria-label", `${title}: ${words.join("; ") || "no figures yet"}`);
  }

  // What is drawn: each with its name, its look and its points.
  listTraces() {
    if (this.series.length > 1) {
      return this.series.map(({ name, columns }, place) => {
        const look = { colour: `series-${place + 1}`, width: 2, dash: DASHES[place], shape: SHAPES[place], maxMarks: MAX_MARKS };
        return { name, look, points: this.pair(columns, columns[this.curve.main]) };
      });
    }
    return this.series.flatMap(({ columns, evaluations }) => {
      const known = this.curve.lines.filter(({ column }) => columns[column]);
      const traces = known.map(({ column, name, look }) => ({ name, look: LOOKS[look], points: this.pair(columns, columns[column]) }));
      if (this.curve.id !== "return" || !evaluations?.length) return traces;
      return [...traces, { name: "evaluation, greedy", look: LOOKS.evaluation, points: this.pairEvaluations(columns, evaluations) }];
    });
  }

  pair(columns, values = []) {
    const { column, divisor = 1 } = this.axis, along = columns[column] ?? [];
    return values.flatMap((value, place) => (value == null || along[place] == null ? [] : [[along[place] / divisor, value]]));
  }

  pairEvaluations(columns, evaluations) {
    const { column } = this.axis, updates = columns.update ?? [];
    const along = evaluations.map(({ update }) => columns[column]?.[updates.findLastIndex((each) => each <= update)]);
    return this.pair({ [column]: along }, evaluations.map((line) => line.mean_return));
  }

  buildKey({ name, look }) {
    const sample = build("svg:svg", { width: 24, height: 12, "aria-hidden": "true" }, drawTrace({ ...look, maxMarks: 1 }, [[1, 6], [12, 6], [23, 6]]));
    const toggle = () => {
      const isShown = this.hidden.delete(name);
      if (!isShown) this.hidden.add(name);
      button.setAttribute("aria-pressed", isShown);
      this.draw();
    };
    const button = build("button", { type: "button", "aria-pressed": !this.hidden.has(name) ? "true" : "false", onclick: toggle }, sample, name);
    return build("li", {}, button);
  }

  drawPlot(width, height) {
    if (width < 80 || height < 60) return;
    const { left, right, top, bottom } = MARGIN, scale = ([low, high], from, to) => (value) => from + ((to - from) * (value - low)) / (high - low);
    const points = this.traces.flatMap((trace) => trace.points);
    const across = [0, 1.01 * Math.max(0, findEnds(points.map(([x]) => x))[1]) || 1];
    const along = this.curve.range ?? padEnds(findEnds(points.map(([, y]) => y)));
    this.x = scale(across, left, width - right);
    this.y = scale(along, height - bottom, top);
    this.cursor = build("svg:path", { class: "cursor" });
    const lines = this.traces.flatMap(({ look, points: each }) => drawTrace(look, each.map(([x, y]) => [this.x(x), this.y(y)])));
    const title = build("svg:text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, this.axis.title);
    this.plot.replaceChildren(build(
      "svg:svg", { width, height, "aria-hidden": "true" },
      this.drawGrid(across, along, width, height), title, lines, this.cursor,
    ));
  }

  drawGrid(across, along, width, height) {
    const { left, right, top, bottom } = MARGIN, tell = this.curve.tell === tellPercent ? (value) => `${Math.round(100 * value)} %` : tellTick;
    const rows = listTicks(along, Math.max(2, height / 42)).flatMap((tick) => {
      const y = this.y(tick), kind = Math.abs(tick) < 1e-12 ? "zero" : "grid";
      return [build("svg:path", { class: kind, d: `M${left} ${y}H${width - right}` }), build("svg:text", { x: left - 6, y: y + 4, "text-anchor": "end" }, tell(tick))];
    });
    const columns = listTicks(across, Math.max(2, width / 100)).flatMap((tick) => {
      const x = this.x(tick), middle = Math.min(x, width - 14);
      return [build("svg:path", { class: "grid", d: `M${x} ${top}V${height - bottom}` }), build("svg:text", { x: middle, y: height - bottom + 16, "text-anchor": "middle" }, tellTick(tick))];
    });
    return [...rows, ...columns];
  }

  // Tell all values at the place nearest to the pointer.
  point({ clientX }) {
    const across = clientX - this.plot.getBoundingClientRect().left;
    const found = this.traces.flatMap(({ name, points }) => {
      const distance = (point) => Math.abs(this.x(point[0]) - across);
      const nearest = points.reduce((best, point) => (best && distance(best) <= distance(point) ? best : point), null);
      return nearest && distance(nearest) < POINTER_REACH ? [{ name, x: nearest[0], y: nearest[1] }] : [];
    });
    if (!found.length) return this.unpoint();
    this.words.hidden = false;
    const { x } = found.at(-1);
    this.cursor.setAttribute("d", `M${this.x(x)} ${MARGIN.top}V${this.plot.clientHeight - MARGIN.bottom}`);
    this.words.replaceChildren(
      build("div", { class: "quiet" }, `${tellTick(x)} ${this.axis.title}`),
      ...found.map(({ name, y }) => build("div", {}, `${name}: `, build("strong", { class: "number" }, this.curve.tell(y)))),
    );
    const room = this.figure.clientWidth - this.words.offsetWidth - 4;
    this.words.style.left = `${Math.max(4, across + 24 > room ? across - this.words.offsetWidth : across + 24)}px`;
  }
}

// Lines and marks through places in pixels.
function drawTrace({ colour, width = 0, dash, shape, opacity, isOpen, hasNoLine, maxMarks = Infinity }, places) {
  const stroke = `var(--${colour})`, parts = [], tell = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  if (!places.length) return [];
  if (width && !hasNoLine) parts.push(build("svg:path", { d: `M${places.map(tell).join("L")}`, fill: "none", stroke, "stroke-width": width, "stroke-dasharray": dash, "stroke-linejoin": "round" }));
  if (shape) {
    const every = Math.max(1, Math.ceil(places.length / maxMarks)), marked = places.filter((_, place) => place % every === every >> 1);
    const d = marked.map((place) => `M${tell(place)}${shape}`).join("");
    parts.push(build("svg:path", { d, stroke: width ? stroke : null, "stroke-width": width, fill: isOpen ? "none" : stroke, opacity }));
  }
  return parts;
}

function findEnds(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

// Some room on both sides; a constant is drawn in the middle.
function padEnds([low, high]) {
  if (low > high) return [0, 1];
  const pad = high > low ? 0.05 * (high - low) : Math.abs(high) || 1;
  return [low >= 0 && low < pad ? 0 : low - pad, high + pad];
}

// Whole steps of 1, 2, 2.5 or 5 times a power of ten, about `count` of them between the ends.
function listTicks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * TICK_STEPS.find((each) => each * power >= rough * 0.999);
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number += 1) ticks.push(number * step);
  return ticks;
}

// 1500000 → "1.5M", −0.25 → "−0.25"
function tellTick(value) {
  const size = Math.abs(value), [divisor, sign] = size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  return Number((value / divisor).toPrecision(4)).toString().replace("-", "−") + sign;
}
