"""An agent and its file: a checkpoint, a file saved in training or exported, or a packaged one.

All these files have the same form. ``W1`` holds the rows of the first layer that are listed in
``rows`` [K]. The other rows have their initial values, drawn as ``start`` says, or 0 if the card
has no start. In a small file, ``W1`` holds the change of each row since the start, in multiples of
the row's ``scale`` [K], as compressed bytes. The card holds the game, the shape and the agent's
origin. A checkpoint contains all of this and more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.protocols import Protocol
from pixelpong.errors import CheckpointError, NumericsError, refusing
from pixelpong.items import Params
from pixelpong.learners import as_matrix, draw_params, fill
from pixelpong.learners.progress import Progress
from pixelpong.play.networks import NETS, Network
from pixelpong.run.arrays import (
    LARGEST_BYTE,
    Arrays,
    decode_arrays,
    encode_arrays,
    fingerprint,
    read_card,
    squeeze,
    unsqueeze,
)
from pixelpong.run.files import read_file, write_whole
from pixelpong.schema import Count, Meta, Positive, Return, convert, decode

FILE_LIMIT = 56 << 20  # size limit of an untrusted file in bytes
MAX_WEIGHTS = 24 << 20  # limit on numbers in its first layer: the fast network with 209 units

# The agents in the package, strongest last; they come from four stages of one run.
SHIPPED = ("beginner", "club", "strong", "champion")
SHIPPED_FOLDER = Path(__file__).parent / "shipped"
_SMALLEST = 6e-8  # the smallest step in float16


@dataclass(frozen=True)
class Start:
    """The source of the initial parameters: the run's seed and the attempt."""

    seed: Count
    attempt: Count = 1


@dataclass(frozen=True)
class Agent:
    """A network and its origin.

    `about` is JSON: `Progress.line`, ``params_sha256`` of the trained parameters, ``is_rounded`` if
    `params` are rounded.
    """

    params: Params
    algorithm: str  # the algorithm that trained it, ``"reinforce"`` or ``"ppo"``
    protocol: Protocol  # the game it was trained to play
    about: dict[str, Any]
    start: Start | None = None  # None if it is unknown
    run: str = ""  # the mark of its run, while the run writes it; see `pixelpong.run.numbered`

    @classmethod
    def of_training(cls, config: Config, params: Params, progress: Progress, run: str) -> Agent:
        """The agent at its current state in a run that trains it."""
        about = progress.line() | {"params_sha256": fingerprint(params), "is_rounded": False}
        algorithm, protocol = config.algorithm, config.protocol
        start = Start(config.seed, progress.attempt)
        return cls(params, algorithm, protocol, about, start, run)

    @classmethod
    def decode(cls, content: bytes, origin: object, *, is_of_run: bool = False) -> Agent:
        """Decode an agent's file; a file from a run may have any size."""
        with _refusing(origin):
            if len(content) > FILE_LIMIT and not is_of_run:
                raise ValueError(f"it has more than {FILE_LIMIT} bytes")
            arrays, raw_card = decode_arrays(content)
            card, protocol = convert(raw_card, _Card), convert(raw_card, Protocol)
            shape = NETS[card.algorithm].shapes(card.hidden)["W1"]
            if math.prod(shape) > MAX_WEIGHTS and not is_of_run:
                raise ValueError(f"its first layer is too large: {shape}")
            is_small = "scale" in arrays
            params = _decode_small(arrays, card) if is_small else _decode_whole(arrays, card)
            agent = cls(params, card.algorithm, protocol, raw_card["about"], card.start)
            agent.make_network()  # checks the numbers
            if not is_small and fingerprint(params) != agent.about["params_sha256"]:
                raise ValueError("its seed gives other numbers with the installed libraries")
            return agent

    @classmethod
    def read(cls, path: Path, *, is_of_run: bool = False) -> Agent:
        """Read an agent's file, see `decode`."""
        with _refusing(path):
            content = read_file(path, _largest_file(path) if is_of_run else FILE_LIMIT)
        return cls.decode(content, path, is_of_run=is_of_run)

    def card(self) -> dict[str, Any]:
        """The facts of its file, as JSON."""
        card = {name: value for name, value in vars(self.protocol).items() if name != "note"}
        if self.run:
            card["run"] = self.run
        return card | {
            "algorithm": self.algorithm,
            "shape": self.params["W1"].shape,
            "start": self.start and vars(self.start),
            "about": self.about,
        }

    def encode(
        self, rows: NDArray[np.intp] | None = None, units: NDArray[np.float64] | None = None
    ) -> bytes:
        """Encode a small file: the changes of the first layer, rounded.

        Args:
            rows: [K], rows of the first layer, ascending; by default those that are not 0.
            units: [K], the unit to which each row is rounded; by default a 127th of the row's
                largest number.
        """
        W1 = as_matrix(self.params["W1"])
        if W1.size > MAX_WEIGHTS:
            raise NumericsError("The network is too large for an agent's file; lower --hidden.")
        rows = np.flatnonzero(W1.any(axis=1)) if rows is None else rows
        changes = self.change_of(rows)
        if units is None:
            units = np.abs(changes).max(axis=1, initial=0) / LARGEST_BYTE
        with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused below
            scale = np.maximum(units, _SMALLEST).astype(np.float16)
            others = {name: w.astype(np.float32) for name, w in self.params.items() if name != "W1"}
        if not all(np.isfinite(w).all() for w in (scale, *others.values())):
            raise NumericsError("Its numbers are too large for a file; lower --learning-rate.")
        squeezed = squeeze(changes / scale.astype(np.float32)[:, None])
        arrays = others | {"W1": squeezed, "rows": rows.astype(np.uint16), "scale": scale}
        return encode_arrays(arrays, self.card() | {"about": self.about | {"is_rounded": True}})

    def change_of(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The change of `rows` in the first layer since the start, or since 0: [K, N]."""
        W1 = self.params["W1"]
        initial = _initial_layer(self.algorithm, W1.shape[1], "float32", self.start)
        return np.asarray(as_matrix(W1)[rows].astype(np.float32) - as_matrix(initial)[rows])

    def write(self, path: Path) -> int:
        """Write a small file with all rows, without a start; return the size in bytes."""
        content = dataclasses.replace(self, start=None).encode()
        write_whole(path, content)
        return len(content)

    def make_network(self) -> Network:
        """Make a network to play one game; it remembers the previous frame."""
        return NETS[self.algorithm](self.params)


def _refusing(origin: object) -> contextlib.AbstractContextManager[None]:
    """Context manager that converts errors in an agent's file into a `CheckpointError`."""
    return refusing(f"cannot use the agent in {origin}", CheckpointError)


@dataclass(frozen=True)
class About:
    """The displayed facts about an agent; its card may have more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


@dataclass(frozen=True)
class _Card:
    """The part of every agent's card besides the `Protocol`."""

    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # the first layer's shape
    about: About
    start: Start | None = None

    @property
    def hidden(self) -> int:
        """The number of hidden units."""
        return self.shape[1]


def _decode_whole(arrays: Arrays, card: _Card) -> Params:
    """The parameters in a checkpoint, whose rows replace those of the initial first layer."""
    params = _zeros(arrays, card)
    dtype = params["W1"].dtype.name
    params["W1"][:] = _initial_layer(card.algorithm, card.hidden, dtype, card.start)
    fill(params, arrays)
    return params


def _decode_small(arrays: Arrays, card: _Card) -> Params:
    """The parameters in a small file, whose rows are rounded changes of the initial ones."""
    params = _zeros(arrays, card)
    W1 = params["W1"]
    num_rows, row_shape = arrays["rows"].size, W1.shape[1:]
    if num_rows > len(W1):
        raise ValueError("invalid rows")
    multiples = unsqueeze(arrays["W1"], num_rows, math.prod(row_shape))
    with np.errstate(over="ignore", invalid="ignore"):  # refused by `make_network`
        changes = multiples * arrays["scale"].astype(np.float32).reshape(num_rows, 1)
    fill(params, {**arrays, "W1": changes.reshape(num_rows, *row_shape)})
    W1 += _initial_layer(card.algorithm, card.hidden, W1.dtype.name, card.start)
    return params


def _zeros(arrays: Arrays, card: _Card) -> Params:
    """All-zero parameters for the network that the card describes."""
    shapes, dtype = NETS[card.algorithm].shapes(card.hidden), arrays["W2"].dtype.name
    return {name: np.zeros(shape, dtype) for name, shape in shapes.items()}


@functools.lru_cache(1)  # all agents of a run have the same start, as do those in the package
def _initial_layer(algorithm: str, hidden: int, dtype: str, start: Start | None) -> NDArray[Any]:
    """The initial first layer; zeros if the start is unknown."""
    if start is None:
        return np.zeros(NETS[algorithm].shapes(hidden)["W1"], dtype)
    return draw_params(algorithm, hidden, dtype, start.seed, start.attempt)["W1"]


def _largest_file(path: Path) -> int:
    """The largest possible size of a run's file by its card, with the optimizer's two moments."""
    card = decode(read_card(path), _Card)
    if card.shape != NETS[card.algorithm].shapes(card.hidden)["W1"]:
        raise ValueError(f"its first layer is {card.shape}")
    return 3 * 8 * math.prod(card.shape) + FILE_LIMIT


def read_about(path: Path) -> About:
    """Read the facts about the agent in a file, without its arrays."""
    with _refusing(path):
        return decode(read_card(path), _Card).about


def is_due(update: int, every: int) -> bool:
    """Whether the agent is saved at this update: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

    Saved agents are close together at first, when they learn most, and then further and further
    apart: fourteen in a thousand updates. If `every` is 0, none is saved.

    >>> [update for update in range(130) if is_due(update, every=10)]
    [0, 10, 20, 30, 40, 60, 80, 120]
    """
    if every == 0 or update % every:
        return False
    number = update // every
    unit = 1 << max(0, number.bit_length() - 2)
    return number % unit == 0


def encode_small(agent: Agent, arrays: Arrays, has_met_agents: bool) -> bytes:
    """Encode the small file that a run saves; `arrays` are the learner's state.

    It has only the rows whose gradients have the largest mean squares, and half a byte per number.
    That makes the agent weaker by a few tenths of a point at most (``docs/log.md``).
    """
    agent = dataclasses.replace(agent, start=None)
    mean_squares = as_matrix(arrays["v.W1"]).sum(axis=1)
    max_rows = 24_576 if has_met_agents else 10_000
    rows = np.sort(arrays["rows"][np.argsort(-mean_squares, kind="stable")[:max_rows]])
    largest = np.abs(agent.change_of(rows)).max(axis=1, initial=0)
    return agent.encode(rows, largest / (7 if agent.algorithm == "ppo" else LARGEST_BYTE))


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """Load an agent from the package, one of `SHIPPED`."""
    return Agent.read(SHIPPED_FOLDER / f"{name}.safetensors")
