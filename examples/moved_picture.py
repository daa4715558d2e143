"""The winning agent looks at the game through glasses that move the picture by a pixel or two.

    python examples/moved_picture.py

A person would not notice. `docs/missing.md` says why the agent does.
"""

import numpy as np

import pixelpong

GLASSES = {
    "as it is": lambda frame: frame,
    "two rows lower": lambda frame: np.roll(frame, 2, axis=0),
    "one pixel to the right": lambda frame: np.roll(frame, 1, axis=1),
    "two pixels to the right": lambda frame: np.roll(frame, 2, axis=1),
}


def play(policy, change, seed, max_frames=108_000):
    """Play a game, in which the agent sees changed frames; return points won minus points lost."""
    env = pixelpong.make_env(max_frames=max_frames)
    frame, _ = env.reset(seed=seed)
    policy.reset()
    total, is_over = 0.0, False
    while not is_over:
        frame, reward, terminated, truncated, _ = env.step(policy.act(change(frame)))
        total += reward
        is_over = terminated or truncated
    return total


def main(games=10):
    """Print the mean return of the package's agent with each of the glasses."""
    policy = pixelpong.Policy.load("package")
    for name, change in GLASSES.items():
        returns = [play(policy, change, 100 + game) for game in range(games)]
        print(f"{name:24}{np.mean(returns):+6.1f}   ({min(returns):+.0f} to {max(returns):+.0f})")


if __name__ == "__main__":
    main()
