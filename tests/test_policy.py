"""The policy that looks at screens: it decides as the rollouts do, and its saliency adds up."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import find_protocol
from pixelpong.env import features
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import ACTIONS, DOWN, STAY, UP, Item
from pixelpong.learn import gated, network
from pixelpong.play.networks import APPEARED, GREEDY, NETS, OFF, STAYED, VANISHED
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng

GAMES = ["Pong-v0", "ALE/Pong-v5"]


def make_params(algorithm, dtype="float64"):
    if algorithm == "ppo":
        made = gated.init_params(make_rng(0, "params"), features.NUM_INPUTS, hidden=12, dtype=dtype)
        return made | {"W2": 100 * made["W2"], "b2": made["b2"] + np.array([0.1, 0.2, -0.3, 0.4])}
    made = network.init_params(make_rng(0, "params"), hidden=12, dtype=dtype)
    return made | {"W2": 30 * made["W2"]}


@pytest.fixture(params=["reinforce", "ppo"])
def algorithm(request):
    return request.param


def play(algorithm, game, *, is_greedy, steps=300):
    """Moments of one episode: screen before the action, the policy's action; and the policy."""
    emulator = Emulator(find_protocol(game))
    policy = NETS[algorithm](make_params(algorithm))
    rng = make_rng(3, "evaluate", 0, 1)
    emulator.reset()
    policy.reset()
    previous, last = None, STAY
    for _ in range(steps):
        draws = rng.random(2 + emulator.protocol.max_frame_skip).tolist()
        frame = preprocess(emulator.frame())
        action = policy.act(emulator.screen, GREEDY if is_greedy else draws[0])
        yield previous, frame, last, action, policy
        emulator.step(action, draws[1:])
        previous, last = frame, action
        if emulator.is_over:
            return


@pytest.mark.slow
@pytest.mark.parametrize("is_greedy", [True, False])
@pytest.mark.parametrize("game", GAMES)
def test_it_decides_as_the_rollouts_do(algorithm, game, is_greedy):
    """A whole episode: the actions of the fast player, which the training's results rest on."""
    item = Item("evaluate", seed=3, update=0, index=1, is_greedy=is_greedy)
    (played,) = Player(find_protocol(game), algorithm).play(item, make_params(algorithm)).sides
    names = ACTIONS if algorithm == "ppo" else range(4)
    expected = [names[action] for action in played.steps["action"]]
    assert [a for *_, a, _ in play(algorithm, game, is_greedy=is_greedy, steps=10**6)] == expected


def dense_logits(algorithm, params, previous, frame, last):
    """Of the policy's actions; the value: by the readable definitions."""
    if algorithm == "ppo":
        before = np.zeros((80, 80)) if previous is None else previous
        x = features.observe_features(before, frame, ACTIONS.index(last))
        (y,), _ = gated.forward(params, x[None].astype(np.float64))
        return y[:3], y[3]
    x = np.zeros(6400) if previous is None else (frame - previous).ravel()
    (z,), _ = network.logits(params, x[None].astype(np.float64))
    return np.array([z, 0.0]), None


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_what_it_thinks_is_what_the_definitions_give(algorithm, game):
    params = make_params(algorithm)
    for previous, frame, last, _, policy in play(algorithm, game, is_greedy=False, steps=120):
        explanation = policy.explain()
        logits, value = dense_logits(algorithm, params, previous, frame, last)
        expected = np.exp(logits - logits.max())
        np.testing.assert_allclose(explanation.probabilities, expected / expected.sum(), atol=1e-9)
        assert explanation.value == (None if value is None else pytest.approx(value, abs=1e-9))
        by_action = dict(zip(policy.actions, logits, strict=True))
        summed = explanation.saliency.sum() + explanation.rest
        assert summed == pytest.approx(by_action[UP] - by_action[DOWN], abs=1e-9)


def test_what_it_saw_is_the_preprocessed_frames(algorithm):
    for previous, frame, _, _, policy in play(algorithm, "ALE/Pong-v5", is_greedy=False):
        field = policy.explain().field
        if previous is None and algorithm == "reinforce":
            assert (field == OFF).all()  # the first observation is all zeros
            continue
        before = np.zeros((80, 80)) if previous is None else previous
        np.testing.assert_array_equal(field == APPEARED, (frame > 0) & (before == 0))
        np.testing.assert_array_equal(field == VANISHED, (frame == 0) & (before > 0))
        stayed = (frame > 0) & (before > 0) if algorithm == "ppo" else np.zeros((80, 80), bool)
        np.testing.assert_array_equal(field == STAYED, stayed)


def test_a_game_is_explained_every_few_steps_and_after_the_end(algorithm):
    protocol = find_protocol("ALE/Pong-v5", max_frames=401)
    agent = Agent(make_params(algorithm), algorithm, protocol, {})
    *moments, last = play_game(agent, 3, 1, is_greedy=False, explains_every=7)
    assert (last.step, last.action, last.explanation is None) == (101, None, False)
    played = play(algorithm, "ALE/Pong-v5", is_greedy=False, steps=101)
    for (*_, action, player), moment in zip(played, moments, strict=True):
        assert moment.action == action
        if moment.step % 7:
            assert moment.explanation is None
        else:
            wanted, found = player.explain(), moment.explanation
            np.testing.assert_array_equal(found.probabilities, wanted.probabilities)
            np.testing.assert_array_equal(found.saliency, wanted.saliency)


@pytest.mark.parametrize("game", GAMES)
def test_saliency_adds_up_to_the_decision(algorithm, game):
    for *_, policy in play(algorithm, game, is_greedy=False, steps=120):
        explanation = policy.explain()
        *_, up, down = policy.answer()[0]
        summed = explanation.saliency.sum() + explanation.rest
        assert summed == pytest.approx(np.log(up / down), abs=1e-9)
        assert (explanation.saliency[explanation.field == OFF] == 0).all()


def test_saliency_is_what_a_pixel_taken_away_takes_away(algorithm):
    """Within one linear piece: with small weights on the product, without a gate that closes."""
    if algorithm == "ppo":
        pytest.skip("there a pixel's inputs may go on without it")
    params = make_params(algorithm)
    *_, (previous, frame, _, _, policy) = play(algorithm, "ALE/Pong-v5", is_greedy=False, steps=90)
    explanation = policy.explain()
    x = (frame - previous).ravel().astype(np.float64)
    _, h = network.logits(params, x[None])
    for pixel in np.flatnonzero(x):
        row = x[pixel] * params["W1"][pixel] * (h[0] > 0)
        assert explanation.saliency.ravel()[pixel] == pytest.approx(row @ params["W2"], abs=1e-12)


def test_shares_go_to_the_pixels_that_put_the_input_on():
    """One pair, by hand: half of its worth to each of the two cells, evenly to their pixels."""
    previous = np.zeros((80, 80))
    frame = np.zeros((80, 80))
    frame[10, 4:6] = 1  # left cell, two pixels
    frame[20, 40] = 1  # right cell, one
    x = features.observe_features(previous, frame, 0)
    pair = features.NUM_FEATURES + np.flatnonzero(features.find_features(frame))[-1]
    inputs = np.flatnonzero(x)
    now = np.flatnonzero(frame)
    shares = (inputs == pair).astype(np.float64)
    assert shares.sum() == 1
    shared = features.share_among_pixels(now, now[:0], inputs, shares)
    assert shared[10, 4] == shared[10, 5] == 0.25
    assert shared[20, 40] == 0.5
    assert shared.sum() == 1
