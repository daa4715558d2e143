// Shared by all views: making elements, asking the server, numbers in words.

const NO_ANSWER = "The server does not answer. Is it still running?";
const SVG = "http://www.w3.org/2000/svg";
const LIVE_MS = 1000, REST_MS = 5000; // between two questions, if something trains or nothing does
const PATIENCE = 9; // pause, in times that an answer took: asking must not slow down training
const written = new WeakMap(); // the content of elements, see `rewrite`

/** An element with attributes, listeners (`onclick: f`) and children; "svg:path" is one of SVG. */
export function build(tag, attributes = {}, ...children) {
  const isSvg = tag.startsWith("svg:");
  const element = isSvg ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Refill an element only if its content has changed, and keep the focus where it was. */
export function rewrite(element, content, makeChildren) {
  const key = JSON.stringify(content), old = document.activeElement;
  if (written.get(element) === key) return;
  const isInside = element.contains(old) && element !== old;
  written.set(element, key);
  element.replaceChildren(...makeChildren());
  const name = (link) => link.getAttribute("aria-label");
  const isSame = (link) => link.href === old.href && name(link) === name(old);
  if (isInside) [...element.querySelectorAll(old.localName)].find(isSame)?.focus();
}

/** Names and their values, as a list. */
export function buildTerms(className, terms) {
  return build("dl", { class: className }, terms.map(([name, text]) => (
    build("div", {}, build("dt", {}, name), build("dd", {}, text))
  )));
}

/** A container for a table, which scrolls if the table is too wide. */
export function buildScroller(name) {
  return build("div", { class: "scroller", role: "region", tabindex: "0", "aria-label": name });
}

/** A table; a row's first cell is its heading. */
export function buildTable(head, rows) {
  const top = head.map((word) => build(word ? "th" : "td", {}, word));
  const lines = rows.map(([first, ...cells]) => build(
    "tr", {}, build("th", { scope: "row" }, first), cells.map((cell) => build("td", {}, cell)),
  ));
  return build("table", {}, build("thead", {}, build("tr", {}, top)), build("tbody", {}, lines));
}

/** The server's answer with its `status`; a failure is an answer with a `problem`, and status 0. */
export async function ask(path, signal) {
  try {
    const answer = await fetch(path, { signal });
    const text = await answer.text();
    return { ...JSON.parse(text), status: answer.status, text };
  } catch {
    return { problem: NO_ANSWER, status: 0, text: "" };
  }
}

/** The `url` of a file that the server makes, or a `problem`. */
export async function askFile(path) {
  try {
    const answer = await fetch(path);
    if (!answer.ok) return JSON.parse(await answer.text());
    return { url: URL.createObjectURL(await answer.blob()) };
  } catch {
    return { problem: NO_ANSWER };
  }
}

/**
 * Until an answer comes, show what it waits for: what the server has to compile, as its terminal
 * says, or games of other viewers; `show` gets the line, or "".
 */
export async function showNotices(signal, show, viewer = "") {
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, LIVE_MS); });
    if (signal.aborted) return;
    const { notice = "" } = await ask(`api/notice?viewer=${viewer}`, signal);
    if (!signal.aborted) show(notice);
  }
}

/**
 * Ask for a path again and again while the page is visible, and show what is new.
 *
 * `show` gets the newest answer, or the last good one with the `trouble` of asking again; `isGone`
 * says that the server answers, but no longer for this path. If `show` fails, the page says so, and
 * the next answer is shown again.
 */
export function follow(path, signal, show) {
  let known = null, last = null, timer = null, took = 0, hasFailed = false;
  const look = async () => {
    const begin = performance.now(), answer = await ask(path, signal);
    if (signal.aborted) return;
    took = performance.now() - begin;
    if (answer.status === 200) known = answer;
    const { status, problem, text } = answer, isGone = status === 404;
    const trouble = isGone && known ? "Deleted or moved. This is what was read before." : problem;
    warnAbove(status ? "" : `${problem} Trying again.`);
    if (text === last) return;
    last = null;
    try {
      show(status === 200 ? answer : { ...known, trouble, isGone });
    } catch (error) {
      hasFailed = true;
      throw error;
    }
    if (hasFailed) clearFailure();
    hasFailed = false;
    last = text;
  };
  const again = async () => {
    clearTimeout(timer);
    try {
      if (!document.hidden) await look();
    } finally { // whatever `show` did
      const pause = (known?.is_live ?? known?.runs) ? LIVE_MS : REST_MS;
      clearTimeout(timer);
      if (!signal.aborted) timer = setTimeout(again, Math.max(pause, PATIENCE * took));
    }
  };
  document.addEventListener("visibilitychange", again, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  again();
}

/** Words about a problem; if what was asked for `isGone`, with the way to the list. */
export function buildProblem(words, isGone) {
  return words ? [words, ...(isGone ? [" ", build("a", { href: "#runs" }, "All runs")] : [])] : [];
}

/** Let the page's menu lead to this agent. */
export function pointMenu(id, agent) {
  for (const goal of ["#play", "#watch"]) {
    document.querySelector(`nav a[href^="${goal}/"]`).href = `${goal}/${id}/${agent}`;
  }
}

/** Remove the line that `failures.js` wrote. */
export function clearFailure() {
  document.getElementById("failure").textContent = "";
}

/** Show the banner over the page; without words hide it. */
export function warnAbove(words = "") {
  rewrite(document.getElementById("banner"), words, () => [words]);
}

/** A number with a true minus, in a style of `Intl.NumberFormat`. */
export function formatNumber(value, style) {
  if (value == null || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", style).replace("-", "−");
}

/** A number with its sign, as `pixelpong.run.words.signed` writes it: "+0.50", "−21", "0". */
export function formatSigned(value, digits = 0) {
  const size = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const text = formatNumber(value, { signDisplay: "always", ...size });
  return /[1-9]/.test(text) ? text : text.replace(/[−+]/, ""); // 0 has no sign
}

/** The name of an option as words. */
export function nameOption(name) {
  return name.replaceAll("_", " ");
}

/** The value of an option: whole numbers with thousands' commas, but a seed as it is given. */
export function formatOption(name, value) {
  const isCount = Number.isInteger(value) && name !== "seed";
  return isCount ? formatNumber(value) : `${value ?? "–"}`;
}

/** The lowest and the highest of any number of values; Infinity and −Infinity of none. */
export function findEnds(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** 1234567 → "1.23 million"; small ones with thousands' commas. */
export function formatCount(value) {
  const inMillions = { notation: "compact", compactDisplay: "long", maximumFractionDigits: 2 };
  return formatNumber(value, value < 1e6 ? { maximumFractionDigits: 0 } : inMillions);
}

/** 83 → "1:23"; hours if there are any. */
export function formatSeconds(value) {
  if (value == null) return "–";
  const seconds = Math.round(value), two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`;
}

/** Whether a run, or what else has a `game`, is Pong, which has returns instead of scores. */
export const isPong = ({ game }) => (game ?? "pong") === "pong";

/** A return of Pong, or another game's score, as `pixelpong.run.words.in_game` writes it. */
export function formatReturn(value, run) {
  const digits = Math.abs(value) < 1000 ? 1 : 0;
  const size = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return isPong(run) ? formatSigned(value, 1) : formatNumber(value, size).replace(/^−(?=[0.]+$)/, "");
}

/** A share in percent, as `pixelpong.run.words.percent` writes it. */
export function formatShare(share) {
  return share == null ? "–" : `${formatNumber(Math.round(100 * share))} %`;
}

/** Returns or scores; the first known one says the most. */
export function listReturns(run) {
  const { greedy, sampled, estimated_return: estimate, mean_return_100: mean } = run;
  const first = isPong(run)
    ? [["greedy return", greedy?.mean_return], ["estimated return", estimate]]
    : [["mean score", sampled?.mean_return]];
  const all = [...first, ["mean of the last 100", mean]];
  return all.map(([name, value]) => [name, formatReturn(value, run)]);
}

/** Cells about a run; `RUN_COLUMNS` are their names. */
export function describeRun(run) {
  const [name, text] = listReturns(run).find(([, value]) => value !== "–") ?? ["", "–"];
  const state = buildState(run.state);
  const value = [build("strong", {}, text), ` ${name.replace(" return", "")}`];
  return [state, value, formatCount(run.steps), formatSeconds(run.total_seconds)];
}

/** A state, with its sign and colour. */
export function buildState(state) {
  return build("span", { class: `state ${state}` }, state);
}
export const RUN_COLUMNS = ["state", "return", "steps", "time"];
