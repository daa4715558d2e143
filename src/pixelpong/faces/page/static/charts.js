// Curves of one run or of several, drawn as SVG over the agent's steps.
//
// `mountCurves(element)` returns an object whose `update(series)` redraws them. The pointer shows
// values, in all charts at the same place; A series has `columns`, and `members` if it
// stands for several runs, which become one curve and a band.
import { build, formatCount, formatSigned, rewrite } from "./parts.js";

const MARGIN = { left: 50, right: 12, top: 8, bottom: 38 };
const MAX_MARKS = 10; // on a compared curve, to identify it by shape
const POINTER_REACH = 12; // pixels
const TICK_STEPS = [1, 2, 2.5, 5, 10];
const GRID = 200; // points of the mean of several runs
const DASHES = ["", "8 4", "2 3", "8 3 2 3", "14 4", "14 3 2 3"];
const DOT = "m-1.75 0a1.75 1.75 0 1 0 3.5 0a1.75 1.75 0 1 0-3.5 0z";
const DIAMOND = "m0-5l5 5l-5 5l-5-5z";
const SHAPES = ["m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.5-3.5h7v7h-7z", DIAMOND, "m0-5l5 9h-10z", "m-3.5-3.5l7 7m0-7l-7 7", "m0-5v10m-5-5h10"];

const tellPercent = (value) => `${(100 * value).toFixed(1)} %`;
const tellPlain = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString().replace("-", "−"));

// The style of a curve: a line has a width, marks have a shape.
const LOOKS = {
  dots: { colour: "quiet", shape: DOT, opacity: 0.55 },
  dashed: { colour: "series-2", width: 1.25, dash: "7 4" },
  solid: { colour: "series-1", width: 2.25 },
  evaluation: { colour: "ink", width: 2, shape: DIAMOND, isOpen: true, hasNoLine: true },
};

const single = (id, title, unit, column, tell = tellPlain) =>
  ({ id, title, unit, tell, main: [column], lines: [{ column, name: title.toLowerCase(), look: "solid" }] });

// The charts: columns of the metrics; `main` represents the run when several are compared.
const CURVES = [
  {
    id: "return", title: "Return", unit: "points an episode", tell: (value) => formatSigned(value, 1), range: [-22, 22],
    main: ["estimated_return", "mean_return_100"],
    lines: [
      { column: "mean_return", name: "episodes of the update", look: "dots" },
      { column: "mean_return_100", name: "mean of the last 100", look: "dashed" },
      { column: "estimated_return", name: "estimated return", look: "solid" },
    ],
  },
  {
    id: "points", title: "Points won", unit: "share", tell: tellPercent, range: [-0.02, 1.02], main: ["points_won_1000"],
    lines: [
      { column: "points_won_share", name: "of the update", look: "dots" },
      { column: "points_won_1000", name: "of the last 1,000", look: "solid" },
    ],
  },
  single("entropy", "Entropy", "nats", "entropy"),
  single("kl", "KL divergence", "nats", "kl"),
  single("learning_rate", "Learning rate", "", "learning_rate"),
  single("grad_norm", "Gradient norm", "", "grad_norm"),
  single("speed", "Speed", "steps per second", "steps_per_second", formatCount),
];

// A heading, and the charts, empty until `update([{name, columns, evaluations, target, greedy}])`.
export function mountCurves(element) {
  const charts = CURVES.map((curve) => new Chart(curve, (x) => charts.forEach((chart) => chart.point(x))));
  element.append(build("h2", {}, "Curves"), build("div", { class: "curves" }, charts.map((chart) => chart.figure)));
  const sizes = new ResizeObserver(() => charts.forEach((chart) => chart.draw()));
  sizes.observe(element);
  return {
    update: (series) => charts.forEach((chart) => chart.take(series)),
    unmount: () => sizes.disconnect(),
  };
}

class Chart {
  // `pointAll(x)` shows the values at a place in all charts.
  constructor(curve, pointAll) {
    Object.assign(this, { curve, series: [], traces: [] });
    const point = (event) => pointAll(this.locate(event)), leave = (event) => event.pointerType === "mouse" && pointAll(null); // a finger's values stay
    this.newest = build("span", { class: "number newest" });
    this.plot = build("div", {
      class: "plot", role: "img", "aria-label": `${curve.title}: no figures yet`,
      onpointermove: point, onpointerdown: point, onpointerleave: leave,
    });
    this.legend = build("ul", { class: "chart-legend" });
    this.words = build("div", { class: "chart-words", hidden: true, "aria-hidden": "true" });
    const heading = build("h3", {}, curve.title, " ", build("span", { class: "quiet" }, curve.unit));
    this.figure = build("figure", { class: "curve", "data-curve": curve.id }, build("figcaption", {}, heading, this.newest), this.plot, this.legend, this.words);
  }

  // Use new figures.
  take(series) {
    this.series = series;
    const all = series.flatMap(listColumns);
    const hasAny = all.some((columns) => this.curve.lines.some((line) => columns[line.column]?.some((value) => value !== null)));
    this.figure.hidden = !hasAny && all.some((columns) => columns.update?.length > 0);
    this.draw();
  }

  draw() {
    this.traces = this.listTraces();
    this.summarize(this.traces);
    this.figure.dataset.points = Math.max(0, ...this.traces.map((trace) => trace.points.length));
    const hasKeys = this.traces.length > 1 && (this.series.length < 2 || this.curve.id === "return");
    rewrite(this.legend, hasKeys && this.traces.map(({ name }) => name), () => (hasKeys ? this.traces.map(buildKey) : []));
    this.drawPlot(this.plot.clientWidth, this.plot.clientHeight);
  }

  // The newest figure is that of the curve that is drawn: of several seeds, of their mean.
  summarize(traces) {
    const { title, tell } = this.curve, mains = traces.filter(({ isMain, points }) => isMain && points.length);
    const words = mains.map(({ name, points }) => {
      const values = points.map(([, value]) => value), [low, high] = findEnds(values);
      return `${name} newest ${tell(values.at(-1))}, lowest ${tell(low)}, highest ${tell(high)}`;
    });
    this.newest.textContent = this.series.length === 1 && mains.length ? tell(mains[0].points.at(-1)[1]) : "";
    this.plot.setAttribute("aria-label", `${title}: ${words.join("; ") || "no figures yet"}`);
  }

  // The column that stands for a run: the first that has any figures.
  findMain(columns) {
    return this.curve.main.find((name) => columns[name]?.some((value) => value !== null));
  }

  pairMain(columns) {
    return pair(columns, columns[this.findMain(columns)]);
  }

  // The curves, each with its name, its style and its points.
  listTraces() {
    if (this.series.length > 1 || this.series[0]?.members) {
      return this.series.map((one, place) => {
        const marked = { colour: `series-${place + 1}`, width: 2, dash: DASHES[place], shape: SHAPES[place], maxMarks: MAX_MARKS };
        const all = listColumns(one).map((columns) => this.pairMain(columns)).filter((points) => points.length);
        const joined = one.members ? joinRuns(all) : { points: all[0] ?? [] };
        return { name: one.name, isMain: true, look: this.series.length > 1 ? marked : LOOKS.solid, ...joined };
      });
    }
    return this.series.flatMap(({ columns, evaluations }) => {
      const main = this.findMain(columns), known = this.curve.lines.filter(({ column }) => columns[column]);
      const traces = known.map(({ column, name, look }) => ({ name, isMain: column === main, look: LOOKS[look], points: pair(columns, columns[column]) }));
      if (this.curve.id !== "return" || !evaluations?.length) return traces;
      return [...traces, { name: "greedy return", look: LOOKS.evaluation, points: pairEvaluations(columns, evaluations) }];
    });
  }

  drawPlot(width, height) {
    if (width < 80 || height < 60) return;
    const { left, right, top, bottom } = MARGIN, scale = ([low, high], from, to) => (value) => from + ((to - from) * (value - low)) / (high - low);
    const points = this.traces.flatMap(({ points: each, band = [] }) => [...each, ...band.flatMap(([x, low, high]) => [[x, low], [x, high]])]);
    const across = [0, 1.01 * Math.max(0, findEnds(points.map(([x]) => x))[1]) || 1];
    const along = this.curve.range ?? padEnds(findEnds(points.map(([, y]) => y)));
    this.x = scale(across, left, width - right);
    this.y = scale(along, height - bottom, top);
    this.cursor = build("svg:path", { class: "cursor" });
    const lines = this.traces.flatMap(({ look, points: each, band }) => [band?.length && this.drawBand(look, band), ...drawTrace(look, each.map(([x, y]) => [this.x(x), this.y(y)]))]);
    const title = build("svg:text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, "steps of the agent");
    this.plot.replaceChildren(build(
      "svg:svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      this.drawGrid(across, along, width, height), title, lines, this.drawTarget(width, height), this.cursor,
    ));
  }

  drawBand({ colour }, band) {
    const tell = ([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`, lows = band.map(([x, low]) => [x, low]).reverse();
    return build("svg:path", { d: `M${[...band.map(([x, , high]) => [x, high]), ...lows].map(tell).join("L")}z`, fill: `var(--${colour})`, opacity: 0.2 });
  }

  // The line that is to be reached; and when an evaluation has confirmed that it was.
  drawTarget(width, height) {
    const { target, greedy, columns } = this.series[0] ?? {};
    if (this.curve.id !== "return" || target == null) return [];
    const y = this.y(target), { left, right, top, bottom } = MARGIN, parts = [
      build("svg:path", { class: "target", d: `M${left} ${y}H${width - right}` }),
      build("svg:text", { class: "target-name", x: left + 6, y: y - 5 }, `target ${this.curve.tell(target)}`),
    ];
    const [place] = greedy?.is_won && columns ? pairEvaluations(columns, [{ update: greedy.update, mean_return: target }]) : [];
    if (!place) return parts;
    const x = this.x(place[0]);
    return [...parts, build("svg:path", { class: "target", d: `M${x} ${top}V${height - bottom}` }), build("svg:text", { class: "target-name", x: x - 6, y: height - bottom - 8, "text-anchor": "end" }, "won here")];
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

  // Where the pointer is on the axis, if a figure is near.
  locate({ clientX }) {
    const across = clientX - this.plot.getBoundingClientRect().left, nearest = findNearest(this.traces.flatMap(({ points }) => points), this.x, across);
    return nearest && Math.abs(this.x(nearest[0]) - across) < POINTER_REACH ? nearest[0] : null;
  }

  // Show all values at a place of the axis; null for none.
  point(place) {
    const found = place === null || !this.x ? [] : this.traces.flatMap(({ name, points }) => {
      const nearest = findNearest(points, this.x, this.x(place));
      return nearest && Math.abs(this.x(nearest[0]) - this.x(place)) < POINTER_REACH ? [{ name, y: nearest[1] }] : [];
    });
    this.words.hidden = !found.length;
    if (!found.length) return this.cursor?.removeAttribute("d");
    const across = this.x(place);
    this.cursor.setAttribute("d", `M${across} ${MARGIN.top}V${this.plot.clientHeight - MARGIN.bottom}`);
    this.words.replaceChildren(
      build("div", { class: "quiet" }, `${tellTick(place)} steps of the agent`),
      ...found.map(({ name, y }) => build("div", {}, `${name}: `, build("strong", { class: "number" }, this.curve.tell(y)))),
    );
    const room = this.figure.clientWidth - this.words.offsetWidth - 4;
    this.words.style.left = `${Math.max(4, across + 24 > room ? across - this.words.offsetWidth : across + 24)}px`;
  }
}

function buildKey({ name, look }) {
  const sample = build("svg:svg", { width: 24, height: 12, "aria-hidden": "true" }, drawTrace({ ...look, maxMarks: 1 }, [[1, 6], [12, 6], [23, 6]]));
  return build("li", {}, sample, name);
}

// The figures of a column over the steps.
function pair({ steps = [] }, values = []) {
  return values.flatMap((value, place) => (value == null || steps[place] == null ? [] : [[steps[place], value]]));
}

function pairEvaluations({ steps = [], update: updates = [] }, evaluations) {
  const along = evaluations.map(({ update }) => steps[updates.findLastIndex((each) => each <= update)]);
  return pair({ steps: along }, evaluations.map((line) => line.mean_return));
}

function findNearest(points, x, across) {
  return points.reduce((best, point) => (best && Math.abs(x(best[0]) - across) <= Math.abs(x(point[0]) - across) ? best : point), null);
}

function listColumns({ columns, members }) {
  return members ?? [columns];
}

// Mean, and lowest and highest, of several runs, from where all have begun. One that has ended stays
// where it ended.
export function joinRuns(all) {
  if (!all.length) return { points: [], band: [] };
  const from = Math.max(...all.map(([first]) => first[0])), to = Math.max(...all.map((points) => points.at(-1)[0]));
  const places = all.map(() => 0), points = [], band = [];
  for (let step = 0; step <= GRID; step += 1) {
    const x = from + ((to - from) * step) / GRID;
    const values = all.map((line, run) => {
      while (places[run] + 1 < line.length && line[places[run] + 1][0] <= x) places[run] += 1;
      const [[x0, y0], [x1, y1] = [Infinity, 0]] = line.slice(places[run], places[run] + 2);
      return x1 === Infinity ? y0 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
    });
    points.push([x, values.reduce((sum, value) => sum + value, 0) / values.length]);
    band.push([x, ...findEnds(values)]);
  }
  return { points, band };
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

// Add some room on both sides; draw a constant in the middle. The mean of equal figures may differ
// from them in its last bit.
function padEnds([low, high]) {
  if (low > high) return [0, 1];
  const isFlat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  const pad = isFlat ? Math.abs(high) || 1 : 0.05 * (high - low);
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
