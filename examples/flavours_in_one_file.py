"""Trains on one game of a cartridge, then plays its others: how much carries over?

    python examples/flavours_in_one_file.py --game freeway --steps 500000

The experiment of Farebrother, Machado and Bowling (2018, arXiv 1810.00123): an agent learns the
first mode at the first difficulty, and plays the others as it is. Machado et al. (2018, arXiv
1709.06009) proposed these flavours as tests of what an agent has understood. For each flavour it
prints the mean score of the agent, with its standard error, and that of random play.
"""

import argparse

import numpy as np

import pixelpong


def play(policy, game, flavour, seed, episodes):
    """The scores of the agent in a flavour, or of random play without one; actions are sampled."""
    mode, difficulty = flavour
    env = pixelpong.make_env(game=game, mode=mode, difficulty=difficulty)
    rng, scores = np.random.default_rng(seed), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        score, is_over = 0, False
        if policy:
            policy.reset()
        while not is_over:
            count = env.action_space.n
            action = policy.act(observation, rng) if policy else int(rng.integers(count))
            observation, reward, over, cut, _ = env.step(action)
            score, is_over = score + reward, over or cut
        scores.append(score)
    return np.array(scores)


def compare(run, game, seed, episodes):
    """Yield each flavour with the agent's scores and those of random play."""
    policy = pixelpong.Policy.load(run)
    (facts,) = (it for it in pixelpong.games() if it.name == game)
    for difficulty in facts.difficulties:
        for mode in facts.modes:
            flavour = mode, difficulty
            yield flavour, *(play(who, game, flavour, seed, episodes) for who in (policy, None))


def describe(scores):
    """A mean with its standard error."""
    return f"{scores.mean():10,.1f} ± {scores.std(ddof=1) / len(scores) ** 0.5:<8,.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="freeway")
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--run", help="a run that was trained before")
    given = parser.parse_args()
    run = given.run or pixelpong.train(
        game=given.game, seed=given.seed, total_timesteps=given.steps, quiet=True
    )
    print("mode  difficulty  " + "agent".center(21) + "random play".center(21))
    for (mode, difficulty), agent, random in compare(run, given.game, given.seed, given.episodes):
        print(f"{mode:4}  {difficulty:10}  {describe(agent)}{describe(random)}", flush=True)
