// A game of an agent with what the network sees, decides and expects; and the choice of the agent.
import {
  ask, askFile, build, findEnds, formatCount, formatNumber, formatReturn, formatSigned, isPong,
  pointMenu, rewrite, showNotices,
} from "./parts.js";
import { findKey, toggleFullScreen } from "./keys.js";
import { drawLine } from "./charts.js";
import { drawRows, drawScreen, drawSight, unpackPictures } from "./pictures.js";

const FOLLOW_MS = 15_000, RETRY_MS = 3000; // until a newer agent is shown, or one that failed
const VIEWER = Math.random().toString(36).slice(2); // its newest request replaces its older ones
const PLAYING = "Preparing the game…";
const KEYS = [[" ", "Space"], ["arrowleft", "ArrowLeft"], ["arrowright", "ArrowRight"], ["f", "KeyF"]];
const SYMBOLS = { up: "▲", down: "▼", stay: "●" };
const settings = { speed: 1, sight: "field" }; // kept from one game to the next

/** A menu of agents by name, with their returns; `choose` is called with the chosen one. */
export function buildChooser(run, chosen, choose) {
  const options = run.agents.map(({ which, name, return: value, kind }) => {
    const words = [
      name,
      value !== null && `${formatReturn(value, run)} ${kind}`,
      which !== "best" && which === run.best && "best",
    ].filter(Boolean).join(", ");
    return build("option", { value: which, selected: which === chosen }, words);
  });
  const select = build("select", { onchange: () => choose(select.value) }, options);
  return build("label", { class: "row chooser", hidden: options.length < 2 }, "Agent ", select);
}

/** The agent of the next higher rank in the list than `which`, or nothing. */
export function findStronger({ agents }, which) {
  const current = agents.find((agent) => agent.which === which)?.rank ?? Infinity;
  const stronger = agents.filter(({ rank }) => rank > current);
  const [least] = findEnds(stronger.map(({ rank }) => rank));
  return stronger.findLast(({ rank }) => rank === least);
}

/** The name of an agent in the list; "best" changes as it learns. */
export function findAgent({ agents, best }, agent) {
  const known = agents.map(({ which }) => which), wanted = agent === "best" ? best : agent;
  return known.includes(wanted) ? wanted : known.at(-1);
}

/** What to call an agent in the list; one of the package or of a file has a name of its own. */
export function nameAgent(run, which) {
  const { name = which } = run.agents.find((agent) => agent.which === which) ?? {};
  return run.config ? `${run.name}, ${name}` : name;
}

/** Games of a run's agents; call `update(run)` when there are more, and `leave` at the end. */
export class ReelView {
  constructor(element, agent, game = "") {
    Object.assign(this, { element, agent, game, shown: null, timer: null });
    this.gone = new AbortController();
    this.chooser = build("div", { class: "row agents" });
    this.outcome = build("p", { class: "outcome", role: "status" });
    this.stage = build("div", { class: "viewer-stage" });
    element.append(this.chooser, this.outcome, this.stage);
    document.addEventListener("keydown", (event) => this.press(event), { signal: this.gone.signal });
  }

  /** Space, arrows and F; a control that has the focus keeps its own keys. */
  press(event) {
    const { target, ctrlKey, metaKey, altKey } = event, { player } = this;
    const key = findKey(event, KEYS);
    const own = key === "Space"
      ? "select, button, a, summary, [type=checkbox]" : "select, [type=range], .scroller";
    if (!player || !key || ctrlKey || metaKey || altKey || target.closest?.(own)) return;
    event.preventDefault();
    if (key === "KeyF" && !event.repeat) toggleFullScreen(this.element);
    else if (key === "Space" && !event.repeat) player.toggle();
    else if (key === "ArrowLeft") player.nudge(-1);
    else if (key === "ArrowRight") player.nudge(1);
  }

  leave() {
    this.gone.abort();
    this.request?.abort();
    clearTimeout(this.timer);
    this.player?.setPlaying(false);
  }

  update(run) {
    const chosen = findAgent(run, this.agent), { shown, timer, player } = this;
    this.run = run;
    if (!chosen) this.say("No agent has been saved yet; the first one will appear here.");
    else if (chosen !== shown && !timer && !(shown && player?.isTouched)) this.show(chosen);
    this.offer(chosen);
  }

  /** The menu, which names what is shown, and a button for the agent that is newer than that. */
  offer(chosen) {
    const { run, shown } = this, current = run.agents.find(({ which }) => which === shown);
    const choose = (which) => {
      this.agent = which;
      pointMenu(run.id, which);
      this.show(which);
      this.offer(which);
    };
    const best = run.agents.find(({ which }) => which === chosen);
    const newer = current && chosen !== shown && best.name;
    rewrite(this.chooser, [run.agents, run.best, current, newer], () => [
      buildChooser(run, current ? shown : chosen, choose),
      newer && build("button", {
        type: "button", class: "newer", onclick: () => { this.show(chosen); this.offer(chosen); },
      }, `Newer: ${newer}`),
    ].filter(Boolean));
  }

  async show(which) {
    this.request?.abort();
    clearTimeout(this.timer);
    const again = () => { this.timer = null; this.update(this.run); };
    const request = new AbortController(), { signal } = request;
    Object.assign(this, { request, shown: which, timer: setTimeout(again, FOLLOW_MS) });
    const waiting = new AbortController();
    this.say(PLAYING, true);
    showNotices(waiting.signal, (line) => this.say(line || PLAYING, true), VIEWER);
    // To explain a whole game takes seconds. So its beginning comes first, and plays meanwhile.
    const beginning = await this.load(which, "beginning", signal);
    waiting.abort();
    if (signal.aborted) return;
    if (beginning.problem) {
      clearTimeout(this.timer);
      Object.assign(this, { shown: null, timer: setTimeout(again, RETRY_MS) });
      return void this.say(beginning.problem);
    }
    this.player?.setPlaying(false);
    const { seed, episode } = beginning;
    const films = `api/runs/${this.run.id}/films/${which}/${seed}/${episode}`;
    const player = this.player = new Player(this.stage, beginning, films);
    this.describe(which, beginning);
    if (!beginning.is_cut) return;
    const whole = await this.load(which, "whole", signal);
    if (signal.aborted) return;
    if (whole.problem) return void this.say(whole.problem);
    const steps = formatCount(whole.actions.length);
    if (whole.is_cut) this.say(`${this.outcome.textContent} Only its first ${steps} steps are shown.`);
    player.extend(whole);
  }

  /** A part of a game, with its pictures, or with a `problem`. */
  async load(which, part, signal) {
    const address = [`api/runs/${this.run.id}/reels/${which}`, this.game].filter(Boolean).join("/");
    const reel = await ask(`${address}?viewer=${VIEWER}&part=${part}`, signal);
    const fail = (error) => { this.say("This game cannot be shown."); throw error; };
    const pictures = reel.problem ? null : await unpackPictures(reel).catch(fail);
    return { ...reel, pictures };
  }

  /** Say whose game this is, and how it ends. */
  describe(which, reel) {
    const { id } = this.run;
    const [lost, won] = reel.final_points, steps = formatCount(reel.steps - 1);
    const points = `return ${formatSigned(reel.episode_return)} (${won} points won, ${lost} lost)`;
    const names = { package: `${which} in the package`, best: "agent" }; // best: of a file
    const name = names[id] ?? names[which] ?? `agent after update ${which}`;
    const result = isPong(reel) ? points : `score ${formatNumber(reel.episode_return)}`;
    const how = isPong(reel) ? "" : ", with sampled actions";
    const played = `game ${reel.episode} of seed ${reel.seed} on ${reel.protocol}${how}`;
    this.say(`The ${name}: ${result} in ${steps} steps. This is ${played}.`);
  }

  say(text, isBusy = false) {
    this.outcome.textContent = text;
    this.stage.setAttribute("aria-busy", isBusy);
  }
}

// Plays a reel; faces/look/reel.py describes it. It may begin with the beginning of a game alone.
class Player {
  constructor(element, reel, films) {
    const end = (reel.is_cut ? reel.steps : reel.actions.length) - 1;
    Object.assign(this, { reel, films, step: 0, end });
    this.hasValue = reel.values[0] !== null;
    this.isPong = isPong(reel);
    this.root = build("div", { class: "viewer", role: "group", "aria-label": "A game" });
    this.root.append(document.getElementById("viewer").content.cloneNode(true));
    this.find = (selector) => this.root.querySelector(selector);
    for (const [name, colour] of Object.entries(reel.colours)) {
      this.root.style.setProperty(`--${name}`, colour);
    }
    Object.assign(this.root.dataset, {
      kind: this.isPong ? "pong" : "other", part: reel.is_cut ? "beginning" : "whole",
    });
    this.bars = reel.action_names.map((name) => {
      const bar = build("span", { class: "bar", "aria-hidden": "true" });
      if (this.isPong) bar.style.setProperty("--colour", `var(--${name})`);
      const share = build("span", { class: "number" });
      const word = build("span", {}, this.isPong ? `${SYMBOLS[name]} ${name}` : name);
      return { row: build("li", { class: "action" }, word, share, bar), bar, share };
    });
    this.find(".actions").append(...this.bars.map(({ row }) => row));
    this.find(".thoughts p").hidden = this.find(".outcomes").parentNode.hidden = !this.hasValue;
    this.find(".line-name").textContent = this.hasValue
      ? "The line is the value, from −1 to +1." : "The line is the probability of up.";
    if (!this.isPong) this.adaptWords();
    this.connect();
    this.measure();
    element.replaceChildren(this.root);
    this.setPlaying(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  /** Go on with the whole game. */
  extend(reel) {
    this.reel = reel;
    this.end = reel.actions.length - 1;
    this.measure();
    this.show(this.step);
    this.root.dataset.part = "whole";
  }

  /** Set and draw what depends on how much of the game is there. */
  measure() {
    this.last = this.reel.actions.length - 1; // the last step that is there, of those to `end`
    this.range.max = this.end;
    this.find(".expectation").hidden = !this.reel.expectations.length;
    this.drawTimeline();
  }

  /** Words for a game other than Pong. */
  adaptWords() {
    this.find(".line-name").textContent = "The line is the value.";
    this.find(".player-key").textContent = this.reel.has_player
      ? "the player" : "No player was found in this game.";
    for (const direction of ["Previous", "Next"]) {
      const button = this.find(`[title="${direction} point"]`);
      button.title = button.ariaLabel = `${direction} mark`;
    }
  }

  /** The height of the line at a step, as a share from the top. */
  makeLevel() {
    const { reel } = this, up = reel.action_names.indexOf("up");
    const [low, high] = this.isPong ? [-1, 1] : findEnds([0, ...reel.values]);
    return (step) => (
      this.hasValue
        ? (high - reel.values[step]) / (high - low || 1) : 1 - reel.probabilities[step][up]
    );
  }

  drawTimeline() {
    const { reel, end } = this, level = this.makeLevel();
    const x = (step) => (1000 * step) / end, curve = { colour: "note", width: 1.25 };
    const line = reel.values.map((_, step) => [x(step), 15 + 70 * level(step)]);
    this.points = reel.points.flatMap(([lost, won], step) => {
      const before = Math.max(0, step - 1), [lostBefore, wonBefore] = reel.points[before];
      const isLost = lost > lostBefore || reel.lives?.[step] < reel.lives?.[before];
      return isLost || won > wonBefore ? [{ step, isWon: won > wonBefore }] : [];
    });
    const marks = this.points.map(({ step, isWon }) => {
      const [colour, from, to] = isWon ? ["accent", 0, 14] : ["warn", 100, 86];
      return drawLine({ colour, width: 3 }, [[x(step), from], [x(step), to]]);
    });
    const box = { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" };
    this.find(".timeline svg")?.remove();
    this.find(".timeline").prepend(build("svg:svg", box, drawLine(curve, line), marks));
  }

  connect() {
    const { find } = this, overlay = find("[type=checkbox]"), speed = find("select");
    const on = (element, name, task) => element.addEventListener(name, task);
    this.range = find("[type=range]");
    on(this.range, "input", () => { this.isTouched = true; this.go(Number(this.range.value)); });
    const tasks = [
      () => this.jump(this.points, -1), () => this.nudge(-1), () => this.toggle(),
      () => this.nudge(1), () => this.jump(this.points, 1),
      () => toggleFullScreen(this.root.closest(".games")), () => this.save(),
      () => { this.nudge(0); this.jump(this.reel.expectations, 1); },
    ];
    this.root.querySelectorAll("button").forEach((button, index) => {
      on(button, "click", ({ detail }) => {
        tasks[index]();
        if (detail) button.blur(); // after a click, Space is for the game
      });
    });
    this.find(".full-screen").hidden = !document.fullscreenEnabled;
    speed.value = `${settings.speed}×`;
    on(speed, "change", () => {
      settings.speed = parseFloat(speed.value);
      this.setPlaying(this.isPlaying);
    });
    overlay.checked = settings.sight === "saliency";
    on(overlay, "change", () => {
      settings.sight = overlay.checked ? "saliency" : "field";
      this.show(this.step);
    });
  }

  toggle() {
    this.isTouched = true;
    this.setPlaying(!this.isPlaying);
  }

  /** Download a film of the seconds around this step. */
  async save() {
    const button = this.find(".save"), note = this.find(".save-note"), { step, reel } = this;
    button.disabled = true;
    note.textContent = "Making a film…";
    const { problem, url } = await askFile(`${this.films}/${step}?viewer=${VIEWER}`);
    button.disabled = false;
    note.textContent = problem ?? "";
    if (!url) return;
    const download = `game-${reel.episode}-of-seed-${reel.seed}-step-${step}.mp4`;
    build("a", { href: url, download }).click();
    setTimeout(() => URL.revokeObjectURL(url), RETRY_MS); // once the browser has it
  }

  nudge(steps) {
    this.isTouched = true;
    this.setPlaying(false);
    this.go(this.step + steps);
  }

  setPlaying(isPlaying) {
    const rate = this.reel.steps_per_second * settings.speed;
    const advance = () => {
      if (this.step < this.last) return this.show(this.step + 1);
      if (this.step < this.end) return; // the rest is on its way
      this.isTouched = false; // it has been seen to its end, so a newer one may come
      this.setPlaying(false);
    };
    clearInterval(this.clock);
    if (isPlaying && this.step >= this.end) this.show(0);
    if (isPlaying) this.clock = setInterval(advance, 1000 / rate);
    this.go(this.step);
    this.isPlaying = isPlaying;
    this.find(".controls .primary").textContent = isPlaying ? "Pause" : "Play";
    this.root.dataset.playing = isPlaying;
  }

  jump(moments, direction) {
    this.isTouched = true;
    const isAhead = ({ step }) => direction * (step - this.step) > 0;
    const target = direction > 0 ? moments.find(isAhead) : moments.findLast(isAhead);
    this.go(target?.step ?? (direction > 0 ? this.last : 0));
  }

  // Show a step that a person has chosen, and tell screen readers, which do not hear what plays.
  go(step) {
    this.show(Math.max(0, Math.min(this.last, step)));
    const words = `step ${this.step} of ${this.end}, ${this.find(".score").textContent}`;
    this.range.setAttribute("aria-valuetext", words);
  }

  show(step) {
    const { find, reel } = this, { pictures } = reel, [lost, won] = reel.points[step];
    this.step = step;
    drawScreen(find(".screen"), pictures.screen.at(step), reel.palette);
    drawSight(find(".sight"), settings.sight, pictures[settings.sight].at(step), reel);
    const [, highest] = findEnds(reel.probabilities[step]);
    const best = reel.probabilities[step].indexOf(highest);
    if (!this.isPong) find(".best").textContent = `for ${reel.action_names[best]}`;
    this.bars.forEach(({ row, bar, share }, index) => {
      const percent = 100 * reel.probabilities[step][index];
      const isTaken = reel.actions[step] === reel.action_codes[index];
      bar.style.setProperty("--share", `${percent}%`);
      if (!this.isPong) {
        bar.style.setProperty("--colour", `var(--${index === best ? "for" : "quiet"})`);
      }
      share.textContent = `${percent.toFixed(0)} %${isTaken ? " ✓" : ""}`;
      row.classList.toggle("taken", isTaken);
    });
    find(".value").textContent = formatSigned(reel.values[step], 2);
    const lives = reel.lives ? `, lives ${reel.lives[step]}` : "";
    find(".score").textContent = this.isPong
      ? `opponent ${lost} : ${won} agent` : `score ${formatNumber(won - lost)}${lives}`;
    find(".step").textContent = `step ${step} of ${this.end}`;
    this.range.value = step;
    Object.assign(this.root.dataset, { step, sight: settings.sight });
    this.showExpectation();
  }

  // The newest answers, or the first ones; they stay until the ball comes again.
  showExpectation() {
    const { expectations: all, action_names: names, colours } = this.reel;
    const now = all.findLast(({ step }) => step <= this.step) ?? all[0];
    if (!now || now === this.expectation) return;
    this.expectation = now;
    drawRows(this.find(".choices"), this.reel, now, now.probabilities.map((shares) => {
      let from = 0;
      return names.map((name, index) => [from, (from += shares[index]), colours[name]]);
    }));
    const ends = (now.values ?? []).map((value) => [[0.5, (value + 1) / 2, colours.stay]]);
    drawRows(this.find(".outcomes"), this.reel, now, ends);
  }
}
