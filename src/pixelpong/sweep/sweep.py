"""A sweep: its plan and its results on the disk, and what carries it out.

    DIR/
      sweep.json    what was asked for, and of each training its options, state and result
      sweep.csv     the same as a table, without the curves
      sweep.mark    see `pixelpong.sweep.training`
      NAME/         the run directory of each training

``sweep.json`` is written whole after a training has ended. What is lost with a driver that is
killed is in the run directories.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pixelpong.config import Config, differences
from pixelpong.engines import has_ray, require_ray
from pixelpong.engines.jobs import Ended, Failed, JobEvents, run_one_by_one
from pixelpong.errors import ConfigError, PixelpongError, RunError, expected, refusing
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory, RunLock
from pixelpong.run.files import write_whole
from pixelpong.schema import Count, Meta, decode, encode
from pixelpong.sweep import statistics
from pixelpong.sweep.grid import MAX_NAME, MAX_TRAININGS, label_of, name_trainings, varied
from pixelpong.sweep.training import MARK_FILE, Job, Result, unpack

FORMAT = 1
FILE = "sweep.json"

LIMIT = 1 << 28
"""Bytes of the longest `FILE` that is read: ten times that of the most trainings."""

WRITING_SHARE = 0.05
"""Share of the time that writing `FILE` may take: that of thousands of trainings is long."""

_COLUMNS = (
    "is_won", "steps", "seconds", "training_seconds", "core_seconds", "final_return", "final_ci95",
    "params_sha256",
)  # fmt: skip
"""Of a result, in the table."""

Name = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9.-]{{0,{MAX_NAME - 1}}}$")]


@dataclass
class Training:
    """One training of a sweep.

    Attributes:
        name: of its run directory.
        options: those that differ from the first training's.
        state: how it stands, as the file has it; one under way is waiting there.
        error: the one line of one that failed.
        result: of one that is done.
    """

    name: Name
    options: dict[str, Any] = field(default_factory=dict)
    state: Literal["waiting", "done", "failed"] = "waiting"
    error: str = ""
    result: Result | None = None

    def __post_init__(self) -> None:
        if (self.state == "done") != (self.result is not None):
            raise ValueError(f"{self.name} that is {self.state}, with another result")


@dataclass(frozen=True)
class Plan:
    """What ``sweep.json`` says.

    Attributes:
        mark: what `MARK_FILE` says.
        config: all options of the first training, flat.
        trainings: all of them, in the order in which they begin.
        versions: of the libraries of the driver.
        machine: the driver's.
        commit: of the working copy, if it is one.
        format: number of the layout described here.
    """

    mark: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    config: dict[str, Any]
    trainings: Annotated[tuple[Training, ...], Meta(min_length=1, max_length=MAX_TRAININGS)]
    versions: dict[str, str]
    machine: dict[str, str]
    commit: str
    format: Count = FORMAT


class Sweep:
    """A sweep on the disk, which this process alone carries out."""

    def __init__(self, path: Path, plan: Plan) -> None:
        """See `create` and `open`."""
        self.path = path
        self.plan = plan
        with refusing(f"a sweep's options in {path / FILE}", "is it a sweep?", RunError):
            self.configs = _read_configs(plan, str(path / FILE))
        self.names = varied(self.configs.values())
        self._by_name = {training.name: training for training in plan.trainings}
        self._lock = RunLock(path)
        self._next_write = 0.0

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.__exit__(*exc)

    @classmethod
    def create(cls, path: Path, configs: Sequence[Config]) -> Sweep:
        """Plan a new sweep.

        Args:
            path: its folder: a new or an empty one.
            configs: of each training, no two the same.

        Raises:
            RunError: something is there, or it cannot be written.
        """
        names = name_trainings(configs)
        trainings = [
            Training(name, {key: new for key, (_, new) in changed.items()})
            for name, config in zip(names, configs, strict=True)
            for changed in [differences(configs[0], config, with_free=True)]
        ]
        about = collect_versions(), describe_machine(), describe_commit()
        mark, config = os.urandom(16).hex(), configs[0].to_flat()
        with refusing(f"a new folder {path} for the sweep", "choose another --out", RunError):
            path.mkdir(parents=True, exist_ok=True)
            is_free = not any(path.iterdir())
        if not is_free:
            resume = f", or `pixelpong sweep resume {path}`" * (path / FILE).exists()
            got = f"{path}, which {'holds a sweep' if resume else 'is not empty'}"
            raise RunError(expected("a new folder", got, f"choose another --out{resume}"))
        write_whole(path / MARK_FILE, mark.encode())
        sweep = cls(path, Plan(mark, config, tuple(trainings), *about))
        sweep.write()
        return sweep

    @classmethod
    def open(cls, path: Path) -> Sweep:
        """Read a sweep, to go on with it. What is not as it was recorded is trained again, or
        counts as failed if something else is in its place.

        Raises:
            RunError: it is not there, is damaged, or another process carries it out.
        """
        with refusing(f"a sweep in {path / FILE}", "check its name", RunError):
            with (path / FILE).open("rb") as file:
                plan = decode(file.read(LIMIT), Plan)
            if plan.format != FORMAT:
                raise ValueError(f"format {plan.format}, of another version of pixelpong")
        sweep = cls(path, plan)
        for training in plan.trainings:
            sweep._check(training)
        return sweep

    def write(self) -> None:
        """Write ``sweep.json`` and ``sweep.csv``.

        Raises:
            RunError: the disk does not take them; the files before are as they were.
        """
        begin, advice = (
            time.monotonic(),
            f"make room there, then `pixelpong sweep resume {self.path}`",
        )
        write_whole(self.path / FILE, encode(dataclasses.asdict(self.plan)) + b"\n", advice=advice)
        write_whole(self.path / "sweep.csv", self._make_table().encode(), advice=advice)
        took = time.monotonic() - begin
        self._next_write = begin + took / WRITING_SHARE

    def carry_out(
        self,
        should_stop: Callable[[], bool],
        *,
        engine: str | None = None,
        address: str | None = None,
        threads: int | None = None,
    ) -> JobEvents:
        """Train what is not done, and write down what comes of it.

        Args:
            should_stop: asked several times a second; the trainings under way are then saved.
            engine: ``"ray"``, or ``"serial"`` for one after the other; by default Ray if it is
                installed.
            address: of a running Ray cluster.
            threads: of each training; by default 1 with Ray, else one a core.

        Yields:
            What happens, after it has been written down; see `pixelpong.engines.jobs.JobEvents`.

        Raises:
            ConfigError: Ray is asked for and not installed, or nobody answers at the address.
            WorkerError: Ray does not start, or cannot run the trainings.
            RunError: the disk does not take the results.
        """
        is_ray = _choose_engine(engine, address)
        threads = threads or (1 if is_ray else count_cores())
        tried: set[str] = set()
        while not should_stop():
            left = [it for it in self.plan.trainings if it.result is None and it.name not in tried]
            if not left:
                break
            jobs = self._make_jobs(left, is_ray, threads)
            if is_ray:
                from pixelpong.engines.ray.jobs import run_on_ray

                events = run_on_ray(jobs, threads, address, should_stop)
            else:
                events = run_one_by_one(jobs, should_stop)
            with contextlib.closing(events):
                for event in events:
                    if isinstance(event, Ended) and event.result.result.reason == "interrupted":
                        continue  # by somebody else, if the sweep goes on: then it is run again
                    if isinstance(event, Ended | Failed):
                        tried.add(event.name)
                        self._note(event)
                    yield event
        self.write()

    def groups(self) -> dict[str, list[Training]]:
        """The trainings of each setting: those that differ in nothing but the seed."""
        found: dict[str, list[Training]] = {}
        for training in self.plan.trainings:
            label = label_of(self.configs[training.name], self.names)
            found.setdefault(label, []).append(training)
        return found

    def summarize(self) -> dict[str, Any]:
        """What came of it so far."""
        trainings = self.plan.trainings
        states = [training.state for training in trainings]
        return {
            "sweep": str(self.path),
            "counts": {state: states.count(state) for state in ("done", "failed", "waiting")},
            "groups": [
                {"label": label, **summarize([it.result for it in group if it.result])}
                for label, group in self.groups().items()
            ],
            "trainings": [self._row(training) for training in trainings],
        }

    def _make_jobs(self, left: Sequence[Training], is_ray: bool, threads: int) -> dict[str, Job]:
        who = {"engine": "threads", "workers": threads}
        return {
            name: Job(self.path.absolute(), self.plan.mark, name, config, is_alone=not is_ray)
            for name in (it.name for it in left)
            for config in [self.configs[name].updated(who, "sweep")]
        }

    def _note(self, event: Ended | Failed) -> None:
        """Write down what came of a training."""
        training = self._by_name[event.name]
        if isinstance(event, Failed):
            training.state, training.error = "failed", str(event.error)
        else:
            if event.result.files is not None:
                unpack(self.path / training.name, event.result.files)
            training.state, training.error, training.result = "done", "", event.result.result
        if time.monotonic() >= self._next_write:
            self.write()

    def _check(self, training: Training) -> None:
        """See that the run of a training that is done is there, and as it was recorded."""
        path = self.path / training.name
        training.error = ""
        if training.result is None:
            return
        if not path.exists():
            training.state, training.result = "waiting", None
            return
        try:
            store = RunDirectory.open(path).checkpoints
            found, wanted = fingerprint(store.load_latest().params), training.result.params_sha256
            if found != wanted:
                what = f"the parameters {wanted[:12]}… in {path}"
                raise RunError(expected(what, f"{found[:12]}…", "move it away, then resume"))
        except PixelpongError as error:
            training.error = str(error)

    def _row(self, training: Training) -> dict[str, Any]:
        """A training as a row of the table."""
        flat, result = self.configs[training.name].to_flat(), training.result
        row = {"name": training.name, **{name: flat[name] for name in (*self.names, "seed")}}
        row |= {"state": training.state, "error": training.error}
        return row | {name: result and getattr(result, name) for name in _COLUMNS}

    def _make_table(self) -> str:
        text = io.StringIO()
        rows = [self._row(training) for training in self.plan.trainings]
        for row in rows:
            row["final_low"], row["final_high"] = row.pop("final_ci95") or (None, None)
        table = csv.DictWriter(text, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        return text.getvalue()


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """Of how many were won, the medians of those; of all, the interquartile mean of the return."""
    won = [result for result in results if result.is_won]
    returns = [it.final_return for it in results if it.final_return is not None]
    summary: dict[str, Any] = {"trainings": len(results), "won": len(won)}
    for name in ("seconds", "steps") if won else ():
        summary[name] = median_of([float(getattr(result, name)) for result in won])
    if returns:
        summary["final_return"] = {
            "interquartile_mean": float(statistics.interquartile_mean(returns)),
            "ci95": statistics.interval([returns], statistics.interquartile_mean),
        }
    return summary


def median_of(values: Sequence[float]) -> dict[str, Any]:
    """The median and its 95 % interval; of five values it spans nearly all of them.

    >>> median_of([3.0, 3.0])
    {'median': 3.0, 'ci95': (3.0, 3.0)}
    """
    ci95 = statistics.interval([values], statistics.median)
    return {"median": float(statistics.median(values)), "ci95": ci95}


def _read_configs(plan: Plan, origin: str) -> dict[str, Config]:
    """The configuration of each training, by name.

    Raises:
        ValueError: two have one name, or these are no options of this version.
    """
    try:
        base = Config().updated(plan.config, origin)
        found = {it.name: base.updated(it.options, origin) for it in plan.trainings}
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if len(found) < len(plan.trainings):
        raise ValueError("two trainings of one name")
    return found


def _choose_engine(engine: str | None, address: str | None) -> bool:
    """Whether it is Ray."""
    if engine == "serial" and address is not None:
        advice = "leave one of them out"
        raise ConfigError(expected("--engine ray for --ray-address", "--engine serial", advice))
    if engine == "ray" or address is not None:
        require_ray()
        return True
    return engine is None and has_ray()
