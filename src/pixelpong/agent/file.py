"""An agent as a small file: a run's milestones, `pixelpong export --agent`, the agents that ship.

The file holds the parameters alone, rounded to half precision, and of the first layer only the rows
that training has touched. The agents in the package take half a byte a number.

Covered: the file, and the agents in the package.
Not covered: whole checkpoints (`pixelpong.run.checkpoints`), deciding (`pixelpong.agent.network`).
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

from pixelpong.agent.network import GREEDY, Network, fit_params, make_network
from pixelpong.config.protocols import Protocol, find_protocol
from pixelpong.env import make_emulator
from pixelpong.errors import CheckpointError, NumericsError, expected, refusing
from pixelpong.items import Params
from pixelpong.learn import gated
from pixelpong.play.replay import Coins, Played, Replay, describe_protocol
from pixelpong.run.arrays import decode_arrays, encode_arrays
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.milestones import MilestoneStore
from pixelpong.schema import Count, Meta, Return, decode, encode
from pixelpong.seeding import make_rng

FILE_LIMIT = 56 << 20
"""Bytes of the largest file of a stranger that is read."""

MAX_WEIGHTS = 24 << 20
"""Numbers of the largest first layer: 209 hidden units of the fast network."""

CARD_LIMIT = 1 << 20
"""Bytes of the longest card that is read; that of the agent in the package has some thousand."""

SHIPPED = ("beginner", "club", "strong", "champion")
"""The agents that come with the package, the strongest last: one training at four of its ages."""

_HALF_BYTE, _SMALLEST = 7, 6e-8
"""The largest number of four bits with a sign; the smallest scale that half precision holds."""

_ROWS = 1024
"""Of the first layer, that are scaled at once."""


@dataclass(frozen=True)
class Agent:
    """A network, and what it is.

    Attributes:
        params: its parameters.
        algorithm: that trained it, ``"reinforce"`` or ``"ppo"``.
        protocol: what it was trained to play.
        about: what else is known, as JSON holds it: ``update``, ``steps``, ``estimated_return``,
            ``params_sha256`` of the parameters as they were trained, ``is_rounded`` where these
            are not those to the bit.
    """

    params: Params
    algorithm: str
    protocol: Protocol
    about: dict[str, Any]

    def make_network(self) -> Network:
        """What plays: one for each game, it remembers the frame before."""
        return make_network(self.params, self.algorithm)

    def play_episode(self, seed: int, index: int = 0, *, is_greedy: bool = True) -> Replay:
        """Play the very episode that an evaluation would, and keep it as a replay.

        Args:
            seed: of the evaluation.
            index: of the episode in it.
            is_greedy: take the most probable action instead of drawing one.
        """
        coins = Coins(seed, "evaluate", 0, index)
        rng = make_rng(seed, coins.purpose, coins.update, index)
        emulator, policy = make_emulator(self.protocol), self.make_network()
        width = 2 + self.protocol.max_frame_skip
        actions, episode_return = [], 0.0
        while not emulator.is_over:
            draws = rng.random(width).tolist()
            actions.append(policy.act(emulator.screen, GREEDY if is_greedy else draws[0]))
            episode_return += emulator.step(actions[-1], draws[1:])
        taken = np.array(actions, np.int8)
        return Replay(self.protocol, coins, taken, 0, index, episode_return)


@dataclass(frozen=True)
class Start:
    """What a fast training drew its first layer from: the seed of the run, and the attempt."""

    seed: Count
    attempt: Count

    def draw(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The first layer [D, H, 2] before the first step."""
        rng = make_rng(self.seed, "params", *([self.attempt] if self.attempt > 1 else []))
        return gated.init_params(rng, shape[0], shape[1])["W1"]


@dataclass(frozen=True)
class _About:
    """What is shown of an agent; its card may say more."""

    update: Count
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None


_Size = Annotated[int, Meta(ge=1, le=MAX_WEIGHTS)]


@dataclass(frozen=True)
class _Card(Played):
    """What an agent's file says beside its numbers.

    Attributes:
        algorithm: see `Agent`.
        shape: of the first layer.
        about: see `Agent`.
        start: None where the rows are kept as they are.
    """

    algorithm: Literal["reinforce", "ppo"]
    shape: Annotated[tuple[_Size, ...], Meta(min_length=2, max_length=3)]
    about: _About
    start: Start | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.prod(self.shape) > MAX_WEIGHTS:
            raise ValueError(f"a first layer of shape {self.shape}")


def encode_agent(
    agent: Agent, rows: NDArray[np.intp], *, bits: int = 16, start: Start | None = None
) -> bytes:
    """The agent as a small file; see `decode_agent`.

    Args:
        agent: what to write.
        rows: [K] of the first layer that are kept; the others are 0 when it is read, or as they
            were at the start.
        bits: of a number of the first layer, 16 or 4; with 4, each row has a scale of its own.
        start: of its training; then what is kept is how the rows have changed since.

    Raises:
        NumericsError: a number is not finite, or too large for so few bits.
    """
    assert bits in (4, 16), bits
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
    card = {
        "algorithm": agent.algorithm,
        **describe_protocol(agent.protocol),
        "shape": list(W1.shape),
        "about": agent.about | {"is_rounded": True},
    }
    if start is not None:
        card["start"] = dataclasses.asdict(start)
    arrays["card"] = np.frombuffer(encode(card), np.uint8)
    arrays["sha256"] = np.frombuffer(bytes.fromhex(fingerprint(arrays)), np.uint8)
    return encode_arrays({name: np.ascontiguousarray(w) for name, w in arrays.items()})


def _pack(kept: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Numbers of -7 to 7, [K, N], as bytes of two, [K, N / 2 rounded up]."""
    nibbles = (np.clip(np.rint(kept), -_HALF_BYTE, _HALF_BYTE) + 8).astype(np.uint8)
    nibbles = np.pad(nibbles, ((0, 0), (0, nibbles.shape[1] % 2)))
    packed: NDArray[np.uint8] = nibbles[:, 0::2] | nibbles[:, 1::2] << np.uint8(4)
    return packed


def _unpack(packed: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
    """What `_pack` was given, rounded; `count` is N."""
    nibbles = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)
    return nibbles[:, :count].astype(np.float32) - 8


def _require_room(params: Params, bits: int) -> None:
    largest = float(np.finfo(np.float16).max) * (_HALF_BYTE if bits == 4 else 1)
    for name, w in params.items():
        limit = largest if name == "W1" else float(np.finfo(np.float32).max)
        if not np.abs(w).max(initial=0) <= limit:  # also for what is not a number
            got = f"{int((~(np.abs(w) <= limit)).sum())} others"
            what = f"numbers of at most {limit:.3g} in {name} of a small agent"
            raise NumericsError(expected(what, got, "lower --learning-rate"))
    if params["W1"].size > MAX_WEIGHTS:
        what = f"a first layer of at most {MAX_WEIGHTS:,} numbers, for a small agent"
        raise NumericsError(expected(what, f"{params['W1'].size:,}", "lower --hidden"))


def decode_agent(content: bytes, origin: str) -> Agent:
    """What `encode_agent` made; its numbers are those of the file, in float32.

    Args:
        content: of the file.
        origin: its name, for the error message.

    Raises:
        CheckpointError: it is something else.
    """
    try:
        arrays = decode_arrays(content)
        # Those written before there was a hash have none.
        if "sha256" in arrays and arrays.pop("sha256").tobytes().hex() != fingerprint(arrays):
            raise ValueError("a damaged one: another SHA-256")
        if arrays["card"].nbytes > CARD_LIMIT:
            raise ValueError(f"a card of more than {CARD_LIMIT} bytes")
        content = arrays.pop("card").tobytes()
        card, about = decode(content, _Card), decode(content, dict[str, Any])["about"]
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused below
            W1 = _spread_rows(arrays, card.shape)
            if card.start is not None:
                W1 += card.start.draw(W1.shape)
            params = {"W1": W1, **{name: w.astype(np.float32) for name, w in arrays.items()}}
        agent = Agent(params, card.algorithm, card.protocol, about)
        agent.make_network()  # which wants finite numbers, and those of the algorithm's shapes
        return agent
    except (ValueError, KeyError, CheckpointError) as error:
        got = " ".join(str(error).split())[:80] or type(error).__name__
        advice = "was it written by pixelpong?"
        raise CheckpointError(expected(f"an agent in {origin}", got, advice)) from error


def read_agent(path: Path) -> Agent:
    """The agent of a file: of the small kind, or the bare parameters of a checkpoint.

    Raises:
        CheckpointError: it is missing, damaged or something else.
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
    algorithm = "ppo" if "b2" in arrays else "reinforce"
    return Agent(fit_params(arrays, algorithm), algorithm, find_protocol("ALE/Pong-v5"), {})


def _spread_rows(arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The first layer, its rows at their places; what it is made of is taken out of `arrays`."""
    kept, rows, scale = arrays.pop("W1"), arrays.pop("rows"), arrays.pop("scale", None)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or kept.dtype.kind not in "iuf":
        raise ValueError("invalid rows")
    if len(rows) and not 0 <= rows.min() <= rows.max() < shape[0]:
        raise ValueError("rows that are not there")
    W1, size = np.zeros(shape, np.float32), math.prod(shape[1:])
    if scale is None:
        W1[rows] = kept.reshape(len(rows), *shape[1:])
        return W1
    if kept.dtype != np.uint8 or kept.shape != (len(rows), -(-size // 2)):
        raise ValueError("invalid rows")
    each = scale.astype(np.float32).reshape(len(rows), 1)
    for first in range(0, len(rows), _ROWS):
        some = slice(first, first + _ROWS)
        scaled = _unpack(kept[some], size) * each[some]
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
        name: one of `SHIPPED`; also ``"best"`` or ``"latest"``, which is the strongest.

    Raises:
        CheckpointError: there is none of this name, or its file is damaged.
        OSError: its file is not there.
    """
    name = SHIPPED[-1] if name in ("best", "latest") else name
    if name not in SHIPPED:
        advice = f"use one of: {', '.join(SHIPPED)}"
        raise CheckpointError(expected("an agent in the package", repr(name), advice))
    file = importlib.resources.files("pixelpong").joinpath(
        "agent", "shipped", f"{name}.safetensors"
    )
    return decode_agent(file.read_bytes(), "the package")
