"""Their agent on our environment: stable-baselines3's PPO learns Pong with pixelpong's rules.

    pip install -c constraints.txt -e '.[peers]'
    python examples/their_agent_on_our_env.py --steps 1000000

`make_env` gives exactly the game that `pixelpong train` plays: the same frames, the same rewards,
the same sticky coins. Here a small network sees what changed on the field since the previous step,
as 80×80 numbers, and chooses between up and down, as the classic agent does. The default is half a
minute of training. That shows that it runs, but it is not enough to win.
"""

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import pixelpong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4096, help="of training (%(default)s)")
    parser.add_argument("--environment", default="ALE/Pong-v5", help="protocol (%(default)s)")
    parser.add_argument("--episodes", type=int, default=2, help="of evaluation (%(default)s)")
    options = parser.parse_args()
    ours = {"observation": "pixels", "actions": "two", "environment": options.environment}

    envs = make_vec_env(pixelpong.make_env, n_envs=4, seed=1, env_kwargs=ours)
    agent = PPO("MlpPolicy", envs, n_steps=256, n_epochs=4, ent_coef=0.01, seed=1, device="cpu")
    agent.learn(options.steps)

    tests = make_vec_env(pixelpong.make_env, seed=2, env_kwargs=ours)
    mean, deviation = evaluate_policy(agent, tests, n_eval_episodes=options.episodes)
    print(f"after {agent.num_timesteps} steps: mean return {mean:+.1f}, deviation {deviation:.1f}")


if __name__ == "__main__":
    main()
