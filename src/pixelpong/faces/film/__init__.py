"""Films: an episode as an MP4, GIF or WebP file. No display is needed.

    pixelpong record RUN --overlay --out film.mp4

GIF and WebP show the emulator's pixels bit for bit, MP4 as closely as H.264 can. There is a film
frame for each decision of the agent, at the game's own speed; if players cannot show that many
frames per second, only every second (third …) frame is used. The last one stays for a second.

Covered: playing and pacing. Not covered: drawing (`overlay`), the files (`writers`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.explain import explain
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.film.overlay import Panel, Picture, draw_game
from pixelpong.faces.film.writers import FORMATS, require_video, write_film
from pixelpong.play.replay import Moment

GAME_FRAMES_PER_SECOND = 60
MAX_SCALE = 10
SPEEDS = (0.1, 60.0)


def make_film(
    chosen: ChosenReplay,
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
        chosen: the episode.
        path: of the file; its suffix chooses the format. An existing file is replaced.
        has_overlay: draw points, probabilities, value and what the network sees beside the game.
        scale: pixels of the film per pixel of the game, 1 … `MAX_SCALE`.
        speed: 1 is the game's own, see `SPEEDS`.
        seconds: of film, after which it ends; None for the whole episode.
        should_stop: called at every film frame.

    Returns:
        The report on the film, as JSON.

    Raises:
        ConfigError: an argument is out of range, or the libraries are not installed.
        RunError: the file cannot be written.
        EmulatorError: the emulator or its game is not installed.
        Interrupted: `should_stop` returned True; no file is left.
    """
    most = _find_format(path)
    _require_range("--scale", scale, 1, MAX_SCALE)
    _require_range("--speed", speed, *SPEEDS)
    if seconds is not None:
        _require_range("--seconds", seconds, 0.1, 1e6)
    require_video()
    rate, every = choose_pace(chosen.replay.protocol, speed, most)
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    panel = Panel(chosen, scale) if has_overlay else None
    size = panel.size if panel else (160 * scale, 210 * scale)
    frames = _hold_last(_draw(chosen, panel, scale, every), max(1, round(rate)))
    with write_film(path, size, rate) as add:
        for count, (moment, picture) in enumerate(itertools.islice(frames, limit), 1):  # noqa: B007
            if should_stop():
                raise Interrupted
            add(picture)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "has_overlay": has_overlay,
        "title": chosen.title,
        "episode": chosen.replay.index,
        "update": chosen.agent.about["update"],
        "episode_return": chosen.replay.episode_return,
        "episode_steps": len(chosen.replay),
        "is_whole": moment.action is None,
        "steps": moment.step,
        "points": list(moment.points),
        "frames": count,
        "frames_per_second": float(rate),
        "seconds": float(count / rate),
        "width": size[0],
        "height": size[1],
    }


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
    """Film frames per second, and steps per film frame.

    Args:
        card: the game played; its mean frame skip counts.
        speed: 1 is the game's own.
        most: the most film frames per second that can be shown.

    >>> from pixelpong.config.protocols import PROTOCOLS
    >>> [choose_pace(PROTOCOLS["ALE/Pong-v5"], speed, most=50) for speed in (1, 4)]
    [(Fraction(15, 1), 1), (Fraction(30, 1), 2)]
    """
    steps = Fraction(2 * GAME_FRAMES_PER_SECOND, sum(card.frame_skips))
    steps *= Fraction(speed).limit_denominator(100)
    every = math.ceil(steps / most)
    return steps / every, every


def _find_format(path: Path) -> int:
    """The most film frames per second of a film with this suffix."""
    if path.suffix.lower() not in FORMATS:
        got = repr(path.suffix) if path.suffix else f"{path}, which has no ending"
        advice = f"use one of {', '.join(FORMATS)}"
        raise ConfigError(expected("a film's ending for --out", got, advice))
    return FORMATS[path.suffix.lower()].most


def _require_range(flag: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses NaN
        raise ConfigError(expected(f"{flag} from {low:g} to {high:g}", value, "see --help"))


def _draw(
    chosen: ChosenReplay, panel: Panel | None, scale: int, every: int
) -> Iterator[tuple[Moment, Picture]]:
    """The moments shown, always including the last, each with its picture."""
    if panel is None:
        for moment in chosen.replay.watch():
            if moment.step % every == 0 or moment.action is None:
                yield moment, draw_game(moment, scale)
        return
    for moment, explanation in explain(chosen.replay, chosen.agent, every):
        picture = panel.draw(moment, explanation)
        picture.paste(draw_game(moment, scale), panel.corner)
        yield moment, picture


def _hold_last(
    frames: Iterator[tuple[Moment, Picture]], count: int
) -> Iterator[tuple[Moment, Picture]]:
    """The same, with the moment after the end repeated."""
    for moment, picture in frames:
        yield from itertools.repeat((moment, picture), 1 if moment.action is not None else count)
