"""The evaluation protocols by name: the exact rules of Pong, and those of any other game.

A return means nothing without its protocol: frame skip and sticky actions change how hard the
game is. The names are those used in publications.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pixelpong.atari.machine.cartridges import id_of, names
from pixelpong.schema import MAX_FRAMES, FrameLimit, FrameSkip, Share

PONG = "pong"
Name = Literal["ALE/Pong-v5", "Pong-v0", "PongDeterministic-v4", "PongNoFrameskip-v4"]


@functools.cache
def _games() -> dict[str, str]:
    """Return all games by the names of their protocols."""
    return {id_of(game, "ALE", 5): game for game in names()}


@dataclass(frozen=True)
class Protocol:
    """The rules behind an environment's name; they are also part of an agent's file."""

    environment: str
    frame_skips: tuple[FrameSkip, FrameSkip]  # frames per step, drawn uniformly from this range
    # The probability that a frame repeats the previous action (Machado et al. 2018, section 5.2).
    sticky: Share
    max_frames: FrameLimit = MAX_FRAMES
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.environment not in get_args(Name) and self.environment not in _games():
            raise ValueError(f"there is no environment {self.environment!r}")
        if self.frame_skips[0] > self.frame_skips[1]:
            raise ValueError("the smaller of the two frame_skips must come first")

    def __str__(self) -> str:
        """Return the name, and each rule that differs from that name's own.

        >>> print(find_protocol("ALE/Pong-v5"))
        ALE/Pong-v5
        >>> print(find_protocol("ALE/Pong-v5", 2, 0.6, 3000))
        ALE/Pong-v5 with frame skip 2, sticky 0.6, at most 3,000 frames
        """
        named, (low, high) = _named(self.environment), self.frame_skips
        changed = []
        if self.frame_skips != named.frame_skips:
            changed.append(f"frame skip {low}" if low == high else f"frame skip {low} to {high}")
        if self.sticky != named.sticky:
            changed.append(f"sticky {self.sticky:g}")
        if self.max_frames != named.max_frames:
            changed.append(f"at most {self.max_frames:,} frames")
        return f"{self.environment} with {', '.join(changed)}" if changed else self.environment

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON."""
        return {
            "environment": self.environment,
            "frame_skip": list(self.frame_skips),
            "sticky": self.sticky,
            "max_frames": self.max_frames,
        }

    @property
    def game(self) -> str:
        """The name of its game in ale-py."""
        return PONG if self.environment in get_args(Name) else _games()[self.environment]

    @property
    def plays_greedy(self) -> bool:
        """Whether agents are evaluated with their most probable actions.

        In games other than Pong such play often gets stuck, so their actions are sampled.
        """
        return self.game == PONG

    def list_rules(self) -> str:
        """List all its rules.

        >>> protocol_of("breakout").list_rules()
        'frame skip 4, sticky 0.25, at most 108,000 frames'
        """
        low, high = self.frame_skips
        skip = f"{low}" if low == high else f"{low} to {high}"
        return f"frame skip {skip}, sticky {self.sticky:g}, at most {self.max_frames:,} frames"

    @property
    def max_frame_skip(self) -> int:
        """The largest number of frames per step."""
        return self.frame_skips[1]


PROTOCOLS: dict[str, Protocol] = {
    protocol.environment: protocol
    for protocol in (
        Protocol("ALE/Pong-v5", (4, 4), 0.25, note="Machado et al. 2018; the default"),
        Protocol("Pong-v0", (2, 4), 0.25, note="the first Gym release; Karpathy, Ray, NumPy"),
        Protocol("PongDeterministic-v4", (4, 4), 0.0, note="no sticky actions"),
        Protocol("PongNoFrameskip-v4", (1, 1), 0.0, note="every frame is a step"),
    )
}


def _named(name: str) -> Protocol:
    """Return the protocol with this name; raise `ValueError` if no game has it."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    return Protocol(name, (4, 4), 0.25)


def protocol_of(game: str) -> Protocol:
    """Return the protocol by which a game is played today: ``ALE/GAME-v5``.

    >>> print(protocol_of("ms_pacman"))
    ALE/MsPacman-v5
    """
    return _named(id_of(game, "ALE", 5))


def game_of(words: str) -> str:
    """Return the game of a protocol that is given in words, as by `str`; Pong by default.

    >>> game_of("ALE/Breakout-v5 with sticky 0"), game_of("Pong-v0")
    ('breakout', 'pong')
    """
    return _games().get(words.partition(" ")[0], PONG)


def find_protocol(
    name: str,
    frame_skip: int | None = None,
    sticky: float | None = None,
    max_frames: int | None = None,
) -> Protocol:
    """Find the protocol `name`; frame skip, stickiness and frame limit are replaced if given.

    >>> find_protocol("ALE/Pong-v5", sticky=0.0).sticky
    0.0
    """
    frame_skips = None if frame_skip is None else (frame_skip, frame_skip)
    given = {"frame_skips": frame_skips, "sticky": sticky, "max_frames": max_frames}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return replace(_named(name), **changes)
