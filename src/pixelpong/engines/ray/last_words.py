"""Print why this process ended, if Ray ended it.

Ray's core ends its driver at once, with exit code 1 and without an exception, if a check in the
core fails, or if the node's own process (the raylet) or the store of the cluster's state (the GCS)
is gone. It logs the reason, but nothing in Python runs any more. So a helper process waits until
the driver says that all is well, or until its end of the pipe closes. Then it reads Ray's log.

Covered: the end by Ray. Not covered: SIGKILL and the like, which the shell reports.

The helper runs this file by its path, so that it needs neither Ray nor this package.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# What Ray logs before it ends a process: a check that failed, or another process that is gone.
_FATAL = r"^\[[^]]* C \d+ \d+\] *(.*)"
_ENDS_DRIVER = r"^\[[^]]*\] *(.*(?:Exiting because|Terminate the process|program will terminate).*)"

ALL_IS_WELL = "."
"""What the driver tells the helper before it ends."""

MAX_LETTERS = 400
"""Of a line of Ray's that is repeated."""

WAIT_SECONDS = 5.0
"""For the helper to end."""


@contextlib.contextmanager
def last_words() -> Iterator[Callable[[str], None]]:
    """While inside, a helper waits for the driver's end.

    It has the stderr of this moment, and a session of its own: Ctrl-C in a terminal must not end it
    before the driver.

    Yields:
        A function that tells the helper Ray's session folder; until then it says nothing.
    """
    command = [sys.executable, "-I", "-S", __file__, str(os.getpid())]
    helper = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )

    def tell(line: str) -> None:
        assert helper.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody ended the helper
            helper.stdin.write(f"{line}\n".encode())
            helper.stdin.flush()

    def dismiss() -> None:
        tell(ALL_IS_WELL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            helper.communicate(timeout=WAIT_SECONDS)

    atexit.register(dismiss)  # of a program that does not close its engine
    try:
        yield tell
    finally:
        atexit.unregister(dismiss)
        dismiss()


def _wait(pid: str) -> None:
    """In the helper: wait for the end of the driver with that process id, and print why."""
    told = sys.stdin.read().splitlines()
    if ALL_IS_WELL in told or not told:
        return
    logs = Path(told[0], "logs")
    if end := _last(f"{_FATAL}|{_ENDS_DRIVER}", logs, f"python-core-driver-*_{pid}.log"):
        causes = [_last(_FATAL, logs, f"{name}*.out") for name in ("raylet", "gcs_server")]
        got = "; ".join(each for each in (end, *causes) if each)
        visible = "\x1b[?25h\n" if sys.stderr.isatty() else ""  # a live display hides the cursor
        print(
            f"{visible}pixelpong: error: expected Ray to keep running, got: {got}; continue a "
            "training with 'pixelpong resume', a sweep with 'pixelpong sweep DIR'",
            file=sys.stderr,
        )


def _last(pattern: str, logs: Path, name: str) -> str:
    """The last line that fits in the files of that name; empty if there is none."""
    found = ""
    for path in sorted(logs.glob(name)):
        for match in re.finditer(pattern, path.read_text(errors="replace"), re.M):
            found = match[match.lastindex or 0]
    return found.strip()[:MAX_LETTERS]


if __name__ == "__main__":
    _wait(sys.argv[1])
