"""Settings: configurations without their seeds, each with its runs, which differ only in the seed.

Two runs with the same seed are bit-identical copies, so only one of them counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pixelpong.config import Config
from pixelpong.evaluation import bootstrap_interval
from pixelpong.run.lines import MIN_RUNS
from pixelpong.run.record import Record
from pixelpong.seeding import make_rng
from pixelpong.sweeps.grid import label_of, varied


@dataclass(frozen=True)
class Setting:
    """The runs of one configuration, one for each seed."""

    label: str  # options that differ among the settings; "" if there is only one setting
    config: Config  # the configuration with the first seed
    records: tuple[Record, ...]

    @property
    def won(self) -> list[Record]:
        """The runs that reached their target."""
        return [record for record in self.records if record.is_won]

    def summarize(self) -> dict[str, Any]:
        """Sum up this setting, as JSON.

        ``steps`` and ``seconds`` to the win (for runs that won) and ``final_return`` (for runs that
        are done) are ``{"median": …, "ci95": [low, high]}``, or None if there is no such run. With
        fewer than `MIN_RUNS` runs, the interval is None.
        """
        done = [record for record in self.records if record.is_done]
        return {
            "label": self.label,
            "trainings": len(self.records),
            "done": len(done),
            "won": len(self.won),
            "steps": _describe([steps_of(record) for record in self.won]),
            "seconds": _describe([seconds_of(record) for record in self.won]),
            "final_return": _describe([record.best_known for record in done]),
        }


def make_settings(records: Iterable[Record]) -> list[Setting]:
    """Group runs into settings, in the order of their first runs; leave out damaged runs."""
    groups: dict[Any, dict[int, Record]] = {}  # records by seed
    configs: dict[Any, Config] = {}
    for record in records:
        if record.config is not None:
            configs.setdefault(record.group, record.config)
            by_seed, seed = groups.setdefault(record.group, {}), record.config.seed
            # Of two copies, the one with more steps counts.
            by_seed[seed] = max(by_seed.get(seed, record), record, key=lambda copy: copy.steps)
    names = varied([*configs.values()])
    return [
        Setting(label_of(configs[group], names), configs[group], tuple(by_seed.values()))
        for group, by_seed in groups.items()
    ]


def summarize(records: Iterable[Record]) -> dict[str, Any]:
    """Sum up some runs, as JSON: totals, and the numbers of each setting."""
    settings = [setting.summarize() for setting in make_settings(records)]
    totals = {
        name: sum(setting[name] for setting in settings) for name in ("trainings", "done", "won")
    }
    return {**totals, "settings": settings}


def seconds_of(record: Record) -> float | None:
    """Return the total time until a run won, or its total time so far if it has not won."""
    return record.win.total_seconds if record.win else record.total_seconds


def steps_of(record: Record) -> int:
    """Return the steps until a run won, or its steps so far if it has not won."""
    if record.win:
        (steps,) = record.steps_at([record.win.update])
        if not np.isnan(steps):  # its line is there
            return int(steps)
    return record.steps


def _describe(values: Sequence[float | None]) -> dict[str, Any] | None:
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    interval = bootstrap_interval(known, make_rng(0, "bootstrap"), np.median)
    return {"median": float(np.median(known)), "ci95": interval if len(known) >= MIN_RUNS else None}
