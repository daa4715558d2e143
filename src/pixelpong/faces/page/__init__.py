"""The page with all runs, served to a browser on this machine; extra ``[play]``.

``pixelpong dashboard``, ``play`` and ``watch`` call `serve`. It only reads the directories of runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from pixelpong.errors import ConfigError
from pixelpong.faces.page.address import listen


def serve(
    runs_dir: Path,  # need not exist yet
    *,
    host: str,  # if other machines can reach it, a token is made
    port: int,  # the next free one is used if it is taken; 0 for any
    opens_browser: bool,
    page: str,  # path and fragment to open: ``/``, ``/#play`` or ``/#watch``
    tell: Callable[[str], None],
    should_stop: Callable[[], bool],  # called ten times a second
    agent: tuple[Path | None, str] = (None, "best"),  # path of run or file, None: package; which
) -> None:
    """Serve the page until told to stop."""
    _require_web()
    from pixelpong.faces.page.library import PACKAGE, Library

    listening, door = listen(host, port)
    with contextlib.closing(listening):
        if port not in (0, door.port):
            tell(f"port {port} is taken; using {door.port}")
        library = Library(runs_dir, agent[0])
        (path, which), opened = agent, page
        if "#" in page:  # the agent that plays there
            run_id = PACKAGE if path is None else library.id_of(path)
            opened += f"/{urllib.parse.quote(run_id)}/{which}"
        url = door.url(opened)
        tell(f"pixelpong is at {url}")
        if door.is_wide:
            tell(f"from another machine: {door.url(opened, door.hosts[-1])}")
        tell("press Ctrl-C to stop")
        if not runs_dir.is_dir() and page == "/":
            tell(f"{runs_dir} does not exist yet; runs will be listed as soon as it does")
        if opens_browser:
            _open_browser(url)
        from pixelpong.faces.page.server import run_server

        run_server(listening, door, library, should_stop)


def _require_web() -> None:
    for library in ("starlette", "uvicorn", "websockets"):
        if importlib.util.find_spec(library) is None:
            raise ConfigError(f"The page needs {library}: pip install 'pixelpong[play]'")


def _open_browser(url: str) -> None:
    """Open `url` with the webbrowser module in another process: it may print, or wait."""
    is_headless = sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if is_headless:
        return  # the only browser would be one in the terminal, over our own output
    command = [sys.executable, "-P", "-m", "webbrowser", url]
    threading.Thread(target=_run_quietly, args=(command,), daemon=True).start()


def _run_quietly(command: list[str]) -> None:
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
            timeout=60,
            check=False,
        )
