// Curves of one run or of several, drawn as SVG over the agent's steps.
//
// A series has the `columns` of a run's metrics, or those of its `members` if it stands for several
// runs, which become one curve and a band. Everything is placed in shares of the picture, so a chart
// fits any width, also on paper, without being drawn again.
import { build, formatCount, formatSigned, rewrite } from "./parts.js";

const SIZE = 1000; // of the picture's own coordinates, from the lower left
const REACH = 0.02; // of the width: how near a value is to be to the pointer
const TICK_STEPS = [1, 2, 2.5, 5, 10];
const GRID = 200; // points of the mean of several runs
const DASHES = ["", "8 4", "2 3", "8 3 2 3", "14 4", "14 3 2 3"]; // tell curves apart without colour

const tellPercent = (value) => `${Number((100 * value).toFixed(1))} %`;
const tellPlain = (value) => formatNumber(value, 3);

// The styles of curves; one of dots has no line.
const STYLES = {
  dots: { colour: "quiet", width: 3.5, isDots: true, opacity: 0.55 },
  dashed: { colour: "series-2", width: 1.25, dash: "7 4" },
  solid: { colour: "series-1", width: 2.25 },
  evaluation: { colour: "ink", width: 8, isDots: true },
};

const single = (id, title, unit, column, tell = tellPlain) =>
  ({ id, title, unit, tell, main: [column], lines: [[column, title.toLowerCase(), "solid"]] });

// The charts, with the columns of their lines; the first column of `main` that has figures
// represents a run if several are compared.
const CHARTS = [
  {
    id: "return", title: "Return", unit: "points an episode", range: [-22, 22],
    tell: (value) => formatSigned(value, 1), main: ["estimated_return", "mean_return_100"],
    lines: [
      ["mean_return", "episodes of the update", "dots"],
      ["mean_return_100", "mean of the last 100", "dashed"],
      ["estimated_return", "estimated return", "solid"],
      ["greedy_return", "greedy return", "evaluation"],
    ],
  },
  {
    id: "points", title: "Points won", unit: "share", tell: tellPercent, range: [-0.02, 1.02],
    main: ["points_won_1000"],
    lines: [
      ["points_won_share", "of the update", "dots"], ["points_won_1000", "of the last 1,000", "solid"],
    ],
  },
  single("entropy", "Entropy", "nats", "entropy"),
  single("kl", "KL divergence", "nats", "kl"),
  single("learning_rate", "Learning rate", "", "learning_rate"),
  single("grad_norm", "Gradient norm", "", "grad_norm"),
  single("speed", "Speed", "steps per second", "steps_per_second", formatCount),
];

/** A heading, and the charts; returns `update([{name, columns, members, target}])`. */
export function mountCurves(element) {
  const pointAll = (place) => charts.forEach((chart) => chart.point(place));
  const charts = CHARTS.map((chart) => new Chart(chart, pointAll));
  const figures = build("div", { class: "curves" }, charts.map(({ figure }) => figure));
  element.append(build("h2", {}, "Curves"), figures);
  return (series) => charts.forEach((chart) => chart.update(series));
}

class Chart {
  /** `pointAll(steps)` shows the values at a place in all charts. */
  constructor(chart, pointAll) {
    Object.assign(this, { chart, series: [], traces: [] });
    const point = ({ clientX }) => {
      const box = this.plot.getBoundingClientRect();
      pointAll((this.end * (clientX - box.left)) / box.width);
    };
    const leave = ({ pointerType }) => pointerType === "mouse" && pointAll(null); // a finger's stay
    this.newest = build("span", { class: "number newest" });
    this.plot = build("div", {
      class: "plot", role: "img", onpointermove: point, onpointerdown: point, onpointerleave: leave,
    });
    this.legend = build("ul", { class: "chart-legend" });
    this.words = build("div", { class: "chart-words", hidden: true, "aria-hidden": "true" });
    const title = build("h3", {}, chart.title, " ", build("span", { class: "quiet" }, chart.unit));
    this.figure = build(
      "figure", { class: "curve", "data-curve": chart.id },
      build("figcaption", {}, title, this.newest), this.plot, this.legend, this.words,
    );
  }

  update(series) {
    this.series = series;
    this.traces = this.listTraces().filter(({ points }) => points.length);
    const all = this.traces.flatMap(({ points, band }) => (band ? band : points));
    const ys = all.flatMap(([, ...values]) => values);
    this.end = 1.01 * Math.max(0, ...all.map(([x]) => x)) || 1;
    this.range = this.chart.range ?? padEnds(findEnds(ys));
    this.summarize();
    const isEmpty = !all.length && series.some((one) => listColumns(one)[0]?.steps?.length);
    this.figure.hidden = isEmpty; // the algorithm has no such figure
    this.draw();
  }

  // The newest figure is that of the curve that is drawn: of several seeds, of their mean.
  summarize() {
    const { title, tell } = this.chart, mains = this.traces.filter(({ isMain }) => isMain);
    const words = mains.map(({ name, points }) => `${name} newest ${tell(points.at(-1)[1])}`);
    const isOne = this.series.length === 1 && mains.length;
    this.newest.textContent = isOne ? tell(mains[0].points.at(-1)[1]) : "";
    this.plot.setAttribute("aria-label", `${title}: ${words.join("; ") || "no figures yet"}`);
    this.figure.dataset.points = Math.max(0, ...this.traces.map(({ points }) => points.length));
  }

  /** The curves, each with its name, its style and its points, [steps, value]. */
  listTraces() {
    const { main, lines } = this.chart, isSingle = this.series.length === 1;
    const findMain = (columns) => main.find((name) => columns[name]?.some((value) => value != null));
    if (isSingle && !this.series[0].members) {
      const { columns } = this.series[0], chosen = findMain(columns);
      return lines.map(([column, name, style]) => (
        { name, isMain: column === chosen, style: STYLES[style], points: pair(columns, column) }
      ));
    }
    return this.series.map((one, place) => {
      const all = listColumns(one).map((columns) => pair(columns, findMain(columns)));
      const marked = { colour: `series-${place + 1}`, width: 2, dash: DASHES[place] };
      const style = isSingle ? STYLES.solid : marked;
      const joined = one.members ? joinRuns(all) : { points: all[0] };
      return { name: one.name, isMain: true, style, ...joined };
    });
  }

  x(steps) {
    return (SIZE * steps) / this.end;
  }

  y(value) {
    const [low, high] = this.range;
    return (SIZE * (high - value)) / (high - low);
  }

  draw() {
    this.cursor = build("svg:path", { class: "cursor" });
    const lines = this.traces.flatMap(({ style, points, band }) => [
      band && this.drawBand(style, band),
      drawLine(style, points.map(([x, y]) => [this.x(x), this.y(y)])),
    ]);
    const target = this.chart.id === "return" ? this.series[0]?.target : null, words = [];
    if (target != null) {
      lines.push(build("svg:path", { class: "target", d: `M0 ${this.y(target)}h${SIZE}` }));
      words.push(write(6, this.y(target), -5, `target ${this.chart.tell(target)}`, "target-name"));
    }
    const grid = this.listGrid();
    const box = { viewBox: `0 0 ${SIZE} ${SIZE}`, preserveAspectRatio: "none" };
    const picture = build("svg:svg", box, grid.paths, lines, this.cursor);
    this.plot.replaceChildren(build("svg:svg", { "aria-hidden": "true" }, picture, grid.words, words));
    const hasKeys = this.traces.length > 1 && (this.series.length < 2 || this.chart.id === "return");
    const names = hasKeys ? this.traces.map(({ name }) => name) : [];
    rewrite(this.legend, names, () => (hasKeys ? this.traces.map(buildKey) : []));
  }

  drawBand({ colour }, band) {
    const tell = ([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`;
    const ends = [...band.map(([x, , high]) => [x, high]), ...band.toReversed()];
    const d = `M${ends.map(tell).join("L")}z`;
    return build("svg:path", { d, fill: `var(--${colour})`, opacity: 0.2 });
  }

  listGrid() {
    const tell = this.chart.tell === tellPercent ? tellPercent : tellTick;
    const isReturn = this.chart.id === "return", paths = [], words = [];
    for (const tick of listTicks(this.range, isReturn ? 6 : 4)) {
      const kind = Math.abs(tick) < 1e-12 ? "zero" : "grid";
      paths.push(build("svg:path", { class: kind, d: `M0 ${this.y(tick)}h${SIZE}` }));
      words.push(write(0, this.y(tick), 4, tell(tick), "tick end", -6));
    }
    for (const tick of listTicks([0, this.end], isReturn ? 6 : 3)) {
      paths.push(build("svg:path", { class: "grid", d: `M${this.x(tick)} 0v${SIZE}` }));
      words.push(write(this.x(tick), SIZE, 17, tellTick(tick), "middle"));
    }
    return { paths, words: [...words, write(SIZE / 2, SIZE, 33, "steps of the agent", "middle")] };
  }

  /** Show all values near a place of the axis; null for none. */
  point(steps) {
    const distance = ([x]) => Math.abs(x - steps), isNear = (one) => distance(one) < REACH * this.end;
    const near = steps === null ? [] : this.traces.flatMap(({ name, points }) => {
      const nearest = points.reduce((best, one) => (distance(one) < distance(best) ? one : best));
      return isNear(nearest) ? [[name, nearest[1]]] : [];
    });
    this.words.hidden = !near.length;
    this.cursor?.setAttribute("d", near.length ? `M${this.x(steps)} 0v${SIZE}` : "");
    this.words.classList.toggle("left", steps > this.end / 2);
    const values = near.map(([name, value]) => [`${name}: `, this.chart.tell(value)]);
    this.words.replaceChildren(
      build("div", { class: "quiet" }, `${tellTick(Math.round(steps))} steps of the agent`),
      ...values.map(([name, text]) => build("div", {}, name, build("strong", {}, text))),
    );
  }
}

/** Text at a place of the picture, moved by some pixels. */
function write(x, y, dy, text, kind, dx = 0) {
  const [left, top] = [x, y].map((place) => `${(100 * place) / SIZE}%`);
  return build("svg:text", { x: left, y: top, dx, dy, class: kind }, text);
}

function buildKey({ name, style }) {
  const places = style.isDots ? [[12, 6]] : [[1, 6], [23, 6]];
  const sample = { width: 24, height: 12, viewBox: "0 0 24 12", "aria-hidden": "true" };
  return build("li", {}, build("svg:svg", sample, drawLine(style, places)), name);
}

/** A line through places, or dots there: lines of no length, whose ends are round. */
export function drawLine({ colour, width, dash, isDots, opacity }, places) {
  const tell = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const d = isDots ? places.map((place) => `M${tell(place)}h0`) : [`M${places.map(tell).join("L")}`];
  return build("svg:path", {
    d: d.join(""), fill: "none", stroke: `var(--${colour})`, opacity,
    "stroke-width": width, "stroke-dasharray": dash || null, "stroke-linecap": isDots && "round",
  });
}

/** The figures of a column over the steps. */
function pair({ steps = [], ...columns }, name) {
  const values = columns[name] ?? [];
  return values.flatMap((value, place) => (value == null ? [] : [[steps[place], value]]));
}

function listColumns({ columns, members }) {
  return members ?? [columns];
}

/**
 * Mean, and lowest and highest, of several runs, from where all have begun. One that has ended stays
 * where it ended.
 */
export function joinRuns(all) {
  const lines = all.filter((points) => points.length);
  if (!lines.length) return { points: [], band: [] };
  const from = Math.max(...lines.map(([first]) => first[0]));
  const to = Math.max(...lines.map((points) => points.at(-1)[0]));
  const places = lines.map(() => 0), points = [], band = [];
  for (let step = 0; step <= GRID; step += 1) {
    const x = from + ((to - from) * step) / GRID;
    const values = lines.map((line, run) => {
      while (places[run] + 1 < line.length && line[places[run] + 1][0] <= x) places[run] += 1;
      const [[x0, y0], next] = line.slice(places[run], places[run] + 2);
      return next ? y0 + ((next[1] - y0) * (x - x0)) / (next[0] - x0) : y0;
    });
    points.push([x, values.reduce((sum, value) => sum + value, 0) / values.length]);
    band.push([x, ...findEnds(values)]);
  }
  return { points, band };
}

function findEnds(values) {
  return values.reduce(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity],
  );
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
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

/** −0.25 → "−0.25", with so many digits. */
function formatNumber(value, digits) {
  return Number(value.toPrecision(digits)).toString().replace("-", "−");
}

/** 1500000 → "1.5M" */
function tellTick(value) {
  const units = [[1e6, "M"], [1e3, "k"], [1, ""]];
  const [divisor, sign] = units.find(([each]) => Math.abs(value) >= each) ?? units[2];
  return formatNumber(value / divisor, 4) + sign;
}
