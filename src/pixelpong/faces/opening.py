"""Commands that open the page in a browser: all runs, a game of an agent, a game against it.

A command serves the page until Ctrl-C. In a notebook, where a cell that does not end blocks all
others, a function returns at once, with a link and ``close()``.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pixelpong.faces.arguments import (
    AGENT,
    CHECKPOINT,
    EPISODE,
    HOST,
    NO_OPEN,
    PORT,
    SEED,
    Argument,
    command,
)
from pixelpong.faces.interrupts import in_notebook
from pixelpong.faces.training import stoppable
from pixelpong.machine import require
from pixelpong.schema import Count, Meta

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.faces.page import View
    from pixelpong.faces.page.serving import ServedPage

Port = Annotated[int, Meta(ge=0, le=65535)]


@command
def dashboard(
    runs_dir: Annotated[str | Path, Argument("Folder of the runs.")] = "runs",
    *,
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> ServedPage | None:
    """Show all runs on a live page in a browser (needs the extra [play])."""
    return _serve(Path(runs_dir), host, port, no_open)


@command
def play(
    agent: Annotated[str | Path | Run, AGENT] = "package",
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> ServedPage | None:
    """Play against an agent in a browser (needs the extra [play]).

    By default you start against ``"club"``, which you can beat; a menu has the others. In games
    other than Pong, you and the agent play side by side with the same seed.
    """
    return _serve_game("play", agent, checkpoint, "", host, port, no_open)


@command
def watch(
    agent: Annotated[str | Path | Run, AGENT] = "package",
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    episode: Annotated[Count, EPISODE] = 0,
    seed: Annotated[Count, SEED] = 0,
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> ServedPage | None:
    """Watch an agent play in a browser, explained step by step (needs the extra [play])."""
    game = f"{seed}/{episode}" if seed or episode else ""
    return _serve_game("watch", agent, checkpoint, game, host, port, no_open)


def _serve_game(
    name: str,
    agent: str | Path | Run,
    checkpoint: int | str,
    game: str,
    host: str,
    port: int,
    no_open: bool,
) -> ServedPage | None:
    from pixelpong.agent.choice import find_agents
    from pixelpong.faces.page import View
    from pixelpong.run.directory import RUNS_FOLDER

    agents, which = find_agents(agent, str(checkpoint))
    agents.load(which)  # reports errors here instead of on the page
    folder = agents.run.path.parent if agents.run else RUNS_FOLDER
    return _serve(folder, host, port, no_open, View(name, agents.path, which, game))


def _serve(
    runs_dir: Path, host: str, port: int, no_open: bool, view: View | None = None
) -> ServedPage | None:
    """Serve the page until Ctrl-C; in a notebook, return at once."""
    require("The page needs", "starlette", "uvicorn", "websockets", "segno", extra="play")
    from pixelpong.faces.page.serving import ServedPage, serve

    tell = functools.partial(print, file=sys.stderr, flush=True)
    with stoppable() as should_stop:
        page = ServedPage(runs_dir, host, port, view, tell=tell)
        page.prepare()
        if not no_open:
            page.open()
        if in_notebook():
            return page
        serve(page, tell=tell, should_stop=should_stop)
    return None
