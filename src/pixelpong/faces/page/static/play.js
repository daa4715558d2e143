// Playing against an agent, and watching one: pictures from a WebSocket, moves to it.
//
// The server emulates the game; here it is only drawn. A picture is what differs from the one
// before: how many places (uint16), the places (uint16), their palette indices (uint8), all
// little-endian. What is said both ways is described in faces/games/socket.py.
import { build, formatSigned, getJson } from "./parts.js";

const WIDTH = 160, HEIGHT = 210, FIRST_ROW = 34, NUM_ROWS = 160;
const SEEN_EVERY = 6; // pictures
const KEYS = { KeyW: "up", ArrowUp: "up", KeyS: "down", ArrowDown: "down" };
const PACE = [[0.5, "half"], [1, "as on the Atari"], [2, "double"]];

// The view of a game: `mode` is "play" or "watch".
export function mountGame(mode, element, run = "package", agent = "0") {
  document.title = `${mode === "watch" ? "Watch" : "Play"} · pixelpong`;
  const stop = new AbortController();
  let game = null;
  element.append(build("p", { class: "quiet" }, "Loading the game…"));
  getJson(`/api/runs/${run}`, stop.signal).catch(() => null).then((about) => {
    if (!stop.signal.aborted) game = new GameView(element, run, agent, mode, about?.opponents ?? about?.agents ?? []);
  });
  return { unmount: () => { stop.abort(); game?.leave(); } };
}

class GameView {
  constructor(element, run, agent, mode, agents) {
    Object.assign(this, { run, agent, mode, agents, isPlay: mode === "play", isPackage: run === "package", state: null, socket: null });
    if (this.isPackage && !agents.some(({ name }) => name === agent)) this.agent = agents.at(-1)?.name ?? "best";
    this.names = [this.isPlay ? "You" : "Opponent", "Agent"];
    this.stop = new AbortController();
    this.build(element);
    this.listen();
    this.connect();
  }

  leave() {
    this.stop.abort();
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  build(element) {
    const { isPlay } = this, button = (word, task) => build("button", { type: "button", onclick: () => this.act(task) }, word);
    this.score = build("p", { class: "play-score" });
    this.count([0, 0]);
    this.said = build("p", { class: "unseen", role: "status" });
    this.canvas = build("canvas", { width: WIDTH, height: HEIGHT, class: "play-canvas" });
    this.message = build("div", { class: "play-message", hidden: true });
    this.stage = build("div", { class: "play-stage", tabindex: "0", role: "application", "aria-label": "Pong", "aria-describedby": "play-help" }, this.canvas, this.message);
    this.pause = button("Pause", () => this.togglePause());
    this.again = button("New game", () => this.send("restart"));
    this.speed = build("select", { onchange: () => this.act(() => this.send("speed", Number(this.speed.value))) },
      PACE.map(([value, word]) => build("option", { value, selected: value === 1 }, `${value} × – ${word}`)));
    this.choice = build("select", { onchange: () => this.act(() => this.choose()) }, this.listAgents());
    this.note = build("p", { class: "problem", role: "alert" });
    this.opponent = build("p", { class: "quiet play-opponent" }, "Connecting…");
    const [other, words] = isPlay ? ["watch", "Watch it against the game's own opponent"] : ["play", "Play against it yourself"];
    element.replaceChildren(build(
      "section", { class: "play" }, build("h1", {}, isPlay ? "Play against the agent" : "Watch the agent"),
      build("div", {}, this.score, this.stage, this.said),
      build(
        "div", { class: "play-side" }, this.opponent, build("div", { class: "play-buttons" }, this.pause, this.again), this.note,
        build("label", { hidden: this.choice.length < 2 }, this.isPackage ? "How strong" : "How strong: the agent as it was after update", this.choice),
        build("label", {}, "Speed", this.speed), this.buildHelp(),
        build("p", {}, build("a", { href: `#${other}/${this.run}/${this.agent}` }, words)),
      ),
    ));
    this.context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.image = this.context.createImageData(WIDTH, HEIGHT);
    this.dots = new Uint32Array(this.image.data.buffer).fill(0xff000000);
    this.palette = new Uint32Array(256).fill(0xff000000);
  }

  buildHelp() {
    const key = (...names) => build("dt", {}, names.map((name) => build("kbd", {}, name))), tell = (text) => build("dd", {}, text);
    const moves = [
      key("W", "S"), tell("or the arrow keys: your paddle, on the left"),
      build("dt", {}, "Mouse, finger"), tell("the paddle follows it up and down; a click or tap serves"),
    ];
    return build("dl", { class: "play-help", id: "play-help" }, this.isPlay ? moves : [],
      key("Space"), tell(this.isPlay ? "begin, serve, pause, go on" : "pause, go on"), key("P"), tell("pause, go on"), key("R"), tell("a new game"));
  }

  listAgents() {
    const known = this.isPackage
      ? this.agents.map(({ name, greedy_return: value }) => [name, `${name}, ${formatSigned(value, 1)} against the built-in opponent`])
      : this.agents.map(({ update, estimated_return: value }) => [String(update), value == null ? `${update}` : `${update}, estimated return ${formatSigned(value, 1)}`]);
    if (!known.some(([value]) => value === this.agent)) {
      const words = { best: "the best one", latest: "the latest one" };
      known.push([this.agent, words[this.agent] ?? this.agent]);
    }
    return known.map(([value, text]) => build("option", { value, selected: value === this.agent }, text));
  }

  connect() {
    Object.assign(this, { isOpen: false, numPictures: 0, direction: "stay", held: [], reason: "" });
    const query = new URLSearchParams({ run: this.run, agent: this.agent, mode: this.mode });
    const token = new URLSearchParams(location.search).get("token");
    if (token) query.set("token", token);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/game?${query}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { this.isOpen = true; };
    socket.onmessage = ({ data }) => { if (socket === this.socket) typeof data === "string" ? this.hear(JSON.parse(data)) : this.draw(data); };
    socket.onclose = (event) => { if (socket === this.socket) this.lose(event); };
    this.socket = socket;
    this.say("Connecting…");
  }

  send(type, value) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type, value }));
  }

  hear(message) {
    if (message.type === "palette") {
      for (const [index, red, green, blue] of message.colours) this.palette[index] = 0xff000000 | (blue << 16) | (green << 8) | red;
    } else if (message.type === "error") {
      this.reason = message.text;
      this.note.textContent = message.text;
    } else if (message.type === "state") this.show(message);
  }

  lose(event) {
    const reason = this.reason || event.reason;
    this.note.textContent = "";
    this.say(reason ? "The game has ended" : this.isOpen ? "The connection was lost" : "No connection",
      reason || "The server does not answer. Is pixelpong still running?", ["Try again", () => this.connect()]);
    this.opponent.textContent = "Not connected.";
    this.pause.disabled = this.again.disabled = true;
    this.state = null;
  }

  show(state) {
    const before = this.state, [left, right] = state.points, { update, estimated_return: value } = state.agent;
    this.state = state;
    this.count(state.points);
    this.opponent.textContent = `${this.isPlay ? "Against" : "This is"} the agent after update ${update}${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}.`;
    this.pause.textContent = state.phase === "paused" ? "Go on" : "Pause";
    this.pause.disabled = !["playing", "serve", "paused"].includes(state.phase);
    this.again.disabled = false;
    this.speed.value = String(state.speed);
    this.explain(state);
    if (before && String(before.points) !== String(state.points)) this.tell(`${this.names[0]} ${left}, ${this.names[1]} ${right}`);
  }

  count([left, right]) {
    this.score.replaceChildren(build("span", {}, this.names[0], " "), build("strong", {}, `${left} : ${right}`), build("span", {}, " ", this.names[1]));
  }

  explain({ phase, points: [left, right] }) {
    if (phase === "ready") this.say("Ready?", "Space, a click or a tap begins. Yours is the paddle on the left.");
    else if (phase === "serve") this.say("Your serve", "Space, a click or a tap; it comes by itself soon.", null, "low");
    else if (phase === "paused") this.say("Paused", "Space or a tap to go on.");
    else if (phase === "over") this.say(left === right ? "Time is up" : left < right ? "The agent wins" : this.isPlay ? "You win!" : "The opponent wins",
      `${this.names[0]} ${left}, ${this.names[1]} ${right}`, ["New game", () => this.send("restart")]);
    else this.say(null);
  }

  draw(data) {
    const view = new DataView(data), count = view.getUint16(0, true), end = 2 + 2 * count;
    for (let k = 0; k < count; k += 1) this.dots[view.getUint16(2 + 2 * k, true)] = this.palette[view.getUint8(end + k)];
    if (count) this.context.putImageData(this.image, 0, 0);
    if (++this.numPictures % SEEN_EVERY === 0) this.send("seen", this.numPictures);
  }

  // A panel over the picture: a title, a line and a button; nothing if there is no title.
  say(title, line, button, kind = "") {
    this.message.hidden = !title;
    this.message.className = `play-message ${kind}`;
    this.tell([title, line].filter(Boolean).join(" "));
    if (!title) return;
    this.message.replaceChildren(build("p", { class: "play-title" }, title));
    if (line) this.message.append(build("p", {}, line));
    if (button) this.message.append(build("button", { type: "button", class: "primary", onclick: () => this.act(button[1]) }, button[0]));
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
  }

  // A control has been used: back to the game, so that Space is the game's again.
  act(task) {
    this.note.textContent = "";
    task();
    this.stage.focus({ preventScroll: true });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("select, input, textarea")) return;
    if (event.code in KEYS) {
      event.preventDefault();
      if (!this.held.includes(event.code)) this.steer([...this.held, event.code]);
    } else if (event.code === "Space" && !event.target.closest?.("button, a")) {
      event.preventDefault();
      if (!event.repeat) this.go();
    } else if (event.code === "KeyP" && !event.repeat) this.togglePause();
    else if (event.code === "KeyR" && !event.repeat) this.send("restart");
  }

  // Of the keys that are held, the one pressed last counts.
  steer(held) {
    this.held = held;
    const direction = KEYS[held.at(-1)] ?? "stay";
    if (direction === this.direction || !this.isPlay) return;
    this.direction = direction;
    this.send("move", direction);
  }

  // Space, a click, a tap: what is next.
  go() {
    const phase = this.state?.phase;
    if (phase === "ready" || phase === "serve") this.send("serve");
    else if (phase === "over") this.send("restart");
    else this.togglePause();
  }

  togglePause() {
    const phase = this.state?.phase;
    if (phase === "paused") this.send("pause", false);
    else if (phase === "playing" || phase === "serve") this.send("pause", true);
  }

  choose() {
    this.agent = this.choice.value;
    history.replaceState(null, "", `#${this.mode}/${this.run}/${this.agent}`);
    this.send("agent", this.agent);
  }

  tap(event) {
    if (event.target.closest("button")) return;
    this.aim(event);
    if (["ready", "serve", "paused"].includes(this.state?.phase)) this.go();
    else if (!this.isPlay) this.togglePause();
    if (event.pointerType === "touch") this.stage.setPointerCapture(event.pointerId);
  }

  // Told once a picture at most; where the pointer came to rest is always told.
  aim(event) {
    if (!this.isPlay || !["playing", "serve", "ready"].includes(this.state?.phase)) return;
    const box = this.canvas.getBoundingClientRect(), row = (event.clientY - box.top) / box.height * HEIGHT;
    this.place = Math.min(Math.max((row - FIRST_ROW) / NUM_ROWS, 0), 1);
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = null;
      this.send("aim", this.place);
    });
  }
}
