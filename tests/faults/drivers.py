"""Trainings as a user starts them: processes of their own, watched and disturbed from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from conftest import wait_until

_MARK = "PIXELPONG_FAULT_TEST"


class Driver:
    """A command under way in a folder, its output in ``out`` and ``err`` there.

    All its processes, and those that they start, carry a mark in their environment, and have
    ``tmp`` there for their temporary files.
    """

    def __init__(
        self, folder: Path, *words: str, program: Sequence[str] = ("-m", "pixelpong")
    ) -> None:
        self.folder = folder
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        (folder / "tmp").mkdir(exist_ok=True)
        name, _, value = self._mark.partition("=")
        self.began = time.monotonic()
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            self._process = subprocess.Popen(
                [sys.executable, *program, *words],
                cwd=folder, stdout=out, stderr=err, process_group=0, preexec_fn=_listen,
                env={**os.environ, name: value, "TMPDIR": str(folder / "tmp")},
            )  # fmt: skip
        self.pid = self._process.pid

    def is_running(self) -> bool:
        """Whether the driver itself has not ended."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Its exit code; it has to end within so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL, to_all=True)
            raise

    def send(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the driver, or as a terminal does to its whole group."""
        with contextlib.suppress(ProcessLookupError):
            if to_all:
                os.killpg(self.pid, number)
            else:
                self._process.send_signal(number)

    def is_ours(self) -> bool:
        """Whether our first line has run: from there on, SIGTERM is caught."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        (caught,) = (line.split()[1] for line in status.splitlines() if "SigCgt" in line)
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def processes(self) -> set[int]:
        """Of the driver and of all that it has started, those which are alive."""
        found = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and self._mark.encode() in (
                    (entry / "environ").read_bytes()
                ):
                    found.add(int(entry.name))
        return found

    def shared_files(self) -> set[Path]:
        """The files in shared memory that its processes have mapped or opened, by name."""
        found = set()
        for pid in self.processes():
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
                found |= {line.split(maxsplit=5)[5] for line in lines if "/dev/shm/" in line}
                found |= {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}
        return {Path(name) for name in found if name.startswith("/dev/shm/")}

    def temporary_files(self) -> list[str]:
        """What lies in its folders for temporary files, and half-written files in its run."""
        left = [*(self.folder / "tmp").iterdir(), *self.folder.glob("run/**/.*")]
        left += Path("/tmp").glob(f"pixelpong-ray-{self.pid}-*")  # where TMPDIR is too long for Ray
        return sorted(map(str, left))

    def seconds_until_gone(self, limit: float) -> float:
        """How long its last process lives on; at most `limit`, or it is ended and an error."""
        begin = time.monotonic()
        if not wait_until(lambda: not self.processes(), limit):
            left = {pid: words_of(pid) for pid in self.processes()}
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"still alive after {limit} s: {left}")
        return time.monotonic() - begin

    def said(self) -> str:
        """What it wrote to stderr."""
        return (self.folder / "err").read_text()


def words_of(pid: int) -> str:
    """The beginning of a process's command line."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:300]
    return ""


def _listen() -> None:
    """Where the tests run in the background, a shell has made them deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
