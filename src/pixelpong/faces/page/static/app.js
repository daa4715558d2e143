// The page: which view the address names, and the list of runs.
//
//     #runs   #run/ID   #compare/ID,ID   #sweep/NAME   #play/ID/AGENT   #watch/ID/AGENT
import {
  build, describeReturn, describeState, follow, formatCount, rewrite, warnAbove,
} from "./parts.js";
import { mountComparison, mountSweep } from "./compare.js";
import { mountGame } from "./play.js";
import { mountRun, mountWatch } from "./run.js";

const ticked = new Set(); // ids of the runs to compare, kept when you return to the list
const main = document.getElementById("main");
const VIEWS = {
  runs: mountList, run: mountRun, compare: mountComparison, sweep: mountSweep,
  play: mountGame, watch: mountWatch,
};
let leave = null;

// The parts of the address after "#"; none if it is not in order. An id may have a slash in it.
function readAddress() {
  try {
    const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const agent = ["play", "watch"].includes(name) && rest.length > 1 ? [rest.pop()] : [];
    return rest.length ? [name, rest.join("/"), ...agent] : [name];
  } catch {
    return [];
  }
}

function route() {
  const [name, ...rest] = readAddress(), isFirst = leave === null;
  if (name === "main") return; // the skip link
  leave?.abort();
  leave = new AbortController();
  warnAbove(null);
  const view = build("div", { class: "view" });
  main.replaceChildren(view);
  (Object.hasOwn(VIEWS, name ?? "") ? VIEWS[name] : mountList)(view, leave.signal, ...rest);
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.hash.slice(1).split("/")[0] === (name || "runs");
    link.setAttribute("aria-current", isHere ? "page" : "false");
  }
  if (isFirst) return;
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function mountList(element, signal) {
  document.title = "Runs · pixelpong";
  const list = build("ul", { class: "runs", "aria-label": "Runs" }), rows = new Map();
  const empty = build("div"), link = build("a", { class: "button primary" }, "Compare");
  const words = build("span"), bar = build("div", { class: "compare-bar" }, words, link);
  element.append(build("h1", {}, "Runs"), empty, bar, list);
  const count = () => {
    const isOne = ticked.size < 2;
    bar.hidden = ticked.size === 0;
    link.hidden = isOne;
    link.href = `#compare/${[...ticked].join(",")}`;
    words.textContent = `${ticked.size} selected${isOne ? ": select another to compare" : ""}`;
  };
  count();
  follow("/api/runs", signal, ({ runs = [] }) => {
    const entries = [...Map.groupBy(runs, (run) => findSweep(run) ?? run.id)];
    const groups = Map.groupBy(runs, (run) => (findSweep(run) ? null : run.group));
    // Rows stay in place while their runs do, so that focus stays too.
    entries.forEach(([key, members], place) => {
      const row = rows.get(key) ?? build("li", { class: "run-row" });
      const alike = groups.get(members[0].group) ?? [];
      rows.set(key, row);
      rewrite(row, [members, alike.map(({ id }) => id)], () => buildRow(members, alike, count));
      if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
    });
    while (list.children.length > entries.length) list.lastChild.remove();
    rewrite(empty, runs.length, () => (runs.length ? [] : [buildEmpty()]));
    for (const id of ticked) if (!runs.some((run) => run.id === id)) ticked.delete(id);
    count();
  });
}

// A run of a sweep has its folder in its id.
function findSweep({ id }) {
  return id.includes("/") ? id.split("/")[0] : null;
}

// A run with those that differ only in their seed, or all runs of a sweep.
function buildRow(runs, alike, onTick) {
  const [run] = runs, sweep = findSweep(run), name = sweep ?? run.name;
  const isDamaged = !sweep && run.state === "damaged", best = describeReturn(run);
  const tick = () => {
    for (const { id } of runs) if (box.checked) ticked.add(id); else ticked.delete(id);
    onTick();
  };
  const box = build("input", {
    type: "checkbox", "aria-label": `Compare ${name}`, disabled: isDamaged, onchange: tick,
    checked: runs.every(({ id }) => ticked.has(id)),
  });
  const { word, kind } = describeState(runs.find((each) => each.is_live) ?? run);
  const won = runs.filter(({ state }) => state === "won").length;
  const [figure, unit] = sweep ? [`${won} of ${runs.length}`, "won"] : [best.text, best.name];
  const style = { dateStyle: "medium", timeStyle: "short" };
  const written = `written ${new Date(1000 * run.modified).toLocaleString("en", style)}`;
  const facts = sweep ? ["sweep", run.preset, written] : [
    run.preset, `seed ${run.seed}`, `update ${formatCount(run.update)}`,
    `${formatCount(run.steps)} steps`, written, run.problem,
  ];
  const seeds = new Set(alike.map(({ seed }) => seed)).size;
  const compared = `#compare/${alike.map(({ id }) => id).join(",")}`;
  const head = [
    build("a", { class: "run-name", href: sweep ? `#sweep/${sweep}` : `#run/${run.id}` }, name),
    build("span", { class: `state ${kind}` }, word),
    !sweep && seeds > 1 && build("a", { class: "seeds", href: compared }, `one of ${seeds} seeds`),
  ];
  const told = isDamaged ? run.problem : facts.filter(Boolean).join(" · ");
  const result = [build("strong", { class: "number" }, figure), ` ${unit}`];
  return [
    box,
    build("div", {}, build("div", { class: "row" }, head), build("p", { class: "quiet" }, told)),
    build("p", { class: "run-return quiet" }, isDamaged ? [] : result),
  ];
}

function buildEmpty() {
  const link = (page, words) => build("a", { href: `#${page}/package/best` }, words);
  return build(
    "p", { class: "empty" }, build("strong", {}, "No runs yet."),
    " Train one in another terminal, and it appears here:",
    build("code", {}, "pixelpong train --preset fast"),
    "Or look at the agents that came with the package: ", link("watch", "watch"), " or ",
    link("play", "play against one"), ".",
  );
}

addEventListener("hashchange", route);
route();
