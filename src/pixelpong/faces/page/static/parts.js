// What all views need: asking the server, and saying figures in words.
import { formatSigned } from "./viewer.js";

// The server's answer, or an error whose message can be shown; `isGone` where it does not answer.
export async function getJson(path, signal) {
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

// 1234567 → "1.23 million"; small ones with thousands' commas.
export function formatCount(value) {
  if (value == null) return "–";
  if (value >= 1e6) return `${(value / 1e6).toFixed(2)} million`;
  return Math.round(value).toLocaleString("en");
}

// 200 → "3 min 20 s"
export function formatDuration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(seconds / 3600);
  return hours < 48 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`;
}

// How long ago, in words; `moment` as seconds since 1970 or as an ISO date.
export function formatAgo(moment) {
  const then = typeof moment === "number" ? moment * 1000 : Date.parse(moment);
  if (!Number.isFinite(then)) return "at an unknown time";
  const seconds = (Date.now() - then) / 1000;
  return seconds < 5 ? "just now" : `${formatDuration(seconds)} ago`;
}

// The state of a run, in a word or two and as a class for its mark.
export function describeState(run) {
  if (run.problem) return { word: "cannot be read", kind: "broken" };
  if (run.is_live) return run.update ? { word: "training now", kind: "live" } : { word: "starting", kind: "live" };
  return run.update ? { word: "not training", kind: "rest" } : { word: "nothing trained yet", kind: "rest" };
}

// The best known estimate of how well it plays, and what that is.
export function describeReturn(run) {
  if (run.estimated_return != null) return { value: run.estimated_return, text: formatSigned(run.estimated_return, 1), of: "estimated return" };
  if (run.mean_return_100 != null) return { value: run.mean_return_100, text: formatSigned(run.mean_return_100, 1), of: "mean return" };
  return { value: null, text: "–", of: "no episode yet" };
}

// A value of the configuration, as a person writes it.
export function formatValue(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
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
// sooner again after `task` has returned false, as where nobody answered.
export function repeat(task, seconds, signal) {
  let timer = null;
  const again = async () => {
    clearTimeout(timer);
    if (signal.aborted) return;
    const isFine = document.hidden ? true : await task();
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(again, 1000 * (isFine === false ? Math.min(2, seconds) : seconds));
  };
  const atSight = () => { if (!document.hidden) again(); };
  document.addEventListener("visibilitychange", atSight, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  again();
}
