"""A game with an agent, frame by frame, and the WebSocket it is shown through."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections import Counter

import numpy as np
import pytest
from conftest import wait_until
from test_duel import OTHER, OWN, ball_of, follow, paddle
from web_client import serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from pixelpong.agent.file import Agent, load_shipped
from pixelpong.agent.network import GREEDY, PlainNetwork
from pixelpong.config.protocols import find_protocol
from pixelpong.env.duel import LEFT, RIGHT, DuelEmulator
from pixelpong.errors import CheckpointError, RunError
from pixelpong.faces.games import game as games
from pixelpong.faces.games import socket as sockets
from pixelpong.faces.games.bounces import Bounces
from pixelpong.faces.games.game import (
    OVER,
    PAUSED,
    PLAY,
    PLAYING,
    READY,
    SERVE,
    TWO,
    WATCH,
    Game,
)
from pixelpong.faces.page.library import Library
from pixelpong.items import DOWN, NUM_PIXELS, STAY, UP
from pixelpong.seeding import make_rng


class SpiedAgent(Agent):
    """Remembers what its policies were shown, and what they chose."""

    def make_network(self):
        return SpiedNetwork(self.params)


class SpiedNetwork(PlainNetwork):
    def __init__(self, params):
        super().__init__(params)
        self.shown, self.chosen, self.draws = [], [], set()

    def act(self, screen, draw=GREEDY):
        self.shown.append(screen.tobytes())
        self.draws.add(draw)
        self.chosen.append(super().act(screen, draw))
        return self.chosen[-1]


def make_agent(environment="ALE/Pong-v5", kind=SpiedAgent, seed=1, **changes):
    rng = np.random.default_rng(seed)
    params = {
        "W1": rng.normal(size=(NUM_PIXELS, 5)).astype(np.float32),
        "W2": rng.normal(size=5).astype(np.float32),
    }
    protocol = dataclasses.replace(find_protocol(environment), **changes)
    about = {"update": seed, "estimated_return": -20.5}
    return kind(params, "reinforce", protocol, about)


def make_game(mode=PLAY, agent=None, **changes) -> Game:
    game = Game(agent or make_agent(**changes), mode, make_rng(3, "play"))
    game.serve()
    return game


def run_until(game, condition, ticks=60_000):
    for number in range(ticks):
        if condition():
            return number
        game.tick()
    raise AssertionError(game.describe())


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["ALE/Pong-v5", "Pong-v0"])
def test_watching_shows_bit_for_bit_what_an_evaluation_plays(environment):
    """Held actions, sticky coins, frame skips drawn: all as in one call a step."""
    agent = make_agent(environment)
    replay = agent.play_episode(seed=7, index=2)
    game = Game(agent, WATCH, make_rng(7, "evaluate", 0, 2))
    policy = game._hand.network
    policy.shown.clear()
    run_until(game, lambda: game.phase == OVER)
    *moments, last = [(moment.screen.tobytes(), moment.points) for moment in replay.watch()]
    assert policy.shown == [screen for screen, _ in moments]
    assert game.screen.tobytes() == last[0]
    assert tuple(game.describe()["points"]) == last[1]
    assert policy.draws == {GREEDY}


@pytest.fixture
def tape(monkeypatch) -> list[tuple[int, int]]:
    """The moves of both sides, frame by frame."""
    moves, act = [], DuelEmulator.act

    def recorded(emulator, left, right, **fires):
        moves.append((left, right))
        act(emulator, left, right, **fires)

    monkeypatch.setattr(DuelEmulator, "act", recorded)
    return moves


@pytest.mark.parametrize(
    ("changes", "fewest", "least", "most"),
    [({}, 100, 0.15, 0.35), ({"sticky": 0.0}, 50, -0.01, 0.0001)],
)
def test_the_agent_decides_every_fourth_frame_and_its_moves_stick(
    tape, changes, fewest, least, most
):
    game = make_game(**changes)
    decided = len(game._hand.network.shown)
    run_until(game, lambda: len(tape) == 2000)
    assert len(game._hand.network.shown) - decided == 500
    done, wants = (
        [right for _, right in tape],
        np.repeat(game._hand.network.chosen, 4)[-2000:].tolist(),
    )
    turns = [k for k in range(1, 2000) if wants[k] != done[k - 1]]
    stuck = sum(done[k] == done[k - 1] for k in turns)
    assert len(turns) > fewest
    assert least < stuck / len(turns) < most
    assert all(done[k] in (wants[k], done[k - 1]) for k in range(1, 2000))


def test_a_persons_moves_never_stick_and_come_at_the_next_frame(tape):
    game, rng, asked = make_game(), np.random.default_rng(0), []
    for _ in range(400):
        asked.append(int(rng.choice([STAY, UP, DOWN])))
        game.move(asked[-1])
        game.tick()
    assert [left for left, _ in tape] == asked


def test_mouse_and_keys_take_turns(tape):
    game = make_game()
    for place in (0.2, 0.8, 0.0, 1.0):
        game.aim(place)
        run_until(game, lambda: len(tape) % 60 == 0 < len(tape))
        game.tick()
        first, last, *_ = paddle(game.screen, OTHER)
        assert abs((first + last) / 2 - (34 + 160 * np.clip(place, 0.04, 0.96))) < 7
    game.move(DOWN)
    game.tick()
    assert tape[-1][0] == DOWN


def test_a_game_begins_when_the_person_does_but_watching_at_once():
    game = Game(make_agent(), PLAY, make_rng(0, "play"))
    assert (game.phase, game.tick()) == (READY, False)
    game.serve()
    assert (game.phase, game.tick()) == (PLAYING, True)
    watching = Game(make_agent(), WATCH, make_rng(0, "play"))
    assert (watching.phase, watching.tick()) == (PLAYING, True)


def win_a_point(game, *, serves=False):
    """Follow the ball with the left paddle until the agent has lost a point."""

    def step():
        ball = ball_of(game.screen)
        if ball:
            game.aim((ball[0] + 2 - 34) / 160)
            if serves:
                game.serve()
        return game.describe()["points"][LEFT] > 0

    agent_stands = make_agent(sticky=0.0)
    agent_stands.params["W1"][:] = 0  # it goes up for ever
    game.seat(agent_stands)
    game.serve()
    run_until(game, step)


@pytest.mark.parametrize("forgets", [False, True])
def test_the_person_serves_by_key_and_who_forgets_to_is_not_charged_for_it(forgets):
    game = make_game()
    win_a_point(game)
    assert run_until(game, lambda: game.phase == SERVE, ticks=4) <= 2
    if not forgets:
        game.serve()
    waited = run_until(game, lambda: ball_of(game.screen) is not None)
    if forgets:
        assert games.SERVE_FRAMES <= waited + 1 <= games.SERVE_FRAMES + 6
    else:
        assert (waited <= 66, game.phase) == (True, PLAYING)
    assert game.describe()["points"] == [1, 0]


def test_a_key_pressed_in_a_rally_does_not_serve_the_next_ball():
    game = make_game()
    win_a_point(game, serves=True)
    for _ in range(100):
        game.tick()
    assert (game.phase, ball_of(game.screen)) == (SERVE, None)


def test_the_agent_serves_by_itself():
    game = make_game()
    run_until(game, lambda: game.describe()["points"][RIGHT] == 1)
    assert run_until(game, lambda: ball_of(game.screen) is not None) <= 66


def test_time_stands_still_in_a_pause_and_goes_on_from_there():
    game, other = make_game(), make_game()
    for _ in range(90):
        game.tick()
        other.tick()
    game.is_paused = True
    before = game.screen.tobytes()
    assert [game.tick() for _ in range(20)] == [False] * 20
    assert (game.phase, game.screen.tobytes()) == (PAUSED, before)
    game.is_paused = False
    for _ in range(50):
        game.tick()
        other.tick()
    np.testing.assert_array_equal(game.screen, other.screen)


@pytest.mark.parametrize(("speed", "frames"), [(0.5, 30), (1.0, 60), (2.0, 120)])
def test_speed_is_frames_a_picture(tape, speed, frames):
    game = make_game()
    game.speed = speed
    for _ in range(60):
        game.tick()
    assert len(tape) == frames


def test_a_game_ends_at_21_and_another_begins_anew():
    game = make_game()
    game.move(UP)
    run_until(game, lambda: game.phase == OVER)
    assert (max(game.describe()["points"]), game.tick()) == (21, False)
    game.restart()
    assert (game.phase, game.describe()["points"]) == (READY, [0, 0])


def test_another_agent_takes_the_seat():
    game = make_game()
    run_until(game, lambda: sum(game.describe()["points"]) == 1)
    game.seat(make_agent(seed=5))
    about = {"update": 5, "estimated_return": -20.5, "strength": "untrained"}
    assert game.describe()["agent"] == about
    assert game.describe()["points"] == [0, 0]


def test_two_people_play_without_the_agent_and_each_waits_to_serve(tape):
    game = make_game(TWO)
    decided = len(game._hand.network.shown)
    game.move(DOWN)
    game.move(UP, RIGHT)
    run_until(game, lambda: game.phase == SERVE)
    assert set(tape) == {(DOWN, UP)}
    server = int(np.argmax(game.points))
    for _ in range(100):
        game.tick()
    assert (game.phase, ball_of(game.screen)) == (SERVE, None)
    game.serve()
    assert run_until(game, lambda: ball_of(game.screen) is not None) <= 4
    own = OTHER if server == LEFT else OWN
    run_until(game, lambda: sum(game.points) == 2 or paddle(game.screen, own) is None)
    assert len(game._hand.network.shown) == decided


@pytest.mark.slow
def test_bounces_are_counted_where_the_games_memory_says_the_ball_turned():
    """Memory holds the ball's speed, along and up; the game in the test plays on both sides."""
    emulator, bounces, turned = DuelEmulator(), Bounces(), [0, 0]
    rng, wobble, before = np.random.default_rng(0), [0.0, 0.0], None
    for _ in range(6000):
        if rng.random() < 0.03:
            wobble = rng.uniform(-9, 9, 2)
        moves = [follow(emulator.screen, c, w) for c, w in zip((OTHER, OWN), wobble, strict=True)]
        points = emulator.points
        emulator.act(*moves, fires=True)
        bounces.see(emulator.screen)
        along, up = np.sign(emulator._console.memory[[58, 56]].astype(np.int8))
        if before is not None and emulator.points == points and ball_of(emulator.screen):
            turned[1] += along == -before[0]
            turned[0] += along == before[0] and up == -before[1] != 0
        before = (along, up) if ball_of(emulator.screen) else None
    assert min(turned) > 20
    assert [bounces.walls, bounces.paddles] == turned


def play_against(agent, rows_a_frame, seed):
    """A whole game; the left side follows the ball's middle, so many rows a frame at most."""
    game, row, offset = make_game(agent=agent), 113.0, 0.0
    rng = np.random.default_rng(seed)
    for _ in range(30_000):
        if game.phase == OVER:
            break
        ball = ball_of(game.screen)
        if ball is None:
            offset = rng.uniform(-8, 8)
        else:
            row += float(np.clip(ball[0] + 2 + offset - row, -rows_a_frame, rows_a_frame))
        game.aim((row - 34) / 160)
        game.tick()
    left, right = game.describe()["points"]
    return right - left


@pytest.mark.slow
def test_the_shipped_agent_plays_as_well_for_two_as_it_was_trained_to():
    """Against nobody, and against one that follows the ball with half the built-in one's speed."""
    shipped = load_shipped()
    assert play_against(shipped, 0.0, seed=0) >= 15
    assert np.mean([play_against(shipped, 1.0, seed) for seed in range(3)]) > 0


# ---- the WebSocket


def load_agent(library, run_id, which):
    """Agents of one run, by number."""
    if run_id != "run":
        raise RunError("expected a run, got another; look at the list")
    if which not in ("7", "best"):
        raise CheckpointError(f"expected an agent, got {which!r}; use best")
    return make_agent(seed=7 if which == "7" else 1)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of the page's server, with agents of our own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Library, "load_agent", load_agent)
        with serving(tmp_path_factory.mktemp("runs")) as served:
            yield served.url


@pytest.fixture
def join(url):
    """Open a game's WebSocket."""

    def join(query="run=run&agent=best&mode=play"):
        socket = f"{url.replace('http', 'ws')}/game?{query}"
        return connect(socket, origin=url, max_size=2**20)

    yield join
    assert wait_until(lambda: sockets._taken == 0), "a seat is still taken"


class Browser:
    """Decodes what comes, as the page does."""

    def __init__(self, socket):
        self.socket, self.pictures, self.seen = socket, 0, 0
        self.screen = np.zeros(210 * 160, np.uint8)
        self.state, self.colours, self.errors = {}, {}, []

    def say(self, kind, value=None):
        message = {"type": kind} if value is None else {"type": kind, "value": value}
        self.socket.send(json.dumps(message))

    def take(self):
        """The next message."""
        data = self.socket.recv(10)
        if isinstance(data, bytes):
            (count,) = np.frombuffer(data, "<u2", 1)
            places = np.frombuffer(data, "<u2", count, 2)
            self.screen[places] = np.frombuffer(data, np.uint8, count, 2 + 2 * int(count))
            self.pictures += 1
            return
        content = json.loads(data)
        if content["type"] == "state":
            self.state = content
        elif content["type"] == "palette":
            self.colours |= {index: rest for index, *rest in content["colours"]}
        else:
            self.errors.append(content["text"])

    def take_until(self, condition, messages=3000):
        for _ in range(messages):
            if condition():
                return
            self.take()
            if self.pictures >= self.seen + 6:
                self.seen = self.pictures
                self.say("seen", self.seen)
        raise AssertionError((self.state, self.pictures))

    def take_to_the_end(self):
        """Code and reason of the close."""
        with pytest.raises(ConnectionClosed) as end:
            for _ in range(2000):
                self.take()
        return end.value.rcvd.code, end.value.rcvd.reason


def test_the_browser_gets_the_very_picture_in_its_colours(join):
    emulator = DuelEmulator()
    with join() as socket:
        browser = Browser(socket)
        browser.take_until(lambda: browser.pictures == 1)
        assert browser.state["phase"] == READY
        np.testing.assert_array_equal(browser.screen.reshape(210, 160), emulator.screen)
        frame = emulator.frame()
        for index in set(np.unique(emulator.screen).tolist()) - {0}:
            assert browser.colours[index] == frame[emulator.screen == index][0].tolist()


@pytest.mark.alone
def test_sixty_pictures_a_second_and_the_paddle_obeys(join):
    with join() as socket:
        browser = Browser(socket)
        browser.say("serve")
        browser.take_until(lambda: browser.pictures >= 10)
        begin, before = time.perf_counter(), browser.pictures
        top = paddle(browser.screen.reshape(210, 160), OTHER)[0]
        browser.say("move", "up")
        browser.take_until(lambda: browser.pictures >= before + 120)
        took = time.perf_counter() - begin
        assert 1.8 < took < 2.6
        assert paddle(browser.screen.reshape(210, 160), OTHER)[0] < top


@pytest.mark.slow
def test_pause_speed_restart_and_another_agent(join):
    with join() as socket:
        browser = Browser(socket)
        browser.say("serve")
        browser.take_until(lambda: browser.state.get("phase") == PLAYING)
        browser.say("pause", True)
        browser.take_until(lambda: browser.state["phase"] == PAUSED)
        browser.say("speed", 2)
        browser.take_until(lambda: browser.state["speed"] == 2)
        browser.say("pause", False)
        browser.take_until(lambda: sum(browser.state["points"]) > 0)
        browser.say("agent", "7")
        browser.take_until(lambda: browser.state["agent"]["update"] == 7)
        assert browser.state["points"] == [0, 0]
        browser.say("agent", "99")
        browser.take_until(lambda: browser.errors)
        assert browser.errors == ["expected an agent, got '99'; use best"]
        browser.say("serve")
        browser.take_until(lambda: browser.state["phase"] == PLAYING)
        browser.say("restart")
        browser.take_until(lambda: browser.state["phase"] == READY)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("run=run&agent=3&mode=play", "expected an agent, got '3'; use best"),
        ("run=../etc&agent=best&mode=play", "expected a run, got another; look at the list"),
        ("run=run&agent=best&mode=both", "expected mode=play, mode=two or mode=watch, got 'both'"),
        ("", "expected a run, got another"),
    ],
)
def test_a_game_that_cannot_be_is_said_in_one_line(join, query, line):
    with join(query) as socket:
        browser = Browser(socket)
        code, reason = browser.take_to_the_end()
        assert (code, len(browser.errors)) == (sockets.AGAINST_RULES, 1)
        assert browser.errors[0].startswith(line)
        assert browser.errors[0].startswith(reason)


NONSENSE = [
    "", "x", "[]", "null", "7", '"serve"', "{", "{}", '{"type": 1}', '{"type": ["serve"]}',
    '{"type": "exec"}', '{"type": "move"}', '{"type": "move", "value": "left"}',
    '{"type": "move", "value": ["up"]}', '{"type": "aim", "value": NaN}',
    '{"type": "aim", "value": 1e999}', '{"type": "aim", "value": -0.1}',
    '{"type": "aim", "value": true}', '{"type": "aim", "value": "0.5"}',
    '{"type": "speed", "value": 1000}', '{"type": "speed", "value": 0}',
    '{"type": "speed", "value": true}', '{"type": "pause", "value": 1}', '{"type": "pause"}',
    '{"type": "agent", "value": "../../x"}', '{"type": "agent", "value": 7}',
    '{"type": "agent", "value": ""}', '{"type": "serve", "value": 1}',
    '{"type": "serve", "more": 1}', '{"type": "seen", "value": -1}',
    '{"type": "seen", "value": 1.0}',
    '{"type": "seen", "value": true}', '{"type": "serve"' + " " * 200 + "}", "[" * 200,
]  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_no_message(text):
    with pytest.raises(ValueError):
        sockets.read_message(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", "expected a message of the game, got "),
        ('{"type": "exec"}', "expected a message of the game, got "),
        ('{"type": "seen", "value": 99999999}', "expected a message of the game, got "),
        (b"\0" * 10, "expected "),
        ('{"type": "move", "value": "up"}', "a second"),
    ],
)
def test_nonsense_bytes_and_floods_are_refused_with_a_reason(join, message, line):
    with join() as socket:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(sockets.MAX_MESSAGES_PER_SECOND + 50 if line == "a second" else 1):
                socket.send(message)
        code, reason = Browser(socket).take_to_the_end()
        assert code == sockets.AGAINST_RULES
        assert line in reason
        assert reason.startswith("expected ")


@pytest.mark.slow
def test_one_game_too_many_is_told_so_and_a_seat_that_is_left_is_free(join):
    with contextlib.ExitStack() as held:
        for _ in range(sockets.MAX_GAMES):
            Browser(held.enter_context(join())).take()
        with join() as socket:
            code, reason = Browser(socket).take_to_the_end()
            assert code == sockets.TRY_LATER
            assert reason.startswith("expected a free seat, got 4 games in progress")
    assert wait_until(lambda: sockets._taken == 0)
    with join() as socket:
        browser = Browser(socket)
        browser.take_until(lambda: browser.pictures == 1)


@pytest.mark.slow
@pytest.mark.parametrize("serves", [True, False])
def test_a_browser_that_sees_nothing_or_a_game_that_nobody_plays_is_ended(
    join, monkeypatch, serves
):
    monkeypatch.setattr(sockets, "LATE_SECONDS", 0.5 if serves else 1000)
    monkeypatch.setattr(sockets, "IDLE_SECONDS", 1000 if serves else 0.3)
    with join() as socket:
        browser = Browser(socket)
        if serves:
            browser.say("serve")
        code, reason = browser.take_to_the_end()
        assert code == sockets.TRY_LATER
        assert browser.pictures == (sockets.MAX_UNSEEN if serves else 1)
        what = "the pictures to be seen in time" if serves else "somebody to play"
        assert reason.startswith(f"expected {what}")


def test_a_tick_is_short_enough_for_the_event_loop():
    """Median, so that a busy machine does not decide."""
    game = make_game(kind=Agent)
    took = []
    for _ in range(600):
        begin = time.perf_counter()
        game.tick()
        took.append(time.perf_counter() - begin)
    assert np.median(took) < 1e-3
    assert Counter(np.array(took) < 5e-3)[True] > 500
