"""The evaluation protocols by name: which Pong exactly is played.

A return means nothing without its protocol: frame skip and sticky actions change how hard the
game is. Names are those under which the field publishes figures.

Covered: the four Pong protocols of the literature and the toy game that the tests train on.
Not covered: other games, other observation types.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pixelpong.errors import ConfigError, expected


@dataclass(frozen=True)
class Protocol:
    """What an environment's name stands for.

    Attributes:
        name: the name under which figures are published.
        frame_skips: smallest and largest number of frames a step, both included; where they
            differ, each step draws one of them with equal probability.
        sticky: probability that an emulated frame keeps the held action instead of taking the
            one asked for (Machado et al. 2018, section 5.2).
        max_frames: frames after which an episode is cut off (30 minutes of play).
        note: where the protocol comes from.
    """

    name: str
    frame_skips: tuple[int, int]
    sticky: float
    max_frames: int = 108_000
    note: str = ""

    @property
    def max_frame_skip(self) -> int:
        """The largest number of frames a step."""
        return self.frame_skips[1]


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("ALE/Pong-v5", (4, 4), 0.25, note="Machado et al. 2018; the default"),
        Protocol("Pong-v0", (2, 4), 0.25, note="the first Gym release; Karpathy, Ray, NumPy"),
        Protocol("PongDeterministic-v4", (4, 4), 0.0, note="no sticky actions"),
        Protocol("PongNoFrameskip-v4", (1, 1), 0.0, note="every frame is a step"),
        Protocol("Catch-v0", (4, 4), 0.25, note="a toy in Pong's colours, for tests; no emulator"),
    )
}


def find_protocol(
    name: str, frame_skip: int | None = None, sticky: float | None = None
) -> Protocol:
    """The protocol called `name`, with frame skip and stickiness replaced where given.

    Args:
        name: a key of `PROTOCOLS`.
        frame_skip: frames a step, or None for the protocol's own.
        sticky: probability of keeping the held action, or None for the protocol's own.

    Raises:
        ConfigError: there is no protocol of that name.

    >>> find_protocol("ALE/Pong-v5", sticky=0.0).sticky
    0.0
    """
    if name not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise ConfigError(expected("an environment name", repr(name), f"use one of {known}"))
    card = PROTOCOLS[name]
    if frame_skip is not None:
        card = replace(card, frame_skips=(frame_skip, frame_skip))
    return card if sticky is None else replace(card, sticky=sticky)
