"""A run in a notebook: its curves, its weights and its games, shown where one works.

    from pixelpong import Run
    run = Run("runs/fast-001")
    run.plot()                      the learning curve
    run.plot("weights")             see `pixelpong.faces.plots` for the kinds
    run.plot(others=["runs/fast-002"])
    run.replay()                    the newest recorded game, as a film
    run.replay(best=True)           the best agent plays
    run.metrics()["entropy"]        a NumPy array

What these return shows itself, with no display, no window and no HTML of one's own, and can be
saved to a file.
"""

from __future__ import annotations

import base64
import html
import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import (
    ChosenReplay,
    choose_replay,
    list_updates,
    load_agent,
    read_replays,
)
from pixelpong.agent.file import Agent
from pixelpong.config import Config
from pixelpong.faces.display import duration, signed
from pixelpong.faces.plots import KINDS, draw_one
from pixelpong.faces.plots.drawing import DPI
from pixelpong.faces.plots.subjects import name_subjects
from pixelpong.run.directory import RunDirectory
from pixelpong.run.table import Columns, read_metrics

_SHOWN_DPI = 96
"""Dots an inch at which a notebook shows a picture: it has more of them than it needs."""


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook shows.

    Attributes:
        content: the bytes of a file.
        format: ``"png"`` or ``"svg"``.
        title: one line about it.
    """

    content: bytes
    format: str
    title: str

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        if self.format != "png":
            return None
        size = {
            "width": int.from_bytes(self.content[16:20]) * _SHOWN_DPI // DPI,
            "height": int.from_bytes(self.content[20:24]) * _SHOWN_DPI // DPI,
        }
        return self.content, size

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.format == "svg" else None

    def __repr__(self) -> str:
        return f"<{self.title}: {self.format}, {len(self.content):,} bytes; .save(path)>"

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_bytes(self.content)


@dataclass(frozen=True)
class Film:
    """A film that a notebook plays.

    Attributes:
        content: the bytes of an MP4 file.
        title: one line about it.
    """

    content: bytes
    title: str

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.content).decode()
        return (
            '<video controls autoplay muted loop playsinline style="max-width: 100%" '
            f'src="data:video/mp4;base64,{data}"></video><br><small>{html.escape(self.title)}</small>'
        )

    def __repr__(self) -> str:
        return f"<{self.title}: mp4, {len(self.content):,} bytes; .save(path)>"

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_bytes(self.content)


class Run:
    """One training, to be looked at; nothing here changes it.

    Attributes:
        path: its directory.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a run directory.

        Raises:
            RunError: it is not there, is no run, or is of another version.
        """
        self.path = Path(path)
        self._directory = RunDirectory.open(self.path)

    @property
    def config(self) -> Config:
        """What it was trained with."""
        return self._directory.config

    def metrics(self) -> Columns:
        """Every figure of every update as arrays, NaN where there was none; as of now."""
        return read_metrics(self._directory)

    def agents(self) -> list[int]:
        """The updates whose agent is kept; `agent` loads one."""
        return list_updates(self._directory)

    def agent(self, which: int | str = "best") -> Agent:
        """One of its agents.

        Args:
            which: an update, ``"best"`` or ``"latest"``.

        Raises:
            CheckpointError: there is none of this name, or it is damaged.
        """
        return load_agent(self._directory, str(which))

    def replays(self) -> list[dict[str, Any]]:
        """What was recorded: update, episode, return and steps of each."""
        names = ("update", "episode", "episode_return", "steps")
        return [{name: line[name] for name in names} for line in read_replays(self._directory)]

    def plot(
        self,
        kind: str = "curve",
        *,
        others: Iterable[str | Path | Run] = (),
        format: str = "png",
    ) -> Picture:
        """A picture.

        Args:
            kind: ``curve``, ``points``, ``health``, ``weights``, ``frames`` or ``episode``.
            others: runs to compare it with, in the first three.
            format: ``png`` or ``svg``.

        Raises:
            ConfigError: an unknown kind or format, or matplotlib is not installed.
            RunError: it has no metrics yet.
            CheckpointError: it has no agent yet, or it is damaged.
            EmulatorError: the emulator or its game is not installed.
        """
        runs = [self, *(other if isinstance(other, Run) else Run(other) for other in others)]
        subjects = name_subjects([run._directory for run in runs])
        content = draw_one(subjects, kind, format)
        names = ", ".join(subject.name for subject in subjects)
        return Picture(content, format, f"{kind} of {names}")

    def replay(
        self,
        update: int | None = None,
        best: bool = False,
        episode: int | None = None,
        *,
        overlay: bool = True,
        speed: float = 1.0,
        seconds: float | None = None,
    ) -> Film:
        """A game as a film.

        Args:
            update: the recorded game nearest to this update; by default the newest.
            best: instead, a game of the best agent.
            episode: the recorded game of this number; with `best`, which of its games.
            overlay: points, probabilities, value and what the network sees beside the picture.
            speed: 1 is the game's own.
            seconds: of film, after which it ends; by default the whole game.

        Raises:
            ConfigError: both an update and `best`, or what makes films is not installed.
            RunError: there is no such game.
            CheckpointError: there is no agent yet, or it is damaged.
            EmulatorError: the emulator or its game is not installed.
        """
        which = "best" if best else None
        chosen = choose_replay(self._directory, update=update, which=which, episode=episode)
        return film_of(chosen, overlay=overlay, speed=speed, seconds=seconds)

    def __repr__(self) -> str:
        config = self.config
        rows = [f"Run('{self.path}'): {config.preset} on {_game(self._directory)}"]
        if not config.environment.is_toy:
            rows[0] += f", emulator {config.engine.emulator}"
        metrics = self.metrics()
        rows.append(_stand(metrics) if metrics else "not begun")
        rows.append(f"{len(self.agents())} agents, {len(self.replays())} replays kept")
        rows.append(
            f".plot(kind) with {', '.join(KINDS)}; .replay(); .metrics(); .agents(); .config"
        )
        return "\n  ".join(rows)


def film_of(chosen: ChosenReplay, *, overlay: bool, speed: float, seconds: float | None) -> Film:
    """The film of an episode; see `Run.replay`."""
    from pixelpong.faces.film import make_film

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.mp4"
        make_film(
            chosen,
            path,
            has_overlay=overlay,
            scale=2,
            speed=speed,
            seconds=seconds,
            should_stop=lambda: False,
        )
        return Film(path.read_bytes(), chosen.title)


def _game(run: RunDirectory) -> str:
    return run.config.environment.environment


def _stand(metrics: Columns) -> str:
    """The figures of the last update, those that are known."""
    last = {name: float(column[-1]) for name, column in metrics.items()}
    known = {name: value for name, value in last.items() if not math.isnan(value)}
    words = [f"update {last['update']:.0f}"]
    words += [f"{known[name]:,.0f} {name}" for name in ("episodes", "steps") if name in known]
    if "wall_seconds" in known:
        words.append(f"{duration(known['wall_seconds'])} of training")
    if "mean_return_100" in known:
        words.append(f"mean of the last 100 returns {signed(known['mean_return_100'])}")
    return ", ".join(words)
