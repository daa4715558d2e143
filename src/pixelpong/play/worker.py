"""A worker: owns one emulator, and turns work items into results.

`play` is a pure function of the item and the parameters: it first sets the whole state, so nothing
leaks from one item to the next, and any worker can run any item.
"""

from __future__ import annotations

import dataclasses

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.env import make_emulator
from pixelpong.env.duel import MAX_FRAMES
from pixelpong.env.features import NUM_INPUTS
from pixelpong.env.pong import Emulator
from pixelpong.items import (
    EpisodeItem,
    EpisodeResult,
    EpisodeStats,
    Params,
    SegmentItem,
    SegmentResult,
    read_only,
)
from pixelpong.learn import gated
from pixelpong.learn.network import init_params
from pixelpong.learn.returns import standardize
from pixelpong.play.episodes import Player, timed_play
from pixelpong.play.streams import StreamPlayer
from pixelpong.play.sums import GradientSum
from pixelpong.seeding import make_rng


class EpisodeWorker:
    """Plays whole episodes with the classic network, and differentiates them."""

    def __init__(self, config: Config, emulator: Emulator) -> None:
        self._gamma = config.learning.gamma
        self._player = Player(emulator)

    def play(self, item: EpisodeItem, params: Params) -> EpisodeResult:
        """Play one or more episodes; for training, differentiate them and add up the gradients."""
        params = read_only(params)
        if item.games == 1:
            return self._play_one(item, item.index, params)
        total = GradientSum(len(params["W2"]), params["W2"].dtype.name)
        episodes: list[EpisodeStats] = []
        for index in range(item.index, item.index + item.games):
            result = self._play_one(item, index, params)
            assert result.grads is not None
            total.add(result.grads)
            episodes += result.episodes
        return EpisodeResult(tuple(episodes), total.take())

    def _play_one(self, item: EpisodeItem, index: int, params: Params) -> EpisodeResult:
        rng = make_rng(item.seed, item.purpose, item.update, index)
        trajectory, stats = timed_play(self._player, params, rng, is_greedy=item.is_greedy)
        if item.purpose != "train":
            return EpisodeResult((stats,), grads=None)
        returns = kernels.discounted_returns(trajectory.rewards, self._gamma)
        grads = kernels.episode_gradient(params["W2"], trajectory, standardize(returns))
        return EpisodeResult((stats,), grads)

    def warm_up(self, short: Emulator, dtype: str) -> None:
        """Compile the kernels in a game of one frame, so that no item has to wait for it."""
        rng = make_rng(0, "bench")
        params = read_only(init_params(rng, hidden=1, dtype=dtype))
        trajectory = Player(short).play(params, rng)
        returns = kernels.discounted_returns(trajectory.rewards, self._gamma)
        kernels.episode_gradient(params["W2"], trajectory, returns)


class SegmentWorker:
    """Plays segments of streams, and whole episodes, with the gated network."""

    def __init__(self, config: Config, emulator: Emulator) -> None:
        self._horizon = config.ppo.num_steps
        self._player = StreamPlayer(emulator)
        # After 18 minutes the cartridge gives up and goes through all colours: nothing to learn.
        protocol = emulator.protocol
        cut = dataclasses.replace(protocol, max_frames=min(protocol.max_frames, MAX_FRAMES))
        self._trainee = StreamPlayer(Emulator(cut, emulator.console))

    def play(
        self, item: SegmentItem | EpisodeItem, params: Params
    ) -> SegmentResult | EpisodeResult:
        """Play one segment, or for an evaluation one episode."""
        if isinstance(item, SegmentItem):
            rng = make_rng(item.seed, "train", item.update, item.stream)
            return self._trainee.play_segment(
                params, item.state, self._horizon, rng, item.opponent, is_left=item.is_left
            )
        rng = make_rng(item.seed, item.purpose, item.update, item.index)
        stats = self._player.play_episode(params, rng, is_greedy=item.is_greedy)
        return EpisodeResult((stats,), grads=None)

    def warm_up(self, short: Emulator, dtype: str) -> None:
        """Compile the kernels in a game of one frame, so that no item has to wait for it."""
        rng = make_rng(0, "bench")
        params = gated.init_params(rng, NUM_INPUTS, hidden=1, dtype=dtype)
        StreamPlayer(short).play_segment(params, None, 1, rng)


Worker = EpisodeWorker | SegmentWorker


def make_worker(config: Config) -> Worker:
    """Make a worker for the algorithm that `config` names, with compiled kernels."""
    kind = SegmentWorker if config.learning.algorithm == "ppo" else EpisodeWorker
    protocol = config.environment.protocol
    worker = kind(config, make_emulator(protocol))
    short = make_emulator(dataclasses.replace(protocol, max_frames=1))
    worker.warm_up(short, config.network.dtype)
    return worker
