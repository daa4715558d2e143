"""The run directory: what a training writes and everything else reads.

    runs/NAME/
      config.json      the resolved configuration, versions, machine
      metrics.jsonl    one line an update, cut back on resume to the checkpoint's update
      episodes.jsonl   one line a finished episode
      evaluations.jsonl  one line an evaluation
      replays.jsonl    one line a replay: an episode as (start, coin seed, actions)
      checkpoints/     see `pixelpong.run.checkpoints`
      milestones/      the agent as it was on the way, see `pixelpong.agent.file`
      run.lock         held by the training that writes here

Covered: making, opening and locking a run. Not covered: what is in a checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pixelpong.config import Config, differences
from pixelpong.errors import MAX_GOT, ConfigError, RunError, expected, on_one_line
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.files import open_to_write, read_bytes, sync_folder, write_file
from pixelpong.run.lines import ADVICE, LineFile
from pixelpong.run.milestones import MilestoneStore

FORMAT = 1
RUNS_FOLDER = Path("runs")
_LINE_FILES = dict.fromkeys(("metrics", "episodes", "evaluations"), ADVICE) | {
    "replays": "make room there"  # nobody's result hangs on them
}
_CONFIG_LIMIT = 1 << 20


def _warn_on_stderr(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


@dataclass(frozen=True)
class RunDirectory:
    """An opened run directory.

    Attributes:
        path: the directory.
        config: the configuration it was trained with.
        versions: of the libraries that started it.
        machine: the one that started it.
        checkpoints: its checkpoints.
        milestones: agents of the way.
        metrics: one line an update.
        episodes: one line a finished episode.
        evaluations: one line an evaluation.
        replays: one line a replay, see `pixelpong.play.replay`.
        warn: takes one-line warnings.
    """

    path: Path
    config: Config
    versions: dict[str, str]
    machine: dict[str, Any]
    checkpoints: CheckpointStore
    milestones: MilestoneStore
    metrics: LineFile
    episodes: LineFile
    evaluations: LineFile
    replays: LineFile
    warn: Callable[[str], None]

    @classmethod
    def create(
        cls, path: Path | None, config: Config, warn: Callable[[str], None] = _warn_on_stderr
    ) -> RunDirectory:
        """Make a new run directory.

        Args:
            path: where; None for the next free ``runs/PRESET-NNN``.
            config: what it will be trained with.
            warn: takes one-line warnings.

        Raises:
            RunError: it exists already, or cannot be made.
        """
        path = _make_folder(path, config.preset)
        content = {
            "format": FORMAT,
            "config": config.to_flat(),
            "versions": collect_versions(),
            "machine": describe_machine(),
        }
        try:
            _replace_config(path, content)
        except RunError:
            with contextlib.suppress(OSError):
                path.rmdir()  # so that the same name can be used when there is room again
            raise
        return cls._from_content(path, content, warn)

    @classmethod
    def open(cls, path: Path, warn: Callable[[str], None] = _warn_on_stderr) -> RunDirectory:
        """Open an existing run directory, to read it or to go on with it.

        Raises:
            RunError: it is not there, is no run, or is of another version.
        """
        if not path.is_dir():
            raise RunError(
                expected("a run directory", f"{path}, which is not one", "check its name")
            )
        content = _read_config(path)
        if content["format"] != FORMAT:
            got = f"format {content['format']}"
            advice = "use the version of pixelpong that wrote it"
            raise RunError(expected(f"a run of format {FORMAT} in {path}", got, advice))
        return cls._from_content(path, content, warn)

    @classmethod
    def _from_content(
        cls, path: Path, content: dict[str, Any], warn: Callable[[str], None]
    ) -> RunDirectory:
        try:
            config = _config_of(content, path)
            versions, machine = _texts(content["versions"]), _texts(content["machine"])
        except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
            raise RunError(
                expected(f"a run's configuration in {path}", str(error), "is it a run?")
            ) from error
        store = CheckpointStore(path / "checkpoints", warn)
        lines = {name: LineFile(path / f"{name}.jsonl", it) for name, it in _LINE_FILES.items()}
        milestones = MilestoneStore(path / "milestones")
        return cls(path, config, versions, machine, store, milestones, warn=warn, **lines)

    @property
    def line_files(self) -> tuple[LineFile, ...]:
        """All files of lines."""
        return tuple(getattr(self, name) for name in _LINE_FILES)

    @property
    def has_begun(self) -> bool:
        """Whether anything of a training is left here: then none may start over."""
        files = any(file.has_content for file in self.line_files)
        return files or bool(self.checkpoints.updates() or self.milestones.updates())

    def with_config(self, config: Config) -> RunDirectory:
        """This run with another configuration, which `write_config` has yet to write."""
        return dataclasses.replace(self, config=config)

    def write_config(self, update: int) -> None:
        """Write the configuration where it has changed; only for the one who holds the lock.

        Args:
            update: where the run stands; options that change the result are noted with it.

        Raises:
            RunError: the file cannot be written.
        """
        content = _read_config(self.path)
        before = _config_of(content, self.path)
        if before == self.config:
            return
        changed = differences(before, self.config)
        if changed:
            content["changes"] = [*content.get("changes", ()), {"update": update, **changed}]
        _replace_config(self.path, content | {"config": self.config.to_flat()})

    def lock(self) -> RunLock:
        """Become the only one who writes here.

        Raises:
            RunError: another training writes here now.
        """
        return RunLock(self.path)

    def warn_of_other_machine(self) -> None:
        """Say so where equality with the undisturbed run is no longer promised."""
        here = {**collect_versions(), **describe_machine()}
        there = {**self.versions, **self.machine}
        changed = [
            f"{name} {there.get(name)} → {here[name]}"
            for name in here
            if here[name] != there.get(name)
        ]
        if changed:
            self.warn(
                f"this run was started elsewhere ({'; '.join(changed)}): it goes on, but the same "
                "bits as without the break are no longer promised"
            )


class RunLock:
    """Held while a training writes to a run directory; freed by the system when it ends."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = open_to_write(path / "run.lock", "a+b")
        except OSError as error:
            got = error.strerror or str(error)
            raise RunError(expected(f"to write to {path}", got, "check its rights")) from error
        try:
            _lock_file(self._file)
        except OSError as error:
            self._file.seek(0)
            owner = self._file.read(20).strip()
            self._file.close()
            name = f"process {int(owner)}" if owner.isdigit() else "an unknown process"
            raise RunError(
                expected(
                    f"{path} to be free",
                    f"a training at work there ({name})",
                    "wait for it, or stop it",
                )
            ) from error
        with contextlib.suppress(OSError):  # who holds it is good to know; on a full disk nobody is
            self._file.truncate(0)
            self._file.write(b"%d\n" % os.getpid())

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()


def _lock_file(file: BinaryIO) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _make_folder(path: Path | None, preset: str) -> Path:
    """Make the new folder, which nobody else has made: `path`, or the next free number."""
    number = 0
    while True:
        number += 1
        candidate = path or RUNS_FOLDER / f"{preset}-{number:03d}"
        try:
            candidate.parent.mkdir(parents=True, exist_ok=True)
            candidate.mkdir()
        except FileExistsError as error:
            if path is None and candidate.is_dir():
                continue
            is_run = (candidate / "config.json").is_file()
            advice = "choose another --run" + is_run * f", or `pixelpong resume {candidate}`"
            got = f"{candidate}, which exists"
            if not candidate.exists():
                got = f"{candidate.parent}, which is no directory"
            raise RunError(expected("a new run directory", got, advice)) from error
        except OSError as error:
            got = error.strerror or str(error)
            raise RunError(
                expected(f"to make the run directory {candidate}", got, "choose another --run")
            ) from error
        return candidate


def _read_config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    try:
        content = json.loads(read_bytes(file, _CONFIG_LIMIT))
        if not isinstance(content, dict) or "format" not in content:
            raise ValueError("no format in it")
        if not isinstance(content.get("changes", []), list):
            raise ValueError("changes that are no list")
    except (OSError, ValueError, RecursionError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise RunError(expected(f"a run's configuration in {file}", got, "is it a run?")) from error
    # Those written before there was a hash have none.
    if content["format"] == FORMAT and content.get("sha256", _hash_of(content)) != _hash_of(
        content
    ):
        got = "another one: its SHA-256 differs"
        advice = "put a copy of it there, or if you changed it, take its sha256 out"
        raise RunError(expected(f"the configuration that was written to {file}", got, advice))
    return content


def _config_of(content: dict[str, Any], path: Path) -> Config:
    options = content["config"]
    if options.get("engine") == "processes":  # of older versions; threads do it now
        options = options | {"engine": "threads"}
    if options.get("lag") == 0:  # of older versions; every run is now as those without a lag
        options = {name: value for name, value in options.items() if name != "lag"}
    return Config().updated(options, str(path / "config.json"))


def _texts(content: Any) -> dict[str, str]:
    """Names and values of a part of the file that is only shown and compared, each on one line.

    Raises:
        ValueError, AttributeError: it is something else.
    """
    if not all(isinstance(value, str) for value in content.values()):
        raise ValueError("versions or a machine that are no texts")
    return {on_one_line(name): on_one_line(value[:MAX_GOT]) for name, value in content.items()}


def _replace_config(path: Path, content: dict[str, Any]) -> None:
    temporary = path / f".config-{os.getpid()}.json"
    content = content | {"sha256": _hash_of(content)}
    try:
        for left in path.glob(".config-*.json"):  # of a kill, long ago
            left.unlink()
        write_file(temporary, (json.dumps(content, indent=1) + "\n").encode())
        temporary.replace(path / "config.json")
        sync_folder(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        got = error.strerror or str(error)
        raise RunError(expected(f"to write to {path}", got, "make room there")) from error


def _hash_of(content: dict[str, Any]) -> str:
    """SHA-256 of all of it but the hash."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
