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
  const state = build("div"), link = build("a", { class: "button primary" }, "Compare");
  const words = build("span"), bar = build("div", { class: "compare-bar" }, words, link);
  element.append(build("h1", {}, "Runs"), state, bar, list);
  const count = () => {
    bar.hidden = ticked.size === 0;
    link.hidden = ticked.size < 2;
    link.href = `#compare/${[...ticked].join(",")}`;
    words.textContent = `${ticked.size} selected${ticked.size < 2 ? ": select another to compare" : ""}`;
  };
  count();
  follow("/api/runs", signal, ({ runs = [] }) => {
    const entries = listEntries(runs), known = new Set(runs.map(({ id }) => id));
    for (const id of ticked) if (!known.has(id)) ticked.delete(id);
    // Rows stay in place while their runs do, so that focus stays too.
    entries.forEach(({ key, runs: members, others }, place) => {
      const row = rows.get(key) ?? build("li", { class: "run-row" });
      rows.set(key, row);
      rewrite(row, [members, others], () => buildRow(members, others, count));
      if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
    });
    while (list.children.length > entries.length) list.lastChild.remove();
    rewrite(state, runs.length, () => (runs.length ? [] : [buildEmpty()]));
    count();
  });
}

// One for each run, and one for all runs of a sweep; with the other seeds of the same options.
function listEntries(runs) {
  const groups = Map.groupBy(runs, (run) => run.group ?? run.id);
  const entries = Map.groupBy(runs, (run) => findSweep(run) ?? run.id);
  return [...entries].map(([key, members]) => {
    const like = groups.get(members[0].group ?? members[0].id);
    return { key, runs: members, others: like.filter((run) => !findSweep(run)).map(({ id, seed }) => [id, seed]) };
  });
}

// A run of a sweep has its folder in its id.
function findSweep({ id }) {
  return id.includes("/") ? id.split("/")[0] : null;
}

function buildRow(runs, others, onTick) {
  const [run] = runs, sweep = findSweep(run), name = sweep ?? run.name, ids = runs.map(({ id }) => id);
  const isDamaged = !sweep && run.state === "damaged";
  const box = build("input", {
    type: "checkbox", checked: ids.every((id) => ticked.has(id)), "aria-label": `Compare ${name}`,
    disabled: isDamaged,
    onchange: () => {
      for (const id of ids) if (box.checked) ticked.add(id); else ticked.delete(id);
      onTick();
    },
  });
  const won = runs.filter(({ state }) => state === "won").length, seeds = new Set(others.map(([, seed]) => seed));
  const live = runs.find((each) => each.is_live) ?? run, { word, kind } = describeState(live);
  const best = describeReturn(run);
  const [figure, unit] = sweep ? [`${won} of ${runs.length}`, "won"] : [best.text, best.name];
  const facts = sweep ? ["sweep", run.preset, `${runs.length} runs`] : [
    run.preset, `seed ${run.seed}`, `update ${formatCount(run.update)}`, `${formatCount(run.steps)} steps`,
  ];
  const written = new Date(1000 * run.modified).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  const href = sweep ? `#sweep/${sweep}` : `#run/${run.id}`;
  const compared = `#compare/${others.map(([id]) => id).join(",")}`;
  return [
    build("label", { class: "tick" }, box),
    build(
      "div", {},
      build(
        "div", { class: "run-head" }, build("a", { class: "run-name", href }, name),
        build("span", { class: `state ${kind}` }, word),
        !sweep && seeds.size > 1 && build("a", { class: "seeds", href: compared }, `one of ${seeds.size} seeds`),
      ),
      build("span", { class: "quiet" }, isDamaged ? run.problem : [...facts, `written ${written}`, run.problem].filter(Boolean).join(" · ")),
    ),
    !isDamaged && build("div", { class: "run-return" }, build("strong", { class: "number" }, figure), build("span", { class: "quiet" }, ` ${unit}`)),
  ].filter(Boolean);
}

function buildEmpty() {
  return build(
    "p", { class: "empty" }, build("strong", {}, "No runs yet."),
    " Train one in another terminal, and it appears here:",
    build("code", { class: "command" }, "pixelpong train --preset fast"),
    "Or look at the agents that came with the package: ",
    build("a", { href: "#watch/package/best" }, "watch"), " or ",
    build("a", { href: "#play/package/best" }, "play against one"), ".",
  );
}

addEventListener("hashchange", route);
route();
