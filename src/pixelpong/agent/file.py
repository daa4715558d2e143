"""An agent as a small file: milestones, `pixelpong export`, the agents in the package.

The file holds only the parameters, and only those rows of the first layer that training has
touched. The numbers of a row are multiples of the row's step. They are kept as bytes, compressed.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.network import GREEDY, Network, make_network
from pixelpong.config.protocols import MAX_FRAMES, PROTOCOLS, Protocol
from pixelpong.env import make_emulator
from pixelpong.errors import CheckpointError, NumericsError, expected, refusing
from pixelpong.items import Params
from pixelpong.learners import draw_params
from pixelpong.play.replay import Replay
from pixelpong.run.arrays import (
    LARGEST_BYTE,
    Arrays,
    decode_arrays,
    encode_arrays,
    squeeze,
    unsqueeze,
)
from pixelpong.run.files import write_whole
from pixelpong.schema import Count, Meta, Return, decode
from pixelpong.seeding import make_rng

FILE_LIMIT = 56 << 20  # bytes of a file, which may come from a stranger
MAX_WEIGHTS = 24 << 20  # numbers in a first layer: 209 hidden units of the fast network
CARD_LIMIT = 1 << 20  # bytes of a card; the agents in the package have about a thousand

# The agents in the package, the strongest last: one training at four stages.
SHIPPED = ("beginner", "club", "strong", "champion")
_SMALLEST = 6e-8  # the smallest step in float16


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

    def make_network(self) -> Network:
        """Make a network for one game: it remembers the frame before."""
        return make_network(self.params, self.algorithm)

    def play_episode(self, seed: int, index: int = 0, *, is_greedy: bool = True) -> Replay:
        """Play an episode of an evaluation with this seed, exactly as the evaluation would."""
        rng = make_rng(seed, "evaluate", 0, index)
        emulator, policy = make_emulator(self.protocol), self.make_network()
        width = 2 + self.protocol.max_frame_skip
        actions, episode_return = [], 0.0
        while not emulator.is_over:
            draws = rng.random(width).tolist()
            actions.append(policy.act(emulator.screen, GREEDY if is_greedy else draws[0]))
            episode_return += emulator.step(actions[-1], draws[1:])
        taken = np.array(actions, np.int8)
        return Replay(self.protocol, seed, index, taken, episode_return)


@dataclass(frozen=True)
class _About:
    """The facts shown about an agent; its card may have more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


@dataclass(frozen=True)
class Start:
    """What a training drew its parameters from: the seed of the run, and the attempt."""

    seed: Count
    attempt: Count = 1

    def draw(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The first layer [D, H, 2] of the fast network."""
        return draw_params("ppo", shape[1], "float32", self.seed, self.attempt)["W1"]


_Size = Annotated[int, Meta(ge=1, le=MAX_WEIGHTS)]
_Skip = Annotated[int, Meta(ge=1, le=60)]


@dataclass(frozen=True)
class _Card:
    """The contents of an agent's file besides its numbers."""

    environment: str
    frame_skips: tuple[_Skip, _Skip]
    sticky: Annotated[float, Meta(ge=0, le=1)]
    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[_Size, ...], Meta(min_length=2, max_length=3)]  # of the first layer
    about: _About
    start: Start | None = None  # given if the file has the rows' change since the start
    max_frames: Annotated[int, Meta(ge=1, le=MAX_FRAMES)] = MAX_FRAMES

    def __post_init__(self) -> None:
        if self.environment not in PROTOCOLS:
            raise ValueError(f"an unknown environment {self.environment[:40]!r}")
        if self.frame_skips[0] > self.frame_skips[1]:
            raise ValueError("frame_skips in the wrong order")
        if math.prod(self.shape) > MAX_WEIGHTS:
            raise ValueError(f"a first layer of shape {self.shape}")

    @property
    def protocol(self) -> Protocol:
        """The game it was trained to play."""
        return dataclasses.replace(
            PROTOCOLS[self.environment],
            frame_skips=self.frame_skips,
            sticky=self.sticky,
            max_frames=self.max_frames,
        )


def encode_small(agent: Agent, arrays: Arrays, has_met_agents: bool) -> bytes:
    """The agent as a milestone, from the `arrays` of its learner's state.

    It has the rows with the largest mean squares of the gradient. Without the others, and with half
    a byte a number, it is some tenths of a point weaker, at most (``docs/log.md``).
    """
    most = 24_576 if has_met_agents else 10_000
    rows, squares = arrays["rows"], arrays["v.W1"]
    sums = squares.sum(axis=tuple(range(1, squares.ndim)))
    rows = np.sort(rows[np.argsort(-sums, kind="stable")[:most]])
    return encode_agent(agent, rows, levels=7 if agent.algorithm == "ppo" else LARGEST_BYTE)


def encode_agent(
    agent: Agent,
    rows: NDArray[np.intp],
    *,
    levels: int = LARGEST_BYTE,
    start: Start | None = None,
    steps: NDArray[np.float64] | None = None,
) -> bytes:
    """The agent as a small file that keeps the `rows` [K] of the first layer; the others become 0.

    Args:
        levels: steps in a row's largest number; fewer make the file smaller.
        start: of its training; if given, the file has the rows' change since, and the others are
            as they were then.
        steps: [K] the step of each row, instead of `levels`.
    """
    W1 = agent.params["W1"]
    _require_room(agent.params)
    kept = W1.reshape(len(W1), W1.size // len(W1))[rows].astype(np.float32)
    if start is not None:
        kept = kept - start.draw(W1.shape)[rows].reshape(kept.shape)
    if steps is None:
        steps = np.abs(kept).max(axis=1, initial=0) / levels
    scale = np.maximum(steps, _SMALLEST).astype(np.float16)
    arrays: dict[str, NDArray[Any]] = {
        name: w.astype(np.float32) for name, w in agent.params.items() if name != "W1"
    }
    arrays["rows"], arrays["scale"] = rows.astype(np.uint16), scale
    arrays["W1"] = squeeze(kept / scale.astype(np.float32)[:, None])
    card = {
        "algorithm": agent.algorithm,
        "environment": agent.protocol.name,
        "frame_skips": list(agent.protocol.frame_skips),
        "sticky": agent.protocol.sticky,
        "max_frames": agent.protocol.max_frames,
        "shape": list(W1.shape),
        "about": agent.about | {"is_rounded": True},
    }
    if start is not None:
        card["start"] = dataclasses.asdict(start)
    return encode_arrays(arrays, card)


def write_agent(agent: Agent, path: Path) -> int:
    """Write an agent's file, whole or not at all; return its bytes."""
    W1 = agent.params["W1"]
    content = encode_agent(agent, np.flatnonzero(W1.reshape(len(W1), -1).any(axis=1)))
    write_whole(path, content)
    return len(content)


def _require_room(params: Params) -> None:
    largest = float(np.finfo(np.float16).max) * 7
    for name, w in params.items():
        limit = largest if name == "W1" else float(np.finfo(np.float32).max)
        if not np.abs(w).max(initial=0) <= limit:  # also refuses NaN
            what = f"numbers of at most {limit:.3g} in {name} of a small agent"
            raise NumericsError(expected(what, "others", "lower --learning-rate"))
    if params["W1"].size > MAX_WEIGHTS:
        what = f"a first layer of at most {MAX_WEIGHTS:,} numbers, for a small agent"
        raise NumericsError(expected(what, f"{params['W1'].size:,}", "lower --hidden"))


def decode_agent(content: bytes, origin: str) -> Agent:
    """Undo `encode_agent`; the numbers are float32."""
    try:
        if len(content) > FILE_LIMIT:
            raise ValueError(f"more than {FILE_LIMIT} bytes")
        arrays, facts = decode_arrays(content)
        if len(facts) > CARD_LIMIT:
            raise ValueError(f"a card of more than {CARD_LIMIT} bytes")
        card, about = decode(facts, _Card), decode(facts, dict[str, Any])["about"]
        with np.errstate(over="ignore", invalid="ignore"):  # the results are refused below
            W1 = _spread_rows(arrays, card.shape)
            if card.start is not None:
                W1 += card.start.draw(W1.shape)
            params = {"W1": W1, **{name: w.astype(np.float32) for name, w in arrays.items()}}
        agent = Agent(params, card.algorithm, card.protocol, about)
        agent.make_network()  # checks that the numbers are finite, and their shapes
        return agent
    except (ValueError, KeyError, CheckpointError) as error:
        got = " ".join(str(error).split())[:80] or type(error).__name__
        advice = "was it written by pixelpong?"
        raise CheckpointError(expected(f"an agent in {origin}", got, advice)) from error


def read_agent(path: Path) -> Agent:
    """The agent of a file."""
    with refusing(f"an agent in {path}", "check its name", CheckpointError):
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
    return decode_agent(content, str(path))


def _spread_rows(arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The first layer, with its rows in place; its parts are removed from `arrays`."""
    squeezed, rows, scale = (arrays.pop(name) for name in ("W1", "rows", "scale"))
    is_sound = rows.ndim == 1 and rows.dtype == np.uint16 and len(rows) <= shape[0]
    if not is_sound or squeezed.dtype != np.uint8 or rows.max(initial=0) >= shape[0]:
        raise ValueError("invalid rows")
    kept = unsqueeze(squeezed, len(rows), math.prod(shape[1:]))
    W1, each = np.zeros(shape, np.float32), scale.astype(np.float32).reshape(len(rows), 1)
    W1[rows] = (kept * each).reshape(len(rows), *shape[1:])
    return W1


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """An agent of `SHIPPED`; ``"best"`` and ``"latest"`` mean the strongest."""
    name = SHIPPED[-1] if name in ("best", "latest") else name
    if name not in SHIPPED:
        advice = f"use one of: {', '.join(SHIPPED)}"
        raise CheckpointError(expected("an agent in the package", repr(name), advice))
    file = importlib.resources.files("pixelpong").joinpath(
        "agent", "shipped", f"{name}.safetensors"
    )
    agent = decode_agent(file.read_bytes(), "the package")
    return dataclasses.replace(agent, about=agent.about | {"name": name})
