// What all views need: making elements, asking the server, saying figures in words.

const SVG = "http://www.w3.org/2000/svg";
const written = new WeakMap(); // what elements show, see `rewrite`

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

// Fill an element anew if what it shows has changed, so that focus and scrolling stay otherwise.
export function rewrite(element, content, makeChildren) {
  const key = JSON.stringify(content);
  if (written.get(element) === key) return;
  written.set(element, key);
  element.replaceChildren(...makeChildren());
}

// A table that scrolls where there is no room; a row's first cell is its heading.
export function buildTable(name, head, rows) {
  const line = ([first, ...cells]) => build("tr", {}, build("th", { scope: "row" }, first), cells.map((cell) => build("td", {}, cell)));
  const table = build(
    "table", {}, build("thead", {}, build("tr", {}, head.map((word) => (word ? build("th", { scope: "col" }, word) : build("td"))))),
    build("tbody", {}, rows.map(line)),
  );
  return build("div", { class: "scroller", role: "region", tabindex: "0", "aria-label": name }, table);
}

// The server's answer, or the one that the file of an exported page holds; or an error whose
// message can be shown. `isGone` is set if the server does not answer.
export async function getJson(path, signal) {
  const held = document.getElementById(path);
  if (held) return JSON.parse(held.textContent);
  let answer;
  try {
    answer = await fetch(path, { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { isGone: true });
  }
  let content = null;
  try {
    content = await answer.json();
  } catch {
    if (answer.ok) throw new Error("The server's answer was cut off.");
  }
  if (answer.ok) return content;
  throw Object.assign(new Error(content?.error ?? `The server said ${answer.status}.`), { status: answer.status });
}

// A number with its sign, the minus as it is printed: "+0.50", "−21".
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

// 200 → "3 min 20 s"
export function formatDuration(seconds) {
  if (seconds == null) return "not known";
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(seconds / 3600);
  return hours < 48 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`;
}

// How long ago a time in seconds since 1970 was, in words.
export function formatAgo(moment) {
  if (moment == null) return "at an unknown time";
  const seconds = Date.now() / 1000 - moment;
  return seconds < 5 ? "just now" : `${formatDuration(seconds)} ago`;
}

// A value of the configuration, as a person writes it.
export function formatValue(value) {
  if (value == null) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// The state of a run, in words and as a class for its mark.
export function describeState(run) {
  if (run.problem) return { word: "cannot be read", kind: "broken" };
  if (run.is_live) return { word: run.update ? "training now" : "starting", kind: "live" };
  return { word: run.update ? "not training" : "nothing trained yet", kind: "rest" };
}

// The best known estimate of how well it plays, and what that is.
export function describeReturn(run) {
  const kinds = [["estimated_return", "estimated return"], ["mean_return_100", "mean return"]];
  const [name, of] = kinds.find(([column]) => run[column] != null) ?? [null, "no episode yet"];
  return { value: run[name] ?? null, text: formatSigned(run[name], 1), of };
}

// Say something once to screen readers.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// Show or hide the banner over the page.
export function warnAbove(text) {
  const banner = document.getElementById("banner");
  if (banner.textContent === (text ?? "")) return;
  banner.textContent = text ?? "";
  banner.hidden = !text;
}

// Do `task` now and then every `seconds` while the page is in sight, until the signal says stop;
// sooner again after `task` has returned false because nobody answered.
export function repeat(task, seconds, signal) {
  let timer = null;
  const again = async () => {
    clearTimeout(timer);
    if (signal.aborted) return;
    const isFine = document.hidden || (await task());
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(again, 1000 * (isFine === false ? Math.min(2, seconds) : seconds));
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); }, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  again();
}
