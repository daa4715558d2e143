"""Games of agents that play other games than Pong: those of evaluations, explained exactly."""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest

import pixelpong
from pixelpong import Policy
from pixelpong.agent.choice import open_agent
from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.atari.envs import gym
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.config.protocols import protocol_of
from pixelpong.errors import ConfigError
from pixelpong.evaluation import play_games
from pixelpong.items import Item
from pixelpong.learn import gated
from pixelpong.learn.ppo import add_parts
from pixelpong.play.networks import NETS, PLAYER
from pixelpong.play.player import Player
from pixelpong.play.scenes import find_scene
from pixelpong.seeding import make_rng
from pixelpong.sight import view
from pixelpong.sight.blobs import find_cells


@pytest.fixture(scope="module")
def make_agent():
    """Make an agent that is not trained, but decided enough that its actions differ."""

    def make(game, max_frames=1200):
        scene, protocol = find_scene(game), protocol_of(game)
        params = NETS["ppo"].init(scene, make_rng(4, "params"), 12, "float64")
        params["W2"] *= 40
        protocol = dataclasses.replace(protocol, max_frames=max_frames)
        return Agent(params, "ppo", protocol, {"update": 0}, sight=scene.sight)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("game", ["breakout", "ms_pacman"])
@pytest.mark.parametrize("is_greedy", [False, True])
def test_a_game_is_that_of_the_evaluation(make_agent, game, is_greedy):
    agent = make_agent(game)
    player = Player(agent.protocol, "ppo", scene=agent.scene)
    engine = SimpleNamespace(
        run=lambda items, params: [player.play(item, params) for item in items]
    )
    played = play_games(engine, agent.params, seed=3, episodes=3, is_greedy=is_greedy)
    for index, episode in enumerate(played):
        *moments, last = play_game(agent, 3, index, is_greedy=is_greedy)
        assert (last.score, last.step) == (episode.episode_return, episode.steps)
        result = player.play(Item("evaluate", 3, 0, index, is_greedy), agent.params)
        actions = [moment.action for moment in moments]
        assert result.sides[0].steps["action"].tolist() == actions
        assert (last.action, len({*actions}) > 1) == (None, True)
        rewards = sum(moment.reward for moment in (*moments, last))
        assert rewards == last.score
        lives = [moment.lives for moment in (*moments, last)]
        assert lives == sorted(lives, reverse=True)
        assert lives[0] == {"breakout": 5, "ms_pacman": 3}[game]


def test_by_default_actions_are_sampled_as_in_evaluations(make_agent):
    agent = make_agent("breakout", 400)

    def actions(**how):
        return [moment.action for moment in play_game(agent, 3, 1, **how)]

    assert actions() == actions(is_greedy=False) != actions(is_greedy=True)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["breakout", "ms_pacman"])
def test_saliency_and_the_rest_are_exactly_the_best_action_against_the_mean_of_the_others(
    make_agent, game
):
    agent = make_agent(game)
    scene, before, last, bests = agent.scene, None, 0, set()
    for moment in play_game(agent, 3, 1, explains_every=1):
        now = view.see(agent.sight, moment.screen, before)
        x = np.zeros(scene.num_inputs)
        x[view.observe(now, before, last)] = 1
        y, _ = gated.forward(agent.params, x[None])
        (logits,) = add_parts(y, scene.parts, np.zeros((1, 0)))
        best = int(logits.argmax())
        seen, others = moment.explanation, np.delete(logits, best)
        assert seen.saliency.sum() + seen.rest == pytest.approx(logits[best] - others.mean())
        chances = np.exp(logits - logits.max())
        np.testing.assert_allclose(seen.probabilities, chances / chances.sum(), atol=1e-9)
        assert seen.value == pytest.approx(y[0, len(logits)])
        check_cells(agent, moment, now)
        before, last = now, moment.action
        bests.add(best)
    assert len(bests) > 1
    assert moment.action is None


def check_cells(agent, moment, now):
    """The classes of lit cells, and the cells of the player's blob."""
    cells, classes = find_cells(agent.sight, moment.screen)
    field = moment.explanation.field
    assert field.shape == moment.explanation.saliency.shape == (105, 80)
    np.testing.assert_array_equal(np.flatnonzero(field), cells)
    np.testing.assert_array_equal(field.ravel()[cells] % PLAYER, classes)
    own = field[field >= PLAYER]
    assert {*own.tolist()} <= {agent.sight.player + PLAYER}
    kinds = [blob for blob in now.blobs if blob.kind == agent.sight.player]
    assert len(own) in {0, *(blob.size for blob in kinds)}


def test_explanations_come_when_they_are_asked_for_and_change_nothing(make_agent):
    agent = make_agent("breakout", 200)
    plain, some = (
        [*play_game(agent, 3, 1, explains_every=every, explains_before=30)] for every in (0, 7)
    )
    explained = [moment.step for moment in some if moment.explanation]
    assert explained == [0, 7, 14, 21, 28]
    assert [(it.action, it.score) for it in plain] == [(it.action, it.score) for it in some]


def test_a_picture_with_more_rows_and_european_colours_is_whole(make_agent):
    moment = next(play_game(make_agent("pacman", 100), 3))
    assert moment.frame.shape == (250, 160, 3)
    env = pixelpong.make_env(game="pacman")
    frame, _ = env.reset(seed=0)
    assert {*map(tuple, moment.frame.reshape(-1, 3).tolist())} & {
        *map(tuple, frame.reshape(-1, 3).tolist())
    }
    np.testing.assert_array_equal(moment.frame, PALETTES["PAL"][moment.screen])


# --- policies -----------------------------------------------------------------------------------


def test_a_policy_decides_on_frames_as_its_agent_does_in_an_evaluation(breakout_run):
    policy, other = Policy.load(breakout_run), Policy.load(breakout_run)
    _, agent = open_agent(breakout_run)
    assert policy.actions == (0, 1, 2, 3), "in Gymnasium's numbers"
    draws, state = make_rng(3, "evaluate", 0, 1), None
    for moment in play_game(agent, 3, 1):
        if moment.action is None:
            break
        first, *_ = draws.random(7)  # a step's row: action, skip, four frames, the opening
        uniform = SimpleNamespace(random=lambda first=first: first)
        chances = policy.probabilities(moment.frame)
        assert policy.value(moment.frame) is not None
        assert policy.act(moment.frame, uniform) == moment.action
        assert chances.sum() == pytest.approx(1)
        other.rng = uniform
        (action,), state = other.predict(moment.frame[None], state, deterministic=False)
        assert action == moment.action
    assert moment.step > 50


def test_predict_forgets_what_it_saw_where_an_episode_starts(breakout_run):
    policy, fresh = Policy.load(breakout_run), Policy.load(breakout_run)
    env = pixelpong.make_env(game="breakout")
    frame, _ = env.reset(seed=0)
    state = None
    for _ in range(30):
        _, state = policy.predict(frame, state)
        frame, *_ = env.step(1)
    _, (begun, kept) = policy.predict(np.stack([frame] * 2), state * 2, [True, False])
    fresh.act(frame)
    assert begun.stream.tobytes() == fresh._memory.stream.tobytes() != kept.stream.tobytes()


@pytest.mark.slow
def test_gymnasiums_own_game_is_played_as_ours(breakout_run, monkeypatch):
    policy, other = Policy.load(breakout_run), Policy.load(breakout_run)
    ours, theirs = pixelpong.make_env(game="breakout"), make_theirs("breakout")
    frame, _ = ours.reset(seed=7)
    same, _ = theirs.reset(seed=7)
    for _ in range(100):
        action = policy.act(frame)
        assert other.act(same) == action
        frame, *_ = ours.step(action)
        same, *_ = theirs.step(action)
    short = functools.partial(make_theirs, max_num_frames_per_episode=1200)
    monkeypatch.setattr(gym, "make_theirs", short)
    found = pixelpong.evaluate(policy, 2, seed=3, in_gymnasium=True)
    assert found.mean_steps <= 300
    assert found.protocol == "ALE/Breakout-v5"
    assert all(value >= 0 and value == int(value) for value in found.returns)
    theirs.close()


def test_what_is_no_frame_of_the_game_is_refused(breakout_run):
    policy = Policy.load(breakout_run)
    for wrong in np.zeros((84, 84), np.uint8), np.zeros((250, 160, 3), np.uint8), None:
        with pytest.raises(ConfigError, match="a frame of 210 rows, 160 columns and 3 colours"):
            policy.act(wrong)
    with pytest.raises(ConfigError, match=r"colours that no Atari shows; use make_env\(game="):
        policy.act(np.full((210, 160, 3), 77, np.uint8))


def test_each_colour_is_read_as_its_index_and_a_shared_one_as_that_of_the_background(make_agent):
    for game in ("breakout", "pacman"):
        agent = make_agent(game)
        policy, palette = Policy(agent), PALETTES[cartridge(game).palette]
        screen = np.zeros((cartridge(game).rows, 160), np.uint8)
        screen[:210] = agent.sight.background
        np.testing.assert_array_equal(policy._read(palette[screen])[:210], screen[:210])
        if game == "breakout":  # no two American colours are the same
            screen = np.resize(np.arange(0, 256, 2, dtype=np.uint8), screen.shape)
            np.testing.assert_array_equal(policy._read(palette[screen]), screen)
