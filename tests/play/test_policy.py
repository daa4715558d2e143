"""The policy that looks at screens: it thinks what the definitions say, and saliency adds up."""

from __future__ import annotations

import numpy as np
import pytest
from dense import POLICY, decide, make_params

from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import find_protocol
from pixelpong.items import DOWN, STAY, UP
from pixelpong.learn import network
from pixelpong.play.networks import APPEARED, OFF, STAYED, VANISHED
from pixelpong.pong import features
from pixelpong.pong.preprocess import preprocess

NOTHING = np.zeros((80, 80))


def play(algorithm, game="ALE/Pong-v5", explains_every=1):
    """Moments of one episode of 100 steps."""
    agent = Agent(make_params(algorithm), algorithm, find_protocol(game, max_frames=400), {})
    return [*play_game(agent, 3, 1, is_greedy=False, explains_every=explains_every)]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
@pytest.mark.parametrize(("game", "every"), [("Pong-v0", 7), ("ALE/Pong-v5", 1)])
def test_what_it_saw_and_thinks_is_what_the_definitions_give(algorithm, game, every):
    """In every few steps, and after the end."""
    params, moments = make_params(algorithm), play(algorithm, game, every)
    assert len(moments) > 90
    previous, last = None, STAY
    for moment in moments:
        explanation, frame = moment.explanation, preprocess(moment.frame)
        is_explained = moment.step % every == 0 or moment is moments[-1]
        assert (explanation is not None) == is_explained
        if is_explained:
            thought = decide(algorithm, params, previous, frame, last)[1:]
            check_explanation(algorithm, explanation, previous, frame, *thought)
        previous, last = frame, moment.action


def check_explanation(algorithm, explanation, previous, frame, logits, value):
    expected = np.exp(logits - logits.max())
    np.testing.assert_allclose(explanation.probabilities, expected / expected.sum(), atol=1e-9)
    assert explanation.value == (None if value is None else pytest.approx(value, abs=1e-9))
    by_action = dict(zip(POLICY[algorithm], logits, strict=True))
    summed = explanation.saliency.sum() + explanation.rest
    assert summed == pytest.approx(by_action[UP] - by_action[DOWN], abs=1e-9)
    before, field = NOTHING if previous is None else previous, explanation.field
    if previous is None and algorithm == "reinforce":
        before = frame  # the first observation is all zeros
    assert (explanation.saliency[field == OFF] == 0).all()
    np.testing.assert_array_equal(field == APPEARED, (frame > 0) & (before == 0))
    np.testing.assert_array_equal(field == VANISHED, (frame == 0) & (before > 0))
    stayed = (frame > 0) & (before > 0) & (algorithm == "ppo")
    np.testing.assert_array_equal(field == STAYED, stayed)


def test_saliency_is_what_a_pixel_taken_away_takes_away():
    """Of the classic network, within one linear piece: without a gate that closes."""
    params = make_params("reinforce")
    before, moment = play("reinforce")[89:91]
    x = (preprocess(moment.frame) - preprocess(before.frame)).ravel().astype(np.float64)
    _, h = network.logits(params, x[None])
    assert x.any()
    for pixel in np.flatnonzero(x):
        row = x[pixel] * params["W1"][pixel] * (h[0] > 0)
        found = moment.explanation.saliency.ravel()[pixel]
        assert found == pytest.approx(row @ params["W2"], abs=1e-12)


def test_shares_go_to_the_pixels_that_put_the_input_on():
    """One pair, by hand: half of its worth to each of the two cells, evenly to their pixels."""
    frame = np.zeros((80, 80))
    frame[10, 4:6] = 1  # left cell, two pixels
    frame[20, 40] = 1  # right cell, one
    x = features.observe_features(NOTHING, frame, 0)
    pair = features.NUM_FEATURES + np.flatnonzero(features.find_features(frame))[-1]
    inputs = np.flatnonzero(x)
    now = np.flatnonzero(frame)
    shares = (inputs == pair).astype(np.float64)
    assert shares.sum() == 1
    shared = features.share_among_pixels(now, now[:0], inputs, shares)
    assert shared[10, 4] == shared[10, 5] == 0.25
    assert shared[20, 40] == 0.5
    assert shared.sum() == 1
