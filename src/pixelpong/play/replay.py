"""Replays: an episode as (start, coin seed, actions), played again frame by frame.

The emulator's draws follow from the run's seed, so a few hundred bytes hold an episode: which
generator its numbers came from, the first row, and the agent's actions. A replay needs no
parameters: nothing is learned or decided again.

Covered: the record, its line in ``replays.jsonl``, playing it again, collecting one from a stream.
Not covered: explanations of the agent (`pixelpong.agent`), films and pages (`faces`).
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.options import LARGEST_INT
from pixelpong.config.protocols import PROTOCOLS, Protocol
from pixelpong.env import make_emulator
from pixelpong.errors import RunError, expected, refusing
from pixelpong.items import ACTIONS, EpisodeStats
from pixelpong.schema import Count, Meta, Return, convert, encode
from pixelpong.seeding import make_rng

MAX_STEPS = 108_000
"""Longer replays are not read: the most frames an episode can have, 30 minutes of play."""

_BLOCK = 1024
"""Rows of random numbers in memory at once."""

_Skip = Annotated[int, Meta(ge=1, le=60)]


@dataclass(frozen=True)
class Played:
    """The game as a file describes it; the numbers have the bounds of the options.

    Attributes:
        environment: see `pixelpong.config.protocols`.
        frame_skips: smallest and largest number of frames per step.
        sticky: probability that a frame keeps the held action.
    """

    environment: str
    frame_skips: tuple[_Skip, _Skip]
    sticky: Annotated[float, Meta(ge=0, le=1)]

    def __post_init__(self) -> None:
        if self.environment not in PROTOCOLS:
            raise ValueError(f"an unknown environment {self.environment[:40]!r}")
        if self.frame_skips[0] > self.frame_skips[1]:
            raise ValueError("frame_skips in the wrong order")

    @property
    def protocol(self) -> Protocol:
        """The protocol described."""
        known = PROTOCOLS[self.environment]
        return dataclasses.replace(known, frame_skips=self.frame_skips, sticky=self.sticky)


def describe_protocol(protocol: Protocol) -> dict[str, Any]:
    """The protocol in the form that `Played` reads."""
    return {
        "environment": protocol.name,
        "frame_skips": list(protocol.frame_skips),
        "sticky": protocol.sticky,
    }


@dataclass(frozen=True)
class Coins:
    """The origin of an episode's random numbers.

    Attributes:
        seed: the run's seed.
        purpose: of the generator, see `pixelpong.seeding`.
        update: of the first generator.
        index: the episode's place in its batch, or the stream's number.
        offset: rows of the first generator that the episode before used.
        horizon: rows from one generator before the next update's follows; None if one supplies
            all rows.
    """

    seed: Annotated[int, Meta(ge=0, le=LARGEST_INT)]
    purpose: Literal["train", "evaluate", "play"]
    update: Count
    index: Count
    offset: Annotated[int, Meta(ge=0, le=MAX_STEPS)] = 0
    horizon: Annotated[int, Meta(ge=1, le=MAX_STEPS)] | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None and self.offset > self.horizon:
            raise ValueError("an offset beyond the horizon")

    def draw(self, num_steps: int, width: int) -> Iterator[list[float]]:
        """The rows of uniform numbers in [0, 1), `width` wide, of `num_steps` steps."""
        update, place, left = self.update, self.offset, num_steps
        end = self.horizon or self.offset + num_steps
        while left > 0:
            rng = make_rng(self.seed, self.purpose, update, self.index)
            rng.bit_generator.advance(place * width)  # type: ignore[attr-defined]
            while place < end and left > 0:
                rows = rng.random((min(_BLOCK, end - place, left), width))
                yield from rows.tolist()
                place, left = place + len(rows), left - len(rows)
            update, place = update + 1, 0


@dataclass(frozen=True)
class Moment:
    """The screen at one step of an episode, and the action taken.

    Attributes:
        step: starting at 0; the last moment, after the end, has the number of steps.
        screen: [210, 160] uint8, palette indices.
        frame: [210, 160, 3] uint8, red, green and blue.
        action: the agent's next action, in Gymnasium's numbers; None after the end.
        reward: of the step before.
        points: won by the opponent and by the agent so far.
    """

    step: int
    screen: NDArray[np.uint8]
    frame: NDArray[np.uint8]
    action: int | None
    reward: float
    points: tuple[int, int]


@dataclass(frozen=True)
class Replay:
    """One episode, which can be played again.

    Attributes:
        protocol: the game played.
        coins: the origin of the random numbers.
        actions: [T] int8, in Gymnasium's numbers.
        update: the update in which it ended; 0 if it is not from a training.
        episode: its number in the training, starting at 1; in an evaluation its place there.
        episode_return: sum of the rewards.
    """

    protocol: Protocol
    coins: Coins
    actions: NDArray[np.int8]
    update: int
    episode: int
    episode_return: float

    def __len__(self) -> int:
        return len(self.actions)

    def watch(self) -> Iterator[Moment]:
        """Play it again: T + 1 moments, the last after the end.

        Raises:
            RunError: it ends differently, as with another version of the emulator.
            EmulatorError: the emulator or its game is not installed.
        """
        emulator = make_emulator(self.protocol)
        emulator.reset()
        reward, lost, won = 0.0, 0, 0
        rows = self.coins.draw(len(self), 2 + self.protocol.max_frame_skip)
        played = 0
        for action, row in zip(self.actions.tolist(), rows, strict=True):
            if emulator.is_over:
                break
            screen, frame = emulator.screen.copy(), emulator.frame()
            yield Moment(played, screen, frame, action, reward, (lost, won))
            reward = emulator.step(action, row[1:])
            lost, won, played = lost + (reward < 0), won + (reward > 0), played + 1
        self._require_same_end(won - lost, played, is_over=emulator.is_over)
        screen, frame = emulator.screen.copy(), emulator.frame()
        yield Moment(len(self), screen, frame, None, reward, (lost, won))

    def to_line(self) -> dict[str, Any]:
        """As a line of ``replays.jsonl``."""
        line: dict[str, Any] = {
            "update": self.update,
            "episode": self.episode,
            "episode_return": self.episode_return,
            "steps": len(self),
            **describe_protocol(self.protocol),
            "coins": dataclasses.asdict(self.coins),
            "actions": _encode(self.actions),
        }
        return line | {"crc32": _checksum(line)}

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Replay:
        """The replay of a line from `to_line`.

        Raises:
            RunError: it is not such a line.
        """
        with refusing("a replay", "was it written by pixelpong?", RunError):
            it = convert(line, _ReplayLine)
            if it.crc32 not in (None, _checksum(line)):
                raise ValueError("a damaged one: another checksum")
            actions = _decode(it.actions, it.steps)
        return cls(it.protocol, it.coins, actions, it.update, it.episode, it.episode_return)

    def _require_same_end(self, episode_return: float, played: int, *, is_over: bool) -> None:
        if is_over and played == len(self) and episode_return == self.episode_return:
            return
        got = f"{episode_return:+.0f}"
        if not is_over:
            got += " in the middle of it"
        elif played < len(self):
            got += f" after {played} of its {len(self)} steps"
        what = f"episode {self.episode} to end with a return of {self.episode_return:+.0f}"
        advice = "play it with the versions of pixelpong and ale-py that recorded it"
        raise RunError(expected(what, got, advice))


@dataclass(frozen=True)
class _ReplayLine(Played):
    """A line of ``replays.jsonl``, see `Replay`; early versions wrote no checksum."""

    update: Count
    episode: Count
    episode_return: Return
    steps: Annotated[int, Meta(ge=1, le=MAX_STEPS)]
    coins: Coins
    actions: bytes
    crc32: int | None = None


@dataclass(frozen=True)
class RecorderState:
    """The state of a recorder, besides the actions.

    Attributes:
        start: update, and step in its segment, at which the current episode began; None if that
            is unknown.
        of: the game that it belongs to.
    """

    start: tuple[Count, Count] | None
    of: str


class StreamRecorder:
    """Collects the actions of one stream, segment by segment, and makes replays of its episodes."""

    def __init__(self, config: Config, stream: int = 0) -> None:
        """Begin at the stream's start.

        Args:
            config: of the training.
            stream: its number.
        """
        self._protocol = config.environment.protocol
        self._seed, self._horizon = config.seed, config.ppo.horizon
        self._every, self._stream = config.schedule.replay_every, stream
        # Update, and step in its segment, at which the current episode began; None if that is
        # unknown, until the next one begins.
        self._start: tuple[int, int] | None = (1, 0)
        self._actions: NDArray[np.int8] = np.zeros(0, np.int8)

    def take(
        self,
        update: int,
        places: NDArray[np.int8],
        ended: Sequence[EpisodeStats],
        *,
        steps_before: int,
        number: int,
    ) -> tuple[Replay, ...]:
        """Take the next segment; return the replays to keep of episodes that ended in it.

        Args:
            update: the update that it belongs to.
            places: [T] int8, its actions as places in `ACTIONS`.
            ended: statistics of the episodes that ended in it.
            steps_before: steps of the current episode before this segment.
            number: of the first of `ended` in the training.
        """
        actions = np.array(ACTIONS, np.int8)[places]
        if len(self._actions) != steps_before:
            self._start = None
        begin, replays = 0, []
        for index, stats in enumerate(ended):
            end = begin + stats.steps - steps_before
            if self._start is not None and is_kept(self._start[0], update, self._every):
                first, offset = self._start
                replays.append(
                    Replay(
                        self._protocol,
                        Coins(self._seed, "train", first, self._stream, offset, self._horizon),
                        np.concatenate([self._actions, actions[begin:end]]),
                        update,
                        number + index,
                        stats.episode_return,
                    )
                )
            self._start, self._actions = (update, end), actions[:0]
            begin, steps_before = end, 0
        self._actions = np.concatenate([self._actions, actions[begin:]])
        return tuple(replays)

    def get_state(self) -> tuple[NDArray[np.int8], dict[str, Any]]:
        """The current episode: its actions so far, and where it began."""
        return self._actions, {"start": self._start, "of": self._describe()}

    def set_state(self, actions: NDArray[np.int8], state: RecorderState) -> None:
        """Continue from a state of `get_state`, if it belongs to the same game.

        Raises:
            ValueError: it contains actions that the agent does not have.
        """
        if actions.dtype != np.int8 or actions.ndim != 1 or not np.isin(actions, ACTIONS).all():
            raise ValueError("actions that the agent does not have")
        self._start = state.start if state.of == self._describe() else None
        self._actions = actions

    def _describe(self) -> str:
        return f"{self._protocol}, seed {self._seed}, horizon {self._horizon}"


def is_kept(first: int, last: int, every: int) -> bool:
    """Whether to keep an episode: a multiple of `every` is among the updates it was played in.

    Args:
        first: update in which it began.
        last: update in which it ended.
        every: approximate number of updates between two replays; 0 for none.

    >>> [update for update in range(1, 30) if is_kept(update, update, every=10)]
    [10, 20]
    """
    return every > 0 and last // every > (first - 1) // every


def _checksum(line: dict[str, Any]) -> int:
    """The checksum of the rest of the line: a flipped bit of an action is still an action."""
    return zlib.crc32(encode({name: value for name, value in line.items() if name != "crc32"}))


def _encode(actions: NDArray[np.int8]) -> str:
    """Two bits per action, its place in `ACTIONS`."""
    places = np.zeros(-len(actions) % 4 + len(actions), np.uint8)
    for place, action in enumerate(ACTIONS):
        places[: len(actions)][actions == action] = place
    fours = places.reshape(-1, 4) << np.array([0, 2, 4, 6], np.uint8)
    return base64.b64encode(fours.sum(axis=1, dtype=np.uint8).tobytes()).decode()


def _decode(content: bytes, num_steps: int) -> NDArray[np.int8]:
    packed = np.frombuffer(content, np.uint8)
    if len(packed) != -(-num_steps // 4):
        raise ValueError(f"a number of actions other than {num_steps}")
    places = (packed[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).ravel()[:num_steps]
    if places.max() >= len(ACTIONS):  # two bits can hold a fourth
        raise ValueError("an unknown action")
    actions: NDArray[np.int8] = np.array(ACTIONS, np.int8)[places]
    return actions
