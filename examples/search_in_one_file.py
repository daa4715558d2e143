"""A search that plays Pong by trying out exact copies of the game; it learns nothing.

    python examples/search_in_one_file.py --seed 0

Every few steps it copies the state of the game into many others (`clone_state`, `restore_state`),
plays a random plan in each, and continues with the best plan. A copy will meet the same sticky
frames, so the search knows them in advance. With seed 0 it wins 21 : 0.
"""

import argparse

import numpy as np

import pixelpong

DISCOUNT, LOSS = 0.98, 4.0  # of later steps; what a lost point weighs


def search(games, state, plans):
    """The discounted rewards of each plan, [K], played from one state; plans are moves [K, T]."""
    games.restore_state(tuple(np.repeat(each, len(plans), axis=0) for each in state))
    worth, weight = np.zeros(len(plans)), 1.0
    for moves in plans.T:
        _, rewards, *_ = games.step(moves)
        worth += weight * np.where(rewards < 0, LOSS * rewards, rewards)
        weight *= DISCOUNT
    return worth


def play(seed, num_plans=128, length=100, goes=4, max_frames=108_000):
    """Play a game; return the points won and lost, and the steps."""
    options = {"actions": "three", "repeat_action_probability": 0.25, "noop_max": 0}
    options |= {"max_num_frames_per_episode": max_frames, "use_fire_reset": False}
    game, games = (pixelpong.make_vec(n, "field", **options) for n in (1, num_plans))
    games.reset(seed=seed)
    game.reset(seed=seed)
    rng, best, rewards, is_over = np.random.default_rng(seed), None, [], False
    while not is_over:
        # A move is held for some steps; the best plan so far goes on, with a random end.
        plans = np.repeat(rng.integers(3, size=(num_plans, length // 4)), 4, axis=1)
        if best is not None:
            plans[0, : length - goes] = best[goes:]
            plans[1 : num_plans // 2, : length // 3] = best[goes : goes + length // 3]
        best = plans[search(games, game.clone_state(), plans).argmax()]
        for move in best[:goes]:
            _, reward, over, cut, _ = game.step(np.array([move]))
            rewards.append(reward[0])
            if is_over := bool(over[0] or cut[0]):
                break
    return rewards.count(1), rewards.count(-1), len(rewards)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-frames", type=int, default=108_000)
    given = parser.parse_args()
    won, lost, steps = play(given.seed, max_frames=given.max_frames)
    print(f"{won} : {lost} after {steps} steps")
