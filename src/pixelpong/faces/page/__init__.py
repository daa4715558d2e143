"""The page with all runs, served to a browser on this machine; extra ``[web]``.

``pixelpong dashboard``, ``play`` and ``watch`` call `serve`. It reads run directories only.

Covered: browser, beginning and end. Where it listens: `address`; what is served: `app`; to whom:
`guard`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from pixelpong.errors import ConfigError, expected
from pixelpong.faces.page.address import Address, listen


def serve(
    runs_dir: Path,
    *,
    opens_browser: bool,
    page: str,
    tell: Callable[[str], None],
    should_stop: Callable[[], bool],
    run: Path | None = None,
    checkpoint: str = "best",
    **address: Unpack[Address],
) -> None:
    """Serve the page until told to stop.

    Args:
        runs_dir: folder of runs; it need not exist yet.
        opens_browser: open one, if there is one.
        page: path and fragment to open, ``/``, ``/#play`` or ``/#watch``.
        tell: takes lines for the user.
        should_stop: asked ten times a second.
        run: whose agent plays; None for the package's.
        checkpoint: which of its agents.
        **address: ``host``, ``port`` and ``token``, see `Address`.

    Raises:
        ConfigError: the extra is not installed, or host, port or token cannot be used.
    """
    _require_web("web" if page == "/" else "play")
    listening, door = listen(**address)
    with contextlib.closing(listening):
        if door.port != address["port"] and address["port"]:
            tell(f"port {address['port']} is taken; using {door.port}")
        url = door.url(_fragment(page, run, checkpoint))
        tell(f"pixelpong is at {url}")
        tell("press Ctrl-C to stop")
        if not runs_dir.is_dir() and run is None and page == "/":
            tell(f"there is no {runs_dir} yet; runs are listed as soon as it is there")
        if opens_browser:
            _open_browser(url)
        from pixelpong.faces.page.library import Library
        from pixelpong.faces.page.server import run_server

        run_server(listening, door, Library(runs_dir, run), should_stop)


def _require_web(extra: str) -> None:
    for library in ("starlette", "sse_starlette", "uvicorn", "websockets"):
        if importlib.util.find_spec(library) is None:
            advice = f"pip install 'pixelpong[{extra}]'"
            raise ConfigError(expected(f"{library}, for the page", "none", advice))


def _fragment(page: str, run: Path | None, checkpoint: str) -> str:
    """The page with whose agent plays there."""
    if "#" not in page:
        return page
    from pixelpong.faces.page.library import PACKAGE
    from pixelpong.faces.page.view import id_of

    return f"{page}/{PACKAGE if run is None else id_of(run)}/{checkpoint}"


def _open_browser(url: str) -> None:
    """Have the webbrowser module open `url`, in a process of its own: it may print, or wait."""
    is_headless = sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if is_headless:
        return  # what could be opened is a browser of the terminal, over our own words
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
