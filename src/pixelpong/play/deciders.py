"""A network at play: its parameters, its scratch memory, and the record of its steps.

`pixelpong.kernels` does everything that takes time. This module holds its arrays, which are made
once and reused for every item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env.features import NUM_INPUTS, list_cells_of_pixels, list_geometry
from pixelpong.items import ACTIONS, NUM_PIXELS, STAY, UP, Params, Played, read_only
from pixelpong.learn import gated, network

# Instead of a draw:
GREEDY = -1.0  # take the most probable action
LOOK = 2.0  # only see the next frame and estimate its value (gated network)
# A compiled game in the kernels' form: `pixelpong.kernels.GAME`, actions, field.
Compiled = tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint64]]


def start_episode(stream: NDArray[np.void]) -> None:
    """Turn a stream to the start of an episode; the console and its statistics become zeros."""
    stream[:] = np.zeros(1, kernels.STREAM)
    stream["memory"]["is_on"] = stream["memory"]["is_new"] = 1
    stream["sides"]["last_action"] = ACTIONS.index(STAY)


def parts(stream: NDArray[np.void], sides: int) -> tuple[NDArray[Any], ...]:
    """The parts of a stream that kernels change, for one or two sides."""
    return stream["memory"], stream["sides"][0, :sides], stream["fields"][0]


class Decider:
    """The base of both networks."""

    # Draws parameters, from a generator, the number of hidden units and their type.
    init: Callable[[np.random.Generator, int, str], Params]
    up: ClassVar[int]  # the action UP in the record
    _max_inputs: ClassVar[int]  # the most active inputs that a step can have
    _step: ClassVar[np.dtype[Any]]
    _kernel: ClassVar[Callable[..., int]]
    _params: tuple[NDArray[Any], ...]
    _scratch: tuple[Any, ...] = ()

    def __init__(self, params: Params, room: int = 1) -> None:
        """Make a record with room for this many steps."""
        self.indices = np.zeros(self._max_inputs, np.uint16)  # the inputs of the recorded steps
        self.offsets = np.zeros(room + 1, np.int64)  # the start of each step's inputs; then the end
        self.steps = np.zeros(room, self._step)
        self.use(params)
        # For decisions on frames that come from elsewhere.
        self._draw, self.stream = np.zeros((1, 1)), np.zeros(1, kernels.STREAM)
        self.start_episode()

    def use(self, params: Params) -> None:
        """Decide with these parameters from now on; they are not changed."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget what was derived from the frames so far, because others come."""

    @property
    def record(self) -> tuple[NDArray[Any], ...]:
        """What the kernels write at each step."""
        return self.indices, self.offsets, self.steps

    def make_room(self, t: int) -> None:
        """Make room for at least one more step after the first `t`, whatever it contains."""
        end = int(self.offsets[t])
        if end + self._max_inputs > len(self.indices):
            self.indices = _grown(self.indices, end, end + self._max_inputs)
        if t == len(self.steps):
            self.offsets = _grown(self.offsets, t + 1, t + 2)
            self.steps = _grown(self.steps, t, t + 1)

    def play(
        self,
        game: Compiled,
        stream: NDArray[np.void],
        draws: NDArray[np.float64],
        t: int,
        *left: Decider,
    ) -> int:
        """Play in compiled code, from place `t` of the record on; return the place after it.

        `left` is the left side's network in the game for two, this one is the right side's.
        """
        networks = tuple(
            (each._params, each._scratch, each.record, each._max_inputs) for each in (self, *left)
        )
        return int(type(self)._kernel(game, networks, parts(stream, len(networks)), draws, t))

    def played(self, num_steps: int, num_looks: int = 0) -> Played:
        """A copy of the first steps of the record, and of the looks that follow."""
        offsets = self.offsets[: num_steps + 1].copy()
        steps = self.steps[: num_steps + num_looks].copy()
        return Played(steps, self.indices[: offsets[-1]].copy(), offsets)

    # --- single decisions ---

    def start_episode(self) -> None:
        """Forget the episode before."""
        start_episode(self.stream)
        self.forget()

    def decide(self, field: NDArray[np.uint64], draw: float) -> int:
        """See the next frame, decide, record it as the only step, and return the action.

        `field` [80, 2] comes from `pixelpong.env.preprocess.pack_field`. `draw` is a number in
        [0, 1) that chooses the action, or `GREEDY`, or `LOOK`.
        """
        self._draw[0, 0] = draw
        self.stream["memory"]["is_new"] = 1
        self.make_room(0)
        no_game = np.zeros(1, kernels.GAME), np.zeros(0, np.uint8), field
        self.play(no_game, self.stream, self._draw, 0)
        return int(self.stream["sides"]["wanted"][0, 0])

    def last_inputs(self) -> NDArray[np.uint16]:
        """The inputs of the last decision: [K]."""
        return self.indices[: self.offsets[1]]

    def frames(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The active pixels of the frame before the newest and of the newest."""
        fields, newest = self.stream["fields"][0], int(self.stream["memory"]["newest"][0])
        bits = np.unpackbits(fields.view(np.uint8), axis=-1, bitorder="little")[:, :, :80]
        before, now = (np.flatnonzero(bits[place]) for place in (1 - newest, newest))
        return before, now


class PlainDecider(Decider):
    """The classic network at play."""

    up, _max_inputs, _step = UP, kernels.MAX_ACTIVE, kernels.PLAIN_STEP
    _kernel = kernels.play_plain
    hidden: NDArray[Any] = np.zeros((0, 0), np.float32)  # [·, H], activations of recorded steps
    init = staticmethod(network.init_params)

    def use(self, params: Params) -> None:
        """Decide with these parameters from now on; they are not changed."""
        params = read_only(params)
        self._params = W1, W2 = params["W1"], params["W2"]
        if self.hidden.shape[1:] != W2.shape or self.hidden.dtype != W1.dtype:
            self.hidden = np.zeros((len(self.steps), len(W2)), W1.dtype)

    @property
    def record(self) -> tuple[NDArray[Any], ...]:
        """What the kernels write at each step."""
        return *super().record, self.hidden

    def make_room(self, t: int) -> None:
        """Make room for at least one more step after the first `t`, whatever it contains."""
        super().make_room(t)
        if len(self.hidden) < len(self.steps):
            self.hidden = _grown(self.hidden, t, len(self.steps))

    def played(self, num_steps: int, num_looks: int = 0) -> Played:
        """A copy of the first steps of the record."""
        return replace(super().played(num_steps), hidden=self.hidden[:num_steps].copy())


class GatedDecider(Decider):
    """The fast network at play."""

    up, _max_inputs, _step = ACTIONS.index(UP), kernels.MAX_INPUTS, kernels.GATED_STEP
    _kernel = kernels.play_gated
    _given: tuple[NDArray[Any] | None, ...] = (None,)

    @staticmethod
    def init(rng: np.random.Generator, hidden: int, dtype: str) -> Params:
        """Draw the parameters of a network with this number of hidden units."""
        return gated.init_params(rng, NUM_INPUTS, hidden, dtype)

    def use(self, params: Params) -> None:
        """Decide with these parameters from now on; they are not changed."""
        given = params["W1"], params["W2"], params["b2"]
        if all(new is old for new, old in zip(given, self._given, strict=False)):
            return  # the usual case within a round
        self._given, params = given, read_only(params)
        W1, W2 = (params[name].reshape(len(params[name]), -1) for name in ("W1", "W2"))
        self._params = W1, W2, params["b2"]
        marks, count = np.zeros((4, kernels.NUM_MARKS), np.uint16), np.zeros(1, np.int64)
        self._seen = marks, count, np.zeros(NUM_PIXELS, np.uint16)
        sums = [np.zeros(size, W1.dtype) for size in (W1.shape[1], 8)]
        outputs = np.zeros(4), np.zeros(3), np.zeros(3)
        sight = list_cells_of_pixels(), list_geometry()
        self._scratch = sight, self._seen, (*sums, *outputs)
        self.forget()

    def forget(self) -> None:
        """Forget the features of the frame before."""
        marks, count, _ = self._seen
        marks[:2], count[:] = 0, -1


NETS: dict[str, type[Decider]] = {"reinforce": PlainDecider, "ppo": GatedDecider}
"""By the name of the algorithm that trains it."""


def _grown(buffer: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """A copy of the used part, with room for twice what is needed."""
    copy = np.zeros((2 * needed, *buffer.shape[1:]), buffer.dtype)
    copy[:used] = buffer[:used]
    return copy
