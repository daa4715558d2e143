"""Explores Montezuma's Revenge by going back to where it was, and looking around from there.

    python examples/explore_in_one_file.py --seed 0

This is the idea of Go-Explore (Ecoffet et al. 2019, arXiv 1901.10995): remember for each spot how
to get there, go back to one that was seldom visited, and play at random from there. Here the way
back is a state of the console: at each round, every one of the games continues from the state of a
spot (`restore_state`), with its own sticky frames, so it does not know what is coming. It learns
nothing. With seed 0 it has the key, 100 points, after 35,200 steps, and opens a door, 400 points,
after 118,400; with seeds 1 to 4, after 70,400 to 307,200. With --goal 10000 and seed 0 it has 6,700
points after 2.1 million steps; a person's score is 4,753.
"""

import argparse

import numpy as np

import pixelpong

# Addresses in the console's memory: the room, the figure's column and row, and what it carries.
ROOM, COLUMN, ROW, CARRIES = 3, 42, 43, 65


def spots_of(memory):
    """Where each game is, [N]: the room, and column and row in steps of 8, and what it carries."""
    parts = memory[:, ROOM], memory[:, COLUMN] // 8, memory[:, ROW] // 8, memory[:, CARRIES]
    return list(zip(*(part.tolist() for part in parts), strict=True))


class Archive:
    """For each spot a state, the score and how often it was gone back to."""

    def __init__(self):
        self.states, self.scores, self.visits = {}, {}, {}

    def add(self, spots, scores, is_alive, state):
        """Remember spots that are new, or were reached with a better score."""
        for i in np.flatnonzero(is_alive):
            if scores[i] > self.scores.get(spots[i], -1):
                self.states[spots[i]] = tuple(array[i] for array in state)
                self.scores[spots[i]], self.visits[spots[i]] = int(scores[i]), 0

    def choose(self, count, rng):
        """Choose spots to go back to, those with few visits more often."""
        spots = list(self.states)
        weights = np.array([1 / np.sqrt(self.visits[spot] + 1) for spot in spots])
        chosen = [spots[i] for i in rng.choice(len(spots), count, p=weights / weights.sum())]
        for spot in chosen:
            self.visits[spot] += 1
        return chosen


def explore(seed, rounds, size=128, length=25, goal=400):
    """Explore; yield the steps, the number of spots and the best score whenever it grows."""
    envs = pixelpong.make_vec(
        size,
        game="montezuma_revenge",
        observation="ram",
        repeat_action_probability=0.25,
        reward_clipping=False,
    )
    rng, archive, best = np.random.default_rng(seed), Archive(), 0
    memory, infos = envs.reset(seed=seed)
    scores = np.zeros(size, int)
    archive.add(spots_of(memory), scores, np.ones(size, bool), envs.clone_state())
    lives = infos["lives"]
    for number in range(rounds):
        # 1. Go back: each game to a spot, with its own chances from there on.
        chosen = archive.choose(size, rng)
        rows = zip(*(archive.states[spot] for spot in chosen), strict=True)
        envs.restore_state(tuple(map(np.stack, rows)), include_rng=False)
        scores = np.array([archive.scores[spot] for spot in chosen])
        # 2. Look around: hold an action for some steps, until a life is lost.
        is_alive, held = np.ones(size, bool), rng.integers(18, size=size)
        for _ in range(length):
            is_new = rng.random(size) < 0.2
            held[is_new] = rng.integers(18, size=is_new.sum())
            memory, rewards, over, cut, infos = envs.step(held)
            is_alive &= ~(over | cut) & (infos["lives"] >= lives)
            scores += np.where(is_alive, rewards, 0)
            archive.add(spots_of(memory), scores, is_alive, envs.clone_state())
        if max(archive.scores.values()) > best:
            best = max(archive.scores.values())
            yield (number + 1) * size * length, len(archive.states), best
        if best >= goal:
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--goal", type=int, default=400, help="the score at which it stops")
    given = parser.parse_args()
    for steps, spots, score in explore(given.seed, given.rounds, goal=given.goal):
        print(f"{steps:,} steps: {spots} spots, best score {score}", flush=True)
