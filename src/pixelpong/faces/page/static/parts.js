// Shared by all views: making elements, requests to the server, figures in words.

export const FOLLOW_MS = 20_000; // between two newer agents or replays that are shown by themselves
export const SVG = "http://www.w3.org/2000/svg";
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

// The answer of the server, or of an exported page's file; or an error with a message to show.
// `isGone` is set if the server does not answer.
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

// The time since a moment in seconds since 1970, in words.
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

// The state of a run, in words and as a class for its mark; see pixelpong.run.states.
const STATES = {
  training: ["training now", "live"], won: ["won", "won"], stopped: ["stopped", "rest"],
  interrupted: ["interrupted", "rest"], failed: ["failed", "broken"], damaged: ["cannot be read", "broken"],
};
export function describeState({ state, update, problem }) {
  const [word, kind] = STATES[problem ? "damaged" : state] ?? STATES.stopped;
  if (problem || update || kind === "broken") return { word, kind };
  return kind === "live" ? { word: "starting", kind } : { word: "nothing trained yet", kind };
}

// The three returns, by the names that the glossary has; the first that is known says most.
export function listReturns(run) {
  return [["greedy return", run.greedy?.mean], ["estimated return", run.estimated_return], ["mean of the last 100", run.mean_return_100]]
    .map(([name, value]) => ({ name, value: value ?? null, text: formatSigned(value, 1) }));
}

export function describeReturn(run) {
  return listReturns(run).find(({ value }) => value !== null) ?? { name: "no episode yet", value: null, text: "–" };
}

// A "?" that shows the glossary's sentence about a term.
let glossary = null;
const helpWords = build("div", { popover: "auto", class: "help-words", role: "status" });
export function buildHelp(term) {
  const button = build("button", { type: "button", class: "help", "aria-label": `What is: ${term}?` }, "?");
  button.popoverTargetElement = helpWords;
  button.addEventListener("click", async () => {
    const { left, bottom } = button.getBoundingClientRect(), width = document.documentElement.clientWidth;
    helpWords.style.left = `${Math.max(8, Math.min(left - 16, width - 328))}px`;
    helpWords.style.top = `${bottom + scrollY + 6}px`;
    glossary ??= await getJson("/static/glossary.json").catch(() => null);
    const words = glossary?.[term] ?? "The server does not answer.";
    helpWords.replaceChildren(build("strong", {}, term), " ", words);
  });
  if (!helpWords.isConnected) document.body.append(helpWords);
  return button;
}

// Let the browser save a file that is made here.
export function save(name, blob) {
  const url = URL.createObjectURL(blob);
  build("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Announce something once to screen readers.
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

// Do `task` now and then every `seconds` while the page is visible, until the signal aborts; sooner
// if `task` has returned false because the server did not answer.
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
