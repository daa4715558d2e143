"""An agent as a small file: milestones, `pixelpong export --agent`, the agents in the package.

The file holds only the parameters, rounded, and only those rows of the first layer that training
has touched. A milestone has half precision, or half a byte per number. The agents in the package
have a step for each row, of which its numbers are multiples, and are compressed.

Covered: the file, and the agents in the package.
Not covered: whole checkpoints (`pixelpong.run.checkpoints`), deciding (`pixelpong.agent.network`).
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.network import GREEDY, Network, fit_params, make_network
from pixelpong.config.protocols import MAX_FRAMES, PROTOCOLS, Protocol, find_protocol
from pixelpong.env import make_emulator
from pixelpong.errors import CheckpointError, NumericsError, expected, refusing
from pixelpong.items import Params
from pixelpong.learners.start import Start
from pixelpong.play.replay import Replay
from pixelpong.run.arrays import decode_arrays, encode_arrays
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.milestones import MilestoneStore
from pixelpong.schema import Count, Meta, Return, decode, encode
from pixelpong.seeding import make_rng

FILE_LIMIT = 56 << 20
"""Size limit of a file, in bytes: it may come from a stranger."""

MAX_WEIGHTS = 24 << 20
"""Numbers in the largest first layer allowed: 209 hidden units of the fast network."""

CARD_LIMIT = 1 << 20
"""Size limit of a card, in bytes; the agent in the package has about a thousand."""

SHIPPED = ("beginner", "club", "strong", "champion")
"""The agents in the package, the strongest last: one training at four stages."""

_HALF_BYTE, _BYTE, _SMALLEST = 7, 127, 6e-8
"""The largest signed number of four bits, of eight; the smallest scale in half precision."""

_ROWS = 1024
"""Rows of the first layer that are scaled at once."""


@dataclass(frozen=True)
class Agent:
    """A network, with its origin.

    Attributes:
        params: its parameters.
        algorithm: ``"reinforce"`` or ``"ppo"``, which trained it.
        protocol: the game it was trained to play.
        about: other facts, as in JSON: ``update``, ``steps``, ``estimated_return``,
            ``params_sha256`` of the trained parameters, ``is_rounded`` if `params` are rounded.
    """

    params: Params
    algorithm: str
    protocol: Protocol
    about: dict[str, Any]

    def make_network(self) -> Network:
        """Make a network to play with, one for each game: it remembers the frame before."""
        return make_network(self.params, self.algorithm)

    def play_episode(self, seed: int, index: int = 0, *, is_greedy: bool = True) -> Replay:
        """Play an episode of an evaluation, exactly as the evaluation would; return a replay.

        Args:
            seed: of the evaluation.
            index: of the episode in it.
            is_greedy: take the most probable action instead of drawing one.
        """
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
    """The facts that are shown about an agent; its card may have more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


_Size = Annotated[int, Meta(ge=1, le=MAX_WEIGHTS)]
_Skip = Annotated[int, Meta(ge=1, le=60)]


@dataclass(frozen=True)
class _Card:
    """The contents of an agent's file besides its numbers.

    Attributes:
        environment: see `pixelpong.config.protocols`.
        frame_skips: smallest and largest number of frames per step.
        sticky: probability that a frame keeps the held action.
        algorithm: see `Agent`.
        shape: of the first layer.
        about: see `Agent`.
        start: None if the file has the rows themselves, not their change since the start.
        max_frames: frames after which an episode is cut off.
    """

    environment: str
    frame_skips: tuple[_Skip, _Skip]
    sticky: Annotated[float, Meta(ge=0, le=1)]
    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[_Size, ...], Meta(min_length=2, max_length=3)]
    about: _About
    start: Start | None = None
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


def encode_agent(
    agent: Agent,
    rows: NDArray[np.intp],
    *,
    bits: int = 16,
    start: Start | None = None,
    steps: NDArray[np.float64] | None = None,
) -> bytes:
    """The agent as a small file; see `decode_agent`.

    Args:
        agent: the agent to write.
        rows: [K] of the first layer to keep; when the file is read, the others are 0, or as they
            were at the start.
        bits: of a number of the first layer, 16, 8 or 4; with 4, each row has its own scale.
        start: of its training; if given, the file has the change of the rows since.
        steps: [K], needed for 8 bits: a row's numbers become multiples of its step.

    Raises:
        NumericsError: a number is not finite, or too large for this many bits.
    """
    assert bits in (4, 8, 16), bits
    W1 = agent.params["W1"]
    _require_room(agent.params, bits)
    kept = W1.reshape(len(W1), W1.size // len(W1))[rows].astype(np.float32)
    if start is not None:
        kept = kept - start.draw(W1.shape)[rows].reshape(kept.shape)
    arrays: dict[str, NDArray[Any]] = {
        name: w.astype(np.float32) for name, w in agent.params.items() if name != "W1"
    }
    arrays["rows"] = rows.astype(np.uint16)
    arrays["W1"] = kept.astype(np.float16)
    if bits == 4:
        scale = np.maximum(np.abs(kept).max(axis=1, initial=0) / _HALF_BYTE, _SMALLEST)
        arrays["scale"] = scale.astype(np.float16)
        arrays["W1"] = _pack(kept / arrays["scale"].astype(np.float32)[:, None])
    if bits == 8:
        assert steps is not None
        arrays["scale"] = np.maximum(steps, _SMALLEST).astype(np.float16)
        arrays["W1"] = squeeze(kept / arrays["scale"].astype(np.float32)[:, None])
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
    arrays["card"] = np.frombuffer(encode(card), np.uint8)
    arrays["sha256"] = np.frombuffer(bytes.fromhex(fingerprint(arrays)), np.uint8)
    return encode_arrays({name: np.ascontiguousarray(w) for name, w in arrays.items()})


def shrink_agent(agent: Agent, rows: NDArray[np.intp] | None = None) -> bytes:
    """A milestone of an agent: half a byte a number of the fast network, two of the classic one.

    The classic network is small, and its first layer is looked at as pictures.

    Args:
        agent: what to write.
        rows: of the first layer, that are kept; by default those that are not 0.
    """
    if rows is None:
        rows = np.flatnonzero(agent.params["W1"].any(axis=tuple(range(1, agent.params["W1"].ndim))))
    return encode_agent(agent, rows, bits=4 if agent.algorithm == "ppo" else 16)


def _pack(kept: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Pack numbers from -7 to 7, [K, N], two to a byte: [K, N / 2 rounded up]."""
    nibbles = (np.clip(np.rint(kept), -_HALF_BYTE, _HALF_BYTE) + 8).astype(np.uint8)
    nibbles = np.pad(nibbles, ((0, 0), (0, nibbles.shape[1] % 2)))
    packed: NDArray[np.uint8] = nibbles[:, 0::2] | nibbles[:, 1::2] << np.uint8(4)
    return packed


def _unpack(packed: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
    """The rounded numbers in the bytes of `_pack`; `count` is N."""
    nibbles = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)
    return nibbles[:, :count].astype(np.float32) - 8


def squeeze(kept: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Round numbers from -127 to 127, [K, N], and compress them, column by column: bytes [·]."""
    rounded = np.clip(np.rint(kept), -_BYTE, _BYTE).astype(np.int8)
    return np.frombuffer(zlib.compress(rounded.T.tobytes(), 9), np.uint8)


def _unsqueeze(squeezed: NDArray[np.uint8], num_rows: int, size: int) -> NDArray[np.int8]:
    """The rounded numbers in the bytes of `squeeze`: [num_rows, size]."""
    stream, count = zlib.decompressobj(), num_rows * size
    try:
        content = stream.decompress(squeezed.tobytes(), count + 1)  # a bomb stops here
    except zlib.error as error:
        raise ValueError("invalid rows") from error
    if len(content) != count:
        raise ValueError("invalid rows")
    return np.frombuffer(content, np.int8).reshape(size, num_rows).T


def _require_room(params: Params, bits: int) -> None:
    largest = float(np.finfo(np.float16).max) * {4: _HALF_BYTE, 8: _BYTE, 16: 1}[bits]
    for name, w in params.items():
        limit = largest if name == "W1" else float(np.finfo(np.float32).max)
        if not np.abs(w).max(initial=0) <= limit:  # also refuses NaN
            got = f"{int((~(np.abs(w) <= limit)).sum())} others"
            what = f"numbers of at most {limit:.3g} in {name} of a small agent"
            raise NumericsError(expected(what, got, "lower --learning-rate"))
    if params["W1"].size > MAX_WEIGHTS:
        what = f"a first layer of at most {MAX_WEIGHTS:,} numbers, for a small agent"
        raise NumericsError(expected(what, f"{params['W1'].size:,}", "lower --hidden"))


def decode_agent(content: bytes, origin: str) -> Agent:
    """Read the content that `encode_agent` made; the numbers are float32.

    Args:
        content: of the file.
        origin: its name, for the error message.

    Raises:
        CheckpointError: it is not an agent's file, or is damaged.
    """
    try:
        arrays = decode_arrays(content)
        # Files of early versions have no hash.
        if "sha256" in arrays and arrays.pop("sha256").tobytes().hex() != fingerprint(arrays):
            raise ValueError("a damaged one: its SHA-256 differs")
        if arrays["card"].nbytes > CARD_LIMIT:
            raise ValueError(f"a card of more than {CARD_LIMIT} bytes")
        content = arrays.pop("card").tobytes()
        card, about = decode(content, _Card), decode(content, dict[str, Any])["about"]
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
    """The agent of a file: a small file, or the parameters of a checkpoint in its run.

    Raises:
        CheckpointError: the file is missing, damaged or not an agent.
    """
    advice = "check its name; was it written by pixelpong?"
    with refusing(f"an agent in {path}", advice, CheckpointError):
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise ValueError(f"more than {FILE_LIMIT} bytes")
        arrays = decode_arrays(content)
    if "card" in arrays:
        return decode_agent(content, str(path))
    if any("/" in name for name in arrays):  # what has changed since the start of the run
        arrays = _open_run_of(path).checkpoints.load(int(path.resolve().parent.name)).params
    algorithm = "ppo" if "b2" in arrays else "reinforce"
    return Agent(fit_params(arrays, algorithm), algorithm, find_protocol("ALE/Pong-v5"), {})


def _open_run_of(path: Path) -> RunDirectory:
    """The run that a checkpoint's parameters lie in.

    Raises:
        CheckpointError: they lie somewhere else.
    """
    checkpoint = path.resolve().parent
    if checkpoint.parent.name != "checkpoints" or not checkpoint.name.isdecimal():
        what, got = f"the parameters in {path}", "the part that has changed since the run's start"
        raise CheckpointError(expected(what, got, "leave the file in its run, or name the run"))
    return RunDirectory.open(checkpoint.parents[1])


def _spread_rows(arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The first layer, with its rows in place; its parts are removed from `arrays`."""
    kept, rows, scale = arrays.pop("W1"), arrays.pop("rows"), arrays.pop("scale", None)
    kind = "f" if scale is None else "u"
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or kept.dtype.kind != kind:
        raise ValueError("invalid rows")
    if len(rows) and not 0 <= rows.min() <= rows.max() < shape[0]:
        raise ValueError("rows outside the first layer")
    W1, size = np.zeros(shape, np.float32), math.prod(shape[1:])
    if scale is None:
        W1[rows] = kept.reshape(len(rows), *shape[1:])
        return W1
    if kept.dtype != np.uint8 or len(rows) > shape[0]:
        raise ValueError("invalid rows")
    is_squeezed = kept.ndim == 1
    if is_squeezed:
        kept = _unsqueeze(kept, len(rows), size)
    elif kept.shape != (len(rows), -(-size // 2)):
        raise ValueError("invalid rows")
    each = scale.astype(np.float32).reshape(len(rows), 1)
    for first in range(0, len(rows), _ROWS):
        some = slice(first, first + _ROWS)
        scaled = (kept[some] if is_squeezed else _unpack(kept[some], size)) * each[some]
        W1[rows[some]] = scaled.reshape(len(scaled), *shape[1:])
    return W1


def load_milestone(store: MilestoneStore, update: int) -> Agent:
    """The agent of a milestone.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    return decode_agent(store.read(update), str(store.path(update)))


def load_shipped(name: str = SHIPPED[-1]) -> Agent:
    """An agent that comes with the package.

    Args:
        name: one of `SHIPPED`, or ``"best"`` or ``"latest"`` for the strongest.

    Raises:
        CheckpointError: no agent has this name, or its file is damaged.
        OSError: its file is missing.
    """
    name = SHIPPED[-1] if name in ("best", "latest") else name
    if name not in SHIPPED:
        advice = f"use one of: {', '.join(SHIPPED)}"
        raise CheckpointError(expected("an agent in the package", repr(name), advice))
    file = importlib.resources.files("pixelpong").joinpath(
        "agent", "shipped", f"{name}.safetensors"
    )
    return decode_agent(file.read_bytes(), "the package")
