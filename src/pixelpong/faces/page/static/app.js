// The page: the view that the address names, and the list of runs.
//
//     #runs   #run/ID   #compare/ID,ID   #sweep/NAME   #play/ID/AGENT?SEED
//     #watch/ID/AGENT?SEED/EPISODE
import {
  RUN_COLUMNS, build, buildScroller, buildState, buildTable, clearFailure, describeRun, follow,
  isPong, pointMenu, rewrite, warnAbove,
} from "./parts.js";
import { mountComparison } from "./compare.js";
import { mountJoin, offerToJoin } from "./join.js";
import { agreesToLeave, mountGame } from "./play.js";
import { mountRun } from "./run.js";

const ticked = new Set(); // ids of the runs to compare, kept when you return to the list
const main = document.getElementById("main");
const VIEWS = {
  runs: mountList, run: mountRun, join: mountJoin, compare: mountComparison, play: mountGame,
  sweep: (view, signal, name) => mountComparison(view, signal, name, true),
  watch: (view, signal, id = "package", agent = "best", game = "") =>
    mountRun(view, signal, id, agent, game),
};
let leave = null;

// The parts of the address after "#"; none if it is malformed. An id may contain a slash.
function readAddress() {
  try {
    const [path, game] = location.hash.slice(1).split("?");
    const [name, ...rest] = path.split("/").map(decodeURIComponent);
    const agent = ["play", "watch"].includes(name) && rest.length > 1 ? [rest.pop(), game] : [];
    return rest.length ? [name, rest.join("/"), ...agent] : [name];
  } catch {
    return [];
  }
}

// Shows the view that the address names. The menu leads to the agent that was shown last.
function route({ oldURL } = {}) {
  const [name, ...rest] = readAddress(), isFirst = leave === null;
  if (name === "main") return; // the skip link
  if (!agreesToLeave()) return void history.pushState(null, "", oldURL);
  leave?.abort();
  leave = new AbortController();
  warnAbove();
  clearFailure();
  const view = build("div", { class: "view" });
  main.replaceChildren(view);
  (Object.hasOwn(VIEWS, name ?? "") ? VIEWS[name] : mountList)(view, leave.signal, ...rest);
  const [id, agent = "best"] = ["run", "play", "watch"].includes(name) ? rest : [];
  if (id) pointMenu(id, agent);
  for (const link of document.querySelectorAll("nav a")) {
    const here = ["play", "watch", "join"].includes(name) ? `#${name}` : "#runs";
    const isHere = link.hash.startsWith(here);
    link.setAttribute("aria-current", isHere ? "page" : "false");
  }
  if (isFirst) return;
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function mountList(element, signal) {
  document.title = "Runs · pixelpong";
  const list = buildScroller("Runs"), words = build("span");
  const empty = build("p", { class: "empty", hidden: true });
  empty.append(document.getElementById("empty").content.cloneNode(true));
  const file = build("p", { class: "row" });
  const link = build("a", { class: "button primary" }, "Compare");
  const bar = build("div", { class: "compare-bar" }, words, link);
  element.append(build("h1", {}, "Runs"), file, empty, bar, list);
  const count = () => {
    const isOne = ticked.size < 2;
    bar.hidden = ticked.size === 0;
    link.hidden = isOne;
    link.href = `#compare/${[...ticked].join(",")}`;
    words.textContent = `${ticked.size} selected${isOne ? ": select another to compare" : ""}`;
  };
  follow("api/runs", signal, ({ runs = [], file: given }) => {
    const rows = groupRuns(runs);
    for (const id of ticked) if (!rows.has(id)) ticked.delete(id);
    file.hidden = !given;
    if (given) rewrite(file, given, () => buildFile(given));
    list.hidden = !runs.length;
    const games = runs.every(isPong) ? [] : ["game"]; // a column only if there are several games
    const result = RUN_COLUMNS.slice(0, 2), more = RUN_COLUMNS.slice(2); // a phone has no more
    const last = ["preset", "seed", "last change"];
    const head = ["run", ...games, ...result, "compare", ...more, ...last];
    rewrite(list, runs, () => [buildTable(head, listRows(rows, games.length > 0, count))]);
    empty.hidden = runs.length > 0;
    count();
  });
}

// The agent's file with which the server was started.
function buildFile({ id, name }) {
  return [
    build("strong", {}, name),
    build("a", { class: "button primary", href: `#play/${id}/best` }, "Play against it"),
    build("a", { class: "button", href: `#watch/${id}/best` }, "Watch it"),
  ];
}

// The sweep to which a run belongs, from the run's id; null if it belongs to none.
function findSweep({ id }) {
  return id.includes("/") ? id.split("/")[0] : null;
}

// The runs by the name of their sweep, or each by its id.
function groupRuns(runs) {
  const groups = new Map();
  for (const run of runs) {
    const name = findSweep(run) ?? run.id;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(run);
  }
  return groups;
}

// A row for each run, and one for all runs of a sweep.
function listRows(rows, hasGames, onTick) {
  const thisYear = new Date().getFullYear(), clock = { hour: "2-digit", minute: "2-digit" };
  const style = { month: "short", day: "numeric", hourCycle: "h23", ...clock };
  return [...rows].map(([id, members]) => {
    const [run] = members, sweep = findSweep(run), name = sweep ?? run.name;
    const box = build("input", {
      type: "checkbox", "aria-label": `Compare ${name}`, disabled: run.state === "damaged",
      checked: ticked.has(id),
      onchange: () => {
        if (box.checked) ticked.add(id); else ticked.delete(id);
        onTick();
      },
    });
    const won = members.filter(({ state }) => state === "won").length;
    const count = `${won} of ${members.length}`;
    const games = new Set(members.map(({ game }) => game ?? ""));
    const live = members.find((member) => member.is_live), cells = describeRun(run);
    const date = new Date(1000 * run.modified), year = date.getFullYear();
    const older = year === thisYear ? {} : { year: "numeric" };
    const written = date.toLocaleString("en", { ...style, ...older });
    const sum = [[live && buildState(live.state), ` ${count} won`], "", "", ""];
    const [state, value, ...more] = sweep ? sum : cells;
    return [
      build("a", { href: sweep ? `#sweep/${sweep}` : `#run/${run.id}` }, name),
      ...(hasGames ? [[...games].join(", ")] : []), state, value, box, ...more,
      run.preset ?? "", sweep ? "" : `${run.seed ?? ""}`,
      run.state === "damaged" ? run.problem : written,
    ];
  });
}

addEventListener("hashchange", route);
offerToJoin(document.getElementById("join"));
route();
