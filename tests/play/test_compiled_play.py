"""Compiled play: equal to the literal form and to single steps, whatever was played before."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from dense import POLICY, PONG, make_params, play_densely, record

from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.atari.machine.record import STATE
from pixelpong.config.protocols import PROTOCOLS, find_protocol
from pixelpong.errors import EmulatorError
from pixelpong.items import ACTIONS, NUM_PIXELS, UP, Episode, Item
from pixelpong.kernels.observing import MAX_ACTIVE
from pixelpong.kernels.records import MAX_INPUTS, STREAM
from pixelpong.learn import network
from pixelpong.play.networks import NETS
from pixelpong.play.player import Player
from pixelpong.pong.features import NUM_FEATURES
from pixelpong.seeding import make_rng

GAMES = ["Pong-v0", "ALE/Pong-v5"]


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("algorithm", "is_greedy", "steps"),
    [(name, is_greedy, None) for name in POLICY for is_greedy in (False, True)]
    + [("ppo", False, 170)],
)
def test_what_is_played_equals_the_dense_form(game, algorithm, is_greedy, steps):
    """An episode, and a segment across the end of one, on a console that has played before."""
    protocol, params = find_protocol(game, max_frames=350), make_params(algorithm)
    player = Player(protocol, algorithm)
    player.play(Item("train", 1, 1, 0), params)
    result = player.play(Item("train", 5, 1, 2, is_greedy, steps=steps), params)
    (played,), (episode,) = result.sides, result.episodes
    rng = make_rng(5, "train", 1, 2)
    dense = play_densely(protocol, algorithm, params, rng, is_greedy=is_greedy)
    count = steps or episode.steps
    dense = list(itertools.islice(dense, count + 1))
    for t, step in enumerate(dense[:count]):
        wanted = record(step, algorithm)
        found = {name: float(played.steps[name][t]) for name in wanted}
        assert found == pytest.approx(wanted, abs=1e-9)
        if algorithm == "ppo":
            active = played.indices[played.offsets[t] : played.offsets[t + 1]]
            assert sorted(active.tolist()) == np.flatnonzero(step.x).tolist()
    if algorithm == "reinforce":
        xs = np.array([step.x for step in dense[:count]])
        np.testing.assert_array_equal(played.dense(), xs)
        np.testing.assert_allclose(played.hidden, network.forward(params, xs)[1], atol=1e-11)
    elif steps:  # of what it sees after the last one, too
        assert played.steps["value"][steps] == pytest.approx(dense[steps].value, abs=1e-9)
    first = dense[: episode.steps]
    assert first[-1].is_over
    points = [(t, step.reward) for t, step in enumerate(first) if step.reward]
    assert points
    assert [*zip(episode.ends, episode.rewards, strict=True)] == points
    assert episode.ups == sum(POLICY[algorithm][step.place] == UP for step in first)
    assert episode.entropy == pytest.approx(sum(record(it, algorithm)["entropy"] for it in first))


LIMITS = [(name, None) for name in PROTOCOLS] + [
    (name, limit) for name in GAMES for limit in (1, 9, 10, 402)
]
"""Protocols, and frame limits, which may cut an episode in the middle of a step."""


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "reinforce"])
@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_an_episode_is_that_of_single_steps(name, limit, algorithm):
    """Sampled from its start to its end, and greedily."""
    protocol, params = find_protocol(name, max_frames=limit), make_params(algorithm, 8, "float32")
    agent = Agent(params, algorithm, protocol, {})
    for is_greedy in (False, True):
        *moments, last = play_game(agent, 3, 1, is_greedy=is_greedy)
        result = Player(protocol, algorithm).play(Item("evaluate", 3, 0, 1, is_greedy), params)
        (played,), (episode,) = result.sides, result.episodes
        assert [each.step for each in moments] == [*range(last.step)]
        assert (last.action, None in [each.action for each in moments]) == (None, False)
        assert last.points[1] - last.points[0] == episode.episode_return
        names = ACTIONS if algorithm == "ppo" else range(4)
        actions = [moment.action for moment in moments]
        assert [names[action] for action in played.steps["action"]] == actions
        assert (episode.steps, episode.ups) == (last.step, actions.count(UP))
        points = [(each.step, each.reward) for each in (*moments, last) if each.reward]
        ends = zip(episode.ends, episode.rewards, strict=True)
        assert [(end + 1, reward) for end, reward in ends] == points
        assert episode.frames == limit if limit else abs(episode.episode_return) in range(1, 22)


def next_steps(steps, stream=None):
    return Item("train", 5, 1, 0, steps=steps, streams=stream)


@pytest.mark.parametrize("game", GAMES)
def test_a_stream_is_the_same_however_it_is_cut_and_all_of_it_is_counted(game):
    """One generator for all segments: then cutting changes nothing that is played."""
    player, params = Player(find_protocol(game, max_frames=300), "ppo"), make_params("ppo")
    lines = []
    for length in (1, 2, 61, 300):
        stream, rng = None, make_rng(3, "train", 1, 0)
        steps, frames, rewards, episodes = 0, 0, [], []
        while not episodes:
            result = player.play(next_steps(length, stream), params, rng)
            stream, steps, frames = result.streams, steps + length, frames + result.frames
            rewards += result.sides[0].steps["reward"][:length].tolist()
            episodes += result.episodes
        lines.append(episodes[0].line())
        (going_on,) = stream
        unfinished = going_on["game"]
        assert frames == sum(each.frames for each in episodes) + unfinished["num_frames"]
        assert steps == sum(each.steps for each in episodes) + unfinished["steps"]
        counted = [reward for each in episodes for reward in each.rewards]
        counted += going_on["tally"]["rewards"][: going_on["tally"]["points"]].tolist()
        assert counted == [reward for reward in rewards if reward] != []
    assert all(line == lines[0] for line in lines)


def test_the_streams_of_an_item_play_as_each_of_them_alone():
    """Across ends of episodes, with the same numbers."""
    player, params = Player(find_protocol("ALE/Pong-v5", max_frames=300), "ppo"), make_params("ppo")
    numbers, streams = make_rng(0, "play").random((3, 200, 6)), np.zeros(3, STREAM)

    def play(some):
        given = SimpleNamespace(random=lambda shape: numbers[some].copy())
        return player.play(next_steps(200, streams[some]), params, given)

    for _ in range(2):
        whole, alone = play(slice(3)), [play(slice(i, i + 1)) for i in range(3)]
        assert whole.episodes == tuple(it for each in alone for it in each.episodes) != ()
        assert whole.frames == sum(each.frames for each in alone)
        assert whole.streams.tobytes() == b"".join(each.streams.tobytes() for each in alone)
        (side,), sides = whole.sides, [each.sides[0] for each in alone]
        assert side.indices.tolist() == np.concatenate([it.indices for it in sides]).tolist()
        values = np.concatenate([it.steps["value"] for it in sides])
        assert side.steps["value"].tolist() == values.tolist()
        lengths = np.concatenate([np.diff(it.offsets) for it in sides])
        assert np.diff(side.offsets).tolist() == lengths.tolist()
        streams = whole.streams


def test_a_step_has_at_most_as_many_inputs_as_there_is_room_for():
    """All pixels change in the classic network; in the other one features appear and vanish."""
    blank, full = np.full((210, 160), 34, np.uint8), np.full((210, 160), 200, np.uint8)
    classic = NETS["reinforce"](PONG, make_params("reinforce"))
    for screen, count in ((blank, 0), (full, NUM_PIXELS), (full, 0), (blank, NUM_PIXELS)):
        classic.act(screen)
        assert len(classic.inputs()) == count <= MAX_ACTIVE
    gated, most, rng = NETS["ppo"](PONG, make_params("ppo")), 0, np.random.default_rng(0)
    for share in (0.01, 0.3, 0.4, 0.45, 0.3, 0.45, 0.0, 0.45):
        gated.act(np.where(rng.random((210, 160)) < share, 200, 34).astype(np.uint8))
        most = max(most, len(gated.inputs()))
    assert NUM_FEATURES * 0.9 < most <= MAX_INPUTS == NUM_FEATURES + 1


def test_statistics_of_an_episode_by_hand():
    episode = Episode.of_points(
        5, 20, entropy=2 * np.log(2), ups=3, ends=(1, 3, 4), rewards=(1, -1, -1)
    )
    line = episode.line()
    assert (line["episode_return"], line["points_won"], line["points_lost"]) == (-1.0, 1, 2)
    assert (line["up_share"], line["entropy"]) == (0.6, pytest.approx(2 * np.log(2) / 5))
    assert "opponent" not in line


def test_no_two_purposes_or_places_share_their_numbers():
    places = itertools.product((0, 1), ("train", "evaluate"), (1, 2), (0, 1))
    assert len({make_rng(*place).random() for place in places}) == 16


def test_what_the_game_does_not_cover_is_one_plain_error():
    player, params = Player(find_protocol("ALE/Pong-v5"), "ppo"), make_params("ppo")
    stream = player.play(next_steps(9), params).streams
    console = stream["console"].view(STATE)
    console["pc"], console["ram"] = 0x80, 0x02  # an opcode that halts the processor, in memory
    with pytest.raises(EmulatorError, match="The emulated game failed: "):
        player.play(next_steps(9, stream), params)


@pytest.mark.parametrize("algorithm", ["ppo", "reinforce"])
def test_a_coin_sticks_below_the_probability_and_never_or_always_at_its_ends(algorithm):
    """Coins lie in [0, 1): 0 is not below 0, and all are below 1."""
    params = make_params(algorithm)

    def play(sticky, coin):
        """How an episode ends in which all coins are the same."""
        numbers = make_rng(0, "play").random((1, 1024, 6))
        numbers[:, :, 2:] = coin
        given = SimpleNamespace(random=lambda shape: numbers.copy())
        player = Player(find_protocol("ALE/Pong-v5", sticky=sticky, max_frames=400), algorithm)
        return player.play(Item("train", 0, 1, 0), params, given).streams.tobytes()

    assert play(0.0, 0.0) == play(0.0, 0.9)
    assert play(1.0, 0.0) == play(1.0, 1 - 2**-53) != play(0.0, 0.0)
    assert play(0.25, 0.25) == play(0.0, 0.9)
    assert play(0.25, 0.2499) == play(1.0, 0.0)
