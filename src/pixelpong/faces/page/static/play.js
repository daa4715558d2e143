// Playing against an agent or a friend, and watching: pictures from a WebSocket, moves to it.
//
// The server emulates the game; this only draws it. A picture is coded as its difference from the
// one before: the number of places (uint16), the places (uint16), their palette indices (uint8), all
// little-endian. faces/games/socket.py describes the messages.
import { addResult, readRecord, STRENGTHS, suggestStrength } from "./memory.js";
import { build, formatSigned, getJson } from "./parts.js";
import { Sound } from "./sound.js";

const WIDTH = 160, HEIGHT = 210, FIRST_ROW = 34, NUM_ROWS = 160;
const SEEN_EVERY = 6; // pictures
const COUNT_FROM = 3, COUNT_MILLISECONDS = 600;
const LETTERS = { KeyW: "up", KeyS: "down" }, ARROWS = { ArrowUp: "up", ArrowDown: "down" };
const MODES = {
  play: { title: "Play", heading: "Play against the agent", names: ["You", "Agent"], sides: { move: { ...LETTERS, ...ARROWS } } },
  two: { title: "Play", heading: "Pong for two", names: ["Left", "Right"], sides: { move: LETTERS, move_right: ARROWS } },
  watch: { title: "Watch", heading: "Watch the agent", names: ["Opponent", "Agent"], sides: {} },
};
const PACE = [[0.5, "half"], [1, "as on the Atari"], [2, "double"]];

// Whether it is of a second finger, which does not count.
const isSecond = ({ pointerType, isPrimary }) => pointerType === "touch" && !isPrimary;

// The view of a game: `mode` is one of MODES.
export function mountGame(mode, element, run = "package", agent = "0") {
  document.title = `${MODES[mode].title} · pixelpong`;
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
    Object.assign(this, { run, agent, mode, agents, isPackage: run === "package", state: null, socket: null, ...MODES[mode] });
    const isKnown = (known) => agents.some(({ name }) => name === known), fitting = mode === "play" && suggestStrength();
    if (this.isPackage && !isKnown(agent)) this.agent = isKnown(fitting) ? fitting : agents.at(-1)?.name ?? "best";
    this.sound = new Sound();
    this.stop = new AbortController();
    this.build(element);
    this.listen();
    this.connect();
  }

  leave() {
    this.stop.abort();
    this.stopCounting();
    this.sound.close();
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  build(element) {
    const { mode } = this, button = (word, task) => build("button", { type: "button", onclick: () => this.act(task) }, word);
    this.score = build("p", { class: "play-score" });
    this.count([0, 0]);
    this.said = build("p", { class: "unseen", role: "status" });
    this.canvas = build("canvas", { width: WIDTH, height: HEIGHT, class: "play-canvas" });
    this.message = build("div", { class: "play-message", hidden: true });
    this.stage = build("div", { class: "play-stage", tabindex: "0", role: "application", "aria-label": "Pong", "aria-describedby": "play-help" }, this.canvas, this.message);
    this.pause = button("Pause", () => this.togglePause());
    this.again = button("New game", () => this.restart());
    this.full = button("Full screen", () => this.toggleFull());
    this.full.hidden = !document.fullscreenEnabled;
    this.mute = button("", () => this.toggleSound());
    this.field = build("div", { class: "play-field" }, this.score, this.stage, this.said);
    this.record = build("dl", { class: "play-record" });
    this.speed = build("select", { onchange: () => this.act(() => this.send("speed", Number(this.speed.value))) },
      PACE.map(([value, word]) => build("option", { value, selected: value === 1 }, `${value} × – ${word}`)));
    this.choice = build("select", { onchange: () => this.act(() => this.choose(this.choice.value)) }, this.listAgents());
    this.note = build("p", { class: "problem", role: "alert" });
    this.opponent = build("p", { class: "quiet play-opponent" }, "Connecting…");
    const place = `${this.run}/${this.agent}`, links = {
      play: [`play/${place}`, mode === "two" ? "Play against the agent" : "Play against it yourself"],
      two: ["two", "Two people at one keyboard"], watch: [`watch/${place}`, "Watch the agent against the game's own opponent"],
    };
    element.replaceChildren(build(
      "section", { class: "play" }, build("h1", {}, this.heading), this.field,
      build(
        "div", { class: "play-side" }, this.opponent, build("div", { class: "play-buttons" }, this.pause, this.again, this.full, this.mute), this.note,
        build("label", { hidden: mode === "two" || this.choice.length < 2 }, "How strong", this.choice),
        build("label", {}, "Speed", this.speed), this.record, this.buildHelp(),
        Object.entries(links).map(([other, [hash, words]]) => other !== mode && build("p", {}, build("a", { href: `#${hash}` }, words))),
      ),
    ));
    this.showSound();
    this.showRecord();
    this.context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.image = this.context.createImageData(WIDTH, HEIGHT);
    this.dots = new Uint32Array(this.image.data.buffer).fill(0xff000000);
    this.palette = new Uint32Array(256).fill(0xff000000);
  }

  buildHelp() {
    const key = (...names) => build("dt", {}, names.map((name) => build("kbd", {}, name))), tell = (text) => build("dd", {}, text);
    const moves = {
      play: [
        key("W", "S"), tell("or the arrow keys: your paddle, on the left"),
        build("dt", {}, "Mouse, finger"), tell("the paddle follows it up and down; a click or tap serves"),
      ],
      two: [key("W", "S"), tell("the left paddle"), key("↑", "↓"), tell("the right paddle")],
      watch: [],
    };
    return build("dl", { class: "play-help", id: "play-help" }, moves[this.mode],
      key("Space"), tell(this.mode === "watch" ? "pause, go on" : "begin, serve"), key("P"), tell("pause, go on"),
      key("R"), tell("a new game"), key("M"), tell("sound on or off"), key("F"), tell("full screen"));
  }

  listAgents() {
    const known = this.isPackage
      ? this.agents.map(({ name, rating, greedy_return: value }) => [name, rating == null ? `${name}, ${formatSigned(value, 1)} against the built-in opponent` : `${name}, rating ${formatSigned(rating)}`])
      : this.agents.map(({ update, strength, estimated_return: value }) => [String(update), `${strength}: after update ${update}${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}`]);
    if (!known.some(([value]) => value === this.agent)) {
      const words = { best: "the best one", latest: "the latest one" };
      known.push([this.agent, words[this.agent] ?? this.agent]);
    }
    return known.map(([value, text]) => build("option", { value, selected: value === this.agent }, text));
  }

  connect() {
    Object.assign(this, { isOpen: false, numPictures: 0, directions: {}, held: [], reason: "" });
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
    this.stopCounting();
    this.note.textContent = "";
    this.say(reason ? "The game has ended" : this.isOpen ? "The connection was lost" : "No connection",
      reason || "The server does not answer. Is pixelpong still running?", [["Try again", () => this.connect()]]);
    this.opponent.textContent = "Not connected.";
    this.pause.disabled = this.again.disabled = true;
    this.state = null;
  }

  show(state) {
    const before = this.state, [left, right] = state.points;
    this.state = state;
    if (state.phase !== "ready") this.stopCounting();
    if (before) this.bleep(before, state);
    if (this.mode === "play" && before && before.phase !== "over" && state.phase === "over") this.keepResult();
    this.count(state.points);
    this.opponent.textContent = this.mode === "two" ? "Two people at one keyboard." : this.introduce(state.agent);
    this.pause.textContent = state.phase === "paused" ? "Go on" : "Pause";
    this.pause.disabled = !["playing", "serve", "paused"].includes(state.phase);
    this.again.disabled = false;
    this.speed.value = String(state.speed);
    this.explain(state);
    if (before && String(before.points) !== String(state.points)) this.tell(`${this.names[0]} ${left}, ${this.names[1]} ${right}`);
  }

  introduce({ update, strength, estimated_return: value }) {
    const known = this.isPackage && this.agents.find(({ name }) => name === strength), begin = this.mode === "play" ? "Against" : "This is";
    if (known?.told) return `${begin} the ${strength} in the package: ${known.told}.`;
    return `${begin} the agent after update ${update}: ${strength}${value == null ? "" : `, estimated return ${formatSigned(value, 1)}`}.`;
  }

  bleep({ points, bounces }, now) {
    const isMore = (list, place) => now[list][place] > { points, bounces }[list][place];
    if (isMore("points", 0) || isMore("points", 1)) this.sound.play("point");
    else if (isMore("bounces", 1)) this.sound.play("paddle");
    else if (isMore("bounces", 0)) this.sound.play("wall");
  }

  keepResult() {
    const { points: [left, right], agent } = this.state;
    addResult(agent.strength, left - right);
    this.showRecord();
  }

  showRecord() {
    const record = readRecord(), known = this.mode === "play" ? STRENGTHS.filter((name) => name in record) : [];
    this.record.hidden = known.length === 0;
    this.record.replaceChildren(...known.flatMap((name) => {
      const [won, lost, best] = record[name];
      return [build("dt", {}, `You against ${name}`), build("dd", {}, `${won} won, ${lost} lost; best ${formatSigned(best)}`)];
    }));
  }

  count([left, right]) {
    this.score.replaceChildren(build("span", {}, this.names[0], " "), build("strong", {}, `${left} : ${right}`), build("span", {}, " ", this.names[1]));
  }

  explain({ phase, points: [left, right] }) {
    const winner = this.names[left > right ? 0 : 1], isPlay = this.mode === "play";
    if (phase === "ready" && this.counting) return;
    if (phase === "ready") this.say("Ready?", `Space, a click or a tap begins.${isPlay ? " Yours is the paddle on the left." : ""}`);
    else if (phase === "serve") this.say(isPlay ? "Your serve" : "Serve", "Space, a click or a tap; it comes by itself soon.", [], "low");
    else if (phase === "paused") this.say("Paused", "P or a tap to go on.");
    else if (phase === "over") this.say(left === right ? "Time is up" : winner === "You" ? "You win!" : this.mode === "two" ? `${winner} wins` : `The ${winner.toLowerCase()} wins`,
      `${this.names[0]} ${left}, ${this.names[1]} ${right}`, [["New game", () => this.restart()], ...this.offerFitting()]);
    else this.say(null);
  }

  // A button for the strength that fits your last games, if it is another one.
  offerFitting() {
    const fitting = suggestStrength(), isOther = this.mode === "play" && this.isPackage && fitting !== this.agent;
    if (!isOther || !this.agents.some(({ name }) => name === fitting)) return [];
    return [[`Play ${fitting}`, () => this.choose(fitting)]];
  }

  // Three, two, one; then the first ball.
  startCounting(number = COUNT_FROM) {
    this.counting = number > 0 && setTimeout(() => this.startCounting(number - 1), COUNT_MILLISECONDS);
    if (number > 0) this.say(String(number), "", [], "count");
    else this.send("serve");
  }

  stopCounting() {
    clearTimeout(this.counting);
    this.counting = null;
  }

  draw(data) {
    const view = new DataView(data), count = view.getUint16(0, true), end = 2 + 2 * count;
    for (let k = 0; k < count; k += 1) this.dots[view.getUint16(2 + 2 * k, true)] = this.palette[view.getUint8(end + k)];
    if (count) this.context.putImageData(this.image, 0, 0);
    if (++this.numPictures % SEEN_EVERY === 0) this.send("seen", this.numPictures);
  }

  // A panel over the picture, with a title, a line and buttons; hidden without a title.
  say(title, line, buttons = [], kind = "") {
    this.message.hidden = !title;
    this.message.className = `play-message ${kind}`;
    this.tell([title, line].filter(Boolean).join(" "));
    if (!title) return;
    this.message.replaceChildren(build("p", { class: "play-title" }, title));
    if (line) this.message.append(build("p", {}, line));
    this.message.append(...buttons.map(([word, task]) => build("button", { type: "button", class: "primary", onclick: () => this.act(task) }, word)));
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
      if (document.hidden) this.rest();
    });
    on(this.stage, "pointerdown", (event) => this.tap(event));
    on(this.stage, "pointermove", (event) => this.aim(event));
    on(this.stage, "contextmenu", (event) => event.preventDefault()); // a finger that stays long
  }

  // Nobody looks: no ball may fly.
  rest() {
    if (this.counting) this.restart();
    else if (["playing", "serve"].includes(this.state?.phase)) this.send("pause", true);
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
    if (Object.values(this.sides).some((keys) => event.code in keys)) {
      event.preventDefault();
      if (!this.held.includes(event.code)) this.steer([...this.held, event.code]);
    } else if (event.code === "Space" && !event.target.closest?.("button, a")) {
      event.preventDefault();
      if (!event.repeat) this.mode === "watch" ? this.togglePause() : this.serve();
    } else if (!event.repeat) {
      const tasks = { KeyP: () => this.togglePause(), KeyR: () => this.restart(), KeyM: () => this.toggleSound(), KeyF: () => this.toggleFull() };
      tasks[event.code]?.();
    }
  }

  // If several keys of a side are held, the last one pressed counts.
  steer(held) {
    this.held = held;
    for (const [side, keys] of Object.entries(this.sides)) {
      const direction = keys[held.filter((code) => code in keys).at(-1)] ?? "stay";
      if (direction === (this.directions[side] ?? "stay")) continue;
      this.directions[side] = direction;
      this.send(side, direction);
    }
  }

  // Begin or serve, and nothing else, so that an impatient thumb does no harm.
  serve() {
    const phase = this.state?.phase;
    if (phase === "ready" && !this.counting) this.startCounting();
    else if (phase === "serve") this.send("serve");
  }

  restart() {
    this.stopCounting();
    this.send("restart");
    if (this.state) this.explain(this.state);
  }

  toggleSound() {
    this.sound.toggle();
    this.showSound();
  }

  showSound() {
    this.mute.textContent = this.sound.isOn ? "Sound is on" : "Sound is off";
  }

  toggleFull() {
    const done = document.fullscreenElement ? document.exitFullscreen() : this.field.requestFullscreen?.();
    done?.catch(() => {}); // not allowed here
  }

  togglePause() {
    const phase = this.state?.phase;
    if (phase === "paused") this.send("pause", false);
    else if (phase === "playing" || phase === "serve") this.send("pause", true);
  }

  choose(agent) {
    this.stopCounting();
    this.agent = this.choice.value = agent;
    history.replaceState(null, "", `#${this.mode}/${this.run}/${this.agent}`);
    this.send("agent", this.agent);
  }

  tap(event) {
    if (event.target.closest("button") || isSecond(event)) return;
    this.sound.wake();
    this.aim(event);
    if (this.mode === "watch" || this.state?.phase === "paused") this.togglePause();
    else this.serve();
    if (event.pointerType === "touch") this.stage.setPointerCapture(event.pointerId);
  }

  // Send at most once per picture; always send the place where the pointer stops.
  aim(event) {
    if (this.mode !== "play" || isSecond(event) || !["playing", "serve", "ready"].includes(this.state?.phase)) return;
    const box = this.canvas.getBoundingClientRect(), row = (event.clientY - box.top) / box.height * HEIGHT;
    this.place = Math.min(Math.max((row - FIRST_ROW) / NUM_ROWS, 0), 1);
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = null;
      this.send("aim", this.place);
    });
  }
}
