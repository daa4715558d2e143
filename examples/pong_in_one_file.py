"""Pong from pixels in one file, to be read: the whole idea, with only NumPy and the emulator.

    python examples/pong_in_one_file.py --updates 3

The package does the same many times as fast, on all cores, and you can stop and resume it. Here
nothing is hidden: play an episode, find out which actions led to points, make those more probable,
repeat.
"""

import argparse

import ale_py
import numpy as np
from ale_py import roms

HIDDEN, PIXELS = 200, 80 * 80
BATCH, DISCOUNT, RATE, DECAY = 10, 0.99, 1e-4, 0.99
UP, DOWN = ale_py.Action.RIGHT, ale_py.Action.LEFT  # you turn a paddle, you don't push it


def make_game(seed):
    """An emulator with Pong: four frames per step, and a quarter of them keep the old action."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setInt("frame_skip", 4)
    ale.setFloat("repeat_action_probability", 0.25)
    ale.loadROM(roms.get_rom_path("pong"))
    return ale


def preprocess(frame):
    """[210, 160, 3] colours → [6400] zeros and ones: paddles and ball, without the background."""
    red = frame[35:195:2, ::2, 0]
    return (~np.isin(red, (0, 144, 109))).astype(np.float64).ravel()


def init_params(rng):
    """One hidden layer, with small weights: at first both actions are about equally probable."""
    return {
        "W1": rng.standard_normal((PIXELS, HIDDEN)) / np.sqrt(PIXELS),
        "W2": rng.standard_normal(HIDDEN) / np.sqrt(HIDDEN),
    }


def forward(params, x):
    """The probability of UP, and the hidden activations that the gradient will need."""
    h = np.maximum(x @ params["W1"], 0)
    z = np.clip(h @ params["W2"], -500, 500)
    return 1 / (1 + np.exp(-z)), h


def play_episode(ale, params, rng):
    """One game to 21: what the agent saw, thought and did, and what came of it."""
    ale.reset_game()
    previous = None
    xs, hs, ps, ups, rewards = [], [], [], [], []
    while not ale.game_over():
        current = preprocess(ale.getScreenRGB())
        # One frame shows where the ball is; the difference of two shows where it goes.
        x = np.zeros(PIXELS) if previous is None else current - previous
        previous = current
        p, h = forward(params, x)
        is_up = rng.random() < p
        xs.append(x)
        hs.append(h)
        ps.append(p)
        ups.append(is_up)
        rewards.append(ale.act(UP if is_up else DOWN))
    return [np.array(column) for column in (xs, hs, ps, ups, rewards)]


def compute_advantages(rewards):
    """Each step gets the point that it led to, discounted by its distance; then standardised."""
    returns = np.zeros(len(rewards))
    following = 0.0
    for t in reversed(range(len(rewards))):
        following = rewards[t] if rewards[t] != 0 else DISCOUNT * following
        returns[t] = following
    spread = returns.std()
    return (returns - returns.mean()) / spread if np.ptp(returns) > 0 else 0 * returns


def episode_gradient(params, xs, hs, ps, ups, advantages):
    """Up in the log-probability of what it did, times how good that turned out to be."""
    dz = (ups - ps) * advantages
    dh = np.outer(dz, params["W2"]) * (hs > 0)
    return {"W1": xs.T @ dh, "W2": hs.T @ dz}


def rmsprop(params, grads, cache):
    """One step. For each weight, its length does not depend on the gradient's scale."""
    for name, g in grads.items():
        cache[name] = DECAY * cache[name] + (1 - DECAY) * g**2
        params[name] += RATE * g / (np.sqrt(cache[name]) + 1e-5)


def train(updates, batch, seed):
    """Play a batch, add up its gradients, take a step; yield the mean return of each update."""
    rng, ale = np.random.default_rng(seed), make_game(seed)
    params = init_params(rng)
    cache = {name: np.zeros_like(w) for name, w in params.items()}
    for _ in range(updates):
        total = {name: np.zeros_like(w) for name, w in params.items()}
        returns = []
        for _ in range(batch):
            xs, hs, ps, ups, rewards = play_episode(ale, params, rng)
            grads = episode_gradient(params, xs, hs, ps, ups, compute_advantages(rewards))
            for name, g in grads.items():
                total[name] += g
            returns.append(rewards.sum())
        rmsprop(params, total, cache)
        yield np.mean(returns)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pong from pixels in one file.")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--batch", type=int, default=BATCH, help="episodes in an update")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for number, mean_return in enumerate(
        train(options.updates, options.batch, options.seed), start=1
    ):
        print(f"update {number}: mean return {mean_return:.1f}", flush=True)
