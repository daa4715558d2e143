"""PPO in one file, to be read: how `pixelpong train` learns, in NumPy on its compiled game.

    python examples/ppo_in_one_file.py --seed 0

It plays 128 games side by side, 64 steps of each, and learns from these 8,192 steps three times:
the actions that turned out better than expected become more probable, but not by much at a time.
The expectation is learned too; it is the network's fourth output. `pixelpong train` does the same
several times as fast, for any number of threads to the same bits, and you can stop and resume it.

With seeds 0, 1 and 2 it won after 0.98, 0.98 and 1.56 million steps: the mean of 20 greedy games
was above +18. That took 202, 190 and 322 seconds on a Xeon of which another program used one core.

Everything that learns is here: advantages, loss, gradient, Adam. The package provides the game,
what the network sees of it (`pixelpong.pong.features`), and the network's decisions while it plays.
"""

import argparse
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pixelpong.config.protocols import find_protocol
from pixelpong.items import Item
from pixelpong.play.player import Player
from pixelpong.pong.features import NUM_INPUTS

STREAMS, HORIZON, THREADS = 128, 64, 2
EPOCHS, MINIBATCHES = 3, 4
HIDDEN, RATE, DISCOUNT = 64, 2e-3, 0.999
CLIP_RATIO, VALUE_WEIGHT, ENTROPY_BONUS = 0.2, 4.0, 0.02
LAMBDA_START, LAMBDA_END = 0.95, 0.85  # at first, and when no point is lost any more
DECAYS, EPSILON = (0.9, 0.999), 1e-5
WON = 18.0  # points more than the built-in opponent, of 21


def init_params(rng, dtype=np.float32):
    """One gated layer; the outputs are the logits of stay, up and down, and the value."""
    return {
        "W1": (rng.standard_normal((NUM_INPUTS, HIDDEN, 2)) / 10).astype(dtype),
        "W2": (0.01 * rng.standard_normal((4, HIDDEN, 2))).astype(dtype),
        "b2": np.zeros(4, dtype),
    }


def spread(inputs, starts):
    """The inputs of M steps as a matrix x [M, K], of the K inputs that are 1 at any of them.

    At a step about 80 of 50,000 inputs are 1; thousands of others are 0 at all M steps.

    Args: `inputs`, the numbers of those that are 1, of all steps one after the other; `starts`,
    the place at which each step begins. Returns the numbers of the K inputs, and x.
    """
    steps = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(inputs))))
    rows, columns = np.unique(inputs, return_inverse=True)
    x = np.zeros((len(starts), len(rows)), np.float32)
    x[steps, columns] = 1
    return rows, x


def forward(params, rows, x):
    """The network for M steps: its outputs [M, 4] and pre-activations [M, HIDDEN, 2]."""
    z = (x @ params["W1"][rows].reshape(len(rows), -1)).reshape(-1, HIDDEN, 2)
    h = activate(z).reshape(len(z), -1)
    return h @ params["W2"].reshape(4, -1).T + params["b2"], z


def activate(z):
    """A unit gives max(a, 0), and the same times b: two things that are true at the same time."""
    relu = np.maximum(z[..., 0], 0)
    return np.stack([relu, relu * z[..., 1]], axis=-1)


def backward(params, x, z, dy):
    """The gradient of the parameters from that of the outputs; of W1, only the rows of x."""
    dh = (dy @ params["W2"].reshape(4, -1)).reshape(z.shape)
    a, b = z[..., 0], z[..., 1]
    da = (dh[..., 0] + dh[..., 1] * b) * (a > 0)
    dz = np.stack([da, dh[..., 1] * np.maximum(a, 0)], axis=-1).reshape(len(z), -1)
    return {
        "W1": (x.T @ dz).reshape(-1, HIDDEN, 2),
        "W2": (dy.T @ activate(z).reshape(len(z), -1)).reshape(4, HIDDEN, 2),
        "b2": dy.sum(axis=0),
    }


def compute_advantages(rewards, is_end, values, lambda_):
    """How much better each step of [streams, steps] turned out than expected.

    Near lambda 1, what happens until the point's end decides; near 0, the next expectation. A
    point ends both: who wins it does not depend on the next one.
    """
    goes_on = np.where(is_end, 0.0, DISCOUNT)
    surprise = rewards + goes_on * values[:, 1:] - values[:, :-1]
    advantages, following = np.zeros(rewards.shape), np.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        following = surprise[:, t] + goes_on[:, t] * lambda_ * following
        advantages[:, t] = following
    return advantages


def loss_gradient(y, actions, log_played, advantages, targets, bonus):
    """The gradient of PPO's mean loss in the network's outputs.

    Good actions become more probable, bad ones less, until their probability is 20 % away from
    that of the policy that played: beyond, its data says too little. The value comes closer to
    what happened, and a bonus for entropy keeps the policy from being sure too soon.
    """
    logits = y[:, :3] - y[:, :3].max(axis=1, keepdims=True)
    log_pi = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    pi, taken = np.exp(log_pi), np.eye(3)[actions]
    ratio = np.exp((log_pi * taken).sum(axis=1) - log_played)
    is_far = np.where(advantages >= 0, ratio > 1 + CLIP_RATIO, ratio < 1 - CLIP_RATIO)
    push = np.where(is_far, 0, ratio * advantages)
    entropy = -(pi * log_pi).sum(axis=1)
    dlogits = -push[:, None] * (taken - pi) + bonus * pi * (log_pi + entropy[:, None])
    dvalue = VALUE_WEIGHT * (y[:, 3] - targets)
    return (np.column_stack([dlogits, dvalue]) / len(y)).astype(y.dtype)


def adam(w, g, m, v, rate, step):
    """One step; change w, m and v. Its length hardly depends on the gradient's scale."""
    m += (1 - DECAYS[0]) * (g - m)
    v += (1 - DECAYS[1]) * (g * g - v)
    w -= rate / (1 - DECAYS[0] ** step) * m / (np.sqrt(v / (1 - DECAYS[1] ** step)) + EPSILON)


class Streams:
    """Games that go on and on, each on a console of the thread that plays it."""

    def __init__(self, environment, seed):
        self.seed, self.streams = seed, [None] * STREAMS
        protocol = find_protocol(environment)
        self.players = [Player(protocol, "ppo") for _ in range(THREADS)]
        self.pool = ThreadPoolExecutor(THREADS)

    def play(self, params, update):
        """The next steps of every stream."""
        played = list(self.pool.map(lambda k: self._play_some(params, update, k), range(THREADS)))
        results = [played[index % THREADS][index // THREADS] for index in range(STREAMS)]
        self.streams = [result.streams for result in results]
        return [result.sides[0] for result in results]

    def _play_some(self, params, update, first):
        results = []
        for index in range(first, STREAMS, THREADS):
            rng = np.random.default_rng([self.seed, 1, update, index])
            stream = self.streams[index]
            item = Item("train", self.seed, update, index, steps=HORIZON, streams=stream)
            results.append(self.players[first].play(item, params, rng))
        return results

    def evaluate(self, params, episodes):
        """The mean return of whole games in which the agent takes its best action."""
        rngs = [np.random.default_rng([self.seed, 2, k]) for k in range(episodes)]
        item = Item("evaluate", self.seed, 0, 0, is_greedy=True)
        games = [self.players[0].play(item, params, rng).episodes[0] for rng in rngs]
        return np.mean([game.episode_return for game in games])


def pick(inputs, offsets, chosen):
    """The inputs of the chosen steps, one after the other, and where each step begins."""
    lengths = np.diff(offsets)[chosen]
    starts = np.cumsum(lengths) - lengths
    return inputs[np.arange(lengths.sum()) + np.repeat(offsets[chosen] - starts, lengths)], starts


def learn(params, memory, played, left, rng):
    """Three passes over what was played; change the parameters and Adam's memory.

    `left` says how much there still is to learn from: it scales rate, entropy bonus and lambda.
    """
    inputs = np.concatenate([each.indices for each in played])
    # The last entry of a stream is a value alone, without inputs.
    lengths = np.concatenate([np.diff(each.offsets)[:-1] for each in played])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    records = np.stack([each.steps for each in played])  # after the last step, one more value
    steps, values = records[:, :-1], records["value"]
    actions, log_played = steps["action"].ravel(), steps["log_probability"].ravel()
    lambda_ = LAMBDA_END + left * (LAMBDA_START - LAMBDA_END)
    advantages = compute_advantages(steps["reward"], steps["is_end"], values, lambda_)
    targets, advantages = (advantages + values[:, :-1]).ravel(), advantages.ravel()
    for _ in range(EPOCHS):
        for chosen in rng.permutation(len(actions)).reshape(MINIBATCHES, -1):
            rows, x = spread(*pick(inputs, offsets, chosen))
            y, z = forward(params, rows, x)
            gain = advantages[chosen]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            dy = loss_gradient(
                y, actions[chosen], log_played[chosen], gain, targets[chosen],
                left**2 * ENTROPY_BONUS,
            )  # fmt: skip
            descend(params, memory, rows, backward(params, x, z, dy), left * RATE)


def descend(params, memory, rows, grads, rate):
    """A step of Adam for every parameter that has a gradient."""
    memory["step"] += 1
    for name, g in grads.items():
        where = rows if name == "W1" else slice(None)
        w, m, v = (each[name][where] for each in (params, memory["m"], memory["v"]))
        adam(w, g, m, v, rate, memory["step"])
        params[name][where], memory["m"][name][where], memory["v"][name][where] = w, m, v


def train(environment, steps, seed):
    """Play and learn until it wins, or for this many steps; yield what an update has reached."""
    rng, streams = np.random.default_rng([seed, 0]), Streams(environment, seed)
    params = init_params(rng)
    memory = {name: {key: np.zeros_like(w) for key, w in params.items()} for name in "mv"}
    memory["step"], points, is_won = 0, deque(maxlen=1000), False
    for update in range(1, steps // (STREAMS * HORIZON) + 1):
        played = streams.play(params, update)
        for rewards in (each.steps["reward"][:-1] for each in played):
            points.extend(rewards[rewards != 0])
        won = np.mean(np.array(points) > 0) if points else 0.0
        # The fewer points are lost, the less there is to learn from, and the shorter the steps.
        left = min(1.0, 2 * (1 - won))
        learn(params, memory, played, left, rng)
        if update % 10 == 0 and won > 0.85:
            is_won = streams.evaluate(params, 20) > WON
        yield update * STREAMS * HORIZON, won, is_won
        if is_won:
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3_000_000, help="at most (%(default)s)")
    parser.add_argument("--environment", default="ALE/Pong-v5", help="game (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (%(default)s)")
    options, begin = parser.parse_args(), time.monotonic()
    for steps, won, is_won in train(options.environment, options.steps, options.seed):
        words = "; greedy play wins" if is_won else ""
        took = time.monotonic() - begin
        print(f"{steps:9,} steps, {took:4.0f} s: {won:4.0%} of points won{words}", flush=True)
