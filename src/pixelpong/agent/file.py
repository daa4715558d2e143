"""An agent and its file: a checkpoint, one saved during training, exported, or in the package.

All have one form. ``W1`` holds the rows of the first layer that are listed in ``rows`` [K]; the
others are as the training's ``start`` drew them, or 0 if the card has no start. In a small file,
``W1`` holds the change of each row since the start, in multiples of the row's ``scale`` [K], as
compressed bytes. The card holds the game, the shape and the agent's origin. A checkpoint has all of
that and more.
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

FILE_LIMIT = 56 << 20  # bytes of a file, which may be untrusted
MAX_WEIGHTS = 24 << 20  # numbers in its first layer: 209 hidden units of the fast network

# The agents in the package, the strongest last: one training at four stages.
SHIPPED = ("beginner", "club", "strong", "champion")
SHIPPED_FOLDER = Path(__file__).parent / "shipped"
_SMALLEST = 6e-8  # the smallest step in float16


@dataclass(frozen=True)
class Start:
    """The origin of a training's first parameters: the seed of the run, and the attempt."""

    seed: Count
    attempt: Count = 1


@dataclass(frozen=True)
class Agent:
    """A network, with its origin.

    `about` is JSON: `Progress.line`, ``params_sha256`` of the trained parameters, ``is_rounded`` if
    `params` are rounded.
    """

    params: Params
    algorithm: str  # ``"reinforce"`` or ``"ppo"``, which trained it
    protocol: Protocol  # the game it was trained to play
    about: dict[str, Any]
    start: Start | None = None  # of its training, if it is known
    run: str = ""  # the mark of its run, while that writes it, see `pixelpong.run.numbered`

    @classmethod
    def of_training(cls, config: Config, params: Params, progress: Progress, run: str) -> Agent:
        """The agent at the current point of a training."""
        about = progress.line() | {"params_sha256": fingerprint(params), "is_rounded": False}
        algorithm, protocol = config.algorithm, config.protocol
        start = Start(config.seed, progress.attempt)
        return cls(params, algorithm, protocol, about, start, run)

    @classmethod
    def decode(cls, content: bytes, origin: object, *, is_own: bool = False) -> Agent:
        """Decode an agent's file; with `is_own`, from a run of ours, it may be of any size."""
        with _refusing(origin):
            if len(content) > FILE_LIMIT and not is_own:
                raise ValueError(f"it has more than {FILE_LIMIT} bytes")
            arrays, card = decode_arrays(content)
            facts, protocol = convert(card, _Card), convert(card, Protocol)
            shapes, dtype = NETS[facts.algorithm].shapes(facts.shape[1]), arrays["W2"].dtype.name
            if math.prod(shapes["W1"]) > MAX_WEIGHTS and not is_own:
                raise ValueError(f"its first layer is too large: {shapes['W1']}")
            params = {name: np.zeros(shape, dtype) for name, shape in shapes.items()}
            drawn = _draw_first_layer(facts.algorithm, facts.shape[1], dtype, facts.start)
            W1 = params["W1"]
            if is_small := "scale" in arrays:
                if (num_rows := arrays["rows"].size) > len(W1):
                    raise ValueError("invalid rows")
                kept = unsqueeze(arrays["W1"], num_rows, W1[0].size)
                with np.errstate(over="ignore", invalid="ignore"):  # refused by `make_network`
                    scaled = kept * arrays["scale"].astype(np.float32).reshape(num_rows, 1)
                fill(params, {**arrays, "W1": scaled.reshape(num_rows, *W1.shape[1:])})
                W1 += drawn
            else:
                W1[:] = drawn
                fill(params, arrays)
            agent = cls(params, facts.algorithm, protocol, card["about"], facts.start)
            agent.make_network()  # checks the numbers
            if not is_small and fingerprint(params) != agent.about["params_sha256"]:
                raise ValueError("its seed gives other numbers with the installed libraries")
            return agent

    @classmethod
    def read(cls, path: Path, *, is_own: bool = False) -> Agent:
        """Read an agent's file, see `decode`."""
        with _refusing(path):
            content = read_file(path, _largest_file(path) if is_own else FILE_LIMIT)
        return cls.decode(content, path, is_own=is_own)

    def card(self) -> dict[str, Any]:
        """The facts of its file, as JSON."""
        rules = {name: it for name, it in vars(self.protocol).items() if name != "note"}
        return (
            rules
            | ({"run": self.run} if self.run else {})
            | {
                "algorithm": self.algorithm,
                "shape": self.params["W1"].shape,
                "start": self.start and vars(self.start),
                "about": self.about,
            }
        )

    def encode(
        self, rows: NDArray[np.intp] | None = None, steps: NDArray[np.float64] | None = None
    ) -> bytes:
        """Encode a small file: the changes of the first layer, rounded.

        Args:
            rows: [K] of the first layer, ascending; by default those that are not 0.
            steps: [K], the unit to which each row is rounded; by default a 127th of the row's
                largest number.
        """
        W1 = as_matrix(self.params["W1"])
        if W1.size > MAX_WEIGHTS:
            raise NumericsError("The network is too large for an agent's file; lower --hidden.")
        rows = np.flatnonzero(W1.any(axis=1)) if rows is None else rows
        kept = self.change_of(rows)
        if steps is None:
            steps = np.abs(kept).max(axis=1, initial=0) / LARGEST_BYTE
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            scale = np.maximum(steps, _SMALLEST).astype(np.float16)
            others = {name: w.astype(np.float32) for name, w in self.params.items() if name != "W1"}
        if not all(np.isfinite(w).all() for w in (scale, *others.values())):
            raise NumericsError("Its numbers are too large for a file; lower --learning-rate.")
        squeezed = squeeze(kept / scale.astype(np.float32)[:, None])
        arrays = others | {"W1": squeezed, "rows": rows.astype(np.uint16), "scale": scale}
        return encode_arrays(arrays, self.card() | {"about": self.about | {"is_rounded": True}})

    def change_of(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The change of `rows` of the first layer since the start, or since 0: [K, N]."""
        W1 = self.params["W1"]
        drawn = _draw_first_layer(self.algorithm, W1.shape[1], "float32", self.start)
        return np.asarray(as_matrix(W1)[rows].astype(np.float32) - as_matrix(drawn)[rows])

    def write(self, path: Path) -> int:
        """Write a small file with all rows, without a start; return the size in bytes."""
        content = dataclasses.replace(self, start=None).encode()
        write_whole(path, content)
        return len(content)

    def make_network(self) -> Network:
        """Make a network to play one game; it remembers the previous frame."""
        return NETS[self.algorithm](self.params)


def _refusing(origin: object) -> contextlib.AbstractContextManager[None]:
    """While inside, turn errors in an agent's file into a `CheckpointError`."""
    return refusing(f"cannot use the agent in {origin}", CheckpointError)


@dataclass(frozen=True)
class About:
    """The facts shown about an agent; its card may have more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


@dataclass(frozen=True)
class _Card:
    """The card of every agent's file, besides the `Protocol`."""

    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # of the first layer
    about: About
    start: Start | None = None


@functools.lru_cache(1)  # the agents of a training, and those in the package, have one start
def _draw_first_layer(algorithm: str, hidden: int, dtype: str, start: Start | None) -> NDArray[Any]:
    """The initial first layer; zeros if the start is not known."""
    if start is None:
        return np.zeros(NETS[algorithm].shapes(hidden)["W1"], dtype)
    return draw_params(algorithm, hidden, dtype, **vars(start))["W1"]


def _largest_file(path: Path) -> int:
    """The most bytes that a file of a run has, by its card: also the optimizer's two moments."""
    facts = decode(read_card(path), _Card)
    shapes = NETS[facts.algorithm].shapes(facts.shape[1])
    if facts.shape != shapes["W1"]:
        raise ValueError(f"its first layer is {facts.shape}")
    return 3 * 8 * math.prod(facts.shape) + FILE_LIMIT


def read_about(path: Path) -> About:
    """Read the facts about the agent in a file, without its arrays."""
    with _refusing(path):
        return decode(read_card(path), _Card).about


def is_due(update: int, every: int) -> bool:
    """Whether the agent of an update is saved: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

    They are close together at first, when the agent learns most, and then ever further apart:
    there are fourteen in a thousand updates. If `every` is 0, there are none.

    >>> [update for update in range(130) if is_due(update, every=10)]
    [0, 10, 20, 30, 40, 60, 80, 120]
    """
    if every == 0 or update % every:
        return False
    number = update // every
    unit = 1 << max(0, number.bit_length() - 2)
    return number % unit == 0


def encode_small(agent: Agent, arrays: Arrays, has_met_agents: bool) -> bytes:
    """Encode the small file that a training saves; `arrays` are the learner's state.

    It has only the rows with the largest mean squares of the gradient, and half a byte per number.
    That makes the agent weaker by some tenths of a point at most (``docs/log.md``).
    """
    agent = dataclasses.replace(agent, start=None)
    rows, sums = arrays["rows"], as_matrix(arrays["v.W1"]).sum(axis=1)
    most = 24_576 if has_met_agents else 10_000
    rows = np.sort(rows[np.argsort(-sums, kind="stable")[:most]])
    largest = np.abs(agent.change_of(rows)).max(axis=1, initial=0)
    return agent.encode(rows, largest / (7 if agent.algorithm == "ppo" else LARGEST_BYTE))


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """Load an agent of the package, one of `SHIPPED`."""
    return Agent.read(SHIPPED_FOLDER / f"{name}.safetensors")
