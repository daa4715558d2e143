"""A worker: owns one emulator, turns work items into results.

`play` is a pure function of the item and the parameters: every item starts by setting the whole
state, so nothing leaks from one to the next and any worker can run any of them.
"""

from __future__ import annotations

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.env import make_emulator
from pixelpong.learn.network import init_params
from pixelpong.learn.returns import standardize
from pixelpong.protocols import find_protocol
from pixelpong.rollout import Player, timed_play
from pixelpong.seeding import make_rng
from pixelpong.trajectory import EpisodeItem, EpisodeResult, Params


class Worker:
    """Plays and differentiates."""

    def __init__(self, config: Config) -> None:
        """Load the emulator and compile the kernels, so that no item pays for it.

        Raises:
            EmulatorError: the emulator or its game is not installed.
        """
        self._discount = config.learning.discount
        self._player = Player(make_emulator(config.environment.protocol))
        self._compile(config.network.dtype)

    def play(self, item: EpisodeItem, params: Params) -> EpisodeResult:
        """Play one episode; for training, differentiate it.

        Args:
            item: what to play.
            params: not changed.
        """
        rng = make_rng(item.seed, item.purpose, item.update, item.index)
        trajectory, stats = timed_play(self._player, params, rng, is_greedy=item.is_greedy)
        if item.purpose != "train":
            return EpisodeResult(stats, grads=None)
        returns = kernels.discounted_returns(trajectory.rewards, self._discount)
        grads = kernels.episode_gradient(params["W2"], trajectory, standardize(returns))
        return EpisodeResult(stats, grads)

    def _compile(self, dtype: str) -> None:
        toy = Player(make_emulator(find_protocol("Catch-v0")))
        rng = make_rng(0, "bench")
        params = init_params(rng, hidden=1, dtype=dtype)
        trajectory = toy.play(params, rng)
        returns = kernels.discounted_returns(trajectory.rewards, self._discount)
        kernels.episode_gradient(params["W2"], trajectory, returns)
