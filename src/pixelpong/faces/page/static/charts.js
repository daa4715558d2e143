// Curves of one run or of several, drawn with plotly, which is loaded when the first is in sight.
//
// `mountCurves(element)` gives an object whose `update(series)` draws them again in place, at most
// twice a second and only those in sight. Used by the page and, joined, by the offline export.
import { build, formatSigned } from "./viewer.js";

const REDRAW_MS = 500;
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const MARKERS = ["circle", "square", "diamond", "triangle-up", "x", "star"];
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const plain = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString().replace("-", "−"));

// What is drawn: columns of the metrics, each as dots or as a line; `main` stands for the run
// where several are compared.
export const CURVES = [
  {
    id: "return", title: "Return", unit: "points an episode", main: "mean_return_100", tell: (v) => formatSigned(v, 1), range: [-22, 22],
    lines: [
      { column: "mean_return", name: "episodes of the update", kind: "dots" },
      { column: "running_mean", name: "running mean, 0.99", kind: "dot" },
      { column: "estimated_return", name: "estimate from the last 1,000 points", kind: "dash" },
      { column: "mean_return_100", name: "mean of the last 100 episodes", kind: "solid" },
    ],
  },
  {
    id: "points", title: "Points won", unit: "share", main: "points_won_1000", tell: percent, range: [-0.02, 1.02], ticks: ".0%",
    lines: [
      { column: "points_won_share", name: "of the update", kind: "dots" },
      { column: "points_won_1000", name: "of the last 1,000", kind: "solid" },
    ],
  },
  { id: "entropy", title: "Entropy", unit: "nats", main: "entropy", tell: plain, lines: [{ column: "entropy", name: "entropy", kind: "solid" }] },
  { id: "kl", title: "KL divergence", unit: "nats", main: "kl", tell: plain, lines: [{ column: "kl", name: "KL", kind: "solid" }] },
  { id: "learning_rate", title: "Learning rate", unit: "", main: "learning_rate", tell: plain, lines: [{ column: "learning_rate", name: "learning rate", kind: "solid" }] },
  { id: "grad_norm", title: "Gradient norm", unit: "", main: "grad_norm", tell: plain, lines: [{ column: "grad_norm", name: "gradient norm", kind: "solid" }] },
  { id: "speed", title: "Speed", unit: "steps a second", main: "timing.steps_per_second", tell: (v) => Math.round(v).toLocaleString("en"), lines: [{ column: "timing.steps_per_second", name: "steps a second", kind: "solid" }] },
];

export const AXES = {
  steps: { column: "steps", title: "steps of the agent" },
  update: { column: "update", title: "updates" },
  time: { column: "timing.wall_seconds", title: "minutes of training", divisor: 60 },
};

let plotlyPromise = null;

// The library, from the page itself where it is there already, as in the export.
export function loadPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  plotlyPromise ??= new Promise((resolve, reject) => {
    const giveBack = keepStylesOut();
    const script = build("script", { src: "/static/plotly.min.js" });
    script.onload = () => { giveBack(); resolve(window.Plotly); };
    script.onerror = () => { giveBack(); plotlyPromise = null; reject(new Error("the charts' library did not come")); };
    document.head.append(script);
  });
  return plotlyPromise;
}

// Plotly brings a style for its maps, which no chart here has and a strict
// Content-Security-Policy refuses: while it is loaded, a new style is inert.
function keepStylesOut() {
  document.createElement = (tag, ...rest) =>
    Document.prototype.createElement.call(document, tag === "style" ? "template" : tag, ...rest);
  return () => delete document.createElement;
}

// Places for all curves in `element`, empty until `update([{name, columns, evaluations}])`.
export function mountCurves(element, { axis = "steps" } = {}) {
  const charts = CURVES.map((curve) => new Chart(curve));
  const state = { series: [], axis };
  const tellAll = () => charts.forEach((chart) => chart.take(state.series, state.axis));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", tellAll);
  element.replaceChildren(...charts.map((chart) => chart.figure));
  return {
    update(series) { state.series = series; tellAll(); },
    setAxis(name) { state.axis = name; tellAll(); },
    unmount() {
      scheme.removeEventListener("change", tellAll);
      charts.forEach((chart) => chart.leave());
      element.replaceChildren();
    },
  };
}

class Chart {
  constructor(curve) {
    Object.assign(this, { curve, series: [], axis: "steps", isInSight: false, isStale: false, drawn: 0, timer: null });
    this.plot = build("div", { class: "plot", role: "img", "aria-label": `${curve.title}: no figures yet` });
    this.newest = build("span", { class: "number newest" });
    const heading = build("h3", {}, curve.title, " ", build("span", { class: "quiet" }, curve.unit));
    const caption = build("figcaption", {}, heading, this.newest);
    this.figure = build("figure", { class: "curve", "data-curve": curve.id }, caption, this.plot);
    this.sight = new IntersectionObserver(([entry]) => {
      this.isInSight = entry.isIntersecting;
      if (this.isInSight && this.isStale) this.plan();
    }, { rootMargin: "100px" });
    this.sight.observe(this.figure);
  }

  leave() {
    clearTimeout(this.timer);
    this.sight.disconnect();
    this.isGone = true;
    if (this.plot.data) window.Plotly.purge(this.plot);
  }

  // Take new figures; they are drawn soon, or when the chart comes into sight.
  take(series, axis) {
    Object.assign(this, { series, axis, isStale: true });
    const hasAny = series.some(({ columns }) => this.curve.lines.some((line) => columns[line.column]?.some((value) => value !== null)));
    this.figure.hidden = !hasAny && series.some(({ columns }) => columns.update?.length > 0);
    if (this.isInSight) this.plan();
  }

  plan() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.draw();
    }, Math.max(0, this.drawn + REDRAW_MS - performance.now()));
  }

  async draw() {
    this.drawn = performance.now();
    this.isStale = false;
    this.summarize();
    try {
      const plotly = await loadPlotly();
      if (this.isGone) return;
      await plotly.react(this.plot, this.traces(), this.layout(), { displayModeBar: false, responsive: true, doubleClick: false, showTips: false });
      const lengths = (this.plot.data ?? []).map((trace) => trace.x.length);
      this.figure.dataset.points = Math.max(0, ...lengths);
    } catch (error) {
      this.plot.textContent = `No chart: ${error.message}. Is plotly installed, pip install 'pixelpong[web]'?`;
    }
  }

  summarize() {
    const { curve } = this;
    const words = this.series.flatMap(({ name, columns }) => {
      const known = (columns[curve.main] ?? []).filter((value) => value !== null);
      if (!known.length) return [];
      const [low, high] = known.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      if (this.series.length === 1) this.newest.textContent = curve.tell(known.at(-1));
      return `${name} newest ${curve.tell(known.at(-1))}, lowest ${curve.tell(low)}, highest ${curve.tell(high)}`;
    });
    this.plot.setAttribute("aria-label", `${curve.title}: ${words.join("; ") || "no figures yet"}`);
  }

  x(columns) {
    const { column, divisor = 1 } = AXES[this.axis];
    return (columns[column] ?? []).map((value) => (value === null ? null : value / divisor));
  }

  // The right end: the newest place of all series.
  end() {
    const ends = this.series.map(({ columns }) => this.x(columns).findLast((value) => value !== null) ?? 0);
    return 1.01 * Math.max(...ends, 0) || 1;
  }

  traces() {
    const palette = readColours();
    if (this.series.length > 1) return this.series.map((each, index) => this.comparedTrace(each, index, palette));
    return this.series.flatMap(({ columns, evaluations }) => [
      ...this.curve.lines.filter(({ column }) => columns[column]).map((line) => this.trace(columns, line, palette)),
      ...(this.curve.id === "return" && evaluations?.length ? [this.evaluated(columns, evaluations, palette)] : []),
    ]);
  }

  trace(columns, { column, name, kind }, palette) {
    const known = { x: this.x(columns), y: columns[column], name, connectgaps: true, type: "scatter" };
    if (kind === "dots") return { ...known, mode: "markers", marker: { size: 3.5, color: palette.quiet, opacity: 0.55 } };
    const colour = { solid: palette.series[0], dash: palette.series[1], dot: palette.series[2] }[kind];
    return { ...known, mode: "lines", line: { color: colour, width: kind === "solid" ? 2.25 : 1.5, dash: kind } };
  }

  evaluated(columns, evaluations, palette) {
    const places = this.x(columns), updates = columns.update ?? [];
    const x = evaluations.map(({ update }) => places[updates.findLastIndex((each) => each <= update)] ?? null);
    const marker = { symbol: "diamond-open", size: 9, color: palette.ink, line: { width: 2 } };
    return { x, y: evaluations.map((line) => line.mean_return), name: "evaluation, greedy", mode: "markers", marker, type: "scatter" };
  }

  comparedTrace({ name, columns }, index, palette) {
    const color = palette.series[index % palette.series.length];
    return {
      x: this.x(columns), y: columns[this.curve.main] ?? [], name, type: "scatter", connectgaps: true, mode: "lines+markers",
      line: { color, width: 2, dash: DASHES[index % DASHES.length] },
      marker: { color, symbol: MARKERS[index % MARKERS.length], size: 7, maxdisplayed: 10 },
    };
  }

  layout() {
    const { ink, quiet, line, surface } = readColours();
    const axis = { gridcolor: line, zerolinecolor: quiet, zerolinewidth: 1, linecolor: line, fixedrange: true, automargin: true };
    const hasLegend = this.series.length > 1 || this.curve.lines.length > 1;
    return {
      height: this.plot.clientHeight || 240, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: ink }, margin: { l: 44, r: 10, t: 8, b: 40 },
      xaxis: { ...axis, range: [0, this.end()], zeroline: false, title: { text: AXES[this.axis].title, standoff: 6, font: { color: quiet } }, exponentformat: "SI", nticks: 6 },
      yaxis: { ...axis, ...(this.curve.range && { range: this.curve.range }), tickformat: this.curve.ticks ?? "", exponentformat: "SI", nticks: 6 },
      showlegend: hasLegend, legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0, font: { color: ink } },
      hovermode: "x unified", hoverlabel: { bgcolor: surface, bordercolor: line, font: { color: ink } }, dragmode: false, uirevision: "same",
    };
  }
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = [1, 2, 3, 4, 5, 6].map((number) => read(`series-${number}`));
  return { ink: read("ink"), quiet: read("quiet"), line: read("line"), surface: read("surface"), series };
}
