"""The training options as types, for editors and type checkers; generated from `Config`.

Do not edit it. `Config` is where options are defined; a test writes this module from it and
compares. CONTRIBUTING has the command, under "Recorded results".
"""

from __future__ import annotations

from typing import Literal, SupportsFloat, SupportsIndex, TypedDict

# NumPy's numbers are numbers too.
Int = SupportsIndex
Float = SupportsFloat


class Options(TypedDict, total=False):
    """The options that `pixelpong.train` accepts by name."""

    game: str
    seed: Int
    environment: Literal["ALE/Pong-v5", "Pong-v0", "PongDeterministic-v4", "PongNoFrameskip-v4"]
    frame_skip: Int | None
    sticky: Float | None
    max_frames: Int | None
    hidden: Int
    dtype: Literal["float32", "float64"]
    algorithm: Literal["reinforce", "ppo"]
    learning_rate: Float
    gamma: Float
    batch_size: Int
    decay_rate: Float
    num_envs: Int
    num_steps: Int
    update_epochs: Int
    num_minibatches: Int
    clip_coef: Float
    gae_lambda: Float
    gae_lambda_end: Float
    ent_coef: Float
    vf_coef: Float
    anneal_from: Float
    restart_after: Int
    anneal_steps: Int
    target_kl: Float
    life_cost: Float
    explore_share: Float
    explore_scale: Float
    opponent: str
    updates: Int | None
    episodes: Int | None
    total_timesteps: Int | None
    until_return: Float | None
    save_every: Int
    save_agent_every: Int
    evaluate_every: Int
    evaluate_episodes: Int
    final_episodes: Int
    engine: Literal["serial", "threads", "ray"]
    workers: Int | None
    worker_timeout: Float
    ray_address: str | None
    ray_mode: Literal["actors", "tasks"]
    verbose: bool
