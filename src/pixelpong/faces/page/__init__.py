"""The read-only page with all runs and games, served to a browser on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class View:
    """The first view in the browser, if it is not the list of runs."""

    name: str  # "play" or "watch"
    path: Path | None = None  # a run, or an agent's file; None for the agents in the package
    agent: str = "best"  # the name of one of its agents
    game: str = ""  # the game to watch, as SEED/EPISODE
