// Tournaments: the list; and one of them, with its ladder, who plays how well against whom, and the
// best rally of each pair.
import { announce, build, buildTable, formatCount, formatDuration, formatSigned, getJson, repeat, rewrite, warnAbove } from "./parts.js";
import { mount } from "./viewer.js";

const LIST_SECONDS = 3;
const MAX_CIRCLES = 8;
const LADDER = { width: 160, height: 18, margin: 6 };

export function mountTournaments(element) {
  document.title = "Tournaments · pixelpong";
  const stop = new AbortController(), list = build("ul", { class: "runs", "aria-label": "Tournaments" });
  const state = build("p", { class: "quiet" }, "Looking for tournaments…");
  element.append(build("h1", {}, "Tournaments"), state, list);
  const ask = async () => {
    try {
      const { tournaments } = await getJson("/api/tournaments", stop.signal);
      warnAbove(null);
      state.hidden = tournaments.length > 0;
      state.className = "empty";
      rewrite(state, "empty", buildEmpty);
      rewrite(list, tournaments, () => tournaments.map(buildRow));
    } catch (error) {
      if (error.name !== "AbortError") warnAbove(`${error.message} Trying again by itself.`);
      return false;
    }
  };
  repeat(ask, LIST_SECONDS, stop.signal);
  return { unmount: () => stop.abort() };
}

function buildEmpty() {
  return [
    build("strong", {}, "No tournament here yet."), " Hold one in another terminal, and it appears here by itself:",
    build("code", { class: "command" }, "pixelpong tournament beginner club strong champion follower-200"),
  ];
}

function buildRow({ id, name, modified, players, games_played: games, problem }) {
  const head = problem ? build("span", { class: "run-name" }, name) : build("a", { class: "run-name", href: `#tournament/${id}` }, name);
  const facts = problem ?? `${players[0]} is first of ${players.length} players · ${countGames(games)} · ${formatTime(modified)}`;
  return build("li", { class: "run-row tournament" }, build("div", {}, head), build("span", { class: problem ? "problem" : "quiet" }, facts));
}

function formatTime(seconds) {
  return new Date(1000 * seconds).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

function countGames(number) {
  return `${formatCount(number)} ${number === 1 ? "game" : "games"}`;
}

// One tournament; if it cannot be read, it shows why and tries again from time to time.
export function mountTournament(element, id) {
  document.title = "Tournament · pixelpong";
  const stop = new AbortController();
  let view = null;
  element.append(build("p", { class: "quiet" }, "Reading the tournament…"));
  const ask = async () => {
    if (view) return; // it changes no more
    try {
      view = new TournamentView(element, await getJson(`/api/tournaments/${id}`, stop.signal), stop.signal);
      warnAbove(null);
    } catch (error) {
      if (error.name === "AbortError") return;
      element.replaceChildren(
        build("h1", {}, "This tournament cannot be shown"), build("p", { class: "problem" }, error.message),
        build("p", {}, build("a", { href: "#tournaments" }, "Back to the list"), "."),
      );
      return false;
    }
  };
  repeat(ask, 60, stop.signal);
  return { unmount: () => { stop.abort(); view?.viewer?.unmount(); } };
}

class TournamentView {
  constructor(element, tournament, signal) {
    Object.assign(this, { tournament, signal, viewer: null, request: null });
    document.title = `${tournament.name} · pixelpong`;
    this.pairs = new Map(tournament.pairs.flatMap(({ players: [one, other], rally }, number) => [[key(one, other), { number, rally }], [key(other, one), { number, rally }]]));
    this.words = build("p", { class: "outcome" });
    this.stage = build("div", { class: "rally" });
    this.rally = build("section", { hidden: true }, build("h2", {}, "Their best rally"), this.words, this.stage);
    element.replaceChildren(...[
      build("p", { class: "quiet" }, build("a", { href: "#tournaments" }, "← All tournaments")), build("h1", {}, tournament.name),
      build("p", { class: "quiet" }, tellRules(tournament)),
      build("section", { class: "tournament" }, build("h2", {}, "The ladder"), buildLadder(tournament.players), build("p", { class: "quiet" }, "Ratings are on Elo's scale, with mean 0: 400 more are ten times the odds to win a point. Each comes with its 95 % interval.")),
      build("section", { class: "tournament matrix" }, build("h2", {}, "Who beats whom"), build("p", { class: "quiet" }, "The mean return of the row's player against the column's. Choose a figure to see the pair's best rally: their longest that ended with a point."), this.buildMatrix()), this.rally,
      tournament.triples.length > 0 && build("section", {}, build("h2", {}, "Circles"), buildCircles(tournament.triples)),
    ].filter(Boolean));
  }

  buildMatrix() {
    const { players, matrix } = this.tournament;
    const rows = players.map((player, row) => [tellRank(player, row), ...matrix[row].map((value, column) => this.buildCell(player.name, players[column].name, value))]);
    return buildTable("Mean return of the row against the column", ["", ...players.map((_, place) => `${place + 1}`)], rows);
  }

  buildCell(one, other, value) {
    const { rally, number } = this.pairs.get(key(one, other)) ?? {}, text = formatSigned(value);
    if (!rally) return text;
    const button = build("button", { type: "button", "aria-label": `${one} against ${other}: ${text}. Show their best rally`, "aria-pressed": "false", onclick: () => this.show(button, number, rally) }, text);
    button.style.setProperty("--mark", value < 0 ? "var(--warn)" : "var(--accent)");
    button.style.setProperty("--share", `${(Math.min(Math.abs(value), 21) / 21) * 45}%`);
    return button;
  }

  async show(button, number, { game, sides: [left, right], frames }) {
    this.request?.abort();
    const { signal } = (this.request = new AbortController());
    this.signal.addEventListener("abort", () => this.request.abort(), { once: true });
    this.chosen?.setAttribute("aria-pressed", "false");
    (this.chosen = button).setAttribute("aria-pressed", "true");
    this.say("The rally is being played again…", true);
    try {
      const reel = await getJson(`/api/tournaments/${this.tournament.id}/rallies/${number}`, signal);
      const words = `${left} on the left, ${right} on the right: ${formatDuration(frames / reel.steps_per_second)}, in game ${game}.`;
      this.say(words);
      announce(words);
      this.viewer?.unmount();
      this.viewer = mount(this.stage, reel);
      this.rally.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  say(text, isBusy = false) {
    this.words.textContent = text;
    this.words.classList.toggle("busy", isBusy);
    this.stage.setAttribute("aria-busy", isBusy);
    this.rally.hidden = false;
  }
}

function key(one, other) {
  return JSON.stringify([one, other]);
}

function tellRank({ name }, place) {
  return `${place + 1} ${name}`;
}

function tellRules({ rules, rounds, games_played: played, games_planned: planned, modified }) {
  const done = played < planned ? `only ${formatCount(played)} of ${countGames(planned)} were played` : countGames(played);
  const agents = rules.is_greedy ? "agents play greedily" : "agents draw their actions";
  return `${done} · each pair ${countGames(rounds)} on each side, to ${rules.points} ${rules.points === 1 ? "point" : "points"} · ${agents} · seed ${rules.seed} · ${formatTime(modified)}`;
}

function buildLadder(players) {
  const low = Math.min(...players.map(({ ci95 }) => ci95[0])), high = Math.max(...players.map(({ ci95 }) => ci95[1]));
  const rows = players.map((player, place) => {
    const { rating, ci95: [from, to], mean_return: mean, points_won: won, points_lost: lost } = player;
    const share = won + lost ? `${((100 * won) / (won + lost)).toFixed(0)} %` : "–";
    return [tellRank(player, place), formatSigned(rating), `${formatSigned(from)} … ${formatSigned(to)}`, drawRating(player, low, high), formatSigned(mean, 1), share];
  });
  return buildTable("The ladder", ["", "rating", "95 % interval", "", "mean return", "points won"], rows);
}

// A rating as a dot on the line of its interval.
function drawRating({ rating, ci95: [from, to] }, low, high) {
  const { width, height, margin } = LADDER, middle = height / 2;
  const x = (value) => margin + ((width - 2 * margin) * (value - low)) / (high - low || 1);
  const line = build("svg:path", { d: `M${x(from)} ${middle}H${x(to)}M${x(from)} 4V${height - 4}M${x(to)} 4V${height - 4}` });
  return build("svg:svg", { class: "ladder", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, line, build("svg:circle", { cx: x(rating), cy: middle, r: 4 }));
}

function buildCircles(triples) {
  const tell = (ring) => ring.map((name, place) => `${name} beats ${ring[(place + 1) % ring.length]}`).join(", ");
  const more = triples.length - MAX_CIRCLES;
  return [
    build("ul", {}, triples.slice(0, MAX_CIRCLES).map((ring) => build("li", {}, tell(ring)))),
    more > 0 && build("p", { class: "quiet" }, `And ${more} more.`),
  ].filter(Boolean);
}
