"""The run directory, which training writes and everything else reads.

    runs/NAME/
      config.json      the resolved configuration, versions, machine
      metrics.jsonl    one line per update, cut back on resume to the checkpoint's update
      episodes.jsonl   one line per finished episode
      evaluations.jsonl  one line per evaluation
      checkpoints/     see `pixelpong.run.checkpoints`
      agents/          the agent at earlier updates, see `pixelpong.agent.file`
      failure.json     the error that ended the last training, if one did
      run.lock         held by the process that trains here

Readers take no lock. `pixelpong.run.files` describes which of these may be links.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pixelpong.config import OPTIONS, Config, differences
from pixelpong.errors import MAX_GOT, ConfigError, RunError, on_one_line, refusing, warn
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.files import (
    gone,
    read_file,
    require_no_link,
    sync_folder,
    write_new,
    write_whole,
)
from pixelpong.run.folders import CONFIG_FILE, make_folder
from pixelpong.run.folders import RUNS_FOLDER as RUNS_FOLDER
from pixelpong.run.lines import LineFile
from pixelpong.run.locks import LOCK_FILE, Lock, lock_folder
from pixelpong.run.locks import is_live as is_live
from pixelpong.run.numbered import History, Mark, NumberedFiles, make_mark
from pixelpong.schema import Count, convert, decode, encode

FORMAT = 3
LINE_FILES = "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"
CONFIG_LIMIT = 1 << 20  # size limit in bytes, enough for a thousand changes
FAILURE_FILE = "failure.json"
FAILURE_LIMIT = 1 << 16
# These cannot change once a run has started.
FIXED_OPTIONS = ("game", "seed", "algorithm", "hidden", "dtype")


class RunDirectory:
    """An existing run directory, to read or to continue."""

    def __init__(self, path: Path) -> None:
        """Open a run; raise a `RunError` if it is not a run or is damaged."""
        self.path = path
        _, about, self.config = _read_config(path)
        self.versions, self.machine = about.versions, about.machine
        limit = _largest_file(self.config)
        self.checkpoints = CheckpointStore(path / "checkpoints", about.history, limit)
        self.agents = NumberedFiles(path / "agents", about.history, limit)
        self._lock: Lock | None = None  # None unless this process trains here
        self.line_files = tuple(LineFile(path / name) for name in LINE_FILES)
        self.metrics, self.episodes, self.evaluations = self.line_files

    @classmethod
    def create(cls, path: Path | None, config: Config) -> RunDirectory:
        """Make a new run directory, by default the next free one in ``runs``.

        It is named after the preset, as ``fast-001``, and in other games than Pong after the game.
        """
        fill = functools.partial(fill_run, config=config)
        return cls(make_folder(path, config.preset if config.is_pong else config.game, fill))

    @property
    def has_begun(self) -> bool:
        """Whether training has written anything here; if so, it must not start over."""
        paths = [file.path for file in self.line_files]
        has_lines = any(path.exists() and path.stat().st_size > 0 for path in paths)
        return has_lines or bool(self.list_agents())

    def list_agents(self) -> list[int]:
        """List the updates, ascending, whose agent is saved in a checkpoint or a small file."""
        return sorted({*self.checkpoints.updates(), *self.agents.updates()})

    def with_config(self, config: Config) -> RunDirectory:
        """Return a copy of this run with `config`; only `write_config` writes it to disk.

        The network and the seed of a run cannot change once it has started.
        """
        changed = differences(self.config, config)
        refused = [
            f"--{name} {old}, not {new}"
            for name, (old, new) in changed.items()
            if name in FIXED_OPTIONS
        ]
        if refused and self.has_begun:
            advice = "leave the option out, or train a new run"
            raise ConfigError(f"{self.path} was started with {', '.join(refused)}; {advice}.")
        copied = copy.copy(self)
        copied.config = config
        return copied

    @property
    def mark(self) -> str:
        """The mark that the cards of new files contain, see `History`."""
        assert self.agents.history is not None
        return self.agents.history.current

    def write_config(self, update: int) -> None:
        """Write the configuration if it has changed; the caller must hold the lock.

        Changes that affect the result are recorded with the current `update`. Earlier changes with
        a later update belong to updates that are lost; they are replaced.
        """
        content, about, before = _read_config(self.path)
        kept = [change for change in about.changes if change["update"] <= update]
        lost = [change for change in about.changes if change["update"] > update]
        for change in reversed(lost):
            old = {name: values[0] for name, values in change.items() if name != "update"}
            before = before.updated(old, CONFIG_FILE)
        if changed := differences(before, self.config):
            kept.append({"update": update, **changed})
        new = content | {"config": vars(self.config)}
        if kept or lost:
            new["changes"] = kept
        if encode(new) != encode(content):
            _write_config(self.path, new)
        self._read_history()

    def _read_history(self) -> None:
        _, about, _ = _read_config(self.path)
        self.checkpoints.history = self.agents.history = about.history

    # ---- writing

    @contextlib.contextmanager
    def lock(self) -> Iterator[Lock]:
        """Let only this process write here, see `lock_folder`."""
        with lock_folder(self.path) as self._lock:
            self._read_history()  # another process may have continued the run in the meantime
            yield self._lock

    def require_ours(self) -> None:
        """Raise a `RunError` if the run was removed, emptied or replaced since it was locked."""
        assert self._lock is not None
        self._lock.require_held()
        if not (self.path / CONFIG_FILE).exists():
            raise gone(self.path)

    def require_writable(self) -> None:
        """Refuse files that training must not write to, before anything is written."""
        names = CONFIG_FILE, FAILURE_FILE, LOCK_FILE, *(file.path.name for file in self.line_files)
        for name in names:
            with refusing(f"cannot write to {self.path / name}", RunError, "remove it"):
                require_no_link(self.path / name)
        for folder in (self.checkpoints, self.agents):
            folder.require_own()

    def cut_back(self, update: int) -> int:
        """Remove all after `update` and create missing files; return the number of updates lost."""
        self.checkpoints.make_folder()
        with contextlib.suppress(RunError):  # training warns and continues without agents
            self.agents.make_folder()
        self.checkpoints.cut_back(update)
        self.agents.cut_back(update)
        for file in (self.episodes, self.evaluations):
            file.cut_back(update)
        return self.metrics.cut_back(update)  # it has one line per update

    @contextlib.contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Context manager that records any error in the run's failure file."""
        assert self._lock is not None
        self._lock.is_kept = True
        file = self.path / FAILURE_FILE
        with contextlib.suppress(OSError):
            file.unlink()  # removes the failure of the previous training
        try:
            yield
        except Exception as error:
            content = encode({"error": on_one_line(str(error) or type(error).__name__)[:MAX_GOT]})
            with contextlib.suppress(RunError):  # the disk itself may have failed
                self.require_ours()
                write_whole(file, content)
            raise

    def read_failure(self) -> str:
        """Read the error that ended the last training; "" if there was none."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            content = read_file(self.path / FAILURE_FILE, FAILURE_LIMIT)
            return decode(content, dict[str, str])["error"]
        return ""

    def warn_of_other_versions(self) -> None:
        """Warn if the libraries differ, because the bits may depend on them."""
        changed = [
            f"{name} {self.versions.get(name)} → {value}"
            for name, value in collect_versions().items()
            if value != self.versions.get(name)
        ]
        if changed:
            warn(
                f"this run was started with other versions ({'; '.join(changed)[:MAX_GOT]}); it "
                "will continue, but may no longer match an uninterrupted run bit for bit"
            )


def restore(path: Path, config: Config) -> None:
    """Recreate a run if its folder is lost; write only its configuration if only that is lost."""
    if path.is_symlink():
        raise RunError(f"{path} is a link, but not to a run; remove it")
    if path.is_dir():
        _write_config(path, _describe(config))
    else:
        RunDirectory.create(path, config)


def fill_run(folder: Path, config: Config) -> None:
    """Write the files of a new run into an empty folder; raise an `OSError` if that fails."""
    write_new(folder / CONFIG_FILE, _encode_config(_describe(config)))
    for name in LINE_FILES:
        (folder / name).touch(exist_ok=False)
    sync_folder(folder)


def _describe(config: Config) -> dict[str, Any]:
    """Return the content of ``config.json`` of a new run."""
    bound = {name: getattr(config, name) for name, it in OPTIONS.items() if not it.is_free}
    return {
        "format": FORMAT,
        "config": vars(config),
        "versions": collect_versions(),
        "machine": describe_machine(),
        "mark": make_mark(bound),
    }


@dataclass(frozen=True)
class _About:
    """The content of ``config.json`` besides the options."""

    versions: dict[str, str]
    machine: dict[str, str]
    mark: str = ""  # the mark of the first options
    # Later changes of options as name → (old, new), each with the update after which it applies.
    changes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def history(self) -> History:
        """The marks of the run; each change makes a new one."""
        marks = [Mark(0, self.mark)]
        for change in self.changes:
            since = convert(change["update"], Count)
            marks.append(Mark(since, make_mark(change, marks[-1].text)))
        return History(tuple(marks))


def _read_config(path: Path) -> tuple[dict[str, Any], _About, Config]:
    """Read ``config.json`` and check it against its hash; return it whole and in parts."""
    file = path / CONFIG_FILE
    with refusing(f"cannot read the configuration {file}", RunError, "check that it is a run"):
        content = decode(read_file(file, CONFIG_LIMIT), dict[str, Any])
        if content.get("format") != FORMAT:
            raise ValueError(f"another version wrote it (format {str(content.get('format'))[:20]})")
        if content.pop("sha256", None) != _hash_of(content):
            raise ValueError("it is damaged: its SHA-256 is wrong")
        options = convert(content["config"], dict[str, Any])
        if unknown := options.keys() - OPTIONS.keys():
            raise ValueError(f"another version wrote it, with the option {min(unknown)[:40]}")
        about = convert(content, _About)
        about.history  # noqa: B018 - this checks the changes
        try:
            return content, about, Config().updated(options, str(file))
        except ConfigError as error:
            raise ValueError(str(error)) from error


def _write_config(path: Path, content: dict[str, Any]) -> None:
    write_whole(path / CONFIG_FILE, _encode_config(content))


def _encode_config(content: dict[str, Any]) -> bytes:
    return (json.dumps(content | {"sha256": _hash_of(content)}, indent=1) + "\n").encode()


def _hash_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(encode(content)).hexdigest()


def _largest_file(config: Config) -> int:
    """Return a size in bytes that no checkpoint of this configuration exceeds.

    Each of at most 2**16 inputs has two numbers of 8 bytes per hidden unit, and the optimizer has
    two more for each; everything else takes less than 2**26 bytes.
    """
    return (config.hidden << 16) * 2 * 8 * 3 + (1 << 26)
