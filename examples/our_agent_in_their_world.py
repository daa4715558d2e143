"""Our agent in their world: stable-baselines3 evaluates it, on our environment and on ale-py's.

    pip install -c constraints.txt -e '.[peers]'
    python examples/our_agent_in_their_world.py --episodes 100

`Policy.predict` is the method that stable-baselines3 expects of an agent. So our agent works with
`evaluate_policy`, with its callbacks, and with its film recorders. On our environment each game
ends with the same points as in `pixelpong.evaluate`. On ``ALE/Pong-v5`` the emulator tosses its own
coins, so only the distribution is the same.
"""

import argparse

import ale_py
import gymnasium
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import pixelpong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1, help="of each (%(default)s)")
    parser.add_argument("--agent", default="package", help="a run's directory (%(default)s)")
    options = parser.parse_args()
    policy = pixelpong.Policy.load(options.agent)
    gymnasium.register_envs(ale_py)

    for name in ("pixelpong.envs:pixelpong/Pong-v0", "ALE/Pong-v5"):
        env = make_vec_env(name, seed=0)
        mean, deviation = evaluate_policy(policy, env, n_eval_episodes=options.episodes)
        print(f"{name}: mean return {mean:+.2f}, deviation {deviation:.2f}")


if __name__ == "__main__":
    main()
