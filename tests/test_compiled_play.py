"""Playing in one compiled call, held to the same kernels called step by step, bit for bit."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools

import numpy as np
import pytest

from pixelpong import env
from pixelpong.config.protocols import PROTOCOLS, find_protocol
from pixelpong.env.features import NUM_INPUTS
from pixelpong.errors import EmulatorWarning
from pixelpong.learn import gated
from pixelpong.learn.network import init_params
from pixelpong.play.episodes import Player
from pixelpong.play.streams import StreamPlayer
from pixelpong.seeding import make_rng

GAMES = list(PROTOCOLS)


class StepByStep:
    """An emulator whose compiled game is out of explanation."""

    native = None

    def __init__(self, emulator):
        self._emulator = emulator

    def __getattr__(self, name):
        return getattr(self._emulator, name)


def make_emulator(name, **changes):
    emulator = env.make_emulator(dataclasses.replace(find_protocol(name), **changes))
    assert emulator.native is not None
    return emulator


def make_two(player, name, **changes):
    """A player in compiled code, and one that takes step by step."""
    compiled, other = make_emulator(name, **changes), make_emulator(name, **changes)
    return player(compiled), player(StepByStep(other))


@pytest.fixture(scope="module")
def fast():
    made = gated.init_params(make_rng(0, "params"), NUM_INPUTS, hidden=8, dtype="float32")
    return made | {"W2": 100 * made["W2"]}  # so that the actions are not all as likely


@pytest.fixture(scope="module")
def classic():
    return init_params(make_rng(0, "params"), hidden=20)


def assert_same_segments(one, two):
    for name, value in vars(one.segments[0]).items():
        np.testing.assert_array_equal(value, getattr(two.segments[0], name), err_msg=name)
    for name in ("previous", "current"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(two.state, name))
    assert one.state.snapshot == two.state.snapshot
    assert one.state.last_action == two.state.last_action
    tallies = [vars(each.state.tally) | {"play_seconds": 0} for each in (one, two)]
    assert tallies[0] == tallies[1]
    assert [each.to_dict() for each in one.episodes] == [each.to_dict() for each in two.episodes]
    assert (one.frames, one.entropy) == (two.frames, two.entropy)


def assert_same_trajectories(one, two):
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(two, name), err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_segments_are_those_of_single_steps(name, fast):
    """Across the ends of games, from each other's states, and cut in other places."""
    compiled, stepwise = make_two(StreamPlayer, name)
    state = None
    for update, horizon in enumerate((1, 64, 700, 900)):
        results = [
            player.play_segment(fast, state, horizon, make_rng(2, "train", update, 0))
            for player in (compiled, stepwise)
        ]
        assert_same_segments(*results)
        state = results[update % 2].state
    if name != "PongNoFrameskip-v4":
        assert state.tally.steps < 1665, "no game has ended"


@pytest.mark.slow
@pytest.mark.parametrize("is_greedy", [False, True])
@pytest.mark.parametrize("name", GAMES)
def test_episodes_are_those_of_single_steps(name, is_greedy, fast, classic):
    compiled, stepwise = make_two(StreamPlayer, name)
    rng = make_rng(3, "evaluate", 0, 1)
    one = compiled.play_episode(fast, rng, is_greedy=is_greedy)
    rng = make_rng(3, "evaluate", 0, 1)
    assert one.to_dict() == stepwise.play_episode(fast, rng, is_greedy=is_greedy).to_dict()
    assert_same_trajectories(
        *(
            player.play(classic, make_rng(3, "train", 1, 2), is_greedy=is_greedy)
            for player in make_two(Player, name)
        )
    )


@pytest.mark.parametrize("max_frames", [1, 9, 10, 402])
@pytest.mark.parametrize("name", ["ALE/Pong-v5", "Pong-v0"])
def test_the_frame_limit_cuts_where_single_steps_do(name, max_frames, fast, classic):
    """In the middle of a step too."""
    changes = {"max_frames": max_frames}
    one, two = (
        player.play_segment(fast, None, 250, make_rng(4, "train", 1, 0))
        for player in make_two(StreamPlayer, name, **changes)
    )
    assert_same_segments(one, two)
    assert one.episodes
    assert {stats.frames for stats in one.episodes} == {max_frames}
    trajectories = [
        player.play(classic, make_rng(4, "train", 1, 1))
        for player in make_two(Player, name, **changes)
    ]
    assert_same_trajectories(*trajectories)
    assert trajectories[0].num_frames == max_frames


def test_a_segment_goes_on_where_the_record_had_no_room(fast):
    emulator = make_emulator("ALE/Pong-v5")
    wanted = StreamPlayer(emulator).play_segment(fast, None, 70, make_rng(5, "train", 1, 0))
    small = StreamPlayer(emulator)
    small.play_segment(fast, None, 1, make_rng(5, "train", 1, 0))
    decider = small._own
    decider.steps, decider.offsets = decider.steps[:3].copy(), decider.offsets[:4].copy()
    assert_same_segments(small.play_segment(fast, None, 70, make_rng(5, "train", 1, 0)), wanted)
    assert len(decider.steps) >= 70


_NUMBER, _POINTER = ctypes.c_int32, ctypes.c_void_p
_PLAY_FRAMES = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _POINTER, _NUMBER, _NUMBER)


def give_up_at(player, call):
    """Let the player's compiled game meet, at one call, what it does not cover; what to keep."""
    game, *_ = player._game._compiled
    real, calls = _PLAY_FRAMES(int(game["play_frames"][0])), itertools.count()
    broken = _PLAY_FRAMES(lambda *given: -3 if next(calls) == call else real(*given))
    game["play_frames"] = ctypes.cast(broken, _POINTER).value
    return broken


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "classic"])
def test_where_the_compiled_game_gives_up_ale_takes_over_with_the_same_bits(mode, fast, classic):
    """In the middle of what is played; and what is played next is whole."""

    def play(player):
        rng = make_rng(6, "train", 1, 0)
        if mode == "fast":
            return player.play_segment(fast, None, 20, rng)
        return player.play(classic, rng)

    kind, assert_same = {
        "fast": (StreamPlayer, assert_same_segments),
        "classic": (Player, assert_same_trajectories),
    }[mode]
    broken, sound = kind(make_emulator("ALE/Pong-v5")), kind(make_emulator("ALE/Pong-v5"))
    kept = give_up_at(broken, call=7)
    with pytest.warns(EmulatorWarning, match="ALE plays"):
        assert_same(play(broken), play(sound))
    assert_same(play(broken), play(sound))
    del kept
