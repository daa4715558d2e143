"""Our agent in RLlib: a module that RLlib's own environment runners can play with.

    pip install '.' 'ray[rllib]==2.60.0' torch     (in a separate environment: see below)
    python examples/our_agent_in_rllib.py --episodes 10

RLlib asks a module for actions, and carries the module's memory from step to step: for ours, the
previous frame and the last action. So any RLlib tool that evaluates a module, on one machine or on
a cluster, can evaluate our agent. It can't train the agent.

RLlib 2.60 needs PyTorch and exactly Gymnasium 1.2.2, which is older than the one in
constraints.txt; pixelpong works with both.
"""

import argparse

import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env

import pixelpong


class PixelpongModule(TorchRLModule):
    """A pixelpong agent as an RLlib module; ``model_config["agent"]`` names the agent."""

    def setup(self):
        """RLlib calls this once."""
        self.policy = pixelpong.Policy.load(self.model_config["agent"])

    def get_initial_state(self):
        """The memory at the beginning of an episode: nothing seen yet."""
        return {"field": np.zeros((80, 80), bool), "asked": np.int8(-1)}

    def _forward(self, batch, **kwargs):
        """One step of each episode: frames [n, 1, 210, 160, 3], and the memory of each."""
        state = tuple(np.asarray(batch[Columns.STATE_IN][name]) for name in ("field", "asked"))
        frames = np.asarray(batch[Columns.OBS])[:, 0]
        actions, (field, asked) = self.policy.predict(frames, state)
        return {
            Columns.ACTIONS: actions[:, None],
            Columns.STATE_OUT: {"field": field, "asked": asked},
        }


def make_runner(agent: str, environment: str, seed: int) -> SingleAgentEnvRunner:
    """RLlib's runner, which plays our environment with the agent, in this process."""
    register_env("pixelpong", lambda options: pixelpong.make_env(**options))
    spec = RLModuleSpec(
        module_class=PixelpongModule, model_config={"agent": agent, "max_seq_len": 1}
    )
    config = (
        PPOConfig()
        .environment("pixelpong", env_config={"environment": environment})
        .env_runners(num_env_runners=0)
        .rl_module(rl_module_spec=spec)
        .debugging(seed=seed)
    )
    return SingleAgentEnvRunner(config=config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1, help="how many (%(default)s)")
    parser.add_argument("--agent", default="package", help="a run's directory (%(default)s)")
    parser.add_argument("--environment", default="ALE/Pong-v5", help="protocol (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the episodes (%(default)s)")
    options = parser.parse_args()
    runner = make_runner(options.agent, options.environment, options.seed)
    episodes = runner.sample(num_episodes=options.episodes, explore=False)
    returns = [float(episode.get_return()) for episode in episodes]
    print(f"returns {returns}, mean {np.mean(returns):+.2f}")


if __name__ == "__main__":
    main()
