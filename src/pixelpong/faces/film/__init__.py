"""Films: an episode as an MP4, GIF or WebP file. No display is needed.

    pixelpong record RUN --best --overlay --out film.mp4

A film frame is a canvas [height, width] of slots, which a palette [256, 3] gives a colour each:
GIF and WebP show the emulator's pixels bit for bit, MP4 as well as H.264 can. There is a film
frame for each decision of the agent, at the game's own speed; where that were more frames a second
than players show, every second (third …) is taken. The last moment stays for a second.

Covered: playing, pacing, the three formats, a file that is whole or not there.
Not covered: the panel beside the game (`report.overlay`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.agent.choice import ChosenReplay
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.film.overlay import FIRST_SLOT, Panel, Picture, list_colours
from pixelpong.faces.film.writers import (
    FORMATS,
    MakeWriter,
    Palette,
    Writer,
    require_video,
    write_film,
)
from pixelpong.play.replay import Moment

GAME_FRAMES_PER_SECOND = 60
MAX_SCALE = 10
SPEEDS = (0.1, 60.0)


def make_film(
    show: ChosenReplay,
    path: Path,
    *,
    has_overlay: bool,
    scale: int,
    speed: float,
    seconds: float | None,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Play an episode again and write it as a film.

    Args:
        show: the episode.
        path: of the file; its ending chooses the format. One that exists is replaced.
        has_overlay: draw points, probabilities, value and what the network sees beside the game.
        scale: pixels of the film for one of the game, 1 … `MAX_SCALE`.
        speed: 1 is the game's own, see `SPEEDS`.
        seconds: of film, after which it ends; None for the whole episode.
        should_stop: asked at every step.

    Returns:
        What was written, as JSON holds it.

    Raises:
        ConfigError: an argument out of range, or the libraries are not installed.
        RunError: the file cannot be written, or the episode comes out otherwise than recorded.
        EmulatorError: the emulator or its game is not installed.
        Interrupted: `should_stop` said so; nothing is left.
    """
    make_writer, most = _choose_format(path)
    _require_range("--scale", scale, 1, MAX_SCALE)
    _require_range("--speed", speed, *SPEEDS)
    if seconds is not None:
        _require_range("--seconds", seconds, 0.1, 1e6)
    require_video()
    rate, every = choose_pace(show.replay.protocol, speed, most)
    stage = _Stage(show, scale, has_overlay=has_overlay)
    moments = stage.play(every, should_stop)
    with write_film(path, make_writer, stage.canvas.shape, rate, stage.palette) as writer:
        count, moment = _write(stage, moments, writer, rate, seconds)
    report = _describe(stage, show, moment, count, rate)
    return {"file": str(path), "bytes": path.stat().st_size, "has_overlay": has_overlay} | report


def describe_film(report: dict[str, Any]) -> str:
    """The report of `make_film` in a line or two."""
    lost, won = report["points"]
    points = f"opponent {lost} : {won} agent"
    whole = "" if report["is_whole"] else f", the first {report['steps']:,} of them"
    return (
        f"{report['file']}: {report['seconds']:.1f} s, {report['width']}×{report['height']}, "
        f"{report['frames_per_second']:.4g} frames a second, {report['bytes'] / 1e6:.2f} MB\n"
        f"{report['title']}, {report['episode_steps']:,} steps{whole}; {points}"
    )


def choose_pace(card: Protocol, speed: float, most: int) -> tuple[Fraction, int]:
    """Film frames a second, and of how many steps one is shown.

    Args:
        card: what was played; its mean frame skip counts.
        speed: 1 is the game's own.
        most: film frames a second that can be shown.

    >>> from pixelpong.config.protocols import PROTOCOLS
    >>> [choose_pace(PROTOCOLS["ALE/Pong-v5"], speed, most=50) for speed in (1, 4)]
    [(Fraction(15, 1), 1), (Fraction(30, 1), 2)]
    """
    steps = Fraction(2 * GAME_FRAMES_PER_SECOND, sum(card.frame_skips))
    steps *= Fraction(speed).limit_denominator(100)
    every = math.ceil(steps / most)
    return steps / every, every


def _choose_format(path: Path) -> tuple[MakeWriter, int]:
    if path.suffix.lower() not in FORMATS:
        got = repr(path.suffix) if path.suffix else f"{path}, which has no ending"
        advice = f"use one of {', '.join(FORMATS)}"
        raise ConfigError(expected("a film's ending for --out", got, advice))
    return FORMATS[path.suffix.lower()]


def _require_range(flag: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also for what is not a number
        raise ConfigError(expected(f"{flag} from {low:g} to {high:g}", value, "see --help"))


class _Stage:
    """Plays the episode and draws what there is to see, moment by moment.

    Attributes:
        canvas: [height, width] of slots; drawn anew for each moment.
        palette: [256, 3]; colours of the game come in as they appear, and then stay.
    """

    def __init__(self, show: ChosenReplay, scale: int, *, has_overlay: bool) -> None:
        self._replay, self._scale = show.replay, scale
        self._panel = Panel(show, scale) if has_overlay else None
        self._policy = show.agent.make_network() if has_overlay else None
        shape = self._panel.shape if self._panel else (210 * scale, 160 * scale)
        row, column = self._panel.corner if self._panel else (0, 0)
        self.canvas: Picture = np.full(shape, FIRST_SLOT, np.uint8)
        self._game = self.canvas[row : row + 210 * scale, column : column + 160 * scale]
        self.palette: Palette = np.zeros((256, 3), np.uint8)
        colours = list_colours()
        self.palette[FIRST_SLOT : FIRST_SLOT + len(colours)] = colours
        self._slots = np.full(256, 255, np.uint8)  # of a palette index of the emulator
        self._num_slots = 0

    def play(self, every: int, should_stop: Callable[[], bool]) -> Iterator[Moment]:
        """The moments that are shown, each when it is drawn: every so many, and the last."""
        for moment in self._replay.watch():
            if should_stop():
                raise Interrupted
            is_shown = moment.step % every == 0 or moment.action is None
            if self._policy is not None:
                self._policy.follow(moment.screen, moment.action)
            if is_shown:
                self._draw(moment)
                yield moment

    def _draw(self, moment: Moment) -> None:
        slots = self._slots[moment.screen]
        if slots.max() == 255:
            self._learn_colours(moment)
            slots = self._slots[moment.screen]
        self._game[:] = slots.repeat(self._scale, axis=1).repeat(self._scale, axis=0)
        if self._panel is not None and self._policy is not None:
            self._panel.draw(self.canvas, moment, self._policy.explain())

    def _learn_colours(self, moment: Moment) -> None:
        for index in np.unique(moment.screen):
            if self._slots[index] == 255:
                assert self._num_slots < FIRST_SLOT, "the console has 128 colours"
                self._slots[index] = self._num_slots
                self.palette[self._num_slots] = moment.frame[moment.screen == index][0]
                self._num_slots += 1


def _write(
    stage: _Stage,
    moments: Iterator[Moment],
    writer: Writer,
    rate: Fraction,
    seconds: float | None,
) -> tuple[int, Moment]:
    """Write the film's frames; how many they were, and the last moment."""
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    for count, last in enumerate(itertools.islice(moments, limit), 1):  # noqa: B007
        writer.add(stage.canvas)
    if last.action is None:
        stay = max(1, round(rate)) - 1
        stay = stay if limit is None else min(stay, limit - count)
        for _ in range(stay):
            writer.add(stage.canvas)
        count += stay
    return count, last


def _describe(
    stage: _Stage, show: ChosenReplay, moment: Moment, count: int, rate: Fraction
) -> dict[str, Any]:
    height, width = stage.canvas.shape
    return {
        "title": show.title,
        "episode": show.replay.episode,
        "update": show.replay.update,
        "episode_return": show.replay.episode_return,
        "episode_steps": len(show.replay),
        "agent_update": show.agent.about["update"],
        "is_own": show.is_own,
        "is_whole": moment.action is None,
        "steps": moment.step,
        "points": list(moment.points),
        "frames": count,
        "frames_per_second": float(rate),
        "seconds": float(count / rate),
        "width": width,
        "height": height,
    }
