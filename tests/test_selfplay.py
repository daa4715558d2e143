"""Self-play: a game for two as a pure function of its item, and the same bits in all ways."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lockstep import OracleForTwo

import pixelpong
from pixelpong import session
from pixelpong.agent.choice import load_rival
from pixelpong.agent.file import load_shipped
from pixelpong.atari.palette import PALETTE
from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.config.protocols import find_protocol
from pixelpong.env import duel, make_emulator
from pixelpong.env.cartridge import (
    BALL_ROW,
    LEFT_BUTTON,
    LEFT_POINTS,
    RIGHT_BUTTON,
    RIGHT_POINTS,
)
from pixelpong.env.features import NUM_INPUTS, observe_features
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import mirror, preprocess
from pixelpong.items import ACTIONS, BUILTIN, DOWN, SELF, STAY, UP
from pixelpong.learn import gated
from pixelpong.learn.ppo import log_softmax
from pixelpong.learners import make_learner
from pixelpong.learners.league import League
from pixelpong.play.rivals import find_rival, list_rivals, pack_rival
from pixelpong.play.streams import StreamPlayer
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng
from pixelpong.verify import compare_ways, meet_rivals

PRESSED = {STAY: 1, UP: 4, DOWN: 5}
AGAINST_ITSELF = ((SELF, 1.0),)


def make_params(seed):
    made = gated.init_params(make_rng(seed, "params"), NUM_INPUTS, hidden=8, dtype="float64")
    return made | {"W2": 100 * made["W2"]}  # so that the actions are not all as likely


@pytest.fixture(scope="module")
def params():
    return make_params(0)


@pytest.fixture(scope="module")
def rival():
    return make_params(1)


def make_player():
    return StreamPlayer(make_emulator(find_protocol("ALE/Pong-v5")))


class Literal:
    """The literal form of a game for two: the oracle's pictures, dense networks, one side a row."""

    def __init__(self, players):
        pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
        self.oracle, self.players = OracleForTwo(duel.MODE), players
        self.held, self.last = [STAY, STAY], [ACTIONS.index(STAY)] * 2
        self.fields = [[np.zeros((80, 80)), self.see(left)] for left in (False, True)]

    def see(self, left):
        picture = self.oracle.picture()
        screen = mirror(picture) if left else picture
        # The colours of the palette do not matter here, only what is not background.
        return (~np.isin(screen[35:195][::2, ::2], (0, 34, 228))).astype(float)

    def step(self, row, width):
        """Play a step with its draws; the observations, outputs and points of both sides."""
        seen, wanted = [], []
        for side, params in enumerate(self.players):
            x = observe_features(*self.fields[side], self.last[side])
            y, _ = gated.forward(params, x[None].astype(np.float64))
            p = np.exp(log_softmax(y[:, :3])[0])
            draw = row[side * width]
            action = 0 if draw < p[0] else 1 if draw < p[0] + p[1] else 2
            self.last[side] = action
            wanted.append(ACTIONS[action])
            seen.append((x, y[0], action))
        before = self.points()
        for k in range(4):
            for side in range(2):
                if row[side * width + 2 + k] >= 0.25:
                    self.held[side] = wanted[side]
            memory = self.oracle.memory()
            is_out = memory[BALL_ROW] == 0
            right, left = (
                PRESSED[held] if is_out and memory[button] else held
                for held, button in zip(self.held, (RIGHT_BUTTON, LEFT_BUTTON), strict=True)
            )
            self.oracle.run(left, right)
        self.fields = [
            [fields[1], self.see(left)]
            for fields, left in zip(self.fields, (False, True), strict=True)
        ]
        return seen, self.points() - before

    def points(self):
        memory = self.oracle.memory().astype(int)
        return memory[RIGHT_POINTS] - memory[LEFT_POINTS]


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [False, True])
def test_both_sides_play_as_dense_networks_on_the_oracles_pictures_would(params, rival, is_left):
    """Inputs, actions, values and rewards of a game, on multi-agent-ale-py, step by step."""
    opponents = (("other", 1.0),)
    seed = next(
        seed for seed in range(20)
        if (make_rng(seed, "train", 1, 0).random((121, 12))[-1, 1] < 0.5) == is_left
    )  # fmt: skip
    draws = make_rng(seed, "train", 1, 0).random((120, 12))
    result = make_player().play_segment(
        params, None, 120, make_rng(seed, "train", 1, 0), opponents, lambda _: rival
    )
    assert result.state.is_left == is_left
    (segment,), own = result.segments, int(is_left)
    literal = Literal([rival, params] if is_left else [params, rival])
    for t in range(120):
        seen, points = literal.step(draws[t], 6)
        x, y, action = seen[own]
        inputs = segment.indices[segment.offsets[t] : segment.offsets[t + 1]]
        assert sorted(inputs.tolist()) == np.flatnonzero(x).tolist()
        assert segment.actions[t] == action
        assert segment.values[t] == pytest.approx(y[3], abs=1e-9)
        assert segment.rewards[t] == (-points if is_left else points)
    assert np.count_nonzero(segment.rewards) >= 1
    assert {name for name, _ in result.points} == {"other"}


def assert_same(one, two):
    for a, b in zip(one.segments, two.segments, strict=True):
        for name, value in vars(a).items():
            np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)
    states = [vars(each.state) | {"tally": None} for each in (one, two)]
    for name, value in states[0].items():
        other = states[1][name]
        is_same = value == other if isinstance(value, bytes) else np.array_equal(value, other)
        assert is_same, name
    assert one.points == two.points


@pytest.mark.parametrize("opponents", [AGAINST_ITSELF, ((BUILTIN, 0.2), ("other", 0.8))])
def test_a_segment_depends_on_its_item_alone(params, rival, opponents):
    """On other emulators, after other segments and other opponents, and a second time."""
    player, other = make_player(), make_player()

    def play(player, state, update):
        rng = make_rng(0, "train", update, 0)
        return player.play_segment(params, state, 400, rng, opponents, lambda _: rival)

    first = play(player, None, 1)
    second = play(player, first.state, 2)
    assert_same(play(player, None, 1), first)
    other.play_segment(rival, None, 33, make_rng(9, "train", 1, 1))
    other.play_segment(rival, None, 33, make_rng(9, "train", 1, 1), AGAINST_ITSELF)
    assert_same(play(other, first.state, 2), second)
    assert_same(play(player, first.state, 2), second)


def test_opponents_change_in_the_middle_of_a_segment(params, rival):
    opponents = ((BUILTIN, 0.5), ("other", 0.5))
    result = make_player().play_segment(
        params, None, 8000, make_rng(3, "train", 1, 0), opponents, lambda _: rival
    )
    met = [stats.opponent for stats in result.episodes]
    assert {BUILTIN, "other"} <= set(met)
    assert len(result.segments[0]) == 8000
    assert {name for name, _ in result.points} == {*met, result.state.opponent}
    rewards = [r for name, points in result.points for r in points]
    assert len(rewards) == np.count_nonzero(result.segments[0].rewards)
    for stats in result.episodes:
        assert max(stats.points_won, stats.points_lost) == 21
    assert [stats.to_dict().get("opponent", BUILTIN) for stats in result.episodes] == met


def test_against_itself_both_sides_are_learned_from(params):
    result = make_player().play_segment(
        params, None, 300, make_rng(0, "train", 1, 0), AGAINST_ITSELF
    )
    right, left = result.segments
    assert len(right) == len(left) == 300
    assert np.count_nonzero(right.rewards)
    np.testing.assert_array_equal(right.rewards, -left.rewards)
    np.testing.assert_array_equal(right.is_end, left.is_end)
    assert (right.actions != left.actions).any()


def test_the_mirrored_screen_has_the_mirrored_field():
    screen = np.random.default_rng(0).choice([34, 200, 14], (210, 160)).astype(np.uint8)
    field, mirrored = preprocess(PALETTE[screen]), preprocess(PALETTE[mirror(screen)])
    np.testing.assert_array_equal(mirrored, field[:, ::-1])


def test_a_training_does_not_see_the_colours_after_the_cartridge_has_given_up():
    """Nobody wins a point: the episode ends before all pixels are on."""
    config = small(opponent="builtin", horizon=60)
    params = gated.init_params(make_rng(0, "params"), NUM_INPUTS, hidden=8)
    item = make_learner(config).items()[0]
    emulator = make_emulator(config.environment.protocol)
    state = StreamPlayer(emulator).play_segment(params, None, 1, make_rng(0, "train", 1, 0)).state
    late = Emulator(config.environment.protocol, emulator.console)
    late.set_state(state.snapshot)
    late.num_frames = 64_990
    state = dataclasses.replace(state, snapshot=late.get_state())
    result = make_worker(config).play(dataclasses.replace(item, state=state), params)
    assert [stats.frames for stats in result.episodes][:1] == [duel.MAX_FRAMES]


# --- rivals and the league --------------------------------------------------------------------


def test_a_rival_is_the_agent_to_half_a_percent_and_its_name_says_all_of_it(params):
    rows = np.arange(0, NUM_INPUTS, 7)
    name, arrays = pack_rival(params, rows)
    found = find_rival(arrays | {"W1": params["W1"]}, name)
    largest = np.abs(params["W1"][rows]).max()
    np.testing.assert_allclose(found["W1"][rows], params["W1"][rows], atol=largest / 200)
    assert not np.delete(found["W1"], rows, axis=0).any()
    np.testing.assert_array_equal(found["W2"], params["W2"])
    assert find_rival(arrays | {"W1": params["W1"]}, name) is found
    changed = params | {"b2": params["b2"] + 1}
    assert pack_rival(changed, rows)[0] != name


def make_league(**changes):
    return League(load_preset("league").updated({"league_size": 2, **changes}, "test"))


def test_half_of_the_streams_play_against_itself_and_hard_opponents_are_met_more_often(params):
    league, rows = make_league(streams=4), np.arange(9)
    assert [league.opponents(stream) for stream in range(2)] == [AGAINST_ITSELF] * 2
    assert league.opponents(2) == ((BUILTIN, 1.0),)
    league.admit(params, rows)
    (_, name) = (score.name for score in league.scores)
    league.record([(BUILTIN, (1,) * 99), (name, (-1,) * 99), (SELF, (1, -1))])
    shares = dict(league.opponents(3))
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[BUILTIN] == pytest.approx(1 / 3)  # at least
    league.record([(name, (1,) * 500), (BUILTIN, (-1,) * 500)])
    shares = dict(league.opponents(3))
    assert 0.05 < shares[name] < 0.15  # never forgotten


def test_a_full_league_drops_the_one_that_is_beaten_most_when_no_stream_meets_it(params):
    league, rows = make_league(), np.arange(9)
    for update in range(2):
        league.admit(params | {"b2": params["b2"] + update}, rows)
    first, second = (score.name for score in league.scores[1:])
    league.record([(second, (1,) * 50)])
    league.admit(params | {"b2": params["b2"] + 2}, rows)
    assert second not in {score.name for score in league.scores}
    league.forget([second])
    assert second in list_rivals(league.arrays)
    league.forget([])
    assert set(list_rivals(league.arrays)) == {score.name for score in league.scores} - {BUILTIN}
    assert first in list_rivals(league.arrays)
    league.admit(params, rows)  # one of them again
    assert len(league.scores) == 3


def test_a_league_that_has_become_smaller_drops_all_that_are_too_many(params):
    large, rows = make_league(league_size=4), np.arange(9)
    for update in range(4):
        large.admit(params | {"b2": params["b2"] + update}, rows)
    league = make_league(league_size=2)
    league.set_state(large.arrays, large.scores, [])
    league.admit(params | {"b2": params["b2"] + 4}, rows)
    assert [score.name for score in league.scores[1:-1]] == [large.scores[4].name]


@pytest.mark.parametrize("damage", ["gone", "another bit", "a row too far", "another shape"])
def test_a_rival_that_is_not_what_its_name_says_is_refused(params, damage):
    league = make_league()
    league.admit(params, np.arange(9))
    name = league.scores[1].name
    arrays = {key: array.copy() for key, array in league.arrays.items()}
    if damage == "gone":
        arrays = {}
    elif damage == "another bit":
        arrays[f"rival.{name}.W1"][0, 0] ^= 1
    elif damage == "a row too far":
        arrays[f"rival.{name}.rows"][-1] = NUM_INPUTS
    else:
        arrays[f"rival.{name}.W2"] = arrays[f"rival.{name}.W2"][:, 1:]
    with pytest.raises(ValueError, match="rival"):
        make_league().set_state(arrays, league.scores, [])
    make_league().set_state(league.arrays, league.scores, [name])


# --- trainings --------------------------------------------------------------------------------

SMALL = {
    "hidden": 8, "streams": 4, "horizon": 60, "minibatches": 2, "league_every": 1,
    "league_size": 2, "anneal_steps": 10_000, "verbose": False,
}  # fmt: skip


def small(**changes) -> Config:
    return load_preset("league").updated({**SMALL, "updates": 3, **changes}, "test")


@pytest.mark.slow
@pytest.mark.parametrize("opponent", ["self", "league", "club"])
def test_all_ways_give_the_same_bits(opponent):
    config = meet_rivals(small(opponent=opponent))
    ways = list(compare_ways(config, ["serial", "threads"], ["native"]))
    assert len(ways) >= 6
    assert all(way.matches(ways[0]) for way in ways)


@pytest.mark.slow
def test_the_league_that_is_compared_meets_rivals(tmp_path):
    config = meet_rivals(small(league_size=4))
    run = pixelpong.train(config, run=tmp_path / "run", quiet=True)
    counters = RunDirectory.open(run.path).checkpoints.load_latest().counters["progress"]
    won_or_lost = [score["won"] + score["lost"] for score in counters["league"][1:]]
    assert any(won_or_lost)


@pytest.mark.parametrize(("opponent", "rows"), [("builtin", 100), ("self", 300), ("league", 300)])
def test_a_milestone_of_an_agent_that_meets_agents_keeps_more_of_it(
    opponent, rows, tmp_path, monkeypatch
):
    monkeypatch.setattr(session, "MILESTONE_ROWS", 100)
    monkeypatch.setattr(session, "MAX_ROWS", 300)
    config = small(opponent=opponent, updates=1, milestone_every=1, save_every=10)
    run = pixelpong.train(config, run=tmp_path / "run", quiet=True)
    (run.path / "checkpoints").rename(tmp_path / "checkpoints")
    params = pixelpong.Policy.load(run.path, 1).params
    assert np.count_nonzero(params["W1"].any(axis=(1, 2))) == rows


def test_an_opponent_that_has_gone_is_needed_no_more_once_the_training_has_begun(tmp_path):
    """Its numbers are in the checkpoint."""
    config = small(opponent="club")
    learner = make_learner(config)
    assert learner.league.needs_rival
    agent = load_rival(config)
    learner.league.admit(agent.params, np.arange(500))
    worker = make_worker(config)
    params = learner.params_to_play()
    learner.apply([worker.play(item, params) for item in learner.items()])
    other = make_learner(config)
    other.set_state(*learner.get_state())
    assert not other.league.needs_rival
    again, before = (each.items() for each in (other, learner))
    for one, two in zip(again, before, strict=True):
        assert_same(*(worker.play(each, params) for each in (one, two)))


def club_as_rival():
    params = load_shipped("club").params
    return pack_rival(params, np.flatnonzero(params["W1"].any(axis=(1, 2))))[0]


def names_met(run):
    """The opponents in the newest checkpoint of a run."""
    counters = RunDirectory.open(run.path).checkpoints.load_latest().counters
    return [score["name"] for score in counters["progress"]["league"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [("builtin", "league"), ("builtin", "club"), ("league", "club"), ("beginner", "club"),
     ("club", "league"), ("club", "self")],
)  # fmt: skip
@pytest.mark.slow
def test_a_resume_with_another_opponent_meets_that_one(before, after, tmp_path):
    many = {"league_every": 100, "horizon": 8}
    run = pixelpong.train(
        small(opponent=before, updates=1, **many), run=tmp_path / "run", quiet=True
    )
    changes = {"opponent": after, "allow_changes": True}
    run = pixelpong.resume(run, updates=2, quiet=True, **changes)
    wanted = {"self": [], "league": [BUILTIN], "club": [club_as_rival()]}[after]
    assert names_met(run) == wanted
    run = pixelpong.resume(run, updates=3, quiet=True)  # as it is now
    assert names_met(run) == wanted


def test_a_resume_against_nobody_leaves_the_run_as_it_was(tmp_path):
    run = pixelpong.train(small(updates=1), run=tmp_path / "run", quiet=True)
    before = (run.path / "config.json").read_bytes()
    with pytest.raises(pixelpong.PixelpongError, match="got nobody-001, which is not one"):
        pixelpong.resume(run, opponent="nobody-001", updates=2, allow_changes=True, quiet=True)
    assert (run.path / "config.json").read_bytes() == before


@pytest.mark.slow
def test_the_latest_run_is_the_one_before_the_run_that_meets_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixelpong.train(small(opponent="self", updates=1), name="first", quiet=True)
    for number, word in enumerate(["latest", "latest@0"]):
        name = f"against-{number}"
        run = pixelpong.train(small(opponent=word, updates=1), name=name, quiet=True)
        met = RunDirectory.open(run.path).config.ppo.opponent
        assert met == ["runs/first", "runs/against-0@0"][number]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"opponent": "nobody-001"}, "expected a run directory, got nobody-001"),
        ({"opponent": "leage"}, "did you mean league"),
        ({"opponent": ""}, "expected a run directory, got an empty name"),
        ({"opponent": "damaged.safetensors"}, "expected an agent in damaged"),
        ({"league_size": 0}, "from 1 to 32, got 0"),
        ({"opponent": "league", "emulator": "ale"}, "expected the native emulator and Pong"),
        ({"opponent": "self", "environment": "Catch-v0"}, "expected the native emulator and Pong"),
    ],
)
def test_an_opponent_that_cannot_be_met_is_one_line_and_leaves_no_run(
    tmp_path, monkeypatch, changes, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.safetensors").write_bytes(bytes(range(256)) * 9)
    with pytest.raises(pixelpong.PixelpongError, match=words) as error:
        pixelpong.train("league", run=tmp_path / "run", updates=1, **changes)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()
