"""A network at play: what it remembers of the frames, and the record of its steps.

`pixelpong.kernels` does everything that takes time. This module holds its arrays, which are made
once and reused for every segment and episode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env.features import list_cells_of_pixels, list_geometry
from pixelpong.items import ACTIONS, NUM_PIXELS, STAY, Params, read_only

# Instead of a draw:
GREEDY = -1.0  # take the most probable action
LOOK = 2.0  # only see the next frame and estimate its value (gated network)
# A compiled game in the kernels' form: `pixelpong.kernels.GAME`, actions, field.
Compiled = tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint64]]


class Decider:
    """The base of both networks."""

    _max_inputs: int  # the most active inputs that a step can have

    def __init__(self, step: np.dtype[Any], room: int) -> None:
        self.memory = np.zeros(1, kernels.MEMORY)
        self.pixels = np.zeros((2, NUM_PIXELS), np.uint16)  # active in two frames; `memory` counts
        self.indices = np.zeros(self._max_inputs, np.uint16)  # the inputs of the recorded steps
        self.offsets = np.zeros(room + 1, np.int64)  # the start of each step's inputs; then the end
        self.steps = np.zeros(room, step)
        self._no_game = np.zeros(1, kernels.GAME), np.zeros(0, np.uint8)
        self._draw = np.zeros((1, 1))

    @property
    def num_steps(self) -> int:
        """Recorded steps."""
        return int(self.memory["step"][0])

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended."""
        return bool(self.memory["is_over"][0])

    def start_episode(self) -> None:
        """Forget everything except the recorded steps."""
        step = self.num_steps
        self.memory[0] = 0
        for name, value in (("is_new", 1), ("num_now", -1), ("step", step)):
            self.memory[name] = value

    def start_record(self) -> None:
        """Restart the record with the next step."""
        self.memory["step"] = 0

    def make_room(self) -> None:
        """Make room for at least one more step, whatever it contains."""
        t = self.num_steps
        end = int(self.offsets[t])
        if end + self._max_inputs > len(self.indices):
            self.indices = _grown(self.indices, end, end + self._max_inputs)
        if t == len(self.steps):
            self.offsets = _grown(self.offsets, t + 1, t + 2)
            self.steps = _grown(self.steps, t, t + 1)

    def play(self, game: Compiled, draws: NDArray[np.float64], *left: Any) -> None:
        """Play in compiled code; `draws` as in `pixelpong.kernels.play_gated`.

        In the game for two, `left` is the left side's decider, of the same kind as this one.
        """
        raise NotImplementedError

    def decide(self, field: NDArray[np.uint64], draw: float) -> int:
        """Decide, record the decision as the next step, and return the action.

        `field` [80, 2] comes from `pixelpong.env.preprocess.pack_field`. `draw` is a number in
        [0, 1) that chooses the action, or `GREEDY`, or `LOOK`.
        """
        self._draw[0, 0] = draw
        self.make_room()
        self.play((*self._no_game, field), self._draw)
        return int(self.memory["wanted"][0])

    def last_inputs(self) -> NDArray[np.uint16]:
        """The inputs of the last recorded step: [K]."""
        start, end = self.offsets[self.num_steps - 1 : self.num_steps + 1]
        return self.indices[start:end]

    def frames(self) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        """Copies of the active pixels of the frame before the newest and of the newest."""
        newest, num_now, num_before = (
            int(self.memory[name][0]) for name in ("newest", "num_now", "num_before")
        )
        before, now = self.pixels[1 - newest], self.pixels[newest]
        return before[: max(num_before, 0)].copy(), now[:num_now].copy()


class PlainDecider(Decider):
    """The classic network at play."""

    _max_inputs = kernels.MAX_ACTIVE

    def __init__(self, params: Params, room: int = 1) -> None:
        """Begin an episode, with room for this many steps."""
        super().__init__(kernels.PLAIN_STEP, room)
        self.hidden = np.zeros((room, 0), np.float32)  # [·, H], activations of the recorded steps
        self.use(params)
        self.start_episode()

    def use(self, params: Params) -> None:
        """Decide with these parameters from now on; they are not changed."""
        params = read_only(params)
        self._params = W1, W2 = params["W1"], params["W2"]
        if self.hidden.shape[1:] != W2.shape or self.hidden.dtype != W1.dtype:
            self.hidden = np.zeros((len(self.steps), len(W2)), W1.dtype)

    def make_room(self) -> None:
        """Make room for at least one more step."""
        super().make_room()
        if len(self.hidden) < len(self.steps):
            self.hidden = _grown(self.hidden, self.num_steps, len(self.steps))

    def play(self, game: Compiled, draws: NDArray[np.float64], *left: Any) -> None:
        """Play in compiled code; this network plays only the game for one."""
        assert not left
        record = (self.indices, self.offsets, self.steps, self.hidden)
        kernels.play_plain(game, self._params, self.pixels, self.memory, record, draws)


class GatedDecider(Decider):
    """The fast network at play."""

    _max_inputs = kernels.MAX_INPUTS

    def __init__(self, params: Params, room: int = 1) -> None:
        """Begin an episode, with room for this many steps."""
        super().__init__(kernels.GATED_STEP, room)
        self._sight = (list_cells_of_pixels(), list_geometry())
        self._marks = np.zeros((4, kernels.NUM_MARKS), np.uint16)
        self._outputs = np.zeros(4), np.zeros(3), np.zeros(3)
        self._given: tuple[NDArray[Any] | None, ...] = (None,)
        self.use(params)
        self.start_episode()

    def use(self, params: Params) -> None:
        """Decide with these parameters from now on; they are not changed."""
        given = params["W1"], params["W2"], params["b2"]
        if all(new is old for new, old in zip(given, self._given, strict=False)):
            return  # the usual case within a round
        self._given, params = given, read_only(params)
        W1, W2 = (params[name].reshape(len(params[name]), -1) for name in ("W1", "W2"))
        self._params = W1, W2, params["b2"]
        sums = (np.zeros(size, W1.dtype) for size in (W1.shape[1], 8))
        self._scratch = (self._marks, *sums, *self._outputs)

    def start_episode(self) -> None:
        """Forget everything except the recorded steps."""
        super().start_episode()
        self.memory["last_action"] = ACTIONS.index(STAY)
        self._marks[:2] = 0

    def resume(
        self, previous: NDArray[np.uint16], current: NDArray[np.uint16], last_action: int
    ) -> None:
        """Continue within an episode, with an empty record; arguments as in `StreamState`."""
        self.memory[0] = 0
        for name, value in (
            ("num_now", len(current)),
            ("num_before", len(previous)),
            ("num_features", -1),
            ("last_action", last_action),
        ):
            self.memory[name] = value
        self.pixels[0, : len(current)] = current
        self.pixels[1, : len(previous)] = previous
        self._marks[:2] = 0

    def play(self, game: Compiled, draws: NDArray[np.float64], *left: GatedDecider) -> None:
        """Play in compiled code."""
        both = (self, *left)
        players, memories = tuple(it.player for it in both), tuple(it.memory for it in both)
        kernels.play_gated(game, self._sight, players, memories, draws)

    @property
    def player(self) -> tuple[Any, ...]:
        """Parameters, pixels, scratch and record, for `pixelpong.kernels.play_gated`."""
        record = (self.indices, self.offsets, self.steps)
        return self._params, self.pixels, self._scratch, record


def _grown(buffer: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """A copy of the used part, with room for twice what is needed."""
    copy = np.zeros((2 * needed, *buffer.shape[1:]), buffer.dtype)
    copy[:used] = buffer[:used]
    return copy
