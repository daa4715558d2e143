// Curves of one run or of several, drawn as SVG over the agent's steps.
//
// A series is one run or the seeds of a setting: its `members` are the columns of their metrics.
// Several become one curve, their mean, with a band. All positions are shares of the picture, so a
// chart fits any width, also on paper, without being drawn again.
import {
  build, findEnds, formatCount, formatNumber, formatReturn, formatSigned, isPong, rewrite,
} from "./parts.js";

const SIZE = 1000; // of the picture, in its coordinates, which begin at the upper left
const REACH = 0.02; // share of the width within which a value is near the pointer
const TICK_STEPS = [1, 2, 2.5, 5, 10];
const DASHES = ["", "8 4", "2 3", "8 3 2 3", "14 4", "14 3 2 3"]; // of compared curves

const formatPercent = (value) => `${formatNumber(100 * value, { maximumFractionDigits: 1 })} %`;
const formatPlain = (value) => formatNumber(value, { maximumSignificantDigits: 3 });
const formatTick = (value) =>
  formatNumber(value, { notation: "compact", maximumSignificantDigits: 4 });

// A curve is a line or dots; only a line can represent its run.
const STYLES = {
  dots: { colour: "quiet", width: 3.5, isDots: true, opacity: 0.55 },
  evaluation: { colour: "ink", width: 8, isDots: true },
  dashed: { colour: "series-2", width: 1.25, dash: "7 4" },
  solid: { colour: "series-1", width: 2.25 },
};
const THIN = { width: 0.75, dash: null, opacity: 0.5 }; // a seed among others

const single = (id, title, unit, format = formatPlain) =>
  ({ id, title, unit, format, curves: [[id, title.toLowerCase(), "solid"]] });

// The chart of returns if not all games are Pong.
const SCORE = {
  id: "return", title: "Score", unit: "points per game",
  format: (value) => formatReturn(value, { game: "" }),
  curves: [
    ["mean_return", "games of the update", "dots"],
    ["evaluated_return", "evaluation, sampled", "evaluation"],
    ["mean_return_100", "mean of the last 100", "solid"],
  ],
};
const HIGHEST = 6; // a person's score is shown if it is at most this many times the highest value

// The charts, and the columns in them; the last line with data represents the run.
const CHARTS = [
  {
    id: "return", title: "Return", unit: "points per episode", range: [-22, 22],
    format: (value) => formatSigned(value, 1),
    curves: [
      ["mean_return", "episodes of the update", "dots"],
      ["evaluated_return", "greedy return", "evaluation"],
      ["mean_return_100", "mean of the last 100", "dashed"],
      ["estimated_return", "estimated return", "solid"],
    ],
  },
  {
    id: "points", title: "Points won", unit: "share", range: [-0.02, 1.02], format: formatPercent,
    curves: [
      ["points_won_share", "of the update", "dots"],
      ["points_won_1000", "of the last 1,000", "solid"],
    ],
  },
  single("entropy", "Entropy", "nats"), single("kl", "KL divergence", "nats"),
  single("learning_rate", "Learning rate", ""), single("grad_norm", "Gradient norm", ""),
  single("steps_per_second", "Speed", "steps per second", formatCount),
];

/**
 * A heading, the key to the curves if there are several or one has a band, and the charts; returns
 * `update([{name, members, target, game, scores}])`.
 */
export function mountCurves(element) {
  const key = build("ul", { class: "legend key-of-all", "aria-label": "Key to the curves" });
  const pointAll = (steps) => charts.forEach((chart) => chart.point(steps));
  const charts = CHARTS.map((chart) => new Chart(chart, pointAll));
  const curves = build("div", { class: "curves" }, charts.map(({ figure }) => figure));
  element.append(build("h2", {}, "Curves"), key, curves);
  return (series) => {
    const keys = isSingle(series) ? [] : series.map(({ name }, index) => (
      { name, style: styleOf(index) }
    ));
    key.hidden = !keys.length;
    rewrite(key, keys, () => keys.map(buildKey));
    charts.forEach((chart) => chart.update(series));
  };
}

// Whether one run is shown, by several curves in a chart.
const isSingle = (series) => series.length === 1 && series[0].members.length === 1;
const styleOf = (index) => (
  { colour: `series-${index + 1}`, width: 2.25, dash: DASHES[index] }
);

class Chart {
  /** `pointAll(steps)` shows the values near these steps in all charts. */
  constructor(chart, pointAll) {
    this.chart = chart;
    const point = ({ clientX }) => {
      const { left, width } = this.plot.getBoundingClientRect();
      pointAll((this.end * (clientX - left)) / width);
    };
    const leave = ({ pointerType }) => { // after a finger, the values stay
      if (pointerType === "mouse") pointAll(null);
    };
    this.words = build("strong", { class: "number" });
    this.plot = build("div", {
      class: "plot", role: "img", onpointermove: point, onpointerdown: point, onpointerleave: leave,
    });
    this.legend = build("ul", { class: "legend" });
    const title = build("h3");
    this.title = title;
    this.figure = build(
      "figure", { class: "curve", "data-curve": chart.id },
      build("figcaption", {}, title, this.words), this.plot, this.legend,
    );
    this.update([]);
  }

  update(series) {
    const isOne = series.length === 1;
    if (this.chart.id === "return") this.chart = series.every(isPong) ? CHARTS[0] : SCORE;
    const { chart } = this, { title, unit } = chart;
    rewrite(this.title, [title, unit], () => [
      title, " ", build("span", { class: "quiet" }, unit),
    ]);
    this.traces = this.listTraces(series).filter(({ points }) => points.length);
    const all = this.traces.flatMap(({ points, seeds = [points] }) => seeds.flat());
    this.end = 1.01 * Math.max(0, findEnds(all.map(([x]) => x))[1]) || 1;
    const values = all.map(([, value]) => value);
    this.lines = chart.id === "return" ? listLines(chart, series, findEnds(values)[1]) : [];
    this.range = chart.range ?? findRange([...values, ...this.lines.map(({ value }) => value)]);
    const lines = this.traces.filter(({ style }) => !style.isDots);
    this.mains = isOne ? lines.slice(-1) : lines;
    this.figure.dataset.points = this.traces[0]?.points.length ?? 0;
    this.figure.hidden = !all.length && series.some(({ members: [first] }) => first.steps?.length);
    // In a comparison only the groups in which some seeds have no data yet, such as no return.
    const hasKeys = this.traces.length > 1 || !isSingle(series);
    const keys = this.traces.filter(({ isPart }) => hasKeys && (isSingle(series) || isPart));
    rewrite(this.legend, keys.map(({ name }) => name), () => keys.map(buildKey));
    this.draw();
    this.point(this.pointedAt ?? null);
  }

  /** The curves, each with its name, its style and its points, [steps, value]. */
  listTraces(series) {
    const { curves } = this.chart;
    if (isSingle(series)) {
      return curves.map(([column, name, style]) => (
        { name, style: STYLES[style], points: pair(series[0].members[0], column) }
      ));
    }
    const lines = curves.filter(([, , style]) => !STYLES[style].isDots).reverse();
    const find = (columns) => (
      lines.map(([column]) => pair(columns, column)).find((points) => points.length)
    );
    return series.map(({ name, members }, index) => {
      const seeds = members.map(find).filter(Boolean), isPart = seeds.length < members.length;
      const label = isPart ? `${seeds.length} of ${name}` : name;
      return { name: label, style: styleOf(index), isPart, ...joinSeeds(seeds) };
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
    const isLarge = this.chart.id === "return", paths = [], words = [];
    const format = this.chart.format === formatPercent ? formatPercent : formatTick;
    const draw = (style, points) => paths.push(drawLine(style, points));
    for (const tick of listTicks(this.range, isLarge ? 6 : 4)) {
      const y = this.y(tick), colour = Math.abs(tick) < 1e-12 ? "quiet" : "line";
      draw({ colour }, [[0, y], [SIZE, y]]);
      words.push(write(0, y, 4, format(tick), "tick", -6));
    }
    for (const tick of listTicks([0, this.end], isLarge ? 6 : 3)) {
      const x = this.x(tick);
      draw({ colour: "line" }, [[x, 0], [x, SIZE]]);
      words.push(write(x, SIZE, 17, formatTick(tick)));
    }
    words.push(write(SIZE / 2, SIZE, 33, "steps of the agent"));
    const locate = ([steps, value]) => [this.x(steps), this.y(value)];
    for (const { style, points, seeds = [], band } of this.traces) {
      for (const seed of seeds) draw({ ...style, ...THIN }, seed.map(locate));
      if (band) draw({ fill: style.colour, opacity: 0.2 }, band.map(locate));
      draw(style, points.map(locate));
    }
    for (const { value, name, style } of this.lines) {
      const y = this.y(value);
      draw({ colour: "note", ...style }, [[0, y], [SIZE, y]]);
      words.push(write(0, y, -5, `${name} ${this.chart.format(value)}`, "target-name", 6));
    }
    this.cursor = build("svg:path", { class: "cursor" });
    const box = { viewBox: `0 0 ${SIZE} ${SIZE}`, preserveAspectRatio: "none" };
    const picture = build("svg:svg", box, paths, this.cursor);
    this.plot.replaceChildren(build("svg:svg", { "aria-hidden": "true" }, picture, words));
  }

  /**
   * Show all values near these steps. For null, show the newest value of the main curve, which for
   * several seeds is their mean.
   */
  point(steps) {
    const { format, title } = this.chart, distance = ([x]) => Math.abs(x - steps);
    this.pointedAt = steps;
    const near = steps === null ? [] : this.traces.flatMap(({ name, points }) => {
      const nearest = points.reduce((best, one) => (distance(one) < distance(best) ? one : best));
      return distance(nearest) < REACH * this.end ? [`${name} ${format(nearest[1])}`] : [];
    });
    const newest = this.mains.map(({ points }) => format(points.at(-1)[1]));
    if (near.length) near.unshift(`at ${formatTick(Math.round(steps))} steps`);
    else if (newest.length === 1) near.push(newest[0]);
    this.words.textContent = near.join("\n");
    this.cursor.setAttribute("d", near.length > 1 ? `M${this.x(steps)} 0v${SIZE}` : "");
    const label = this.mains.map(({ name }, index) => `${name} newest ${newest[index]}`).join("; ");
    this.plot.setAttribute("aria-label", `${title}: ${label || "no data yet"}`);
  }
}

/** The horizontal lines: Pong's target, or what random play and a person score in the one game. */
function listLines({ format }, series, highest) {
  const [first] = series;
  if (format !== SCORE.format) {
    const target = first?.target;
    return target == null ? [] : [{ value: target, name: "target", style: { dash: "4 3" } }];
  }
  if (!first?.scores || series.some(({ game }) => game !== first.game)) return [];
  const all = Object.entries(first.scores).map(([name, value]) => (
    { value, name, style: { width: 1 } }
  ));
  return all.filter(({ name, value }) => name === "random" || value <= HIGHEST * highest);
}

/** Text at a position in the picture, moved by some pixels. */
function write(x, y, dy, text, className = null, dx = 0) {
  const [left, top] = [x, y].map((position) => `${(100 * position) / SIZE}%`);
  return build("svg:text", { x: left, y: top, dx, dy, class: className }, text);
}

function buildKey({ name, style }) {
  const points = style.isDots ? [[12, 6]] : [[1, 6], [23, 6]];
  const sample = { width: 24, height: 12, viewBox: "0 0 24 12", "aria-hidden": "true" };
  return build("li", {}, build("svg:svg", sample, drawLine(style, points)), name);
}

/** A line through points, or dots there: lines of no length, whose ends are round. */
export function drawLine({ colour, fill, width, dash, isDots, opacity }, points) {
  const written = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return build("svg:path", {
    d: isDots ? written.map((point) => `M${point}h0`).join("") : `M${written.join("L")}`,
    fill: fill ? `var(--${fill})` : "none", stroke: colour && `var(--${colour})`, opacity,
    "stroke-width": width, "stroke-dasharray": dash || null, "stroke-linecap": isDots && "round",
  });
}

/** The values of a column over the steps. */
function pair({ steps, ...columns }, name) {
  const points = (columns[name] ?? []).map((value, index) => [steps[index], value]);
  return points.filter(([, value]) => value != null);
}

/**
 * The mean of several seeds at the steps of the first, and around it a band from lowest to highest,
 * as far as all go.
 */
export function joinSeeds(seeds) {
  if (seeds.length < 2) return { points: seeds[0] ?? [] };
  const [, from] = findEnds(seeds.map(([first]) => first[0]));
  const [to] = findEnds(seeds.map((points) => points.at(-1)[0]));
  const rows = seeds[0].filter(([x]) => from <= x && x <= to).map(([x]) => (
    [x, seeds.map((points) => points.findLast(([steps]) => steps <= x)[1])]
  ));
  const points = rows.map(([x, values]) => [x, values.reduce((a, b) => a + b) / values.length]);
  const low = rows.map(([x, values]) => [x, findEnds(values)[0]]);
  const high = rows.map(([x, values]) => [x, findEnds(values)[1]]);
  return { seeds, points, band: [...low, ...high.reverse()] };
}

// The ends of an axis, with some space on both sides; a constant is in the middle. The mean of
// equal values may differ from them in its last bit.
function findRange(values) {
  const [low, high] = findEnds(values);
  if (low > high) return [0, 1];
  const isFlat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  const pad = isFlat ? Math.abs(high) || 1 : 0.05 * (high - low);
  return [low >= 0 && low < pad ? 0 : low - pad, high + pad];
}

// Whole steps of 1, 2, 2.5 or 5 times a power of ten, about `count` of them between the ends.
function listTicks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * TICK_STEPS.find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}
