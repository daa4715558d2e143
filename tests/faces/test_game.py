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
from pixelpong.config.protocols import find_protocol
from pixelpong.faces.look.legend import ACTION_NAMES
from pixelpong.faces.page.game import AGAINST_RULES, SERVE_FRAMES, BrowserGame, Message
from pixelpong.items import DOWN, NUM_PIXELS, STAY, UP
from pixelpong.pong.duel import Duel
from pixelpong.pong.emulator import Emulator
from pixelpong.schema import decode
from pixelpong.seeding import make_rng


def make_agent(environment="ALE/Pong-v5"):
    rng = np.random.default_rng(1)
    shapes = {"W1": (NUM_PIXELS, 5), "W2": 5}
    params = {name: rng.normal(size=size).astype(np.float32) for name, size in shapes.items()}
    return Agent(params, "reinforce", find_protocol(environment), {"update": 1})


def run_until(game, condition) -> int:
    """The ticks that it takes."""
    for number in range(60_000):
        if condition():
            return number
        game.tick()
    raise AssertionError(game.describe())


@pytest.mark.parametrize("environment", ["ALE/Pong-v5", "Pong-v0"])
def test_an_agents_hand_plays_frame_by_frame_the_bits_of_an_evaluation(environment):
    """Held actions, sticky coins, frame skips drawn: all as in one call a step."""
    agent = make_agent(environment)
    controller = Controller(agent, make_rng(7, "evaluate", 0, 2))
    emulator = Emulator(dataclasses.replace(agent.protocol, frame_skips=(1, 1)))

    def show_frames():
        while not emulator.is_over:
            yield emulator.screen.tobytes()
            move = controller.move(emulator)
            emulator.step(move.action, (0.0, move.uniform))
        yield emulator.screen.tobytes()

    shown = show_frames()
    assert all(moment.screen.tobytes() in shown for moment in play_game(agent, 7, 2)), "in order"
    assert next(shown, None) is None


@pytest.fixture
def tape(monkeypatch) -> list[int]:
    """The moves of the person's side, frame by frame."""
    moves, act = [], Duel.act

    def recorded(emulator, left, right, **fires):
        moves.append(left.action)
        act(emulator, left, right, **fires)

    monkeypatch.setattr(Duel, "act", recorded)
    return moves


def test_a_persons_moves_never_stick_and_mouse_and_keys_take_turns(tape):
    game = BrowserGame(make_agent(), make_rng(3, "play"))
    game.obey(Message(serve=True))
    asked = np.random.default_rng(0).choice([STAY, UP, DOWN], 400).tolist()
    for move in asked:
        game.obey(Message(move=ACTION_NAMES[move]))
        game.tick()
    assert tape == asked
    for place in (0.2, 0.8, 0.0, 1.0):
        game.obey(Message(aim=place))
        for _ in range(60):
            game.tick()
        seen = set()
        for _ in range(10):
            game.tick()
            seen.add(paddle(game.screen, OTHER)[:2])
        ((first, last),) = seen  # it does not tremble
        assert abs((first + last) / 2 - np.clip(210 * place, 40, 187)) < 7
    game.obey(Message(move="down"))
    game.tick()
    assert tape[-1] == DOWN


def test_the_person_serves_by_key_and_one_who_forgets_to_is_not_charged_for_it():
    agent = make_agent()
    agent.params["W1"][:] = 0  # it goes up for ever
    game = BrowserGame(agent, make_rng(3, "play"))

    def win_a_point():
        """Follow the ball, with a finger on the key, which does not serve the next ball."""
        if ball := ball_of(game.screen):
            game.obey(Message(aim=(ball[0] + 2) / 210, serve=True))
        return game.phase == "serve"

    def has_ball():
        return ball_of(game.screen) is not None

    game.obey(Message(serve=True))
    run_until(game, win_a_point)
    assert SERVE_FRAMES - 6 <= run_until(game, has_ball) <= SERVE_FRAMES + 6
    run_until(game, win_a_point)
    game.obey(Message(serve=True))
    assert run_until(game, has_ball) < 70
    assert (game.phase, game.describe()["points"]) == ("playing", [2, 0])


def test_a_pause_changes_nothing_speed_is_frames_a_picture_and_the_end_is_at_21(tape):
    game = BrowserGame(make_agent(), make_rng(3, "play"))
    require_rest(game, "ready")
    game.obey(Message(serve=True))
    for speed, frames in (("0.5", 30), ("1", 60), ("2", 120)):
        game.obey(Message(speed=speed))
        tape.clear()
        for _ in range(60):
            game.tick()
        assert len(tape) == frames
    game.obey(Message(pause=True))
    require_rest(game, "paused")
    game.obey(Message(pause=False))
    run_until(game, lambda: game.phase == "over")
    assert max(game.describe()["points"]) == 21
    require_rest(game, "over")


def require_rest(game, phase):
    before = game.screen.tobytes()
    game.tick()
    assert (game.phase, game.screen.tobytes()) == (phase, before)


# ---- the WebSocket

NONSENSE = [
    "", "x", "[]", "null", "7", '"serve"', "{", '{"exec": 1}', '{"move": "left"}',
    '{"move": ["up"]}', '{"aim": NaN}', '{"aim": 1e999}', '{"aim": -0.1}', '{"aim": true}',
    '{"speed": "9"}', '{"speed": true}', '{"pause": 1}', '{"serve": 1}', "[" * 200,
]  # fmt: skip


def test_a_game_that_cannot_be_or_go_on_ends_with_a_reason_in_one_line(toy_runs):
    for text in NONSENSE:
        with pytest.raises(ValueError):
            decode(text.encode(), Message)
    with serving(toy_runs["fast"].parent) as served:
        address = f"{served.url.replace('http', 'ws')}/game"
        for query, message, reason in (
            ("run=fast&agent=newest", None, "No agent was saved as 'newest'"),
            ("run=../etc&agent=best", None, "This run is not in the list"),
            ("", None, "This run is not in the list"),
            *(("run=fast&agent=best", message, "") for message in NONSENSE[::7]),
            ("run=fast&agent=best", b'{"serve": true}', "The game takes JSON as text"),
        ):
            said = []
            with connect(f"{address}?{query}", origin=served.url) as socket:
                if message is not None:
                    socket.send(message)
                with pytest.raises(ConnectionClosed) as end:
                    while True:
                        said.append(socket.recv())
            problem = json.loads([text for text in said if isinstance(text, str)][-1])["problem"]
            assert problem.startswith(reason)
            assert (end.value.rcvd.code, "\n" in problem) == (AGAINST_RULES, False)
