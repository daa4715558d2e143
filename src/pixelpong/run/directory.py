"""The run directory, which a training writes and everything else reads.

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
import copy
import hashlib
import itertools
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pixelpong.config import Config, differences
from pixelpong.errors import MAX_GOT, ConfigError, RunError, on_one_line, refusing, warn
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.files import NumberedFiles, write_whole
from pixelpong.run.lines import LineFile
from pixelpong.schema import decode, encode

FORMAT = 1
RUNS_FOLDER = Path("runs")
FAILURE_FILE = "failure.json"
LOCK_SECONDS = 1  # how long a training waits for its lock


class RunDirectory:
    """An existing run directory, to read or to continue."""

    def __init__(self, path: Path) -> None:
        """Open it; raise a `RunError` if it is not a run or is damaged."""
        self.path = path
        content, self.config = _read_config(path)
        self.versions, self.machine = content["versions"], content["machine"]
        self.checkpoints = CheckpointStore(path / "checkpoints")
        self.agents = NumberedFiles(path / "agents")
        self.metrics = LineFile(path / "metrics.jsonl")
        self.episodes = LineFile(path / "episodes.jsonl")
        self.evaluations = LineFile(path / "evaluations.jsonl")
        self.line_files = self.metrics, self.episodes, self.evaluations

    @classmethod
    def create(cls, path: Path | None, config: Config) -> RunDirectory:
        """Make a new run directory, by default the next free ``runs/PRESET-NNN``."""
        path = make_folder(path, config.preset)
        about = {"versions": collect_versions(), "machine": describe_machine()}
        try:
            _write_config(path, {"format": FORMAT, "config": vars(config)} | about)
        except RunError:
            with contextlib.suppress(OSError):
                path.rmdir()  # so that the name is free once there is room again
            raise
        return cls(path)

    @property
    def has_begun(self) -> bool:
        """Whether a training has written anything here; if so, no other may start over."""
        paths = [file.path for file in self.line_files]
        has_lines = any(path.exists() and path.stat().st_size > 0 for path in paths)
        return has_lines or bool(self.list_agents())

    def list_agents(self) -> list[int]:
        """The updates whose agent is saved, in a checkpoint or in a small file, ascending."""
        return sorted({*self.checkpoints.updates(), *self.agents.updates()})

    def with_config(self, config: Config) -> RunDirectory:
        """A copy of this run with `config`; only `write_config` writes that to disk."""
        changed = copy.copy(self)
        changed.config = config
        return changed

    def write_config(self, update: int) -> None:
        """Write the configuration if it has changed; the caller must hold the lock.

        Changes that affect the result are recorded together with the current `update`.
        """
        content, before = _read_config(self.path)
        if before == self.config:
            return
        if changed := differences(before, self.config):
            content["changes"] = [*content.get("changes", ()), {"update": update, **changed}]
        _write_config(self.path, content | {"config": vars(self.config)})

    def lock(self) -> BinaryIO:
        """Let only this process write here; see `lock_folder`."""
        return lock_folder(self.path)

    @contextlib.contextmanager
    def noting_failure(self) -> Iterator[None]:
        """While inside, record any error in the run, for its summary."""
        file = self.path / FAILURE_FILE
        with contextlib.suppress(OSError):
            file.unlink()  # of the previous training
        try:
            yield
        except Exception as error:
            content = encode({"error": on_one_line(str(error) or type(error).__name__)[:MAX_GOT]})
            with contextlib.suppress(RunError):  # the disk itself may have failed
                write_whole(file, content)
            raise

    def warn_of_other_machine(self) -> None:
        """Warn if the machine or the libraries differ, because the bits depend on them."""
        here, there = collect_versions() | describe_machine(), self.versions | self.machine
        changed = [f"{k} {there.get(k)} → {it}" for k, it in here.items() if it != there.get(k)]
        if changed:
            warn(
                f"this run was started elsewhere ({'; '.join(changed)}): it continues, but the "
                "same bits as without a break are no longer promised"
            )


def lock_folder(path: Path) -> BinaryIO:
    """Let only this process write to a folder, until the returned file is closed."""
    with refusing(f"cannot write to {path}", RunError, "check its permissions"):
        file = (path / "run.lock").open("a+b", buffering=0)
    for _ in range(LOCK_SECONDS * 100):  # `is_live` may hold it for a moment
        if _can_lock(file, exclusive=True):
            break
        time.sleep(0.01)
    else:
        file.seek(0)
        owner = file.read(20).strip().decode("ascii", "replace") or "unknown"
        file.close()
        what = f"Process {owner} is training in {path}; wait for it, or stop it."
        raise RunError(on_one_line(what))
    with contextlib.suppress(OSError):  # a full disk has no room to name the owner
        file.truncate(0)
        file.write(b"%d\n" % os.getpid())
    return file


def is_live(path: Path) -> bool:
    """Whether a training is writing to a run directory; none can begin during this call."""
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


def make_folder(path: Path | None, name: str, command: str = "resume") -> Path:
    """Make a new folder, by default ``runs/NAME-NNN``; refuse one that exists.

    NNN is above all existing numbers, so that none is used twice. `command` is the one that
    continues such a folder.
    """
    stems = (each.name.removeprefix(f"{name}-") for each in RUNS_FOLDER.glob(f"{name}-*"))
    last = max((int(stem) for stem in stems if re.fullmatch(r"\d{3,9}", stem)), default=0)
    for number in itertools.count(last + 1):
        place = path or RUNS_FOLDER / f"{name}-{number:03d}"
        with refusing(f"cannot make the folder {place}", RunError, "choose another name"):
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.mkdir()
                break
            except FileExistsError:
                if not place.exists():
                    raise  # its parent is a file
        if path is not None:
            again = f"`pixelpong {command} {shlex.quote(str(place))}`"
            raise RunError(f"{place} exists; choose another name, or continue it with {again}.")
    return place


def _read_config(path: Path) -> tuple[dict[str, Any], Config]:
    """The content of ``config.json``, checked against its hash, and the configuration in it."""
    file = path / "config.json"
    with refusing(f"cannot read the configuration {file}", RunError, "is it a run?"):
        content = decode(file.read_bytes(), dict[str, Any])
        if (found := content.get("format")) != FORMAT:
            raise ValueError(f"it has format {str(found)[:20]}, which another version wrote")
        if content.pop("sha256", None) != _hash_of(content):
            raise ValueError("it is damaged: its SHA-256 differs")
        try:
            return content, Config().updated(content["config"], str(file))
        except ConfigError as error:
            raise ValueError(str(error)) from error


def _write_config(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content | {"sha256": _hash_of(content)}, indent=1) + "\n"
    write_whole(path / "config.json", text.encode())


def _hash_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(encode(content)).hexdigest()
