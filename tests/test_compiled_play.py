"""Playing in one compiled call, compared with single steps that a network decides one by one."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools

import numpy as np
import pytest

from pixelpong import kernels
from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import PROTOCOLS, find_protocol
from pixelpong.env.features import NUM_INPUTS
from pixelpong.env.native import NativeConsole
from pixelpong.errors import EmulatorError
from pixelpong.items import ACTIONS, UP, Item
from pixelpong.learn import gated
from pixelpong.learn.network import init_params
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng
from pixelpong.verify import compare_with_ale

LIMITS = [(name, None) for name in PROTOCOLS] + [
    (name, limit) for name in ("ALE/Pong-v5", "Pong-v0") for limit in (1, 9, 10, 402)
]
"""Protocols, and frame limits, which may cut an episode in the middle of a step."""


@pytest.fixture(scope="module")
def fast():
    made = gated.init_params(make_rng(0, "params"), NUM_INPUTS, hidden=8, dtype="float32")
    return made | {"W2": 100 * made["W2"]}  # so that the actions are not all as likely


@pytest.fixture(scope="module")
def classic():
    return init_params(make_rng(0, "params"), hidden=20)


@pytest.mark.slow
@pytest.mark.parametrize("is_greedy", [False, True])
@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_an_episode_is_that_of_single_steps(name, limit, is_greedy, fast, classic):
    protocol = find_protocol(name, max_frames=limit)
    for algorithm, params in (("ppo", fast), ("reinforce", classic)):
        agent = Agent(params, algorithm, protocol, {})
        *moments, last = play_game(agent, 3, 1, is_greedy=is_greedy)
        result = Player(protocol, algorithm).play(Item("evaluate", 3, 0, 1, is_greedy), params)
        (played,), (episode,) = result.sides, result.episodes
        names = ACTIONS if algorithm == "ppo" else range(4)
        actions = [moment.action for moment in moments]
        assert [names[action] for action in played.steps["action"]] == actions
        assert (episode.steps, episode.ups) == (last.step, actions.count(UP))
        points = [(each.step, each.reward) for each in (*moments, last) if each.reward]
        ends = zip(episode.ends, episode.rewards, strict=True)
        assert [(end + 1, reward) for end, reward in ends] == points
        assert limit is None or episode.frames == limit


def test_a_stream_goes_on_where_the_record_had_no_room(fast):
    item = Item("train", 5, 1, 0, steps=70, stream=np.zeros(1, kernels.STREAM))
    wanted, small = (Player(find_protocol("ALE/Pong-v5"), "ppo") for _ in range(2))
    small.play(dataclasses.replace(item, steps=1), fast)
    decider = small._networks[0]
    decider.steps, decider.offsets = decider.steps[:3].copy(), decider.offsets[:4].copy()
    one, two = wanted.play(item, fast), small.play(item, fast)
    for name, value in vars(one.sides[0]).items():
        np.testing.assert_array_equal(value, getattr(two.sides[0], name), err_msg=name)
    assert one.stream.tobytes() == two.stream.tobytes()
    assert len(decider.steps) >= 70


_NUMBER, _POINTER = ctypes.c_int32, ctypes.c_void_p
_PLAY_FRAMES = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _POINTER, _NUMBER, _NUMBER)


def test_what_the_game_does_not_cover_is_one_plain_error(classic):
    player, item = Player(find_protocol("ALE/Pong-v5"), "reinforce"), Item("train", 6, 1, 0)
    console, _ = player._game(item)
    real, calls = _PLAY_FRAMES(console.address), itertools.count()
    broken = _PLAY_FRAMES(lambda *given: -3 if next(calls) == 7 else real(*given))
    console.address = ctypes.cast(broken, _POINTER).value
    with pytest.raises(EmulatorError, match="expected a state that a game of Pong reaches, got"):
        player.play(item, classic)


def test_verify_finds_an_emulator_that_plays_otherwise(monkeypatch):
    """One bit of memory, once."""
    assert compare_with_ale(0) is None
    real, count = NativeConsole.run, itertools.count()

    def run(self, actions, draws):
        done = real(self, actions, draws)
        self.memory[100] ^= next(count) == 1233
        return done

    monkeypatch.setattr(NativeConsole, "run", run)
    assert compare_with_ale(0) == 1234
