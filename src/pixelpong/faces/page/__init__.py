"""The page with all runs, served to a browser on this machine; extra ``[play]``.

``pixelpong dashboard``, ``play`` and ``watch`` call `serve`. It only reads the directories of runs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from pixelpong.faces.extras import require


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
    require("The page needs", "starlette", "uvicorn", "websockets", extra="play")
    from pixelpong.faces.page.library import PACKAGE, Library
    from pixelpong.faces.page.server import listen, run_server

    listening, door = listen(host, port)
    with contextlib.closing(listening):
        if port not in (0, door.port):
            tell(f"port {port} is taken; using {door.port}")
        library, (path, which) = Library(runs_dir, agent[0]), agent
        if "#" in page:  # the agent that plays there
            run_id = PACKAGE if path is None else library.id_of(path)
            page = f"{page}/{urllib.parse.quote(run_id)}/{which}"
        tell(f"pixelpong is at {door.url(page)}")
        if len(door.hosts) > 2:
            tell(f"from another machine: {door.url(page, door.hosts[-1])}")
        tell("press Ctrl-C to stop")
        if not runs_dir.is_dir() and page == "/":
            tell(f"{runs_dir} does not exist yet; runs will be listed as soon as it does")
        if opens_browser:
            _open_browser(door.url(page))
        run_server(listening, door, library, should_stop)


def _open_browser(url: str) -> None:
    """Open `url` with the webbrowser module in another process: it may print, or wait."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform.startswith("linux") and not any(map(os.environ.get, displays)):
        return  # the only browser would be one in the terminal, over our own output
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    threading.Thread(
        target=subprocess.run,
        args=([sys.executable, "-P", "-m", "webbrowser", url],),
        kwargs={**streams, "start_new_session": True},
        daemon=True,
    ).start()
