// Shared by all views: making elements, requests to the server, figures in words.

const SVG = "http://www.w3.org/2000/svg";
const written = new WeakMap(); // the content of elements, see `rewrite`

// An element with attributes, listeners (`onclick: f`) and children; "svg:path" is one of SVG.
export function build(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// Refill an element only if its content has changed, to keep focus and scrolling.
export function rewrite(element, content, makeChildren) {
  const key = JSON.stringify(content);
  if (written.get(element) === key) return;
  written.set(element, key);
  element.replaceChildren(...makeChildren());
}

// A table that scrolls if there is no room; a row's first cell is its heading.
export function buildTable(name, head, rows) {
  const line = ([first, ...cells]) => build("tr", {}, build("th", { scope: "row" }, first), cells.map((cell) => build("td", {}, cell)));
  const table = build(
    "table", {}, build("thead", {}, build("tr", {}, head.map((word) => (word ? build("th", { scope: "col" }, word) : build("td"))))),
    build("tbody", {}, rows.map(line)),
  );
  return build("div", { class: "scroller", role: "region", tabindex: "0", "aria-label": name }, table);
}

// The server's answer, or an error with a message to show; it has a `status` if the server answered.
export async function getJson(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => null);
  if (answer.ok && content) return content;
  throw Object.assign(new Error(content?.error ?? `The server's answer was cut off (${answer.status}).`), { status: answer.status });
}

// A number with its sign and a true minus: "+0.50", "−21".
export function formatSigned(value, digits = 0) {
  if (value == null || !Number.isFinite(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

// 1234567 → "1.23 million"; small ones with thousands' commas.
export function formatCount(value) {
  if (value == null) return "–";
  if (value >= 1e6) return `${(value / 1e6).toFixed(2)} million`;
  return Math.round(value).toLocaleString("en");
}

// The time since a moment in seconds since 1970, in words: "3 min ago".
export function formatAgo(moment) {
  if (!moment) return "at an unknown time";
  const seconds = Date.now() / 1000 - moment, units = [["days", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const [unit, size] = units.find(([, each]) => seconds >= 2 * each) ?? [];
  return unit ? `${Math.floor(seconds / size)} ${unit} ago` : "just now";
}

// A value of the configuration, as a person writes it.
export function formatValue(value) {
  if (value == null) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// The state of a run, in words and as a class for its mark; see pixelpong.run.record.
const STATES = {
  training: ["training now", "live"], won: ["won", "won"], stopped: ["stopped", "rest"],
  interrupted: ["interrupted", "rest"], failed: ["failed", "broken"], damaged: ["cannot be read", "broken"],
};
export function describeState({ state, update }) {
  const [word, kind] = STATES[state] ?? STATES.stopped;
  if (update || kind === "broken") return { word, kind };
  return kind === "live" ? { word: "starting", kind } : { word: "nothing trained yet", kind };
}

// The three returns, by the names of the glossary; the first that is known says most.
export function listReturns(run) {
  return [["greedy return", run.greedy?.mean_return], ["estimated return", run.estimated_return], ["mean of the last 100", run.mean_return_100]]
    .map(([name, value]) => ({ name, value: value ?? null, text: formatSigned(value, 1) }));
}

export function describeReturn(run) {
  return listReturns(run).find(({ value }) => value !== null) ?? { name: "no episode yet", value: null, text: "–" };
}

// Announce something once to screen readers.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// Show or hide the banner over the page.
export function warnAbove(text) {
  const banner = document.getElementById("banner");
  if (banner.textContent === (text || "")) return;
  banner.textContent = text || "";
  banner.hidden = !text;
}

// Do `task` again and again while the page is visible, `seconds()` apart, until the signal aborts.
export function repeat(task, seconds, signal) {
  let timer = null;
  const again = async () => {
    clearTimeout(timer);
    if (signal.aborted) return;
    if (!document.hidden) await task();
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(again, 1000 * seconds());
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); }, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  again();
}
