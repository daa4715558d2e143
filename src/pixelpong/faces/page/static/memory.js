// What this browser remembers: whether there is sound, and how your games ended.
//
// It is kept in the browser's own storage for this page's address, because the server only reads.
// What is missing or damaged there counts as never written.

const PREFIX = "pixelpong-";
export const STRENGTHS = ["untrained", "beginner", "club", "strong", "champion"];
const FIRST = "club", KEPT_RESULTS = 20;

export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name));
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch { /* full, or not allowed: the page works without it */ }
}

// Your games against each strength: { champion: [won, lost, best margin], … }
export function readRecord() {
  const kept = recall("record"), isCount = (number) => Number.isSafeInteger(number) && number >= 0;
  const isSound = (line) => Array.isArray(line) && line.length === 3 && isCount(line[0]) && isCount(line[1]) && isCount(line[2] + 21) && line[2] <= 21;
  return Object.fromEntries(STRENGTHS.filter((name) => isSound(kept?.[name])).map((name) => [name, kept[name]]));
}

// Add a game that ended with `margin` points more than the agent's; a draw is not kept.
export function addResult(strength, margin) {
  if (!STRENGTHS.includes(strength) || margin === 0) return;
  const record = readRecord(), [won, lost, best] = record[strength] ?? [0, 0, -21];
  remember("record", { ...record, [strength]: [won + (margin > 0), lost + (margin < 0), Math.max(best, margin)] });
  remember("results", [...readResults(), [strength, margin]].slice(-KEPT_RESULTS));
}

// Your newest games, the last one last: [[strength, margin], …]
function readResults() {
  const kept = recall("results"), isSound = (line) => Array.isArray(line) && STRENGTHS.includes(line[0]) && Number.isSafeInteger(line[1]);
  return Array.isArray(kept) ? kept.filter(isSound) : [];
}

// The strength that fits your last games: after a win the next stronger one, after two losses in a
// row against the same one the next weaker; club at first.
export function suggestStrength() {
  const [[before, marginBefore], [last, margin]] = [[], [], ...readResults()].slice(-2);
  if (!last) return FIRST;
  const isLostTwice = margin < 0 && before === last && marginBefore < 0;
  const place = STRENGTHS.indexOf(last) + (margin > 0) - isLostTwice;
  return STRENGTHS[Math.min(Math.max(place, 1), STRENGTHS.length - 1)]; // nobody wants an untrained one
}
