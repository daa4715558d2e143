// Playing against an agent: pictures from a WebSocket, moves to it.
//
// The server emulates the game; this only draws it. A picture is coded as its difference from the
// one before: the number of places (uint16), the places (uint16), their palette indices (uint8), all
// little-endian. faces/games/socket.py describes the messages.
import { build, getJson } from "./parts.js";
import { Sound } from "./sound.js";

const WIDTH = 160, HEIGHT = 210, FIRST_ROW = 34, NUM_ROWS = 160;
const KEYS = { KeyW: "up", KeyS: "down", ArrowUp: "up", ArrowDown: "down" };
const SPEEDS = [[0.5, "half"], [1, "as on the Atari"], [2, "double"]];

// The view of a game against an agent of a run, or of the package.
export function mountGame(element, run = "package", agent = "best") {
  document.title = "Play · pixelpong";
  const stop = new AbortController();
  let game = null;
  element.append(build("p", { class: "quiet" }, "Loading the game…"));
  getJson(`/api/runs/${run}`, stop.signal).then(
    (about) => { game = new GameView(element, about, agent); },
    (error) => { if (!stop.signal.aborted) element.replaceChildren(build("p", { class: "problem" }, error.message)); },
  );
  return { unmount: () => { stop.abort(); game?.leave(); } };
}

class GameView {
  constructor(element, { id, agents = [], best }, agent) {
    const names = { best: id === "package" ? "club" : best ?? "best", latest: agents.at(-1)?.which ?? "latest" };
    Object.assign(this, { run: id, agent: names[agent] ?? agent, agents, state: null, socket: null });
    this.sound = new Sound();
    this.stop = new AbortController();
    this.build(element);
    this.listen();
    this.connect();
  }

  leave() {
    this.stop.abort();
    this.sound.close();
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  build(element) {
    const button = (word, task) => build("button", { type: "button", onclick: () => this.act(task) }, word);
    this.points = build("strong", {}, "0 : 0");
    this.said = build("p", { class: "unseen", role: "status" });
    this.canvas = build("canvas", { width: WIDTH, height: HEIGHT, class: "play-canvas" });
    this.message = build("div", { class: "play-message", hidden: true });
    this.stage = build("div", { class: "play-stage", tabindex: "0", role: "application", "aria-label": "Pong", "aria-describedby": "play-help" }, this.canvas, this.message);
    this.field = build("div", { class: "play-field" }, build("p", { class: "play-score" }, build("span", {}, "You"), this.points, build("span", {}, "Agent")), this.stage, this.said);
    this.pause = button("Pause", () => this.togglePause());
    this.mute = button("", () => this.toggleSound());
    this.speed = build("select", { onchange: () => this.act(() => this.send("speed", Number(this.speed.value))) },
      SPEEDS.map(([value, word]) => build("option", { value, selected: value === 1 }, `${value} × – ${word}`)));
    this.choice = build("select", { onchange: () => this.act(() => this.choose(this.choice.value)) },
      this.agents.map(({ which, strength }) => build("option", { value: which, selected: which === this.agent }, which === strength || which === "best" ? strength : `${strength}: after update ${which}`)));
    this.note = build("p", { class: "problem", role: "alert" });
    element.replaceChildren(build(
      "section", { class: "play" }, build("h1", {}, "Play against the agent"), this.field,
      build(
        "div", { class: "play-side" },
        build("div", { class: "play-buttons" }, this.pause, button("New game", () => this.send("restart")), this.mute), this.note,
        build("label", { hidden: this.choice.length < 2 }, "How strong", this.choice), build("label", {}, "Speed", this.speed), buildKeys(),
        build("p", {}, build("a", { href: `#watch/${this.run}/${this.agent}` }, "Watch the agent's own game, explained")),
      ),
    ));
    this.showSound();
    this.context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.image = this.context.createImageData(WIDTH, HEIGHT);
    this.dots = new Uint32Array(this.image.data.buffer).fill(0xff000000);
  }

  connect() {
    Object.assign(this, { direction: "stay", held: [], reason: "", screen: new Uint8Array(WIDTH * HEIGHT) });
    const query = new URLSearchParams({ run: this.run, agent: this.agent });
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/game?${query}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => { if (socket === this.socket) typeof data === "string" ? this.hear(JSON.parse(data)) : this.draw(data); };
    socket.onclose = () => { if (socket === this.socket) this.lose(); };
    this.socket = socket;
    this.say("Connecting…");
  }

  send(type, value) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type, value }));
  }

  hear(message) {
    if (message.type === "palette") this.palette = message.colours.map(([red, green, blue]) => 0xff000000 | (blue << 16) | (green << 8) | red);
    else if (message.type === "error") this.note.textContent = this.reason = message.text;
    else this.show(message);
  }

  lose() {
    this.note.textContent = "";
    this.say(this.state ? "The connection was lost" : "No game", this.reason || "The server does not answer. Is pixelpong still running?", ["Try again", () => this.connect()]);
    this.pause.disabled = true;
    this.state = null;
  }

  show(state) {
    const before = this.state, { phase, speed, points: [left, right] } = state;
    this.state = state;
    this.points.textContent = `${left} : ${right}`;
    this.pause.textContent = phase === "paused" ? "Continue" : "Pause";
    this.pause.disabled = !["playing", "serve", "paused"].includes(phase);
    this.speed.value = String(speed);
    this.explain(state);
    if (!before || String(before.points) === String(state.points)) return;
    this.tell(`You ${left}, agent ${right}`);
    if (left + right) this.sound.play("point");
  }

  explain({ phase, points: [left, right] }) {
    const result = left === right ? "Time is up" : left > right ? "You win!" : "The agent wins";
    if (phase === "ready") this.say("Ready?", "Press Space, click or tap to begin. Your paddle is on the left.");
    else if (phase === "serve") this.say("Your serve", "Press Space, click or tap to serve; otherwise it serves itself.", null, "low");
    else if (phase === "paused") this.say("Paused", "P or a tap to continue.");
    else if (phase === "over") this.say(result, `You ${left}, agent ${right}`, ["New game", () => this.send("restart")]);
    else this.say(null);
  }

  draw(data) {
    const view = new DataView(data), count = view.getUint16(0, true), end = 2 + 2 * count;
    for (let k = 0; k < count; k += 1) {
      const place = view.getUint16(2 + 2 * k, true), index = view.getUint8(end + k);
      this.screen[place] = index;
      this.dots[place] = this.palette[index];
    }
    this.context.putImageData(this.image, 0, 0);
    this.sound.see(this.screen);
  }

  // A panel over the picture, with a title, a line and a button; hidden without a title.
  say(title, line, action = null, kind = "") {
    this.message.hidden = !title;
    this.message.className = `play-message ${kind}`;
    this.tell([title, line].filter(Boolean).join(" "));
    if (!title) return;
    const [word, task] = action ?? [];
    this.message.replaceChildren(...[
      build("p", { class: "play-title" }, title), line && build("p", {}, line),
      word && build("button", { type: "button", class: "primary", onclick: () => this.act(task) }, word),
    ].filter(Boolean));
  }

  tell(text) {
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  listen() {
    const { signal } = this.stop, on = (target, name, handle) => target.addEventListener(name, handle, { signal });
    on(document, "keydown", (event) => this.press(event));
    on(document, "keyup", (event) => this.steer(this.held.filter((code) => code !== event.code)));
    on(window, "blur", () => this.steer([]));
    on(document, "visibilitychange", () => {
      this.steer([]);
      if (document.hidden && ["playing", "serve"].includes(this.state?.phase)) this.send("pause", true);
    });
    on(this.stage, "pointerdown", (event) => this.tap(event));
    on(this.stage, "pointermove", (event) => this.aim(event));
    on(this.stage, "contextmenu", (event) => event.preventDefault()); // a finger that stays long
  }

  // After the use of a control, focus the game, so that Space works there again.
  act(task) {
    this.note.textContent = "";
    this.sound.wake();
    task();
    this.stage.focus({ preventScroll: true });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("select, input, textarea")) return;
    this.sound.wake();
    if (event.code in KEYS) {
      event.preventDefault();
      if (!this.held.includes(event.code)) this.steer([...this.held, event.code]);
    } else if (event.code === "Space" && !event.target.closest?.("button, a")) {
      event.preventDefault();
      if (!event.repeat) this.serve();
    } else if (!event.repeat) {
      const tasks = { KeyP: () => this.togglePause(), KeyR: () => this.send("restart"), KeyM: () => this.toggleSound() };
      tasks[event.code]?.();
    }
  }

  // If several keys are held, the last one pressed counts.
  steer(held) {
    this.held = held;
    const direction = KEYS[held.at(-1)] ?? "stay";
    if (direction !== this.direction) this.send("move", direction);
    this.direction = direction;
  }

  // Begin or serve, and nothing else, so that an impatient thumb does no harm.
  serve() {
    if (["ready", "serve"].includes(this.state?.phase)) this.send("serve");
  }

  toggleSound() {
    this.sound.toggle();
    this.showSound();
  }

  showSound() {
    this.mute.textContent = this.sound.isOn ? "Sound is on" : "Sound is off";
  }

  togglePause() {
    const phase = this.state?.phase;
    if (["paused", "playing", "serve"].includes(phase)) this.send("pause", phase !== "paused");
  }

  choose(agent) {
    this.agent = agent;
    history.replaceState(null, "", `#play/${this.run}/${agent}`);
    this.send("agent", agent);
  }

  tap(event) {
    if (event.target.closest("button") || !event.isPrimary) return; // nor a second finger
    this.sound.wake();
    this.aim(event);
    if (this.state?.phase === "paused") this.togglePause();
    else this.serve();
    if (event.pointerType === "touch") this.stage.setPointerCapture(event.pointerId);
  }

  // Send at most once per picture; always send the place where the pointer stops.
  aim(event) {
    if (!event.isPrimary || !["playing", "serve", "ready"].includes(this.state?.phase)) return;
    const box = this.canvas.getBoundingClientRect(), row = (event.clientY - box.top) / box.height * HEIGHT;
    this.place = Math.min(Math.max((row - FIRST_ROW) / NUM_ROWS, 0), 1);
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = null;
      this.send("aim", this.place);
    });
  }
}

function buildKeys() {
  const rows = [
    ["W S ↑ ↓", "your paddle, on the left"], ["Mouse, finger", "the paddle follows it; a click or tap serves"], ["Space", "begin, serve"],
    ["P", "pause, continue"], ["R", "a new game"], ["M", "sound on or off"],
  ];
  return build("dl", { class: "play-help", id: "play-help" }, rows.map(([keys, words]) => [build("dt", {}, keys), build("dd", {}, words)]).flat());
}
