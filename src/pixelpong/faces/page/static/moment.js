// One moment of an agent's game, explained; faces/page/moment.py describes it.
import { FOLLOW_MS, build, formatSigned, getJson, rewrite } from "./parts.js";
import { FIELD, SCREEN, buildSightKey, drawField, drawSaliency, drawScreen, readColours, unpackPictures } from "./pictures.js";

const SIDE = FIELD.side * FIELD.cell; // of a picture; a row of the field has three
const SIGNS = { up: "▲ up", down: "▼ down", stay: "● stay" };

// Something about an agent that can be chosen, loaded when it comes into sight. `show(content)`
// returns elements. The newest agent is followed until a person chooses one.
export function mountOfAgent(element, run, kind, busy, show) {
  const stop = new AbortController();
  const select = build("select", { onchange: () => { isTouched = true; load(); } }), label = build("label", {}, "Agent of update ", select);
  const note = build("p", { class: "quiet" }), place = build("div", { class: "of-agent" });
  element.append(label, note, place);
  let isInSight = false, isTouched = false, loaded = null, since = 0;

  const load = async () => {
    const update = select.value;
    if (!isInSight || !update || loaded === update) return;
    [loaded, since] = [update, performance.now()];
    note.textContent = busy;
    try {
      const elements = await show(await getJson(`/api/runs/${run.id}/${kind}/${update}`, stop.signal));
      if (loaded !== update) return;
      note.textContent = "";
      place.replaceChildren(...elements);
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
      loaded = null;
    }
  };
  const update = ({ agents = [], problem }) => {
    const updates = agents.map((agent) => String(agent.update)).reverse(), chosen = isTouched ? select.value : updates[0];
    rewrite(select, updates, () => updates.map((each) => build("option", { value: each, selected: each === chosen }, each)));
    label.hidden = !updates.length;
    if (!updates.length) note.textContent = problem ? "" : "No checkpoint is saved yet.";
    else if (!loaded || (!isTouched && performance.now() - since > FOLLOW_MS)) load();
  };
  const sight = new IntersectionObserver(([entry]) => {
    isInSight = entry.isIntersecting;
    if (!loaded) load();
  });
  sight.observe(element);
  update(run);
  return { update, unmount: () => { stop.abort(); sight.disconnect(); } };
}

export function mountMoment(element, run) {
  return mountOfAgent(element, run, "moments", "The agent plays until the ball reaches it…", showMoment);
}

async function showMoment(moment) {
  const pictures = await unpackPictures(moment), colours = readColours(document.body), { probabilities, action_names: names } = moment;
  const share = Math.round(100 * probabilities[names.indexOf(moment.action)]);
  const picture = (title, words, ...more) => {
    const canvas = build("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": `${title}: ${words}` });
    return [canvas, build("figure", {}, canvas, build("figcaption", {}, build("strong", {}, title), build("span", {}, words), more))];
  };
  const [game, first] = picture("The game", `The ball is about to reach the agent, on the right. It chose ${SIGNS[moment.action]}, which had ${share} %.`);
  drawScreen(game, pictures.screen.at(0), moment.palette, SCREEN.fieldTop, SCREEN.fieldRows);
  const leaning = moment.logit > 0 ? "up" : "down";
  const [sight, second] = picture("What moved the decision", `The larger a triangle, the more its pixel speaks for up or down. Together they speak for ${leaning}.`, buildSightKey());
  drawField(sight, pictures.field.at(0), colours);
  drawSaliency(sight, pictures.saliency.at(0), colours);
  const [choice, third] = picture("What it would do", describeChoices(moment), buildActionKey(names));
  drawRows(choice, moment, moment.height_probabilities.map((shares) => stack(shares, names, colours)));
  const figures = [first, second, third];
  if (moment.height_values) {
    const [worth, fourth] = picture("How it expects the point to end", describeValues(moment));
    drawRows(worth, moment, moment.height_values.map((value) => [[0.5, Math.max(0, Math.min(1, (value + 1) / 2)), colours.stay]]));
    figures.push(fourth);
  }
  return [
    build("div", { class: "moment" }, figures),
    build("p", { class: "quiet" }, "The pictures after the second: the same network is asked again and again, each time with its paddle at another height. A row is its answer with the middle of the paddle there. Dashed: the ball. At the right edge: where its paddle really was."),
  ];
}

function buildActionKey(names) {
  return build("ul", { class: "legend" }, names.map((name) => build("li", {}, build("span", { class: `key swatch ${name}`, "aria-hidden": "true" }), name)));
}

// The shares of a row's actions, one beside the other: [from, to, colour].
function stack(shares, names, colours) {
  let from = 0;
  return names.map((name, place) => [from, (from += shares[place]), colours[name]]);
}

// Rows as parts of the whole width, with the ball and the paddle as they were.
function drawRows(canvas, { heights, ball, paddle }, rows) {
  const context = canvas.getContext("2d"), scale = SIDE / SCREEN.fieldRows, room = SIDE - 5 * scale;
  rows.forEach((parts, place) => {
    for (const [from, to, colour] of parts) {
      context.fillStyle = colour;
      context.fillRect(from * room, (heights[place] + paddle.rows / 2 - 1) * scale, (to - from) * room, (heights[1] - heights[0]) * scale);
    }
  });
  context.fillStyle = "#5cba5c"; // as in the game
  context.fillRect(SIDE - 4 * scale, paddle.height * scale, 4 * scale, paddle.rows * scale);
  context.setLineDash([6, 6]);
  for (const [colour, offset] of [["#000000", 0], ["#ffffff", 6]]) {
    Object.assign(context, { strokeStyle: colour, lineWidth: 2, lineDashOffset: offset });
    context.strokeRect(-2, (ball[0] + 2) * scale, SIDE + 4, 0);
  }
}

function average(numbers) {
  return numbers.reduce((sum, value) => sum + value, 0) / Math.max(1, numbers.length);
}

// The most probable action with the paddle wholly above, and wholly below the ball.
function describeChoices({ heights, ball, paddle, action_names: names, height_probabilities: shares }) {
  const usual = (isPart) => {
    const part = shares.filter((_, place) => isPart(heights[place])), means = names.map((_, action) => average(part.map((each) => each[action])));
    return part.length ? `${SIGNS[names[means.indexOf(Math.max(...means))]]} (${Math.round(100 * Math.max(...means))} %)` : "–";
  };
  return `With the paddle above the ball, mostly ${usual((height) => height + paddle.rows <= ball[0])}; below it, mostly ${usual((height) => height >= ball[0] + 4)}.`;
}

function describeValues({ heights, ball, paddle, height_values: values }) {
  const meets = (height) => height + paddle.rows > ball[0] && height < ball[0] + 4, tell = (part) => formatSigned(average(part), 2);
  const [hit, missed] = [true, false].map((isHit) => values.filter((_, place) => meets(heights[place]) === isHit));
  return `From −1, lost (left), to +1, won (right). At the ball's height: ${tell(hit)} on average; elsewhere: ${tell(missed)}.`;
}
