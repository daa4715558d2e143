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
from pixelpong.errors import MAX_GOT, ConfigError, RunError, expected, on_one_line, refusing
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.files import write_whole
from pixelpong.run.lines import ADVICE, LineFile
from pixelpong.run.milestones import MilestoneStore
from pixelpong.schema import convert, decode, encode

FORMAT = 1
RUNS_FOLDER = Path("runs")
_LINE_FILES = dict.fromkeys(("metrics", "episodes", "evaluations"), ADVICE) | {
    "replays": "make room there"  # nobody's result hangs on them
}


@dataclass(frozen=True)
class _ConfigFile:
    """What ``config.json`` says.

    Attributes:
        format: number of the layout described here.
        config: the options, flat.
        versions: of the libraries that started the run.
        machine: the one that started it.
        changes: the options that a resume changed, and at which update.
        sha256: of all the rest; files written before there was a hash have none.
    """

    format: int
    config: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, str]
    changes: tuple[dict[str, Any], ...] = ()
    sha256: str | None = None


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
    machine: dict[str, str]
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
            _write_config(path, content)
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
        return cls._from_content(path, _read_config(path), warn)

    @classmethod
    def _from_content(
        cls, path: Path, content: dict[str, Any], warn: Callable[[str], None]
    ) -> RunDirectory:
        file = convert(content, _ConfigFile)
        config = _config_of(file.config, path)
        store = CheckpointStore(path / "checkpoints", warn)
        lines = {name: LineFile(path / f"{name}.jsonl", it) for name, it in _LINE_FILES.items()}
        milestones = MilestoneStore(path / "milestones")
        versions, machine = _on_one_line(file.versions), _on_one_line(file.machine)
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
        before = _config_of(content["config"], self.path)
        if before == self.config:
            return
        changed = differences(before, self.config)
        if changed:
            content["changes"] = [*content.get("changes", ()), {"update": update, **changed}]
        _write_config(self.path, content | {"config": self.config.to_flat()})

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
        with refusing(f"to write to {path}", "check its rights", RunError):
            self._file = (path / "run.lock").open("a+b", buffering=0)
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
    """The content of ``config.json``, which fits `_ConfigFile`.

    Raises:
        RunError: it is missing, damaged, of another version or something else.
    """
    file = path / "config.json"
    with refusing(f"a run's configuration in {file}", "is it a run?", RunError):
        content = decode(file.read_bytes(), dict[str, Any])
        if content.get("format", FORMAT) != FORMAT:
            got, advice = (
                f"format {content['format']}",
                "use the version of pixelpong that wrote it",
            )
            raise RunError(expected(f"a run of format {FORMAT} in {path}", got, advice))
        claimed, found = convert(content, _ConfigFile).sha256, _hash_of(content)
    if claimed not in (None, found):
        got = "another one: its SHA-256 differs"
        advice = "put a copy of it there, or if you changed it, take its sha256 out"
        raise RunError(expected(f"the configuration that was written to {file}", got, advice))
    return content


def _config_of(options: dict[str, Any], path: Path) -> Config:
    """The configuration in a run's file.

    Raises:
        RunError: these are no options of this version.
    """
    if options.get("engine") == "processes":  # of older versions; threads do it now
        options = options | {"engine": "threads"}
    if options.get("ray_mode") == "nodes":  # of older versions; an actor is a whole node now
        options = options | {"ray_mode": "actors"}
    if options.get("lag") == 0:  # of older versions; every run is now as those without a lag
        options = {name: value for name, value in options.items() if name != "lag"}
    try:
        return Config().updated(options, str(path / "config.json"))
    except ConfigError as error:
        raise RunError(
            expected(f"a run's configuration in {path}", str(error), "is it a run?")
        ) from error


def _on_one_line(texts: dict[str, str]) -> dict[str, str]:
    """Names and values that are only shown and compared, each on one line."""
    return {on_one_line(name): on_one_line(value[:MAX_GOT]) for name, value in texts.items()}


def _write_config(path: Path, content: dict[str, Any]) -> None:
    content = content | {"sha256": _hash_of(content)}
    text = json.dumps(content, indent=1) + "\n"
    write_whole(path / "config.json", text.encode(), advice="make room there")


def _hash_of(content: dict[str, Any]) -> str:
    """SHA-256 of all of it but the hash."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(encode(rest)).hexdigest()
