// The three bleeps of Pong, about as high and as long as those of 1972, made by an oscillator.
//
// Bounces are found in the pictures: the ball turns back at a paddle, and up or down at a wall.

const BLEEPS = { wall: [226, 0.02], paddle: [459, 0.096], point: [490, 0.257] }; // Hz, seconds
const VOLUME = 0.06;
const BALL = 14, WIDTH = 160, FIRST_ROW = 34, END_ROW = 194, NEAR = 10; // its palette index; rows

export class Sound {
  constructor() {
    Object.assign(this, { isOn: true, context: null, place: null, direction: [0, 0] });
  }

  // A browser allows sound only after a key, a click or a tap: call this then.
  wake() {
    if (!this.isOn) return;
    this.context ??= new AudioContext();
    this.context.resume();
  }

  toggle() {
    this.isOn = !this.isOn;
    this.wake();
  }

  // Look at the next picture, [210 × 160] palette indices.
  see(screen) {
    const at = screen.subarray(0, END_ROW * WIDTH).indexOf(BALL, FIRST_ROW * WIDTH), before = this.place;
    this.place = at < 0 ? null : [at % WIDTH, Math.floor(at / WIDTH)];
    if (!before || !this.place) {
      this.direction = [0, 0]; // a point, or a serve
      return;
    }
    const [back, up] = [0, 1].map((axis) => this.turns(axis, this.place[axis] - before[axis])), row = this.place[1];
    if (back) this.play("paddle");
    else if (up && (row < FIRST_ROW + NEAR || row >= END_ROW - NEAR)) this.play("wall");
  }

  // Whether the ball has changed its direction along an axis; remember the new one.
  turns(axis, moved) {
    const before = this.direction[axis];
    if (moved) this.direction[axis] = Math.sign(moved);
    return before * moved < 0;
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
  }
}
