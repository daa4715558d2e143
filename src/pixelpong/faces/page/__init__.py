"""The page with all runs and the games, served to a browser on this machine; it is read-only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class View:
    """What the browser shows first, if not the list of runs."""

    name: str  # "play" or "watch"
    path: Path | None = None  # a run, or an agent's file; None for the agents in the package
    agent: str = "best"  # the name of one of its agents
    game: str = ""  # to watch, as SEED/EPISODE
