// The three bleeps of Pong, about as high and as long as those of 1972, made by an oscillator.
import { recall, remember } from "./memory.js";

const BLEEPS = { wall: [226, 0.02], paddle: [459, 0.096], point: [490, 0.257] }; // Hz, seconds
const VOLUME = 0.06;

export class Sound {
  constructor() {
    this.isOn = recall("sound") !== false;
    this.context = null;
  }

  // A browser allows sound only after a key, a click or a tap: call this then.
  wake() {
    if (!this.isOn) return;
    this.context ??= new AudioContext();
    this.context.resume();
  }

  toggle() {
    this.isOn = !this.isOn;
    remember("sound", this.isOn);
    this.wake();
  }

  play(name) {
    if (!this.isOn || this.context?.state !== "running") return;
    const { context } = this, [pitch, seconds] = BLEEPS[name], end = context.currentTime + seconds;
    const tone = new OscillatorNode(context, { type: "square", frequency: pitch });
    tone.connect(new GainNode(context, { gain: VOLUME })).connect(context.destination);
    tone.start();
    tone.stop(end);
  }

  close() {
    this.context?.close();
    this.context = null;
  }
}
