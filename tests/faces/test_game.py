"""A game with an agent, frame by frame, and the WebSocket it is shown through."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from two_paddles import OTHER, ball_of, paddle
from web_client import serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Controller, play_game
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.config.protocols import find_protocol
from pixelpong.env.duel import LEFT, RIGHT, DuelEmulator
from pixelpong.env.pong import Emulator
from pixelpong.faces.page import game as games
from pixelpong.faces.page.game import OVER, PAUSED, PLAYING, READY, SERVE, Game, Message
from pixelpong.items import DOWN, NUM_PIXELS, STAY, UP
from pixelpong.play.networks import GREEDY, PlainNetwork
from pixelpong.schema import decode
from pixelpong.seeding import make_rng


def make_agent(environment="ALE/Pong-v5", seed=1, **changes):
    rng = np.random.default_rng(seed)
    params = {
        "W1": rng.normal(size=(NUM_PIXELS, 5)).astype(np.float32),
        "W2": rng.normal(size=5).astype(np.float32),
    }
    protocol = dataclasses.replace(find_protocol(environment), **changes)
    return Agent(params, "reinforce", protocol, {"update": seed, "estimated_return": -20.5})


def make_game(agent=None) -> Game:
    game = Game(agent or make_agent(), make_rng(3, "play"))
    game.obey(Message(serve=True))
    return game


def run_until(game, condition, ticks=60_000):
    for number in range(ticks):
        if condition():
            return number
        game.tick()
    raise AssertionError(game.describe())


def lead(game):
    return game.describe()["points"]


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["ALE/Pong-v5", "Pong-v0"])
def test_an_agents_hand_plays_frame_by_frame_the_bits_of_an_evaluation(environment, monkeypatch):
    """Held actions, sticky coins, frame skips drawn: all as in one call a step."""
    agent, shown, act = make_agent(environment), [], PlainNetwork.act
    *moments, last = [moment.screen.tobytes() for moment in play_game(agent, 7, 2)]

    def spied(network, screen, draw=GREEDY):
        shown.append((screen.tobytes(), draw))
        return act(network, screen, draw)

    monkeypatch.setattr(PlainNetwork, "act", spied)
    controller = Controller(agent, make_rng(7, "evaluate", 0, 2))
    emulator = Emulator(dataclasses.replace(agent.protocol, frame_skips=(1, 1), sticky=0.0))
    while not emulator.is_over:
        emulator.step(controller.move(emulator), (0.0, 0.0))
    assert shown == [(screen, GREEDY) for screen in moments]
    assert emulator.screen.tobytes() == last


@pytest.fixture
def tape(monkeypatch) -> list[tuple[int, int]]:
    """The moves of both sides, frame by frame."""
    moves, act = [], DuelEmulator.act

    def recorded(emulator, left, right, **fires):
        moves.append((left, right))
        act(emulator, left, right, **fires)

    monkeypatch.setattr(DuelEmulator, "act", recorded)
    return moves


def test_a_persons_moves_never_stick_and_mouse_and_keys_take_turns(tape):
    game, asked = make_game(), np.random.default_rng(0).choice([STAY, UP, DOWN], 400).tolist()
    for move in asked:
        game.obey(Message(move=ACTION_NAMES[move]))
        game.tick()
    assert [left for left, _ in tape] == asked
    for place in (0.2, 0.8, 0.0, 1.0):
        game.obey(Message(aim=place))
        for _ in range(60):
            game.tick()
        first, last, *_ = paddle(game.screen, OTHER)
        assert abs((first + last) / 2 - np.clip(210 * place, 40, 187)) < 7
    game.obey(Message(move="down"))
    game.tick()
    assert tape[-1][0] == DOWN


def win_a_point(*, serves=False):
    """A game in which the left paddle has followed the ball until the agent has lost a point."""
    agent = make_agent(sticky=0.0)
    agent.params["W1"][:] = 0  # it goes up for ever
    game = make_game(agent)

    def follow():
        if ball := ball_of(game.screen):
            game.obey(Message(aim=(ball[0] + 2) / 210, serve=serves))
        return lead(game)[LEFT] > 0

    run_until(game, follow)
    return game


@pytest.mark.parametrize("forgets", [False, True])
def test_the_person_serves_by_key_and_one_who_forgets_to_is_not_charged_for_it(forgets):
    game = win_a_point()
    assert run_until(game, lambda: game.phase == SERVE, ticks=4) <= 2
    if not forgets:
        game.obey(Message(serve=True))
    waited = run_until(game, lambda: ball_of(game.screen) is not None) + 1
    if forgets:
        assert games.SERVE_FRAMES <= waited <= games.SERVE_FRAMES + 6
    else:
        assert (waited <= 67, game.phase) == (True, PLAYING)
    assert lead(game) == [1, 0]


def test_a_key_pressed_in_a_rally_does_not_serve_the_next_ball_but_the_agent_does():
    game, other = win_a_point(serves=True), make_game()
    for _ in range(100):
        game.tick()
    assert (game.phase, ball_of(game.screen)) == (SERVE, None)
    run_until(other, lambda: lead(other)[RIGHT] == 1)
    assert run_until(other, lambda: ball_of(other.screen) is not None) <= 66


def test_a_pause_changes_nothing_and_speed_is_frames_a_picture(tape):
    game = Game(make_agent(), make_rng(3, "play"))
    game.tick()
    assert (game.phase, tape) == (READY, []), "it begins when the person does"
    game.obey(Message(serve=True))
    for speed, frames in ((0.5, 30), (1.0, 60), (2.0, 120)):
        game.speed, before = speed, len(tape)
        for _ in range(60):
            game.tick()
        assert len(tape) - before == frames
    game.obey(Message(pause=True))
    before = game.screen.tobytes()
    for _ in range(20):
        game.tick()
    assert (game.phase, game.screen.tobytes(), len(tape)) == (PAUSED, before, 210)


def test_a_game_ends_at_21():
    game = make_game()
    run_until(game, lambda: game.phase == OVER)
    assert max(lead(game)) == 21
    before = game.screen.tobytes()
    game.tick()
    assert game.screen.tobytes() == before


# ---- the WebSocket


@pytest.fixture(scope="module")
def join(toy_runs):
    """Open a game's WebSocket."""
    with serving(toy_runs["fast"].parent) as served:
        address = f"{served.url.replace('http', 'ws')}/game"
        yield lambda query="run=fast&agent=best": connect(f"{address}?{query}", origin=served.url)


def problem_at_the_end(socket) -> str:
    """What is told before the server closes a game."""
    said = []
    with pytest.raises(ConnectionClosed) as end:
        while True:
            said.append(socket.recv())
    assert end.value.rcvd.code == games.AGAINST_RULES
    return json.loads([text for text in said if isinstance(text, str)][-1])["problem"]


def test_a_game_that_cannot_be_is_said_in_one_line(join):
    for query, line in (
        ("run=fast&agent=99", "No agent was saved at update 99"),
        ("run=../etc&agent=best", "This run is not in the list"),
        ("", "This run is not in the list"),
    ):
        with join(query) as socket:
            problem = problem_at_the_end(socket)
        assert (problem.startswith(line), "\n" in problem) == (True, False), problem


NONSENSE = [
    "", "x", "[]", "null", "7", '"serve"', "{", '{"exec": 1}', '{"move": "left"}',
    '{"move": ["up"]}', '{"aim": NaN}', '{"aim": 1e999}', '{"aim": -0.1}', '{"aim": true}',
    '{"speed": "9"}', '{"speed": true}', '{"pause": 1}', '{"serve": 1}', "[" * 200,
]  # fmt: skip


def test_nonsense_is_no_message_and_ends_the_game_with_a_reason(join):
    for text in NONSENSE:
        with pytest.raises(ValueError):
            decode(text.encode(), Message)
    for message in NONSENSE[::7]:
        with join() as socket:
            socket.send(message)
            assert problem_at_the_end(socket)
