"""Commands as a user starts them: processes of their own, watched and disturbed from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import accidents
from processes import processes_with
from waiting import exit_code, wait_until


class Driver:
    """A command under way in a folder, its output in ``out`` and ``err`` there.

    Its processes, and all that they start, carry a mark in their environment, and have ``tmp``
    there for their temporary files. Leaving the context ends whatever is still alive.
    """

    def __init__(self, folder: Path, *words: object, accident: Sequence[object] = (), **more: str):
        """Start the command, with the words of `accidents` if one is to befall it."""
        self.folder, mark = folder, uuid.uuid4().hex
        self._mark = f"PIXELPONG_TEST={mark}"
        (folder / "tmp").mkdir(exist_ok=True)
        program = [accidents.__file__, *accident] if accident else ["-m", "pixelpong"]
        own = {"PIXELPONG_TEST": mark, "TMPDIR": str(folder / "tmp")}
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            self._process = subprocess.Popen(
                [sys.executable, *map(str, [*program, *words])],
                cwd=folder, stdout=out, stderr=err, process_group=0, preexec_fn=_listen,
                env=os.environ | own | more,
            )  # fmt: skip
        self.pid = self._process.pid

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        exit_code(self._process)

    def is_running(self) -> bool:
        """Whether the command itself has not ended."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return exit_code(self._process)

    def wait_for_lines(self, count: int) -> None:
        """Wait until its run has lines of so many updates."""
        path = self.folder / "run/metrics.jsonl"

        def is_there() -> bool:
            assert self.is_running(), self.said()
            return path.exists() and path.read_bytes().count(b"\n") >= count

        wait_until(is_there)

    def is_stopped(self) -> bool:
        """Whether Linux has stopped the command, as Ctrl-Z does."""
        return ") T " in Path(f"/proc/{self.pid}/stat").read_text()

    def send(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the command, or as a terminal does to its whole group."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if to_all else os.kill)(self.pid, number)

    def processes(self) -> set[int]:
        """Of the command and of all that it has started, those which are alive."""
        return processes_with(self._mark)

    def leaves(self) -> list[Path]:
        """What its processes have left for a while only, once the last of them has ended."""
        wait_until(lambda: not self.processes())
        left = [*(self.folder / "tmp").iterdir(), *self.folder.glob("run/**/.*")]
        left += Path("/tmp").glob(f"pixelpong.ray-{self.pid}-*")  # where TMPDIR is too long for Ray
        return sorted(left)

    def said(self) -> str:
        """What it wrote to stderr."""
        return (self.folder / "err").read_text()


def _listen() -> None:
    """Where the tests run in the background, a shell has made them deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
