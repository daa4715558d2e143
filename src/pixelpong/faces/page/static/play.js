// Playing against an agent, and watching one: pictures from a WebSocket, moves to it.
//
// The server emulates the game; here it is only drawn. A picture is what differs from the one
// before: how many places (uint16), the places (uint16), their palette indices (uint8), all
// little-endian. What is said both ways stands in `web/game_socket.py`.
import { build, formatSigned } from "./viewer.js";

const WIDTH = 160, HEIGHT = 210, FIRST_ROW = 34, NUM_ROWS = 160;
const SEEN_EVERY = 6; // pictures
const KEYS = { KeyW: "up", ArrowUp: "up", KeyS: "down", ArrowDown: "down" };
const SPEEDS = [[0.5, "half"], [1, "as on the Atari"], [2, "double"]];

export function mount(element, options) {
  const game = new GameView(element, options);
  return { unmount: () => game.unmount() };
}

class GameView {
  constructor(element, { run, agent, mode, agents, token }) {
    Object.assign(this, { run, agent: String(agent), mode, agents: agents ?? [], token, state: null, socket: null });
    this.isPackage = run === "package";
    if (this.isPackage && !this.agents.some(({ name }) => name === this.agent)) this.agent = this.agents.at(-1)?.name ?? "best";
    this.isPlay = mode !== "watch";
    this.stop = new AbortController();
    this.build(element);
    this.listen();
    this.connect();
  }

  // ---- what is on the page

  build(element) {
    this.names = this.isPlay ? ["You", "Agent"] : ["Opponent", "Agent"];
    this.score = build("p", { class: "play-score" });
    this.count([0, 0]);
    this.said = build("p", { class: "unseen", role: "status" });
    this.canvas = build("canvas", { width: WIDTH, height: HEIGHT, class: "play-canvas" });
    this.message = build("div", { class: "play-message", hidden: true });
    this.stage = build("div", { class: "play-stage", tabindex: "0", role: "application", "aria-label": this.describeKeys() }, this.canvas, this.message);
    this.pause = build("button", { type: "button", class: "play-button", onclick: () => this.act(() => this.togglePause()) }, "Pause");
    this.again = build("button", { type: "button", class: "play-button", onclick: () => this.act(() => this.send("restart")) }, "New game");
    this.speed = build("select", { onchange: () => this.act(() => this.send("speed", Number(this.speed.value))) },
      SPEEDS.map(([value, word]) => build("option", { value: String(value), selected: value === 1 }, `${value} × – ${word}`)));
    this.choice = build("select", { onchange: () => this.act(() => this.choose()) }, this.listAgents());
    this.note = build("p", { class: "play-note problem", role: "alert", hidden: true });
    this.title = build("h1", {}, this.isPlay ? "Play against the agent" : "Watch the agent");
    this.opponent = build("p", { class: "quiet play-opponent" }, "Connecting…");
    const other = this.isPlay ? ["watch", "Watch it against the game's own opponent"] : ["play", "Play against it yourself"];
    this.root = build("section", { class: "play" },
      this.title,
      build("div", { class: "play-board" }, this.score, this.stage, this.said),
      build("div", { class: "play-side" },
        this.opponent,
        build("div", { class: "play-buttons" }, this.pause, this.again),
        this.note,
        build("label", { class: "play-field", hidden: this.choice.length < 2 }, build("span", {}, this.isPackage ? "How strong" : "How strong: the agent as it was after update"), this.choice),
        build("label", { class: "play-field" }, build("span", {}, "Speed"), this.speed),
        this.buildHelp(),
        build("p", {}, build("a", { href: `#${other[0]}/${this.run}/${this.agent}` }, other[1]))));
    element.append(this.root);
    this.context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.image = this.context.createImageData(WIDTH, HEIGHT);
    this.dots = new Uint32Array(this.image.data.buffer).fill(0xff000000);
    this.places = new Uint8Array(WIDTH * HEIGHT);
    this.palette = new Uint32Array(256).fill(0xff000000);
  }

  buildHelp() {
    const key = (...names) => build("dt", {}, names.map((name) => build("kbd", {}, name)));
    const moves = [
      key("W", "S"), build("dd", {}, "or the arrow keys: your paddle, on the left"),
      build("dt", {}, "Mouse, finger"), build("dd", {}, "the paddle follows it up and down; a click or tap serves"),
    ];
    return build("dl", { class: "play-help" }, this.isPlay ? moves : [],
      key("Space"), build("dd", {}, this.isPlay ? "begin, serve, pause, go on" : "pause, go on"),
      key("P"), build("dd", {}, "pause, go on"), key("R"), build("dd", {}, "a new game"));
  }

  describeKeys() {
    if (!this.isPlay) return "Pong. Space pauses and goes on, R begins a new game.";
    return "Pong. Your paddle is on the left: W and S or the arrow keys move it, Space begins, serves and pauses, R begins a new game.";
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

  // ---- the connection

  connect() {
    this.socket?.close();
    this.isOpen = false;
    this.numPictures = 0;
    this.direction = "stay";
    this.held = [];
    this.places.fill(0);
    this.reason = "";
    const query = new URLSearchParams({ run: this.run, agent: this.agent, mode: this.mode });
    if (this.token) query.set("token", this.token);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/game?${query}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { this.isOpen = true; };
    socket.onmessage = ({ data }) => { if (socket === this.socket) typeof data === "string" ? this.hear(JSON.parse(data)) : this.draw(data); };
    socket.onclose = (event) => { if (socket === this.socket) this.lose(event); };
    this.socket = socket;
    this.say("Connecting…");
  }

  send(type, value) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(value === undefined ? { type } : { type, value }));
  }

  hear(message) {
    if (message.type === "palette") {
      for (const [index, red, green, blue] of message.colours) this.palette[index] = 0xff000000 | (blue << 16) | (green << 8) | red;
    } else if (message.type === "error") {
      this.reason = message.text;
      this.warn(message.text);
    } else if (message.type === "state") {
      this.show(message);
    }
  }

  lose(event) {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    this.state = null;
    const reason = this.reason || event.reason;
    this.warn(null);
    this.say(reason ? "The game has ended" : wasOpen ? "The connection was lost" : "No connection",
      reason || "The server does not answer. Is pixelpong still running?",
      ["Try again", () => this.connect()]);
    this.opponent.textContent = "Not connected.";
    this.pause.disabled = this.again.disabled = true;
  }

  // ---- what the server says

  show(state) {
    const before = this.state;
    this.state = state;
    const [left, right] = state.points;
    this.count(state.points);
    const { update, estimated_return: value } = state.agent;
    this.opponent.textContent = `${this.isPlay ? "Against" : "This is"} the agent after update ${update}${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}.`;
    this.pause.textContent = state.phase === "paused" ? "Go on" : "Pause";
    this.pause.disabled = !["playing", "serve", "paused"].includes(state.phase);
    this.again.disabled = false;
    this.speed.value = String(state.speed);
    this.explain(state);
    if (before && String(before.points) !== String(state.points)) this.tell(`${this.names[0]} ${left}, ${this.names[1]} ${right}`);
  }

  count([left, right]) {
    this.score.replaceChildren(
      build("span", { class: "play-left" }, this.names[0], " "), build("strong", {}, `${left} : ${right}`), build("span", { class: "play-right" }, " ", this.names[1]));
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
    for (let k = 0; k < count; k++) {
      const place = view.getUint16(2 + 2 * k, true), index = view.getUint8(end + k);
      this.places[place] = index;
      this.dots[place] = this.palette[index];
    }
    if (count) this.context.putImageData(this.image, 0, 0);
    if (++this.numPictures % SEEN_EVERY === 0) this.send("seen", this.numPictures);
  }

  // A panel over the picture: a title, a line and a button; nothing where there is no title.
  say(title, line, button, kind = "") {
    this.message.hidden = !title;
    this.message.className = `play-message ${kind}`;
    if (!title) return;
    this.message.replaceChildren(build("p", { class: "play-title" }, title));
    if (line) this.message.append(build("p", {}, line));
    if (button) this.message.append(build("button", { type: "button", class: "primary", onclick: () => this.act(button[1]) }, button[0]));
    this.tell(`${title}. ${line ?? ""}`);
  }

  tell(text) {
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  warn(text) {
    this.note.hidden = !text;
    this.note.textContent = text ?? "";
  }

  // ---- what the person does

  listen() {
    const signal = this.stop.signal, on = (target, name, handle) => target.addEventListener(name, handle, { signal });
    on(document, "keydown", (event) => this.press(event));
    on(document, "keyup", (event) => this.release(event));
    on(window, "blur", () => this.letGo());
    on(document, "visibilitychange", () => {
      this.letGo();
      if (document.hidden && ["playing", "serve"].includes(this.state?.phase)) this.send("pause", true);
    });
    on(this.stage, "pointerdown", (event) => this.tap(event));
    on(this.stage, "pointermove", (event) => this.aim(event));
  }

  // A control has been used: back to the game, so that Space is the game's again.
  act(task) {
    this.warn(null);
    task();
    this.stage.focus({ preventScroll: true });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("select, input, textarea")) return;
    if (event.code in KEYS) {
      event.preventDefault();
      if (!this.held.includes(event.code)) this.held.push(event.code);
      this.steer();
    } else if (event.code === "Space" && !event.target.closest?.("button, a")) {
      event.preventDefault();
      if (!event.repeat) this.go();
    } else if (event.code === "KeyP" && !event.repeat) this.togglePause();
    else if (event.code === "KeyR" && !event.repeat) this.send("restart");
  }

  release(event) {
    this.held = this.held.filter((code) => code !== event.code);
    this.steer();
  }

  letGo() {
    this.held = [];
    this.steer();
  }

  // The key pressed last counts.
  steer() {
    const direction = this.held.length ? KEYS[this.held.at(-1)] : "stay";
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

  unmount() {
    this.stop.abort();
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.root.remove();
  }
}
