// Playing against an agent: pictures from a WebSocket, moves to it.
//
// The server emulates the game; this only draws it. faces/games/socket.py describes the messages.
import { ask, build } from "./parts.js";
import { applyDifference, buildCanvas, drawScreen } from "./pictures.js";
import { buildChooser, findAgent } from "./viewer.js";

const HEIGHT = 210, FIRST_ROW = 34, NUM_ROWS = 160; // of the picture; of the field in it
const KEYS = { KeyW: "up", KeyS: "down", ArrowUp: "up", ArrowDown: "down" };
const SPEEDS = [[0.5, "half"], [1, "as on the Atari"], [2, "double"]];
const HELP = [
  ["W S ↑ ↓", "your paddle, on the left"], ["Mouse, finger", "the paddle follows it"],
  ["Space, click, tap", "begin, serve"], ["P", "pause, continue"], ["R", "a new game"],
];

/** The view of a game against an agent of a run, or of the package. */
export async function mountGame(element, signal, id = "package", agent = "best") {
  document.title = "Play · pixelpong";
  element.append(build("p", { class: "quiet" }, "Loading the game…"));
  const run = await ask(`/api/runs/${id}`, signal);
  if (signal.aborted) return;
  const first = id === "package" && agent === "best" ? "club" : agent; // a beginner can beat it
  if (run.problem) element.replaceChildren(build("p", { class: "problem" }, run.problem));
  else new GameView(element, signal, run, findAgent(run, first));
}

class GameView {
  constructor(element, signal, run, agent) {
    Object.assign(this, { run, agent, state: null });
    this.build(element);
    const on = (target, name, handle) => target.addEventListener(name, handle, { signal });
    on(document, "keydown", (event) => this.press(event));
    on(document, "keyup", (event) => this.steer(this.held.filter((code) => code !== event.code)));
    on(window, "blur", () => this.steer([]));
    on(document, "visibilitychange", () => document.hidden && this.pause(true));
    on(this.stage, "pointerdown", (event) => this.tap(event));
    on(this.stage, "pointermove", (event) => this.aim(event));
    on(this.stage, "contextmenu", (event) => event.preventDefault()); // a finger that stays long
    signal.addEventListener("abort", () => this.socket.close());
    this.connect();
  }

  build(element) {
    // After the use of a control, focus the game, so that Space works there again.
    const act = (task) => () => { task(); this.stage.focus({ preventScroll: true }); };
    const button = (word, task, more = {}) =>
      build("button", { type: "button", onclick: act(task), ...more }, word);
    this.points = build("strong", {}, "0 : 0");
    this.canvas = buildCanvas("play-canvas", "The game", true);
    this.title = build("p", { class: "play-title" });
    this.line = build("p");
    this.again = button("New game", () => this.begin(), { class: "primary" });
    this.message = build(
      "div", { class: "play-message", role: "status" }, this.title, this.line, this.again,
    );
    this.stage = build(
      "div", { class: "play-stage", tabindex: "0", role: "application", "aria-label": "Pong",
        "aria-describedby": "play-help" }, this.canvas, this.message,
    );
    const score = [build("span", {}, "You"), this.points, build("span", {}, "Agent")];
    this.pauseButton = button("Pause", () => this.pause(this.state?.phase !== "paused"));
    const newGame = button("New game", () => this.send("restart"));
    const speed = build(
      "select", { onchange: act(() => this.send("speed", Number(speed.value))) },
      SPEEDS.map(([value, word]) => (
        build("option", { value, selected: value === 1 }, `${value} × – ${word}`)
      )),
    );
    const choose = (agent) => act(() => this.choose(agent))();
    this.note = build("p", { class: "problem", role: "alert" });
    this.watch = build("a", {}, "Watch the agent's own game, explained");
    const help = HELP.flatMap(([keys, words]) => [build("dt", {}, keys), build("dd", {}, words)]);
    element.replaceChildren(build(
      "section", { class: "play" }, build("h1", {}, "Play against the agent"),
      build("div", {}, build("p", { class: "play-score" }, score), this.stage),
      build(
        "div", { class: "play-side" },
        build("div", { class: "play-buttons" }, this.pauseButton, newGame), this.note,
        buildChooser(this.run, this.agent, choose), build("label", {}, "Speed", speed),
        build("dl", { class: "play-help", id: "play-help" }, help), build("p", {}, this.watch),
      ),
    ));
  }

  connect() {
    const query = new URLSearchParams({ run: this.run.id, agent: this.agent });
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/game?${query}`);
    Object.assign(this, { socket, direction: "stay", held: [], state: null });
    this.screen = new Uint8Array(this.canvas.width * HEIGHT);
    this.watch.href = `#watch/${this.run.id}/${this.agent}`;
    this.note.textContent = "";
    this.say("", "Connecting…");
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") return this.hear(JSON.parse(data));
      applyDifference(this.screen, new DataView(data));
      drawScreen(this.canvas, this.screen, this.palette);
    };
    socket.onclose = () => {
      const reason = this.note.textContent, title = reason ? "No game" : "The connection was lost";
      this.say("", title, reason || "Is pixelpong still running?", "Try again");
      this.state = null;
      this.pauseButton.disabled = true;
    };
  }

  send(type, value) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type, value }));
  }

  hear(message) {
    if (message.type === "palette") this.palette = message.colours;
    else if (message.type === "error") this.note.textContent = message.text;
    else this.show(message);
  }

  show(state) {
    const { phase, points: [left, right] } = state;
    this.state = state;
    this.points.textContent = `${left} : ${right}`;
    this.pauseButton.textContent = phase === "paused" ? "Continue" : "Pause";
    this.pauseButton.disabled = ["ready", "over"].includes(phase);
    const result = left > right ? "You win!" : right > left ? "The agent wins" : "Time is up";
    const messages = {
      ready: ["", "Ready?", "Press Space, click or tap to begin. Your paddle is on the left."],
      serve: ["low", "Your serve", "Press Space, click or tap; otherwise it serves itself."],
      paused: ["", "Paused", "Press P or tap to continue."],
      over: ["", result, `You ${left}, agent ${right}`, "New game"],
      playing: ["unseen", `You ${left}, agent ${right}`],
    };
    this.say(...messages[phase]);
  }

  /** Fill the panel over the picture, which screen readers hear also where it is unseen. */
  say(kind, title, line = "", button = "") {
    this.message.className = `play-message ${kind}`;
    for (const [element, text] of [[this.title, title], [this.line, line], [this.again, button]]) {
      if (element.textContent !== text) element.textContent = text;
      element.hidden = !text;
    }
  }

  begin() {
    if (this.state) this.send("restart");
    else this.connect();
  }

  press(event) {
    const isElsewhere = event.target.closest?.("select, input");
    if (event.ctrlKey || event.metaKey || event.altKey || isElsewhere) return;
    if (event.code in KEYS) {
      event.preventDefault();
      if (!this.held.includes(event.code)) this.steer([...this.held, event.code]);
    } else if (event.code === "Space" && !event.target.closest?.("button, a")) {
      event.preventDefault();
      if (!event.repeat) this.serve();
    } else if (event.code === "KeyP" && !event.repeat) this.pause(this.state?.phase !== "paused");
    else if (event.code === "KeyR" && !event.repeat) this.send("restart");
  }

  // If several keys are held, the last one pressed counts.
  steer(held) {
    const direction = KEYS[held.at(-1)] ?? "stay";
    if (direction !== this.direction) this.send("move", direction);
    Object.assign(this, { held, direction });
  }

  // Begin or serve, and nothing else, so that an impatient thumb does no harm.
  serve() {
    if (["ready", "serve"].includes(this.state?.phase)) this.send("serve");
  }

  pause(isPaused) {
    if (["playing", "serve", "paused"].includes(this.state?.phase)) this.send("pause", isPaused);
  }

  choose(agent) {
    this.agent = agent;
    this.watch.href = `#watch/${this.run.id}/${agent}`;
    history.replaceState(null, "", `#play/${this.run.id}/${agent}`);
    this.send("agent", agent);
  }

  tap(event) {
    if (event.target.closest("button") || !event.isPrimary) return; // nor a second finger
    this.aim(event);
    if (this.state?.phase === "paused") this.pause(false);
    else this.serve();
    if (event.pointerType === "touch") this.stage.setPointerCapture(event.pointerId);
  }

  // Send at most once per picture; always send the place where the pointer stops.
  aim(event) {
    if (!event.isPrimary || !["playing", "serve", "ready"].includes(this.state?.phase)) return;
    const box = this.canvas.getBoundingClientRect();
    const row = ((event.clientY - box.top) / box.height) * HEIGHT;
    this.place = Math.min(Math.max((row - FIRST_ROW) / NUM_ROWS, 0), 1);
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = null;
      this.send("aim", this.place);
    });
  }
}
