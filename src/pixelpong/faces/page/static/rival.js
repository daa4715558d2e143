// Any game but Pong: a person and an agent play it side by side, with the same seed.
import { GameView } from "./play.js";

const KEYS = [ // as in play.js
  ["w", "KeyW"], ["a", "KeyA"], ["s", "KeyS"], ["d", "KeyD"], ["arrowup", "ArrowUp"],
  ["arrowleft", "ArrowLeft"], ["arrowdown", "ArrowDown"], ["arrowright", "ArrowRight"],
  [" ", "Space"], ["p", "KeyP"], ["r", "KeyR"], ["f", "KeyF"],
];
const MOVES = {
  KeyW: "up", KeyA: "left", KeyS: "down", KeyD: "right",
  ArrowUp: "up", ArrowLeft: "left", ArrowDown: "down", ArrowRight: "right",
};
const FIRING = { ...MOVES, Space: "fire" };
const ENDED = ["agent only", "over"]; // the phases after the person's game
const REST_MS = 700; // after the end; who is still firing does not begin a new game

const write = (score) => String(score).replace("-", "−");

/** The best score of a person in a game, in this browser; null if there is none. */
function readRecord(game) {
  try {
    const kept = localStorage.getItem(`pixelpong-record-${game}`);
    return kept !== null && /^-?\d{1,9}$/.test(kept) ? Number(kept) : null;
  } catch {
    return null;
  }
}

/** Keep a score if it is a record; whether the browser keeps anything. */
function keepRecord(game, score) {
  try {
    const best = readRecord(game);
    if (best === null || score > best) localStorage.setItem(`pixelpong-record-${game}`, score);
    return true;
  } catch {
    return false;
  }
}

export class RivalView extends GameView {
  constructor(element, signal, run, agent, seed) {
    super(element, signal, run, agent, seed, "rival");
    this.fingers = new Map(); // what each finger on the pad holds
    const pad = this.find(".pad"), on = (name, task) => pad.addEventListener(name, task, { signal });
    on("pointerdown", (event) => {
      event.preventDefault();
      pad.setPointerCapture(event.pointerId); // it may slide to another part, or beyond
      if (["ready", "paused"].includes(this.state?.phase)) this.tap(event);
      this.touch(event);
    });
    on("pointermove", (event) => this.fingers.has(event.pointerId) && this.touch(event));
    for (const name of ["pointerup", "pointercancel"]) {
      document.addEventListener(name, ({ pointerId }) => {
        if (this.fingers.delete(pointerId)) this.steer(this.held);
      }, { signal });
    }
    on("contextmenu", (event) => event.preventDefault());
  }

  isUnderWay() {
    return ["playing", "paused"].includes(this.state?.phase);
  }

  keys() {
    return KEYS;
  }

  /** Space fires in the game; before and after, it begins one. */
  moves() {
    return this.state?.phase === "playing" ? FIRING : MOVES;
  }

  lose() {
    this.fingers?.clear();
    this.steer([]);
    if (!ENDED.includes(this.state?.phase)) this.pause(true); // what was sent may begin or continue it
  }

  begin(message) {
    super.begin(message);
    const { game, seed, actions } = message, { run, agent } = this;
    Object.assign(this, { game, number: seed, record: readRecord(game), news: "", wanted: [] });
    this.stage.parentElement.style.setProperty("--rows", message.rows);
    history.replaceState(null, "", `#play/${run.id}/${agent}?${seed}`);
    this.find(".seed").textContent = seed;
    this.find(".watch").href = `#watch/${run.id}/${agent}?${seed}/0`;
    this.stage.setAttribute("aria-label", game);
    this.find(".moves").textContent = actions.join(", ");
    const words = actions.join(" "), pad = this.find(".pad");
    pad.classList.toggle("flat", !/up|down/.test(words));
    for (const key of pad.querySelectorAll("[data-hold]")) {
      const parts = key.dataset.hold.split(" ");
      key.classList.toggle("lacking", !parts.every((part) => words.includes(part)));
    }
    this.showRecord();
  }

  showRecord() {
    this.find(".record").textContent = this.record === null ? "none yet" : write(this.record);
  }

  show(state) {
    const { phase, points: [own, its] } = state, pause = this.find(".pause");
    if (ENDED.includes(phase) && !ENDED.includes(this.state?.phase)) this.finish(own);
    this.state = state;
    this.find(".own-score").textContent = write(own);
    this.find(".its-score").textContent = write(its);
    pause.textContent = phase === "paused" ? "Continue" : "Pause";
    pause.disabled = ["ready", "over"].includes(phase);
    const result = own > its ? "You win!" : own < its ? "The agent wins" : "A draw";
    const again = ["New game (Space)", "Same seed again"];
    const messages = {
      ready: ["", "Ready?", "Press Space or tap to start. Both games start the same way."],
      paused: ["", "Paused", "Press P or tap to continue."],
      playing: ["unseen", `You ${write(own)}`],
      "agent only": ["", `You have ${write(own)}`,
        `The agent still plays, eight times as fast. ${this.news}`, ...again],
      over: ["", result, `You ${write(own)}, agent ${write(its)}. ${this.news}`, ...again],
    };
    this.say(...messages[phase]);
  }

  /** The person's game has ended. */
  finish(own) {
    const { game, record } = this, isKept = keepRecord(game, own);
    const isBest = record === null || own > record;
    this.ended = performance.now();
    if (isBest) this.record = own;
    this.news = isBest ? "That is the best in this browser." : `Best in this browser: ${write(record)}.`;
    if (!isKept) this.news += " The browser does not keep it.";
    this.showRecord();
    this.fingers.clear();
    this.steer([]);
  }

  serve() {
    const isEnd = ENDED.includes(this.state?.phase);
    if (isEnd && performance.now() - this.ended < REST_MS) return;
    if (isEnd || (this.state === null && !this.find(".primary").hidden)) this.connect();
    else this.send("serve");
  }

  proceed() {
    this.connect(this.number);
  }

  /** What is held on the keyboard, then by fingers, is sent when it changes. */
  steer(held) {
    const byFingers = [...(this.fingers?.values() ?? [])].flat();
    const wanted = [...new Set([...held.map(({ direction }) => direction), ...byFingers])];
    const isNew = wanted.join() !== (this.wanted ?? []).join();
    Object.assign(this, { held, wanted });
    if (isNew && this.socket) this.send("held", wanted);
    for (const key of this.find(".pad").querySelectorAll("[data-hold]")) {
      const parts = key.dataset.hold.split(" ");
      key.classList.toggle("held", parts.every((part) => wanted.includes(part)));
    }
  }

  touch({ pointerId, clientX, clientY }) {
    const part = document.elementFromPoint(clientX, clientY)?.closest(".pad [data-hold]");
    this.fingers.set(pointerId, part ? part.dataset.hold.split(" ") : []);
    this.steer(this.held);
  }

  tap(event) {
    if (event.target.closest("button") || !event.isPrimary) return;
    if (this.state?.phase === "paused") this.pause();
    else if (this.state?.phase === "ready") this.send("serve");
  }

  aim() {} // there is no paddle that follows
}
