"""The policy that looks at screens: it thinks what the definitions say, and saliency adds up."""

from __future__ import annotations

import numpy as np
import pytest
from dense import decide, make_params

from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import find_protocol
from pixelpong.env import features
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import DOWN, STAY, UP
from pixelpong.learn import network
from pixelpong.play.networks import APPEARED, NETS, OFF, STAYED, VANISHED
from pixelpong.seeding import make_rng


@pytest.fixture(params=["reinforce", "ppo"])
def algorithm(request):
    return request.param


def play(algorithm, game, steps):
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
        action = policy.act(emulator.screen, draws[0])
        yield previous, frame, last, action, policy
        emulator.step(action, draws[1:])
        previous, last = frame, action


@pytest.mark.slow
@pytest.mark.parametrize("game", ["Pong-v0", "ALE/Pong-v5"])
def test_what_it_saw_and_thinks_is_what_the_definitions_give(algorithm, game):
    params = make_params(algorithm)
    for previous, frame, last, _, policy in play(algorithm, game, steps=100):
        explanation = policy.explain()
        _, logits, value = decide(algorithm, params, previous, frame, last)
        expected = np.exp(logits - logits.max())
        np.testing.assert_allclose(explanation.probabilities, expected / expected.sum(), atol=1e-9)
        assert explanation.value == (None if value is None else pytest.approx(value, abs=1e-9))
        by_action = dict(zip(policy.actions, logits, strict=True))
        summed = explanation.saliency.sum() + explanation.rest
        assert summed == pytest.approx(by_action[UP] - by_action[DOWN], abs=1e-9)
        field = explanation.field
        assert (explanation.saliency[field == OFF] == 0).all()
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
    played = play(algorithm, "ALE/Pong-v5", steps=101)
    for (*_, action, player), moment in zip(played, moments, strict=True):
        assert moment.action == action
        if moment.step % 7:
            assert moment.explanation is None
        else:
            wanted, found = player.explain(), moment.explanation
            np.testing.assert_array_equal(found.probabilities, wanted.probabilities)
            np.testing.assert_array_equal(found.saliency, wanted.saliency)


def test_saliency_is_what_a_pixel_taken_away_takes_away():
    """Of the classic network, within one linear piece: without a gate that closes."""
    params = make_params("reinforce")
    *_, (previous, frame, _, _, policy) = play("reinforce", "ALE/Pong-v5", steps=90)
    explanation = policy.explain()
    x = (frame - previous).ravel().astype(np.float64)
    _, h = network.logits(params, x[None])
    assert x.any()
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
