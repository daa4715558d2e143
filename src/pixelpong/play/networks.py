"""The two networks in play: parameters, scratch memory, the record of steps, and explanations.

`pixelpong.kernels` does everything that takes time. A network holds its arrays, which are made once
and reused. A `Player` plays whole games and streams with it; all other users pass it one screen
after another. Both use the same code and get the same bits.

Saliency is exact for these networks. With fixed gates, the logit of a classic decision is a sum
over pixels. The logit of a gated decision is a sum over pixels and over products of two sums of
pixels; each factor of a product gets half of it (Shapley values):

    classic  c_i = x_i Σ_h [h > 0] W1_ih W2_h
    gated    c_i = Σ_h [a_h > 0] (A_ih (u_h + v_h b_h / 2) + B_ih v_h a_h / 2)

Here A and B are the two columns of W1. In Pong, u and v are the differences between W2's rows for
UP and DOWN; in other games, between the row of the most probable action and the mean of the others,
where the rows of an action's parts are added to its own (`pixelpong.learn.ppo`). The c_i and the
bias add up to the difference of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.episode import Console, no_console
from pixelpong.atari.steps.records import aligned_zeros
from pixelpong.config.protocols import PONG
from pixelpong.items import ACTIONS, DOWN, NUM_PIXELS, UP, Params, Played, read_only, row_type
from pixelpong.kernels import deciding, playing
from pixelpong.kernels.observing import MAX_ACTIVE
from pixelpong.kernels.pong_game import play_plain
from pixelpong.kernels.records import GATED_STEP, PLAIN_STEP
from pixelpong.learn import gated, network
from pixelpong.play.scenes import Scene
from pixelpong.pong import features
from pixelpong.seeding import make_rng
from pixelpong.sight.blobs import COLUMNS, ROWS, find_cells
from pixelpong.sight.sharing import share_among_cells
from pixelpong.sight.view import START_FAR_WAYS, START_ROUGH, View, see

# Values to use instead of a uniform number in [0, 1).
GREEDY = -1.0  # take the most probable action
LOOK = 2.0  # only observe the next frame and estimate its value (gated network)
OFF, STAYED, APPEARED, VANISHED = range(4)  # the classic network does not see pixels that stayed
PLAYER = 16  # added to the class of a cell of the player's figure
Shapes = dict[str, tuple[int, ...]]  # the shape of each parameter


@dataclass(frozen=True)
class Explanation:
    """What the network saw at one step and how it decided."""

    # In Pong [80, 80], each pixel OFF, STAYED, APPEARED or VANISHED. In other games [105, 80], the
    # class of each lit cell, plus PLAYER in the player's figure; 0 if the cell is not lit.
    field: NDArray[np.uint8]
    # Of the same shape: what each pixel or cell adds to the difference between the logits of UP and
    # DOWN; in other games, between the logit of the most probable action and the mean of the others
    saliency: NDArray[np.float64]
    rest: float  # what the biases add, and the last action if it is an input
    probabilities: NDArray[np.float64]  # [A], one per entry of the network's `actions`
    # In Pong the expected outcome of the point, −1 … 1, in other games of the life; None if the
    # network has no value.
    value: float | None


class Network:
    """The base of both networks.

    Actions are Gymnasium's numbers. A screen is an array of palette indices, [210, 160] uint8, and
    is not changed.
    """

    actions: tuple[int, ...]  # the actions that it chooses from, in Gymnasium's numbers of the game
    # Draws parameters; takes the scene, a generator, the number of hidden units and the type.
    init: Callable[[Scene, np.random.Generator, int, str], Params]
    shapes: Callable[[Scene, int], Shapes]  # takes the scene and the number of hidden units
    _step: ClassVar[np.dtype[Any]]
    _keeps_hidden: ClassVar[bool] = False  # whether the record has the hidden activations

    def __init__(
        self, scene: Scene, params: Params, room: int = 1, *, life_cost: float = 0.0
    ) -> None:
        """Make a record with room for some steps; raise `ValueError` for unsuitable parameters.

        `life_cost` is what a lost life costs in the recorded rewards, in games other than Pong.
        """
        hidden, dtype = self.require_fit(scene, params)
        self.scene, self._life_cost = scene, life_cost
        # The inputs of the recorded steps.
        self.indices = np.zeros(self._max_inputs, row_type(scene.num_inputs))
        self.offsets = np.zeros(room + 1, np.int64)  # the start of each step's inputs, then the end
        self.steps = np.zeros(room, self._step)
        self.hidden = np.zeros((room, hidden * self._keeps_hidden), dtype)
        self._scratch: Any = self._make_scratch(hidden, dtype)
        self._codes = np.array(scene.actions)  # what the console does for each index of an action
        # Gymnasium numbers the actions of other games in their order.
        self._numbers = scene.actions if scene.game == PONG else (*range(len(scene.actions)),)
        self.params = dict(params)
        self.use(params)
        # These are for decisions on screens.
        self._uniforms, self.stream = np.zeros((1, 1, 1)), np.zeros(1, scene.stream)
        self._drawn = scene.make_drawn()
        self._console = no_console(self._drawn)

    @property
    def _max_inputs(self) -> int:
        """The most active inputs that a step can have."""
        return self.scene.max_inputs

    @property
    def _kernel(self) -> Callable[..., int]:
        return self.scene.play_kernel

    @classmethod
    def require_fit(cls, scene: Scene, params: Params) -> tuple[int, np.dtype[Any]]:
        """Refuse shapes that would be unsafe for kernels, and numbers that are not finite.

        Return the number of hidden units and the type.
        """
        shapes = {name: w.shape for name, w in params.items()}
        types = {w.dtype for w in params.values()}
        hidden = (*shapes.get("W1", ()), 0, 0)[1]
        if shapes != cls.shapes(scene, hidden) or types not in ({np.dtype("f4")}, {np.dtype("f8")}):
            got = f"{shapes} of {', '.join(sorted(map(str, types)))}"
            wanted = f"{cls.shapes(scene, hidden)} of float32 or float64"
            raise ValueError(f"its parameters do not fit this algorithm: {got}, not {wanted}")
        for name, w in params.items():
            if not np.isfinite(w).all():
                raise ValueError(f"{name} has numbers that are not finite")
        return hidden, types.pop()

    def _make_scratch(self, hidden: int, dtype: np.dtype[Any]) -> tuple[Any, ...]:
        return ()

    def _make_arrays(self, params: Params) -> tuple[NDArray[Any], ...]:
        """Return the parameters in the kernels' form."""
        raise NotImplementedError

    def use(self, params: Params) -> None:
        """Use these parameters, which have the same shapes, from the next frame on."""
        for name, before in self.params.items():
            assert (before.shape, before.dtype) == (params[name].shape, params[name].dtype), name
        self.params = dict(params)
        self._arrays = self._make_arrays(read_only(params))

    # --- many steps ---

    def make_room(self, t: int) -> None:
        """Make room for at least one step after the first `t`, however many inputs it has."""
        end = int(self.offsets[t])
        if end + self._max_inputs > len(self.indices):
            self.indices = _grown(self.indices, end, end + self._max_inputs)
        if t == len(self.steps):
            self.offsets = _grown(self.offsets, t + 1, t + 2)
            self.steps = _grown(self.steps, t, t + 1)
            self.hidden = _grown(self.hidden, t, t + 1)

    def play_streams(
        self,
        console: Console,
        streams: NDArray[np.void],
        uniforms: NDArray[np.float64],
        first: int,
        t: int,
        *left: Network,
        learner: int = 0,
    ) -> int:
        """Play in compiled code and record from step `t` on; return the next step.

        This network plays the right side; `left` plays the left side in the two-player game. For
        the other arguments, see `pixelpong.kernels.playing`.
        """
        sides = (self, *left)
        networks = tuple(
            playing.Network(side._arrays, side._scratch, side._max_inputs, side._codes)
            for side in sides
        )
        records = tuple(
            playing.Record(side.indices, side.offsets, side.steps, side.hidden) for side in sides
        )
        return int(self._kernel(console, networks, records, streams, uniforms, first, t, learner))

    def played(self, count: int) -> Played:
        """Copy the first `count` steps of the record."""
        steps, hidden = self.steps[:count].copy(), self.hidden[:count].copy()
        offsets = self.offsets[: count + 1].copy()
        return Played(steps, self.indices[: offsets[-1]].copy(), offsets, hidden)

    # --- one screen after another ---

    def reset(self) -> None:
        """Forget the previous episode."""
        self.stream[:] = np.zeros_like(self.stream)

    def act(self, screen: NDArray[np.uint8], uniform: float = GREEDY) -> int:
        """Observe the next screen and choose an action, using a number in [0, 1) or `GREEDY`."""
        self._uniforms[:] = uniform
        self.stream["is_new"] = 1
        self.scene.draw(screen, self._drawn)
        self.play_streams(self._console, self.stream, self._uniforms, 0, 0)
        return self.last_action

    def follow(self, screen: NDArray[np.uint8], action: int | None) -> None:
        """Observe the next screen of a replay, given the action taken there, or None at the end."""
        self.act(screen)
        if action is not None:
            self.stream["last_actions"] = self._numbers.index(action)

    @property
    def last_action(self) -> int:
        """The action that was chosen last."""
        return self._numbers[int(self.stream["last_actions"][0, 0])]

    def see(self, screen: NDArray[np.uint8]) -> None:
        """Look at a screen for `explain`, which needs all screens of an episode in other games."""

    def inputs(self) -> NDArray[np.intp]:
        """Return the rows of the first layer that the last `act` summed, [K]."""
        return self.indices[: self.offsets[1]].astype(np.intp) % len(self.params["W1"])

    def answer(self) -> tuple[NDArray[np.float64], float | None]:
        """Return the probabilities and the value of the last `act`, as in an `Explanation`."""
        raise NotImplementedError

    def explain(self) -> Explanation:
        """Explain the last decision: what the network saw, and what each pixel contributed."""
        raise NotImplementedError


class PlainNetwork(Network):
    """The classic network, which plays Pong."""

    actions, _step, _keeps_hidden, _max_inputs = (UP, DOWN), PLAIN_STEP, True, MAX_ACTIVE
    _kernel = staticmethod(play_plain)

    @staticmethod
    def init(scene: Scene, rng: np.random.Generator, hidden: int, dtype: str) -> Params:
        """Draw the parameters of a network with this number of hidden units."""
        return network.init_params(rng, hidden, dtype)

    @staticmethod
    def shapes(scene: Scene, hidden: int) -> Shapes:
        """Return the shapes of the parameters."""
        return {"W1": (NUM_PIXELS, hidden), "W2": (hidden,)}

    def _make_arrays(self, params: Params) -> deciding.PlainParams:
        return deciding.PlainParams(params["W1"], params["W2"])

    def answer(self) -> tuple[NDArray[np.float64], float | None]:
        """Return the probabilities of the last `act`; this network has no value."""
        p = float(self.steps["up_probability"][0])
        return np.array([p, 1 - p]), None

    def explain(self) -> Explanation:
        """Explain the last `act`: what the network saw, and what each pixel contributed."""
        pixels, is_gone = self.inputs(), self.indices[: self.offsets[1]] >= NUM_PIXELS
        field, saliency = np.zeros(NUM_PIXELS, np.uint8), np.zeros(NUM_PIXELS)
        field[pixels] = np.where(is_gone, VANISHED, APPEARED)
        rows = self.params["W1"][pixels].astype(np.float64) * np.where(is_gone, -1, 1)[:, None]
        is_on = rows.sum(axis=0) > 0
        saliency[pixels] = rows @ np.where(is_on, self.params["W2"], 0)
        return Explanation(field.reshape(80, 80), saliency.reshape(80, 80), 0.0, *self.answer())


class GatedNetwork(Network):
    """The fast network, for any game."""

    _step = GATED_STEP

    def __init__(self, *args: Any, **options: Any) -> None:
        """Make a record with room for some steps, see `Network`."""
        super().__init__(*args, **options)
        self._views: list[tuple[NDArray[np.uint8], View]] = []  # at most two, for `explain`

    @property
    def actions(self) -> tuple[int, ...]:  # type: ignore[override]
        """The actions that it chooses from, in Gymnasium's numbers of the game."""
        return self._numbers

    @staticmethod
    def init(scene: Scene, rng: np.random.Generator, hidden: int, dtype: str) -> Params:
        """Draw the parameters of a network with this number of hidden units."""
        inputs, outputs, typical = scene.num_inputs, scene.num_outputs, scene.typical_inputs
        return gated.init_params(rng, inputs, outputs, hidden, dtype, typical_inputs=typical)

    @staticmethod
    def shapes(scene: Scene, hidden: int) -> Shapes:
        """Return the shapes of the parameters."""
        inputs, outputs = scene.num_inputs, scene.num_outputs
        return {"W1": (inputs, hidden, 2), "W2": (outputs, hidden, 2), "b2": (outputs,)}

    def _make_arrays(self, params: Params) -> deciding.GatedParams:
        W1, W2, b2 = params["W1"], params["W2"], params["b2"]
        return deciding.GatedParams(W1.reshape(len(W1), -1), W2.reshape(len(W2), -1), b2)

    def _make_scratch(self, hidden: int, dtype: np.dtype[Any]) -> Any:
        zeros, actions = aligned_zeros, len(self.scene.actions)
        layers = deciding.Layers(
            z=zeros(2 * hidden, dtype=dtype),
            lanes=zeros(8, dtype=dtype),
            outputs=zeros(self.scene.num_outputs),
            log_probabilities=zeros(actions),
            probabilities=zeros(actions),
        )
        return self.scene.make_scratch(layers, self._life_cost)

    def answer(self) -> tuple[NDArray[np.float64], float | None]:
        """Return the probabilities and the value of the last `act`."""
        return self._scratch.layers.probabilities.copy(), float(self.steps["value"][0])

    def reset(self) -> None:
        """Forget the previous episode."""
        super().reset()
        self._views.clear()

    def see(self, screen: NDArray[np.uint8]) -> None:
        """Look at a screen for `explain`, which needs all screens of an episode in other games."""
        if self.scene.game != PONG:
            assert self.scene.sight is not None, "this scene has no sight"
            view = see(self.scene.sight, screen, self._views[-1][1] if self._views else None)
            self._views = [*self._views[-1:], (screen, view)]

    def explain(self) -> Explanation:
        """Explain the last decision: what the network saw, and what each pixel contributed."""
        inputs, weights = self.inputs(), self._weigh_outputs()
        W2, b2 = (self.params[name].astype(np.float64) for name in ("W2", "b2"))
        u, v = np.tensordot(weights, W2, 1).T
        rows = self.params["W1"][inputs].astype(np.float64)
        a, b = rows.sum(axis=0).T
        shares = rows[..., 0] @ ((a > 0) * (u + v * b / 2)) + rows[..., 1] @ ((a > 0) * v * a / 2)
        is_action = inputs >= self.scene.num_inputs - len(self.scene.actions)
        rest = float(weights @ b2 + shares[is_action].sum())
        draw = self._draw_field if self.scene.game == PONG else self._draw_cells
        return Explanation(*draw(inputs, shares), rest, *self.answer())

    def _weigh_outputs(self) -> NDArray[np.float64]:
        """Return the factor of each output, [O], in the difference of logits that is explained."""
        parts, weights = self.scene.parts, np.zeros(self.scene.num_outputs)
        of_actions = np.zeros(len(parts))
        if self.scene.game == PONG:
            of_actions[[ACTIONS.index(UP), ACTIONS.index(DOWN)]] = 1, -1
        else:
            of_actions[:] = -1 / (len(parts) - 1)
            of_actions[self._scratch.layers.probabilities.argmax()] = 1
        weights[: len(parts)] = of_actions
        np.add.at(weights, parts, of_actions[:, None])
        return weights

    def _draw_field(
        self, inputs: NDArray[np.intp], shares: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Draw what was seen of Pong, and what each pixel contributed."""
        fields, newest = self.stream["fields"][0], int(self.stream["game"]["newest"][0])
        bits = np.unpackbits(fields.view(np.uint8), axis=-1, bitorder="little")[:, :, :80]
        before, now = (np.flatnonzero(bits[index]) for index in (1 - newest, newest))
        field = np.zeros(NUM_PIXELS, np.uint8)
        field[before] = VANISHED
        field[now] = np.where(field[now] == VANISHED, STAYED, APPEARED)
        return field.reshape(80, 80), features.share_among_pixels(now, before, inputs, shares)

    def _draw_cells(
        self, inputs: NDArray[np.intp], shares: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Draw what was seen of another game, and what each cell contributed."""
        assert self.scene.sight is not None, "this scene has no sight"
        *earlier, (screen, now) = self._views
        cells, classes = find_cells(self.scene.sight, screen)
        field = np.zeros(ROWS * COLUMNS, np.uint8)
        field[cells] = classes
        is_own = (START_ROUGH <= now.links[:, 0]) & (now.links[:, 0] < START_FAR_WAYS)
        field[np.unique(now.links[is_own, 1])] += PLAYER
        before = earlier[0][1] if earlier else None
        return field.reshape(ROWS, COLUMNS), share_among_cells(now, before, inputs, shares)


NETS: dict[str, type[Network]] = {"reinforce": PlainNetwork, "ppo": GatedNetwork}
"""The network that each algorithm trains."""


def _grown(buffer: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """Copy the used part of a buffer, with room for twice what is needed."""
    copy = np.zeros((2 * needed, *buffer.shape[1:]), buffer.dtype)
    copy[:used] = buffer[:used]
    return copy


def draw_params(
    scene: Scene, algorithm: str, hidden: int, dtype: str, seed: int, attempt: int
) -> Params:
    """Draw the initial parameters of an attempt with this seed."""
    rng = make_rng(seed, "params", *([attempt] if attempt > 1 else []))
    return NETS[algorithm].init(scene, rng, hidden, dtype)
