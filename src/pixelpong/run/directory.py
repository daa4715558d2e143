"""The run directory: what a training writes and everything else reads.

    runs/NAME/
      config.json      the resolved configuration, versions, machine
      metrics.jsonl    one line per update, cut back on resume to the checkpoint's update
      episodes.jsonl   one line per finished episode
      evaluations.jsonl  one line per evaluation
      checkpoints/     see `pixelpong.run.checkpoints`
      agents/          the agent at earlier updates, see `pixelpong.agent.file`
      failure.json     the error that ended the last training, if one did
      run.lock         held by the training that writes here

Readers take no lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pixelpong.config import Config, differences
from pixelpong.errors import MAX_GOT, ConfigError, RunError, expected, on_one_line, refusing
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.files import NumberedFiles, write_whole
from pixelpong.run.lines import GONE_ADVICE, LineFile
from pixelpong.schema import convert, decode, encode

FORMAT = 1
RUNS_FOLDER = Path("runs")
FAILURE_FILE = "failure.json"
LOCK_SECONDS = 1  # that a training waits for its lock
_LINE_FILES = ("metrics", "episodes", "evaluations")


@dataclass(frozen=True)
class _ConfigFile:
    """The contents of ``config.json``."""

    format: int
    config: dict[str, Any]  # the options, flat
    versions: dict[str, str]  # of the libraries that started the run
    machine: dict[str, str]
    sha256: str  # of the rest
    changes: tuple[dict[str, Any], ...] = ()  # by resumes, and at which update


def _warn_on_stderr(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


@dataclass(frozen=True)
class RunDirectory:
    """An opened run directory; `warn` takes one-line warnings."""

    path: Path
    config: Config
    versions: dict[str, str]  # of the libraries that started it
    machine: dict[str, str]
    checkpoints: CheckpointStore
    agents: NumberedFiles
    metrics: LineFile
    episodes: LineFile
    evaluations: LineFile
    warn: Callable[[str], None]

    @classmethod
    def create(
        cls, path: Path | None, config: Config, warn: Callable[[str], None] = _warn_on_stderr
    ) -> RunDirectory:
        """Make a new run directory; without a path the next free ``runs/PRESET-NNN``."""
        path = make_folder(path, config.preset)
        content = {
            "format": FORMAT,
            "config": config.to_flat(),
            "versions": collect_versions(),
            "machine": describe_machine(),
        }
        try:
            content = _write_config(path, content)
        except RunError:
            with contextlib.suppress(OSError):
                path.rmdir()  # so that the name is free once there is room again
            raise
        return cls._of(path, content, config, warn)

    @classmethod
    def open(cls, path: Path, warn: Callable[[str], None] = _warn_on_stderr) -> RunDirectory:
        """Open an existing run directory, to read or continue it."""
        if not path.is_dir():
            got = f"{path}, which is not one"
            raise RunError(expected("a run directory", got, "check its name"))
        return cls._of(path, *_read_config(path), warn)

    @classmethod
    def _of(
        cls, path: Path, content: dict[str, Any], config: Config, warn: Callable[[str], None]
    ) -> RunDirectory:
        store, agents = CheckpointStore(path / "checkpoints", warn), NumberedFiles(path / "agents")
        versions, machine = content["versions"], content["machine"]
        metrics, episodes, evaluations = (LineFile(path / f"{name}.jsonl") for name in _LINE_FILES)
        return cls(
            path, config, versions, machine, store, agents, metrics, episodes, evaluations, warn
        )

    @property
    def line_files(self) -> tuple[LineFile, ...]:
        """All files of lines."""
        return tuple(getattr(self, name) for name in _LINE_FILES)

    @property
    def has_begun(self) -> bool:
        """Whether a training has left anything here; if so, none may start over."""
        paths = [file.path for file in self.line_files]
        has_lines = any(path.exists() and path.stat().st_size > 0 for path in paths)
        return has_lines or bool(self.list_agents())

    def list_agents(self) -> list[int]:
        """The updates whose agent is saved, in a checkpoint or as a small file, ascending."""
        return sorted({*self.checkpoints.updates(), *self.agents.updates()})

    def require_here(self) -> None:
        """Check that the run has not been deleted during its training."""
        if not (file := self.path / "config.json").is_file():
            raise RunError(expected(f"the run's {file}", "no such file", GONE_ADVICE))

    def with_config(self, config: Config) -> RunDirectory:
        """This run with another configuration, which `write_config` does not write yet."""
        return dataclasses.replace(self, config=config)

    def write_config(self, update: int) -> None:
        """Write the configuration if it has changed; the caller must hold the lock.

        Changes of options that affect the result are recorded with the current `update`.
        """
        content, before = _read_config(self.path)
        if before == self.config:
            return
        changed = differences(before, self.config)
        if changed:
            content["changes"] = [*content.get("changes", ()), {"update": update, **changed}]
        _write_config(self.path, content | {"config": self.config.to_flat()})

    def lock(self) -> RunLock:
        """Make this process the only one that writes here."""
        return RunLock(self.path)

    @contextlib.contextmanager
    def noting_failure(self) -> Iterator[None]:
        """While inside, write any error to the run, for its summary."""
        file = self.path / FAILURE_FILE
        with contextlib.suppress(OSError):
            file.unlink()  # of the training before
        try:
            yield
        except Exception as error:
            content = encode({"error": on_one_line(str(error) or type(error).__name__)[:MAX_GOT]})
            with contextlib.suppress(RunError):  # the disk may be what has failed
                write_whole(file, content)
            raise

    def warn_of_other_machine(self) -> None:
        """Warn if equality with an uninterrupted run is no longer promised."""
        here = (collect_versions() | describe_machine()).items()
        there = self.versions | self.machine
        changed = [f"{name} {there.get(name)} → {it}" for name, it in here if it != there.get(name)]
        if changed:
            self.warn(
                f"this run was started elsewhere ({'; '.join(changed)}): it continues, but the "
                "same bits as without a break are no longer promised"
            )


class RunLock:
    """Held while a training writes to a run directory; freed by the system when it ends."""

    def __init__(self, path: Path) -> None:
        with refusing(f"to write to {path}", "check its rights", RunError):
            self._file = (path / "run.lock").open("a+b", buffering=0)
        for _ in range(LOCK_SECONDS * 100):  # somebody may be looking, see `is_live`
            if _can_lock(self._file, exclusive=True):
                break
            time.sleep(0.01)
        else:
            self._file.seek(0)
            owner = self._file.read(20).strip().decode("ascii", "replace") or "unknown"
            self._file.close()
            who = on_one_line(f"Process {owner} trains in {path}")
            raise RunError(f"{who}; wait for it, or stop it.")
        with contextlib.suppress(OSError):  # a full disk has no room to name the owner
            self._file.truncate(0)
            self._file.write(b"%d\n" % os.getpid())

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()


def is_live(path: Path) -> bool:
    """Whether a training is writing to a run directory, which cannot begin while this looks."""
    with contextlib.suppress(OSError), (path / "run.lock").open("rb") as file:
        return not _can_lock(file, exclusive=False)
    return False


def _can_lock(file: BinaryIO, *, exclusive: bool) -> bool:
    """Lock a file until it is closed, alone or with others; False if another has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        return True
    return False


def make_folder(path: Path | None, name: str) -> Path:
    """Make a new folder, never one that exists; without a path ``runs/NAME-NNN``."""
    number = largest_number(RUNS_FOLDER, name) if path is None else 0
    while True:
        number += 1
        candidate = path or RUNS_FOLDER / f"{name}-{number:03d}"
        try:
            candidate.parent.mkdir(parents=True, exist_ok=True)
            candidate.mkdir()
            return candidate
        except FileExistsError as error:
            if path is None and candidate.is_dir():
                continue  # another process was faster
            if not candidate.exists():
                raise RunError(f"{candidate.parent} is not a directory.") from error
            is_run = (candidate / "config.json").is_file()
            other = f", or `pixelpong resume {shlex.quote(str(candidate))}`" if is_run else ""
            raise RunError(f"{candidate} exists; choose another --run{other}.") from error
        except OSError as error:
            why = error.strerror or str(error)
            raise RunError(f"Cannot make {candidate}: {why}; choose another --run.") from error


def largest_number(folder: Path, name: str) -> int:
    """The largest NNN among the names NAME-NNN in a folder, so that no number is used twice."""
    stems = (path.name.removeprefix(f"{name}-") for path in folder.glob(f"{name}-*"))
    return max((int(stem) for stem in stems if re.fullmatch(r"\d{3,9}", stem)), default=0)


def _read_config(path: Path) -> tuple[dict[str, Any], Config]:
    """The content of ``config.json``, checked against `_ConfigFile`, and the configuration."""
    file = path / "config.json"
    with refusing(f"a run's configuration in {file}", "is it a run?", RunError):
        content = decode(file.read_bytes(), dict[str, Any])
        if (found := content.get("format")) != FORMAT:
            raise ValueError(f"one of format {str(found)[:20]}, which another version wrote")
        if convert(content, _ConfigFile).sha256 != _hash_of(content):
            raise ValueError("a damaged one: its SHA-256 differs")
        try:
            return content, Config().updated(content["config"], str(file))
        except ConfigError as error:
            raise ValueError(str(error)) from error


def _write_config(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Write the content with its hash, and return both."""
    content = content | {"sha256": _hash_of(content)}
    text = json.dumps(content, indent=1) + "\n"
    write_whole(path / "config.json", text.encode(), advice="make room there")
    return content


def _hash_of(content: dict[str, Any]) -> str:
    """SHA-256 of everything except the hash."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(encode(rest)).hexdigest()
