"""The literal form of play: pictures in colour, dense observations and networks, single steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pixelpong.items import ACTIONS, DOWN, STAY, UP
from pixelpong.learn import gated, network, reinforce
from pixelpong.learn.ppo import log_softmax
from pixelpong.play.networks import NETS
from pixelpong.play.scenes import scene_of
from pixelpong.pong.emulator import Emulator
from pixelpong.pong.features import observe_features
from pixelpong.pong.preprocess import difference, preprocess
from pixelpong.seeding import make_rng

PONG = scene_of("pong")
POLICY = {"ppo": ACTIONS, "reinforce": (UP, DOWN)}


def make_params(algorithm, hidden=8, dtype="float64", seed=0):
    """Parameters with which the actions are not all as likely."""
    made = NETS[algorithm].init(PONG, make_rng(seed, "params"), hidden, dtype)
    made["W2"] *= {"ppo": 100, "reinforce": 10}[algorithm]
    return made


def decide(algorithm, params, before, now, last):
    """The observation, the logits of the policy's actions and the value; two fields are seen."""
    if algorithm == "ppo":
        before = np.zeros((80, 80)) if before is None else before
        x = observe_features(before, now, ACTIONS.index(last))
        (y,), _ = gated.forward(params, x[None].astype(np.float64))
        return x, y[:3], y[3]
    x = difference(before, now)
    (z,), _ = network.logits(params, x[None].astype(np.float64))
    return x, np.array([z, 0.0]), None


class Step(NamedTuple):
    """One step, as the literal form plays it."""

    x: np.ndarray
    log_pi: np.ndarray  # of the policy's actions
    value: float | None
    place: int  # of the action among them
    reward: float
    is_over: bool


def play_densely(protocol, algorithm, params, rng, *, is_greedy=False):
    """Play episode after episode, with a row of draws for each step."""
    emulator = Emulator(protocol)
    while True:
        emulator.reset()
        before, last = None, STAY
        while not emulator.is_over:
            now = preprocess(emulator.frame())
            x, logits, value = decide(algorithm, params, before, now, last)
            log_pi = log_softmax(logits[None])[0]
            draws = rng.random(2 + protocol.max_frame_skip)
            chosen = int((draws[0] >= np.exp(log_pi).cumsum()[:-1]).sum())
            place = int(log_pi.argmax()) if is_greedy else chosen
            before, last = now, POLICY[algorithm][place]
            reward = emulator.step(last, draws[1:].tolist())
            yield Step(x, log_pi, value, place, reward, emulator.is_over)


def record(step, algorithm):
    """What a step's record has to be."""
    pi = np.exp(step.log_pi)
    if algorithm == "reinforce":
        found = {"action": POLICY[algorithm][step.place], "up_probability": pi[0]}
        return found | {"entropy": reinforce.entropy(pi[:1])[0], "reward": step.reward}
    found = {"action": step.place, "log_probability": step.log_pi[step.place]}
    found |= {"entropy": -(pi * step.log_pi).sum(), "value": step.value, "reward": step.reward}
    return found | {"is_end": float(step.reward != 0 or step.is_over)}


def assert_same_play(one, two):
    """The same steps, and the same place to continue from."""
    for a, b in zip(one.sides, two.sides, strict=True):
        for name, value in vars(a).items():
            np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)
    assert one.streams.tobytes() == two.streams.tobytes()
