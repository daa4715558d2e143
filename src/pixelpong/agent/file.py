"""An agent and its file: of a checkpoint, saved on the way, exported, or in the package.

All have one form. ``W1`` has the rows of the first layer that are named in ``rows`` [K]; the others
are as the training's ``start`` drew them, or 0 if the card has none. In a small file, ``W1`` has
the change of each row since then, in multiples of the row's ``scale`` [K], as compressed bytes. The
card has the game, the shape and where the agent comes from. A checkpoint has all that and more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.protocols import MAX_FRAMES, PROTOCOLS, Protocol
from pixelpong.errors import CheckpointError, NumericsError, on_one_line
from pixelpong.items import Params
from pixelpong.learners import draw_params
from pixelpong.learners.progress import Progress
from pixelpong.play.networks import NETS, Network
from pixelpong.run.arrays import (
    LARGEST_BYTE,
    Arrays,
    decode_arrays,
    encode_arrays,
    fingerprint,
    squeeze,
    unsqueeze,
)
from pixelpong.run.files import write_whole
from pixelpong.schema import Count, Meta, Return, convert, decode

FILE_LIMIT = 56 << 20  # bytes of a file, which may come from a stranger
MAX_WEIGHTS = 24 << 20  # numbers in its first layer: 209 hidden units of the fast network
CARD_LIMIT = 1 << 20  # bytes of a card; the agents in the package have about a thousand

# The agents in the package, the strongest last: one training at four stages.
SHIPPED = ("beginner", "club", "strong", "champion")
_SMALLEST = 6e-8  # the smallest step in float16


@dataclass(frozen=True)
class Start:
    """What a training drew its parameters from: the seed of the run, and the attempt."""

    seed: Count
    attempt: Count = 1


@dataclass(frozen=True)
class Agent:
    """A network, with its origin.

    `about` is JSON: ``update``, ``steps``, ``estimated_return``, ``params_sha256`` of the trained
    parameters, ``is_rounded`` if `params` are rounded.
    """

    params: Params
    algorithm: str  # ``"reinforce"`` or ``"ppo"``, which trained it
    protocol: Protocol  # the game it was trained to play
    about: dict[str, Any]
    start: Start | None = None  # of its training, if it is known

    @classmethod
    def of_training(cls, config: Config, params: Params, progress: Progress) -> Agent:
        """The agent at the current point of a training."""
        about = {
            "update": progress.update,
            "steps": progress.steps,
            "episodes": progress.episodes,
            "estimated_return": progress.estimated_return,
            "params_sha256": fingerprint(params),
            "is_rounded": False,
        }
        algorithm, protocol = config.learning.algorithm, config.environment.protocol
        return cls(params, algorithm, protocol, about, Start(config.seed, progress.attempt))

    @classmethod
    def of(cls, arrays: Arrays, card: dict[str, Any], origin: object) -> Agent:
        """The agent in the arrays and the card of a file; those that cannot be are refused."""
        with _understanding(origin):
            facts, rows = convert(card, _Card), arrays["rows"]
            others = {name: arrays[name] for name in ("W2", "b2") if name in arrays}
            if (dtype := str(others["W2"].dtype)) not in ("float32", "float64"):
                raise ValueError(f"numbers of the type {dtype}")
            if rows.ndim != 1 or rows.dtype != np.uint16 or rows.max(initial=0) >= facts.shape[0]:
                raise ValueError("invalid rows")
            W1, shape = facts.draw(dtype), (len(rows), *facts.shape[1:])
            if "scale" in arrays:
                kept = unsqueeze(arrays["W1"], len(rows), math.prod(shape[1:]))
                with np.errstate(over="ignore", invalid="ignore"):  # refused with the network
                    scaled = kept * arrays["scale"].astype(np.float32).reshape(len(rows), 1)
                    W1[rows] += scaled.reshape(shape)
            elif arrays["W1"].shape != shape or arrays["W1"].dtype != dtype:
                raise ValueError("invalid rows")
            else:
                W1[rows] = arrays["W1"]
            params, about = {"W1": W1} | others, card["about"]
            agent = cls(params, facts.algorithm, facts.protocol, about, facts.start)
            agent.make_network()  # checks that the numbers are finite, and their shapes
            if "scale" not in arrays and fingerprint(params) != about["params_sha256"]:
                raise ValueError("its seed gives other numbers with these versions of libraries")
            return agent

    @classmethod
    def decode(cls, content: bytes, origin: object) -> Agent:
        """The agent in the content of a file, which may come from a stranger."""
        with _understanding(origin):
            if len(content) > FILE_LIMIT:
                raise ValueError(f"more than {FILE_LIMIT} bytes")
            arrays, facts = decode_arrays(content)
            if len(facts) > CARD_LIMIT:
                raise ValueError(f"a card of more than {CARD_LIMIT} bytes")
            if math.prod(shape := decode(facts, _Card).shape) > MAX_WEIGHTS:
                raise ValueError(f"a first layer of shape {shape}")
            return cls.of(arrays, decode(facts, dict[str, Any]), origin)

    @classmethod
    def read(cls, path: Path) -> Agent:
        """The agent in a file, of any origin."""
        with _understanding(path), path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        return cls.decode(content, path)

    def card(self) -> dict[str, Any]:
        """The facts of its file, as JSON."""
        start = {} if self.start is None else {"start": vars(self.start)}
        return start | {
            "algorithm": self.algorithm,
            "environment": self.protocol.name,
            "frame_skips": list(self.protocol.frame_skips),
            "sticky": self.protocol.sticky,
            "max_frames": self.protocol.max_frames,
            "shape": list(self.params["W1"].shape),
            "about": self.about,
        }

    def round_off(
        self,
        rows: NDArray[np.intp],
        *,
        levels: int = LARGEST_BYTE,
        steps: NDArray[np.float64] | None = None,
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The arrays and the card of a small file, with some `rows` [K] of the first layer.

        The rows' change is kept since the start, if it is known, or else since 0.

        Args:
            levels: steps in a row's largest number; fewer make the file smaller.
            steps: [K] the step of each row, instead of `levels`.
        """
        if self.params["W1"].size > MAX_WEIGHTS:
            raise NumericsError("A network this large has no small file; lower --hidden.")
        kept, about = self.change_of(rows), self.about | {"is_rounded": True}
        if steps is None:
            steps = np.abs(kept).max(axis=1, initial=0) / levels
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            scale = np.maximum(steps, _SMALLEST).astype(np.float16)
            others = {name: w.astype(np.float32) for name, w in self.params.items() if name != "W1"}
        if not all(np.isfinite(w).all() for w in (scale, *others.values())):
            raise NumericsError("Numbers this large have no small file; lower --learning-rate.")
        W1 = squeeze(kept / scale.astype(np.float32)[:, None])
        arrays = others | {"W1": W1, "rows": rows.astype(np.uint16), "scale": scale}
        return arrays, self.card() | {"about": about}

    def change_of(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """What `rows` of the first layer have changed since the start, or since 0: [K, N]."""
        W1 = self.params["W1"]
        kept = W1.reshape(len(W1), -1)[rows].astype(np.float32)
        if self.start is None:
            return kept
        drawn = _draw_first_layer(self.algorithm, W1.shape[1], "float32", self.start)
        return np.asarray(kept - drawn[rows].reshape(kept.shape))

    def write(self, path: Path) -> int:
        """Write a small file with all rows, rounded as they are; return its bytes."""
        W1 = self.params["W1"]
        rows = np.flatnonzero(W1.reshape(len(W1), -1).any(axis=1))
        content = encode_arrays(*dataclasses.replace(self, start=None).round_off(rows))
        write_whole(path, content)
        return len(content)

    def make_network(self) -> Network:
        """Make a network for one game: it remembers the frame before."""
        return NETS[self.algorithm](self.params)


@contextlib.contextmanager
def _understanding(origin: object) -> Iterator[None]:
    """While inside, turn errors of a file that has no agent into a `CheckpointError`."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        message = f"There is no usable agent in {origin}: {' '.join(why.split())[:120]}."
        raise CheckpointError(on_one_line(message)) from error


@dataclass(frozen=True)
class _About:
    """The facts shown about an agent; its card may have more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


_Size = Annotated[int, Meta(ge=1)]
_Skip = Annotated[int, Meta(ge=1, le=60)]


@dataclass(frozen=True)
class _Card:
    """What every agent's card has."""

    environment: str
    frame_skips: tuple[_Skip, _Skip]
    sticky: Annotated[float, Meta(ge=0, le=1)]
    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[_Size, ...], Meta(min_length=2, max_length=3)]  # of the first layer
    about: _About
    start: Start | None = None
    max_frames: Annotated[int, Meta(ge=1, le=MAX_FRAMES)] = MAX_FRAMES

    def __post_init__(self) -> None:
        if self.environment not in PROTOCOLS:
            raise ValueError(f"an unknown environment {self.environment[:40]!r}")
        if self.frame_skips[0] > self.frame_skips[1]:
            raise ValueError("frame_skips in the wrong order")
        if self.shape != NETS[self.algorithm].shapes(self.shape[1])["W1"]:
            raise ValueError(f"a first layer of shape {self.shape} for {self.algorithm}")

    @property
    def protocol(self) -> Protocol:
        """The game it was trained to play."""
        return dataclasses.replace(
            PROTOCOLS[self.environment],
            frame_skips=self.frame_skips,
            sticky=self.sticky,
            max_frames=self.max_frames,
        )

    def draw(self, dtype: str) -> NDArray[Any]:
        """The first layer before the first step; zeros if it is not known."""
        if self.start is None:
            return np.zeros(self.shape, dtype)
        return _draw_first_layer(self.algorithm, self.shape[1], dtype, self.start).copy()


@functools.lru_cache(1)  # the agents of a training, and those in the package, have one start
def _draw_first_layer(algorithm: str, hidden: int, dtype: str, start: Start) -> NDArray[Any]:
    return draw_params(algorithm, hidden, dtype, **vars(start))["W1"]


def is_due(update: int, every: int) -> bool:
    """Whether the agent of an update is saved: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

    They are close together at first, when the agent learns most, and then further and further
    apart: there are fourteen after a thousand updates. If `every` is 0, there are none.

    >>> [update for update in range(130) if is_due(update, every=10)]
    [0, 10, 20, 30, 40, 60, 80, 120]
    """
    if every == 0 or update % every:
        return False
    number = update // every
    unit = 1 << max(0, number.bit_length() - 2)
    return number % unit == 0


def encode_small(agent: Agent, arrays: Arrays, has_met_agents: bool) -> bytes:
    """The file of an agent that a training saves on its way; `arrays` are its learner's state.

    It has the rows with the largest mean squares of the gradient. Without the others, and with half
    a byte a number, it is some tenths of a point weaker, at most (``docs/log.md``).
    """
    rows, squares = arrays["rows"], arrays["v.W1"]
    sums = squares.sum(axis=tuple(range(1, squares.ndim)))
    most = 24_576 if has_met_agents else 10_000
    rows = np.sort(rows[np.argsort(-sums, kind="stable")[:most]])
    levels = 7 if agent.algorithm == "ppo" else LARGEST_BYTE
    return encode_arrays(*dataclasses.replace(agent, start=None).round_off(rows, levels=levels))


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """An agent of `SHIPPED`; ``"best"`` and ``"latest"`` mean the strongest."""
    name = SHIPPED[-1] if name in ("best", "latest") else name
    if name not in SHIPPED:
        listed = ", ".join(SHIPPED)
        raise CheckpointError(f"The package has no agent {name!r}. It has: {listed}.")
    agent = Agent.read(Path(__file__).parent / "shipped" / f"{name}.safetensors")
    return dataclasses.replace(agent, about=agent.about | {"name": name})
