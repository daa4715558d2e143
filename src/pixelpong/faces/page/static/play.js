// Playing against an agent: pictures from a WebSocket, moves to it.
//
// The server emulates the game; this only draws it. faces/page/game.py describes the messages.
import { ask, build, buildProblem, isPong, pointMenu, showNotices } from "./parts.js";
import { applyDifference, drawScreen } from "./pictures.js";
import { findKey, toggleFullScreen } from "./keys.js";
import { buildChooser, findAgent, findStronger, nameAgent } from "./viewer.js";

const KEYS = [ // in lower case what a key prints, and where it is
  ["w", "KeyW"], ["s", "KeyS"], ["arrowup", "ArrowUp"], ["arrowdown", "ArrowDown"], [" ", "Space"],
  ["p", "KeyP"], ["r", "KeyR"], ["f", "KeyF"],
];
const MOVES = { KeyW: "up", KeyS: "down", ArrowUp: "up", ArrowDown: "down" };
let current = null; // the view of the game in progress

/** Whether a person agrees to leave the game in progress, if there is one; it is paused first. */
export function agreesToLeave() {
  if (!current?.isUnderWay()) return true;
  current.pause(true);
  return confirm("Throw this game away?");
}

/** The view of a game against an agent of a run, or of the package; Pong has no seed. */
export async function mountGame(element, signal, id = "package", agent = "best", seed = "") {
  document.title = "Play · pixelpong";
  const run = await ask(`api/runs/${id}`, signal);
  const { RivalView } = await import("./rival.js"); // here, because it needs `GameView`
  if (signal.aborted) return;
  const first = id === "package" && agent === "best" ? "club" : agent; // a beginner can beat it
  const problem = buildProblem(run.problem, run.status === 404);
  if (run.problem) element.replaceChildren(build("p", { class: "problem" }, problem));
  else if (isPong(run)) new GameView(element, signal, run, findAgent(run, first));
  else new RivalView(element, signal, run, findAgent(run, first), seed);
}

/** A game of Pong; `RivalView` changes what is different in other games. */
export class GameView {
  constructor(element, signal, run, agent, seed = "", kind = "play") {
    Object.assign(this, { run, agent, seed, state: null, held: [] });
    current = this;
    const root = build("section", { class: `play ${kind}` });
    const copy = (name) => document.getElementById(name).content.cloneNode(true);
    root.append(copy(kind));
    root.querySelector(".shared").replaceWith(copy("controls")); // what all games have
    this.find = (selector) => root.querySelector(selector);
    this.canvases = [...root.querySelectorAll("canvas")];
    this.stage = this.find(".play-stage");
    // After the use of a control, focus the game, so that Space works there again.
    const act = (task) => { task(); this.stage.focus({ preventScroll: true }); };
    this.chooser = buildChooser(run, agent, (which) => act(() => this.choose(which)));
    this.find(".problem").after(this.chooser);
    element.replaceChildren(root);

    const on = (target, name, task) => target.addEventListener(name, task, { signal });
    const speed = this.find(".speed"), setSpeed = () => this.send("speed", speed.value);
    on(speed, "change", () => act(setSpeed));
    on(this.find(".pause"), "click", () => act(() => this.pause()));
    on(this.find(".restart"), "click", () => act(() => this.restart()));
    on(this.find(".primary"), "click", () => act(() => this.connect()));
    this.find(".full-screen").hidden = !document.fullscreenEnabled;
    on(this.find(".full-screen"), "click", () => act(() => toggleFullScreen(root)));
    on(this.find(".next"), "click", () => act(() => this.proceed()));
    on(document, "keydown", (event) => this.press(event));
    on(document, "keyup", ({ code }) => this.steer(this.held.filter((key) => key.code !== code)));
    on(window, "beforeunload", (event) => {
      if (!this.isUnderWay()) return;
      event.preventDefault();
      event.returnValue = "Throw this game away?"; // for older browsers; all ask in their own words
    });
    on(window, "blur", () => this.lose());
    on(document, "visibilitychange", () => document.hidden && this.pause(true));
    on(this.stage, "pointerdown", (event) => this.tap(event));
    on(this.stage, "pointermove", (event) => this.aim(event));
    on(this.stage, "contextmenu", (event) => event.preventDefault()); // a finger that stays long
    signal.addEventListener("abort", () => {
      current = null;
      this.socket.close();
    });
    this.connect(seed);
  }

  /** Whether somebody would be sorry about this game: a point has been played, and it goes on. */
  isUnderWay() {
    const { phase, points = [0, 0] } = this.state ?? {};
    return Math.max(...points) > 0 && phase !== "over";
  }

  restart() {
    if (agreesToLeave()) this.connect();
  }

  /** Begin a game, instead of the one before; without a seed the server draws one. */
  connect(seed = "") {
    this.waiting?.abort();
    this.socket?.close();
    const address = new URL("game", location);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = new URLSearchParams({ run: this.run.id, agent: this.agent, seed });
    const socket = new WebSocket(address);
    const note = this.find(".problem");
    const waiting = new AbortController(); // until the game comes
    Object.assign(this, { socket, waiting, direction: "stay", held: [], state: null });
    note.textContent = "";
    const name = nameAgent(this.run, this.agent);
    this.find("h1").textContent = `Play against ${name}`;
    document.title = `Play against ${name} · pixelpong`;
    this.find(".watch").href = `#watch/${this.run.id}/${this.agent}`;
    this.say("", "Connecting…");
    showNotices(waiting.signal, (line) => this.say("", "Connecting…", line));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.send("speed", this.find(".speed").value);
    socket.onmessage = ({ data }) => {
      waiting.abort();
      if (socket !== this.socket) return;
      const { problem, ...state } = typeof data === "string" ? JSON.parse(data) : {};
      if (state.palette) this.begin(state);
      else if (problem) note.textContent = problem;
      else if (state.phase) this.show(state);
      else this.draw(new DataView(data));
    };
    socket.onclose = () => {
      waiting.abort();
      if (socket !== this.socket) return;
      const reason = note.textContent, title = reason ? "No game" : "The connection was lost";
      this.say("", title, reason || "Is pixelpong still running?", "Try again");
      this.state = null;
    };
  }

  begin({ palette, rows = 210 }) {
    const screens = this.canvases.map(() => new Uint8Array(rows * 160));
    Object.assign(this, { palette, screens });
  }

  draw(view) {
    let start = 0;
    this.canvases.forEach((canvas, index) => {
      start = applyDifference(this.screens[index], view, start);
      drawScreen(canvas, this.screens[index], this.palette);
    });
  }

  send(name, value = true) {
    const { socket } = this;
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ [name]: value }));
  }

  show(state) {
    const { phase, points: [left, right] } = state, pause = this.find(".pause");
    this.state = state;
    this.find(".play-score strong").textContent = `${left} : ${right}`;
    pause.textContent = phase === "paused" ? "Continue" : "Pause";
    pause.disabled = ["ready", "over"].includes(phase);
    const result = left > right ? "You win!" : right > left ? "The agent wins" : "Time is up";
    const messages = {
      ready: ["", "Ready?", "Press Space, click or tap to start. Your paddle is on the left."],
      serve: ["low", "Your serve", "Press Space, click or tap; otherwise it serves itself."],
      paused: ["", "Paused", "Press P or tap to continue."],
      over: ["", result, `You ${left}, agent ${right}`, "New game (Space)", this.nameNext(left > right)],
      playing: ["unseen", `You ${left}, agent ${right}`],
    };
    this.say(...messages[phase]);
  }

  /** Fill the panel over the picture, which screen readers hear also where it is unseen. */
  say(className, ...texts) {
    const panel = this.find(".play-message");
    panel.className = `play-message ${className}`;
    [...panel.children].forEach((part, index) => {
      const text = texts[index] || "";
      if (part.textContent !== text) part.textContent = text;
      part.hidden = !text;
    });
  }

  keys() {
    return KEYS;
  }

  moves() {
    return MOVES;
  }

  /** The window is no longer in front. */
  lose() {
    this.steer([]);
  }

  press(event) {
    const isElsewhere = event.target.closest?.("select, input");
    if (event.ctrlKey || event.metaKey || event.altKey || isElsewhere) return;
    const key = findKey(event, this.keys()), { code } = event, moves = this.moves();
    if (key === "Space" && event.target.closest?.("button, a")) return;
    if (key in moves) {
      event.preventDefault();
      const isHeld = this.held.some((other) => other.code === code);
      if (!isHeld) this.steer([...this.held, { code, direction: moves[key] }]);
    } else if (key === "Space") {
      event.preventDefault();
      if (!event.repeat) this.serve();
    } else if (event.repeat) return;
    else if (key === "KeyP") this.pause();
    else if (key === "KeyR") this.restart();
    else if (key === "KeyF") toggleFullScreen(this.stage.closest(".play"));
  }

  /** Start the game or serve; after the last point, or without a connection, begin a new game. */
  serve() {
    const isOver = this.state === null || this.state.phase === "over";
    if (isOver && !this.find(".play-message .primary").hidden) this.connect();
    else this.send("serve");
  }

  // If several keys are held, the last one pressed counts.
  steer(held) {
    const { direction = "stay" } = held.at(-1) ?? {};
    if (direction !== this.direction) this.send("move", direction);
    Object.assign(this, { held, direction });
  }

  pause(isPaused = this.state?.phase !== "paused") {
    this.send("pause", isPaused);
  }

  /** What to do after a game that was won: beat the next stronger agent, if there is one. */
  nameNext(isWon) {
    const next = isWon && findStronger(this.run, this.agent);
    return next ? `Next: beat ${next.name}` : "";
  }

  proceed() {
    this.choose(findStronger(this.run, this.agent).which);
  }

  choose(agent) {
    this.chooser.querySelector("select").value = this.agent;
    if (!agreesToLeave()) return;
    this.agent = agent;
    this.chooser.querySelector("select").value = agent;
    history.replaceState(null, "", `#play/${this.run.id}/${agent}`);
    pointMenu(this.run.id, agent);
    this.connect();
  }

  tap(event) {
    if (event.target.closest("button") || !event.isPrimary) return; // nor a second finger
    this.aim(event);
    if (this.state?.phase === "paused") this.pause();
    else this.send("serve");
    if (event.pointerType === "touch") this.stage.setPointerCapture(event.pointerId);
  }

  // Send at most once per picture; always send the position where the pointer stops.
  aim(event) {
    if (!event.isPrimary) return;
    const { top, height } = this.canvases[0].getBoundingClientRect();
    this.pointer = Math.min(Math.max((event.clientY - top) / height, 0), 1);
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = null;
      this.send("aim", this.pointer);
    });
  }
}
