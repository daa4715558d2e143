"""Self-play: a game for two as a pure function of its item, and opponents that stay."""

from __future__ import annotations

import dataclasses
import importlib.resources

import numpy as np
import pytest
from dense import assert_same_play, decide, make_params
from lockstep import OracleForTwo
from toys import result_of, toy_config

import pixelpong
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.config.protocols import find_protocol
from pixelpong.items import ACTIONS, BUILTIN, DOWN, SELF, STAY, UP, Item
from pixelpong.learn.ppo import log_softmax
from pixelpong.play.player import Player
from pixelpong.play.worker import make_worker
from pixelpong.pong import cartridge
from pixelpong.pong import modes as duel
from pixelpong.pong.preprocess import mirror, preprocess
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng
from pixelpong.verification import compare_ways

PRESSED = {STAY: 1, UP: 4, DOWN: 5}


@pytest.fixture(scope="module")
def params():
    return make_params("ppo")


def make_player():
    return Player(find_protocol("ALE/Pong-v5"), "ppo", opponent=make_params("ppo", seed=1))


class Literal:
    """The literal form of a game for two: the oracle's pictures, dense networks, one side a row."""

    def __init__(self, players):
        pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
        self.oracle, self.players = OracleForTwo(duel.MODE), players
        self.held, self.last = [STAY, STAY], [STAY, STAY]
        self.fields = [[np.zeros((80, 80)), self.see(left)] for left in (False, True)]

    def see(self, left):
        picture = self.oracle.picture()
        screen = mirror(picture) if left else picture
        # The colours of the palette do not matter here, only what is not background.
        return (~np.isin(screen[35:195][::2, ::2], (0, 34, 228))).astype(float)

    def step(self, row, width):
        """Play a step with its draws; the observations, outputs and points of both sides."""
        seen = []
        for side, params in enumerate(self.players):
            x, logits, value = decide("ppo", params, *self.fields[side], self.last[side])
            ends = np.exp(log_softmax(logits[None])[0]).cumsum()
            place = int((row[side * width] >= ends[:-1]).sum())
            self.last[side] = ACTIONS[place]
            seen.append((x, value, place))
        before = self.points()
        for k in range(4):
            for side in range(2):
                if row[side * width + 2 + k] >= 0.25:
                    self.held[side] = self.last[side]
            memory = self.oracle.memory()
            is_out = memory[cartridge.BALL_ROW] == 0
            right, left = (
                PRESSED[held] if is_out and memory[button] else held
                for held, button in zip(
                    self.held, (cartridge.RIGHT_BUTTON, cartridge.LEFT_BUTTON), strict=True
                )
            )
            self.oracle.run(left, right)
        self.fields = [
            [fields[1], self.see(left)]
            for fields, left in zip(self.fields, (False, True), strict=True)
        ]
        return seen, self.points() - before

    def points(self):
        memory = self.oracle.memory().astype(int)
        return memory[cartridge.RIGHT_POINTS] - memory[cartridge.LEFT_POINTS]


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [False, True])
def test_both_sides_play_as_dense_networks_on_the_oracles_pictures_would(params, is_left):
    """Inputs, actions, values and rewards of a game, on multi-agent-ale-py, step by step."""
    draws = make_rng(0, "train", 1, 0).random((120, 12))
    item, own = Item("train", 0, 1, int(is_left), steps=120, opponent="another"), int(is_left)
    result = make_player().play(item, params, make_rng(0, "train", 1, 0))
    (played,), another = result.sides, make_params("ppo", seed=1)
    literal = Literal([another, params] if is_left else [params, another])
    for t in range(120):
        seen, points = literal.step(draws[t], 6)
        x, value, action = seen[own]
        inputs = played.indices[played.offsets[t] : played.offsets[t + 1]]
        assert sorted(inputs.tolist()) == np.flatnonzero(x).tolist()
        assert played.steps["action"][t] == action
        assert played.steps["value"][t] == pytest.approx(value, abs=1e-9)
        assert played.steps["reward"][t] == (-points if is_left else points)
    assert np.count_nonzero(played.steps["reward"]) >= 1


@pytest.mark.parametrize("opponent", [BUILTIN, SELF, "another"])
def test_the_next_steps_depend_on_their_item_alone(params, opponent):
    """On other consoles, after other streams and other opponents, and a second time."""
    player, other = make_player(), make_player()

    def play(player, stream, update):
        item = Item("train", 0, update, 1, steps=400, streams=stream, opponent=opponent)
        return player.play(item, params)

    first = play(player, None, 1)
    second = play(player, first.streams, 2)
    assert_same_play(play(player, None, 1), first)
    for each in (BUILTIN, SELF):
        other.play(Item("train", 9, 1, 1, steps=33, opponent=each), make_params("ppo", seed=1))
    assert_same_play(play(other, first.streams, 2), second)
    assert_same_play(play(player, first.streams, 2), second)


@pytest.mark.parametrize("name", ["W1", "W2", "b2"])
def test_what_is_played_depends_on_the_values_of_the_parameters_alone(name):
    """A caller may put another array into the same dict, or other numbers into the same array."""
    params, item = make_params("ppo"), Item("train", 0, 1, 0, steps=60)
    values = params[name].copy()
    others = np.random.default_rng(0).normal(size=values.shape).astype(values.dtype)
    players = [make_player() for _ in range(3)]
    first = players[0].play(item, params)
    params[name] = others.copy()
    wanted = players[1].play(item, params)
    assert_same_play(players[0].play(item, params), wanted)
    params[name][:] = values
    assert_same_play(players[0].play(item, params), first)
    params[name][:] = others
    assert_same_play(players[0].play(item, dict(params)), wanted)
    with pytest.raises(AssertionError):
        assert_same_play(first, wanted)


def test_a_worker_has_compiled_what_its_items_need(monkeypatch):
    """A game of two networks takes other kernels than that of one; see also `Worker.play`."""
    opponents, play = [], Player.play

    def noting(self, item, params, rng=None):
        opponents.append(item.opponent)
        return play(self, item, params, rng)

    monkeypatch.setattr(Player, "play", noting)
    make_worker(toy_config("fast"))
    assert opponents == [BUILTIN]
    worker = make_worker(toy_config("fast", opponent="half"))
    assert opponents == [BUILTIN, BUILTIN, SELF]
    with pytest.raises(AssertionError, match="only gradients"):
        worker.play(Item("evaluate", 0, 0, 0, games=2), make_params("ppo"))


def test_the_mirrored_screen_has_the_mirrored_field():
    screen = np.random.default_rng(0).choice([34, 200, 14], (210, 160)).astype(np.uint8)
    field, mirrored = preprocess(PALETTE[screen]), preprocess(PALETTE[mirror(screen)])
    np.testing.assert_array_equal(mirrored, field[:, ::-1])


def test_a_training_does_not_see_the_colours_after_the_cartridge_has_given_up(params):
    """Nobody wins a point: the episode ends before all pixels are on."""
    player, item = make_player(), Item("train", 0, 1, 0, steps=60)
    stream = player.play(item, params).streams
    stream["game"]["num_frames"] = 64_990
    result = player.play(dataclasses.replace(item, streams=stream), params)
    assert [episode.frames for episode in result.episodes][:1] == [duel.MAX_FRAMES]


@pytest.mark.slow
def test_all_ways_give_the_same_bits():
    """Half of the streams play against the agent itself."""
    ways = list(compare_ways(toy_config("fast", opponent="half"), ["serial", "threads"]))
    assert len(ways) >= 6
    assert all(way["is_same"] for way in ways)


@pytest.mark.slow
def test_an_agent_that_is_met_stays_as_it_was_whatever_becomes_of_its_file(tmp_path):
    shipped, file = importlib.resources.files("pixelpong") / "agent/shipped", tmp_path / "agent"
    file.write_bytes((shipped / "club.safetensors").read_bytes())
    config = toy_config("fast", opponent=str(file), hidden=3)
    whole = pixelpong.train(config, run=tmp_path / "whole", quiet=True)
    first = config.updated({"updates": 1}, "test")
    run = pixelpong.train(first, run=tmp_path / "run", quiet=True)
    file.write_bytes((shipped / "strong.safetensors").read_bytes())
    before = (run.path / "config.json").read_bytes()
    with pytest.raises(pixelpong.PixelpongError, match="nobody-001 is not a run, an agent"):
        pixelpong.resume(run, updates=2, quiet=True, allow_changes=True, opponent="nobody-001")
    assert (run.path / "config.json").read_bytes() == before
    run = pixelpong.resume(run, updates=2, quiet=True)
    file.unlink()
    run = pixelpong.resume(run, updates=3, quiet=True)
    one, two = (result_of(RunDirectory(each.path)) for each in (run, whole))
    assert one == two
