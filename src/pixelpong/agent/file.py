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
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.protocols import PONG, Protocol
from pixelpong.errors import CheckpointError, NumericsError, refusing
from pixelpong.items import Params, as_matrix, load_state, row_type
from pixelpong.learners.progress import Progress
from pixelpong.play.networks import NETS, Network, draw_params
from pixelpong.play.scenes import Scene, scene_of
from pixelpong.run.arrays import (
    Arrays,
    decode_arrays,
    encode_arrays,
    fingerprint,
    read_arrays,
    read_card,
)
from pixelpong.run.files import write_whole
from pixelpong.schema import Count, Meta, Positive, Return, convert, decode
from pixelpong.sight.blobs import Sight

FILE_LIMIT = 56 << 20  # size limit of an untrusted file in bytes
MAX_WEIGHTS = 24 << 20  # limit on numbers in its first layer: the fast network with 209 units

# The agents in the package, strongest last; they come from four stages of one run.
SHIPPED = ("beginner", "club", "strong", "champion")
SHIPPED_FOLDER = Path(__file__).parent / "shipped"
LARGEST_BYTE = 127  # the largest int8
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
    sight: Sight | None = None  # what it knows of how its game looks; None for Pong

    @property
    def scene(self) -> Scene:
        """What it sees of its game."""
        return dataclasses.replace(scene_of(self.protocol.game), sight=self.sight)

    @classmethod
    def of_training(
        cls, scene: Scene, config: Config, params: Params, progress: Progress, run: str
    ) -> Agent:
        """Make an agent from the current parameters of a run."""
        about = progress.line() | {"params_sha256": fingerprint(params), "is_rounded": False}
        algorithm, protocol = config.algorithm, config.protocol
        start = Start(config.seed, progress.attempt)
        return cls(params, algorithm, protocol, about, start, run, scene.sight)

    @classmethod
    def read(cls, path: Path, *, is_of_run: bool = False) -> Agent:
        """Read an agent's file; with `is_of_run`, it may be as large as its network allows."""
        with _refusing(path):
            arrays, card = read_arrays(path, _largest_file if is_of_run else FILE_LIMIT)
            return cls._restore(arrays, card, is_of_run=is_of_run)

    @classmethod
    def decode(cls, content: bytes, origin: object) -> Agent:
        """Decode the content of an agent's file; `origin` is named in errors."""
        with _refusing(origin):
            if len(content) > FILE_LIMIT:
                raise ValueError(f"it has more than {FILE_LIMIT} bytes")
            return cls._restore(*decode_arrays(content))

    @classmethod
    def _restore(cls, arrays: Arrays, facts: dict[str, Any], *, is_of_run: bool = False) -> Agent:
        """Make the agent that a file's arrays and card describe, or refuse them."""
        card, protocol = convert(facts, _Card), convert(facts, Protocol)
        scene = scene_of(protocol.game)
        shapes, is_small = NETS[card.algorithm].shapes(scene, card.shape[1]), "scale" in arrays
        if math.prod(shapes["W1"]) > MAX_WEIGHTS and not is_of_run:
            raise ValueError(f"its first layer is too large: {shapes['W1']}")
        dtype = arrays["W2"].dtype.name
        params = {name: np.zeros(shape, dtype) for name, shape in shapes.items()}
        (_load_small if is_small else _load_whole)(params, arrays, card, scene)
        NETS[card.algorithm].require_fit(scene, params)
        if not is_small and fingerprint(params) != facts["about"]["params_sha256"]:
            raise ValueError("the installed libraries draw other numbers from its seed")
        sight = scene.with_arrays(arrays).sight
        return cls(params, card.algorithm, protocol, facts["about"], card.start, sight=sight)

    def card(self) -> dict[str, Any]:
        """Return the metadata for its file, as JSON."""
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
            units: [K], the unit to which each row is rounded; by default 1/127 of the row's
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
            raise NumericsError(
                "The agent's numbers are too large for a file; lower --learning-rate."
            )
        squeezed = squeeze(changes / scale.astype(np.float32)[:, None])
        arrays = others | {"W1": squeezed, "rows": rows.astype(row_type(len(W1))), "scale": scale}
        arrays |= self.scene.arrays()
        return encode_arrays(arrays, self.card() | {"about": self.about | {"is_rounded": True}})

    def change_of(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the change of `rows` in the first layer since the start, or since 0: [K, N]."""
        W1 = self.params["W1"]
        scene = scene_of(self.protocol.game)  # the same one each time, so drawn numbers are kept
        initial = _initial_layer(scene, self.algorithm, W1.shape, "float32", self.start)
        return as_matrix(W1[rows].astype(np.float32) - initial[rows])

    def write(self, path: Path) -> int:
        """Write a small file without a start; return the size in bytes.

        It has all rows, but in games other than Pong only those that training has changed: the
        others belong to what the agent has never seen.
        """
        rows = None
        if self.start and self.protocol.game != PONG:
            rows = np.flatnonzero(self.change_of(np.arange(len(self.params["W1"]))).any(axis=1))
        content = dataclasses.replace(self, start=None).encode(rows)
        write_whole(path, content)
        return len(content)

    def make_network(self) -> Network:
        """Make a network to play one game; it remembers the previous frame."""
        return NETS[self.algorithm](self.scene, self.params)


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
    mean_return_100: Return | None = None


@dataclass(frozen=True)
class _Card:
    """The part of every agent's card besides the `Protocol`."""

    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # the first layer's shape
    about: About
    start: Start | None = None


def _load_whole(params: Params, arrays: Arrays, card: _Card, scene: Scene) -> None:
    """Load a checkpoint's parameters; its rows overwrite those of the initial first layer."""
    W1 = params["W1"]
    W1[:] = _initial_layer(scene, card.algorithm, W1.shape, W1.dtype.name, card.start)
    load_state(params, arrays)


def _load_small(params: Params, arrays: Arrays, card: _Card, scene: Scene) -> None:
    """Load a small file's parameters; its rows are rounded changes of the initial ones."""
    W1 = params["W1"]
    num_rows, row_shape = arrays["rows"].size, W1.shape[1:]
    if num_rows > len(W1):
        raise ValueError("it lists more rows than the first layer has")
    multiples = unsqueeze(arrays["W1"], num_rows, math.prod(row_shape))
    with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused afterwards
        changes = multiples * arrays["scale"].astype(np.float32).reshape(num_rows, 1)
    load_state(params, {**arrays, "W1": changes.reshape(num_rows, *row_shape)})
    W1 += _initial_layer(scene, card.algorithm, W1.shape, W1.dtype.name, card.start)


def squeeze(array: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Round numbers from -127 to 127, [K, N], and compress them column by column to bytes [·]."""
    rounded = np.clip(np.rint(array), -LARGEST_BYTE, LARGEST_BYTE).astype(np.int8)
    # Small numbers are frequent but patterns are not, so only Huffman coding helps.
    packer = zlib.compressobj(9, strategy=zlib.Z_RLE)
    return np.frombuffer(packer.compress(rounded.T.tobytes()) + packer.flush(), np.uint8)


def unsqueeze(squeezed: NDArray[np.uint8], num_rows: int, size: int) -> NDArray[np.int8]:
    """Decompress the bytes from `squeeze` to the rounded numbers, [num_rows, size]."""
    stream, count = zlib.decompressobj(), num_rows * size
    try:
        content = stream.decompress(squeezed.tobytes(), count + 1)  # stops a zip bomb
    except zlib.error as error:
        raise ValueError("its rows cannot be decompressed") from error
    if len(content) != count:
        raise ValueError("its rows have the wrong size")
    return np.frombuffer(content, np.int8).reshape(size, num_rows).T


@functools.lru_cache(1)  # all agents of a run have the same start, as do those in the package
def _initial_layer(
    scene: Scene, algorithm: str, shape: tuple[int, ...], dtype: str, start: Start | None
) -> NDArray[Any]:
    """Return the initial first layer, or zeros if the start is unknown."""
    if start is None:
        return np.zeros(shape, dtype)
    return draw_params(scene, algorithm, shape[1], dtype, start.seed, start.attempt)["W1"]


def _largest_file(content: bytes) -> int:
    """Return the size limit of a run's file from its card, including the optimizer's moments."""
    card, protocol = decode(content, _Card), decode(content, Protocol)
    wanted = NETS[card.algorithm].shapes(scene_of(protocol.game), card.shape[1])["W1"]
    if card.shape != wanted:
        raise ValueError(f"its first layer has the shape {card.shape}, not {wanted}")
    return 3 * 8 * math.prod(card.shape) + FILE_LIMIT


def read_about(path: Path) -> About:
    """Read the facts about the agent in a file, without its arrays."""
    with _refusing(path):
        return decode(read_card(path), _Card).about


def read_game(path: Path) -> str:
    """Read the name of the game that the agent in a file plays, without its arrays."""
    with _refusing(path):
        return decode(read_card(path), Protocol).game


def is_due(update: int, every: int) -> bool:
    """Whether to save the agent at this update: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

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


def encode_small(
    agent: Agent, is_touched: NDArray[np.bool_], squares: NDArray[Any], sees_much: bool
) -> bytes:
    """Encode the small file that a run saves.

    It has only the rows whose gradients have the largest mean squares, and half a byte per number.
    That makes the agent weaker by a few tenths of a point at most (``docs/log.md``). More rows
    matter if it sees much: another agent as its opponent, or another game than Pong.

    Args:
        agent: the agent.
        is_touched: [D], whether training has touched a row of the first layer.
        squares: [D, ...], the running means of the squares of its gradient.
        sees_much: whether many rows are kept.
    """
    agent = dataclasses.replace(agent, start=None)
    max_rows = 24_576 if sees_much else 10_000
    rows = np.flatnonzero(is_touched)
    order = np.argsort(-as_matrix(squares[rows]).sum(axis=1), kind="stable")
    rows = np.sort(rows[order[:max_rows]])
    largest = np.abs(agent.change_of(rows)).max(axis=1, initial=0)
    return agent.encode(rows, largest / (7 if agent.algorithm == "ppo" else LARGEST_BYTE))


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """Load an agent from the package, one of `SHIPPED`."""
    return Agent.read(SHIPPED_FOLDER / f"{name}.safetensors")
