"""Any game against its agent: the same opening for both, the evaluation's score, frame by frame."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from web_client import serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import pixelpong
from pixelpong.agent.choice import open_agent
from pixelpong.agent.frames import AgentFrames
from pixelpong.agent.game import play_game
from pixelpong.atari.action import Action
from pixelpong.atari.machine.cartridges import cartridge, scored_names
from pixelpong.errors import ConfigError
from pixelpong.faces.page.clocked import Message
from pixelpong.faces.page.game import AGAINST_RULES, make_game
from pixelpong.faces.page.rival import HURRY, RivalGame, choose_action


@pytest.fixture(scope="module")
def agent(breakout_run):
    return open_agent(breakout_run)[1]


@pytest.fixture(scope="module")
def plain(agent):
    """The agent by rules in which nothing sticks."""
    return dataclasses.replace(agent, protocol=dataclasses.replace(agent.protocol, sticky=0.0))


@pytest.mark.parametrize("index", [0, 3])
def test_the_agent_plays_the_bits_of_an_evaluation_frame_by_frame(agent, index):
    frames, moments = AgentFrames(agent, 7, index), [*play_game(agent, 7, index)]
    skip = agent.protocol.max_frame_skip
    for moment in moments[:-1]:
        np.testing.assert_array_equal(frames.game.screen, moment.screen)
        assert frames.game.score == moment.score
        for _ in range(skip):
            frames.advance()
    np.testing.assert_array_equal(frames.game.screen, moments[-1].screen)
    assert (frames.game.is_over, frames.game.score) == (True, moments[-1].score)


@pytest.mark.parametrize("seed", [1, 2])
def test_who_repeats_the_agents_actions_gets_the_agents_score_when_nothing_sticks(plain, seed):
    frames = AgentFrames(plain, seed)
    moments = [*play_game(plain, seed)]
    for moment in moments[:-1]:
        np.testing.assert_array_equal(frames.other.screen, moment.screen)
        for _ in range(plain.protocol.max_frame_skip):
            frames.other.play(plain.scene.actions[moment.action])
    np.testing.assert_array_equal(frames.other.screen, moments[-1].screen)
    assert (frames.other.is_over, frames.other.score) == (True, moments[-1].score)


def finish(game) -> int:
    """Tick until both games have ended; the number of ticks."""
    for number in range(30_000):
        if game.phase == "over":
            return number
        game.tick()
    raise AssertionError(game.describe())


def test_the_agents_score_is_that_of_the_evaluation_and_a_person_who_rests_scores_nothing(
    breakout_run, agent
):
    expected = pixelpong.evaluate(breakout_run, 1, seed=5, engine="serial", sampled=True)
    game = make_game(agent, 5)
    assert isinstance(game, RivalGame)
    assert [screen.tolist() for screen in game.screens[:1]] == [game.screens[1].tolist()]
    for speed in ("2", "1"):
        game.obey(Message(speed=speed, serve=True))
        game.tick()
    finish(game)
    assert game.points == (0, expected.returns[0])


def test_a_person_who_holds_keys_moves_the_paddle_and_nothing_sticks(agent, monkeypatch):
    played = []
    play = type(AgentFrames(agent, 0).other).play
    monkeypatch.setattr(
        "pixelpong.agent.frames.FramedGame.play",
        lambda game, action, uniform=0.0: (
            played.append((game, action)), play(game, action, uniform)
        ),
    )  # fmt: skip
    game = RivalGame(agent, 3)
    game.obey(Message(serve=True))
    wanted = []
    for held, action in (
        (["right"], Action.RIGHT), (["right", "left"], Action.LEFT), (["fire"], Action.FIRE),
        (["up"], Action.NOOP), (["left", "fire"], Action.FIRE), ([], Action.NOOP),
    ):  # fmt: skip
        game.obey(Message(held=held))
        game.tick()
        wanted.append(action)
    assert [action for it, action in played if it is game._person] == wanted


def test_two_keys_make_a_diagonal_and_of_opposites_the_newer_counts():
    every = tuple(range(18))
    assert choose_action(["up", "right", "fire"], every) == Action.UPRIGHTFIRE
    assert choose_action(["left", "up", "right"], every) == Action.UPRIGHT
    assert choose_action(["down", "fire", "up"], every) == Action.UPFIRE
    assert choose_action(["up", "right", "fire"], (0, 1, 3, 11)) == Action.RIGHTFIRE
    for name in scored_names():
        actions = cartridge(name).actions
        assert choose_action(["up", "left", "fire"], actions) in actions


def test_speed_is_frames_a_tick_and_a_pause_changes_nothing(agent):
    game = RivalGame(agent, 3)

    def frames():
        return [int(it._games.rows["num_frames"][0]) for it in (game._person, game._agent.game)]

    def rests(phase):
        before, shown = frames(), [screen.tobytes() for screen in game.screens]
        game.tick()
        after = frames(), [screen.tobytes() for screen in game.screens]
        assert (game.phase, *after) == (phase, before, shown)

    rests("ready")
    game.obey(Message(serve=True))
    for speed, count in (("0.5", 20), ("1", 40), ("2", 80)):
        game.obey(Message(speed=speed))
        before = frames()
        for _ in range(40):
            game.tick()
        assert frames() == [before[0] + count, before[1] + count]
    game.obey(Message(pause=True))
    rests("paused")
    game.obey(Message(pause=False, speed="1"))
    finish(game)
    rests("over")


def test_when_one_has_ended_the_other_goes_on_and_the_agent_hurries(agent):
    limit = dataclasses.replace(agent.protocol, max_frames=400)
    game = RivalGame(dataclasses.replace(agent, protocol=limit), 3)
    game.obey(Message(serve=True))
    while not game._agent.game.is_over:
        game._agent.advance()
    last, score = game.screens[1].tobytes(), game.points[1]
    game.tick()
    assert (game.phase, game.screens[1].tobytes(), game.points[1]) == ("playing", last, score)

    game = RivalGame(dataclasses.replace(agent, protocol=limit), 3)
    game.obey(Message(serve=True))
    for _ in range(400):
        game._person.play(0)
    assert game.phase == "agent only"
    assert finish(game) == 400 // HURRY


def test_a_game_whose_points_are_not_known_is_refused_in_a_sentence(agent, monkeypatch):
    facts = dataclasses.replace(cartridge("breakout"), scoring=None)
    monkeypatch.setattr("pixelpong.faces.page.rival.cartridge", lambda _: facts)
    with pytest.raises(ConfigError, match="The points of breakout are not known"):
        RivalGame(agent, 0)


def test_what_no_browser_sends_ends_the_game_with_a_reason(breakout_run):
    with serving(breakout_run.parent) as served:
        address = f"{served.url.replace('http', 'ws')}/game?run=breakout&agent=best"
        for more, message, reason in (
            ("&seed=x", None, "A seed is a number below"),
            ("&seed=-1", None, "A seed is a number below"),
            ("&seed=" + "9" * 17, None, "A seed is a number below"),
            ("&seed=1", '{"held": ["jump"]}', "Invalid enum value"),
            ("&seed=1", '{"held": "up"}', "held is str, not array"),
            ("&seed=1", json.dumps({"held": ["up"] * 11}), "At most 10 keys"),
        ):
            said = []
            with connect(address + more, origin=served.url) as socket:
                if message is not None:
                    socket.send(message)
                with pytest.raises(ConnectionClosed) as end:
                    while True:
                        said.append(socket.recv())
            problem = json.loads([text for text in said if isinstance(text, str)][-1])["problem"]
            assert reason in problem
            assert (end.value.rcvd.code, "\n" in problem) == (AGAINST_RULES, False)
