"""What came of many trainings: one set of numbers for the terminal, the page, plots and JSON.

A *setting* is a configuration without its seed; its trainings differ in nothing else. Two runs of
one seed are copies of each other, to the bit, so a setting has one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pixelpong.config import Config
from pixelpong.run.record import Record
from pixelpong.sweep import statistics
from pixelpong.sweep.grid import label_of, varied

FEWEST = 4  # trainings for a 95 % interval; that of fewer would say nothing
_COLUMNS = ("state", "problem", "is_done", "is_won", "steps")


@dataclass(frozen=True)
class Setting:
    """The trainings of a configuration, one for each seed."""

    label: str  # the options that differ among the settings; "" if there is one setting
    records: tuple[Record, ...]

    @property
    def done(self) -> list[Record]:
        """The trainings of which nothing is left."""
        return [record for record in self.records if record.is_done]

    @property
    def won(self) -> list[Record]:
        """The trainings that have reached their target."""
        return [record for record in self.records if record.is_won]

    @property
    def final_returns(self) -> list[float]:
        """The best known returns of the trainings that are done."""
        return [record.best_known for record in self.done if record.best_known is not None]

    def summarize(self) -> dict[str, Any]:
        """Its numbers, as JSON.

        ``steps`` and ``seconds`` until those that have won did, medians, and ``final_return``, the
        interquartile mean, are ``{"middle": …, "ci95": [low, high]}``: None if no training has
        one, and no interval (None) of fewer than `FEWEST`.
        """
        return {
            "label": self.label,
            "trainings": len(self.records),
            "done": len(self.done),
            "won": len(self.won),
            "steps": _describe([it.steps for it in self.won], np.median),
            "seconds": _describe([seconds_of(it) for it in self.won], np.median),
            "final_return": _describe(self.final_returns, statistics.interquartile_mean),
        }


def make_settings(records: Iterable[Record]) -> list[Setting]:
    """The settings of some runs, in the order of their first runs; damaged runs are left out."""
    found: dict[Any, dict[int, Record]] = {}
    configs: dict[Any, Config] = {}
    for record in records:
        if record.config is not None:
            configs.setdefault(record.group, record.config)
            seeds, seed = found.setdefault(record.group, {}), record.config.seed
            # Of two copies, the one that has come further.
            seeds[seed] = max(seeds.get(seed, record), record, key=lambda each: each.steps)
    names = varied([*configs.values()])
    return [
        Setting(label_of(configs[group], names), tuple(seeds.values()))
        for group, seeds in found.items()
    ]


def summarize(records: Iterable[Record]) -> dict[str, Any]:
    """The numbers of some runs, as JSON: of all together, and of each of the ``settings``."""
    settings = [setting.summarize() for setting in make_settings(records)]
    totals = {name: sum(it[name] for it in settings) for name in ("trainings", "done", "won")}
    return {**totals, "settings": settings}


def make_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The table: of each run the options in which they differ, its state and its result."""
    names = [*varied([it.config for it in records if it.config]), "seed"]
    return [_make_row(record, names) for record in records]


def _make_row(record: Record, names: Sequence[str]) -> dict[str, Any]:
    options = record.config.to_flat() if record.config else {}
    low, high = record.greedy.ci95 if record.greedy else (None, None)
    card = record.run.checkpoints.load_latest().card if record.run and record.is_done else {}
    return {
        "name": record.path.name,
        **{name: options.get(name) for name in names},
        **{name: getattr(record, name) for name in _COLUMNS},
        "seconds": seconds_of(record),
        "final_return": record.best_known,
        "final_low": low,
        "final_high": high,
        "params_sha256": card["about"]["params_sha256"] if card else "",
    }


def seconds_of(record: Record) -> float | None:
    """Total time until a training won, or else until now."""
    greedy = record.greedy
    return greedy.total_seconds if greedy and greedy.is_won else record.total_seconds


def _describe(values: Sequence[float | None], middle: Callable[..., Any]) -> dict[str, Any] | None:
    known = [float(value) for value in values if value is not None]
    ends = statistics.interval(known, middle) if len(known) >= FEWEST else None
    return {"middle": float(middle(known)), "ci95": ends} if known else None
