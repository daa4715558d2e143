"""Other people's emulators and trainers, measured on the same machine; needs the extra [bench].

    python benchmarks/peers.py throughput --seconds 4 --rounds 5
    python benchmarks/peers.py train --steps 1430000

The first is `throughput.py` with EnvPool, AtariVectorEnv and AsyncVectorEnv beside
it. The second trains stable-baselines3's PPO for as many steps as ours needs to win in the
median, which takes an hour on two cores. All of them play
ALE/Pong-v5 as we do: frame skip 4, sticky actions 0.25. Both print JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from records import made_by, to_text
from throughput import Measure, Peers, measure_throughput

from pixelpong.seeding import make_rng

_STREAMS = 32


@contextlib.contextmanager
def _envpool(cores: int) -> Iterator[Measure]:
    import envpool

    env = envpool.make_gymnasium(
        "Pong-v5", num_envs=_STREAMS, num_threads=cores, frame_skip=4,
        repeat_action_probability=0.25, gray_scale=True, stack_num=4,
    )  # fmt: skip
    with contextlib.closing(env):
        yield _stepper(env, _STREAMS)


@contextlib.contextmanager
def _atari_vector_env(cores: int) -> Iterator[Measure]:
    from ale_py.vector_env import AtariVectorEnv

    env = AtariVectorEnv(
        "pong", num_envs=_STREAMS, num_threads=cores, frameskip=4, repeat_action_probability=0.25
    )
    with contextlib.closing(env):
        yield _stepper(env, _STREAMS)


@contextlib.contextmanager
def _gymnasium_async(cores: int) -> Iterator[Measure]:
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    make = [_make_preprocessed] * cores
    with contextlib.closing(gymnasium.vector.AsyncVectorEnv(make)) as env:
        yield _stepper(env, cores)


def _make_preprocessed() -> Any:
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    env = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.25)
    return gymnasium.wrappers.AtariPreprocessing(env, noop_max=0, frame_skip=4)


def _stepper(env: Any, num_envs: int) -> Measure:
    """Steps a vector environment with random moves."""
    env.reset()
    moves = make_rng(0, "bench").integers(0, 6, (1000, num_envs)).astype(np.int32)

    def measure(seconds: float) -> float:
        begin, rounds = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            env.step(moves[rounds % len(moves)])
            rounds += 1
        return rounds * num_envs / (time.perf_counter() - begin)

    return measure


PEERS: Peers = {
    "envpool": _envpool,
    "atari_vector_env": _atari_vector_env,
    "gymnasium_async": _gymnasium_async,
}


def train_stable_baselines(steps: int, seed: int) -> dict[str, Any]:
    """Train stable-baselines3's PPO, as its zoo tunes it for Atari, for a number of steps.

    ``curve`` has the steps and the mean return of the last 100 training episodes, every 50,000.
    """
    import ale_py
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    curve: list[tuple[int, float]] = []

    class Watch(BaseCallback):
        """Notes what the training has reached."""

        def _on_rollout_end(self) -> None:
            returns = [each["r"] for each in self.model.ep_info_buffer]
            if returns and self.num_timesteps >= 50_000 * (len(curve) + 1):
                curve.append((self.num_timesteps, round(float(np.mean(returns)), 2)))
                print(f"{self.num_timesteps:,} steps, mean return {curve[-1][1]}", file=sys.stderr)

        def _on_step(self) -> bool:
            return True

    gymnasium.register_envs(ale_py)
    env = VecFrameStack(
        make_atari_env(
            "ALE/Pong-v5", n_envs=8, seed=seed,
            env_kwargs={"frameskip": 1, "repeat_action_probability": 0.25},
            wrapper_kwargs={"clip_reward": True, "noop_max": 0},
        ),
        n_stack=4,
    )  # fmt: skip
    model = PPO(
        "CnnPolicy", env, n_steps=128, n_epochs=4, batch_size=256, learning_rate=2.5e-4,
        clip_range=0.1, vf_coef=0.5, ent_coef=0.01, seed=seed, device="cpu",
    )  # fmt: skip
    begin = time.perf_counter()
    model.learn(total_timesteps=steps, callback=Watch())
    seconds = time.perf_counter() - begin
    return {
        "name": "stable-baselines3 PPO",
        "seconds": seconds,
        "steps": int(model.num_timesteps),
        "steps_per_second": model.num_timesteps / seconds,
        "mean_return_100": float(np.mean([each["r"] for each in model.ep_info_buffer])),
        "curve": curve,
        "seed": seed,
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    throughput = commands.add_parser("throughput", help="steps per second, beside ours")
    throughput.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    throughput.add_argument("--rounds", type=int, default=5, help="measurements of each")
    throughput.add_argument("--workers", type=int, help="by default one per core")
    train = commands.add_parser("train", help="stable-baselines3's PPO")
    train.add_argument("--steps", type=int, default=1_430_000)
    train.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


def main() -> None:
    """Measure and print the report."""
    options = parse()
    if options.command == "train":
        report = train_stable_baselines(options.steps, options.seed)
    else:
        seconds, rounds = options.seconds, options.rounds
        report = measure_throughput(seconds, rounds, options.workers, 0, PEERS)
    sys.stdout.write(to_text(made_by() | report))


if __name__ == "__main__":
    main()
