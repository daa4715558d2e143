"""The runs on this disk, as data and text: the list, and one run with its checkpoints' hashes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pixelpong.config import ALGORITHMS, OPTIONS
from pixelpong.config.presets import changed_from_preset
from pixelpong.errors import CheckpointError, number_of, on_one_line
from pixelpong.faces.text import fold
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import STATES, Record
from pixelpong.run.words import describe_times, signed

Report = dict[str, Any]

_MAX_NAME = 28


def sort_records(found: Iterable[Record], sort: str = "age") -> list[Record]:
    """Runs in the order of ``runs --sort``."""
    return sorted(found, key=lambda each: (_rank(each)[sort], str(each.path)))


def _rank(record: Record) -> dict[str, Any]:
    best = record.best_known
    return {
        "age": -record.modified,
        "name": str(record.path),
        "return": -best if best is not None else 99.0,
        "seed": record.config.seed if record.config else -1,
        "size": -record.bytes,
        "state": list(STATES).index(record.state),
        "steps": -record.steps,
    }


def describe_list(found: Sequence[Record], width: int = 80) -> str:
    """The list as a table of at most `width` columns, and a line with the total."""
    if not found:
        return "no runs here; train one: pixelpong train"
    heads: tuple[str, ...] = ("run", "state", "return", "steps", "seed", "preset", "size", "age")
    rows = [heads, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            f"{cell:{'<' if place in (0, 1, 5) else '>'}{widths[place]}}"
            for place, cell in enumerate(row)
        )
        for row in rows
    ]
    for place, each in enumerate(found, start=1):
        if each.problem:
            lines[place] += "\n  " + _shorten(each.problem, width - 2)
    total = f"{sum(each.bytes for each in found) / 1e6:,.1f} MB"
    is_estimated = any(each.greedy is None and each.best_known is not None for each in found)
    hint = "; ~ is an estimate from the points won" * is_estimated
    lines.append(f"{number_of(len(found), 'run')}, {total}{hint}")
    return "\n".join(line.rstrip() for line in lines)


def _row(each: Record) -> tuple[str, ...]:
    best = each.best_known
    return (
        _shorten(each.path.name or str(each.path), _MAX_NAME),
        each.state,
        "–" if best is None else "~" * (each.greedy is None) + signed(best),
        f"{each.steps:,}",
        str(each.config.seed) if each.config else "–",
        each.config.preset[:10] if each.config else "–",
        f"{each.bytes / 1e6:,.1f} MB",
        describe_age(time.time() - each.modified),
    )


def _shorten(text: str, width: int) -> str:
    text = on_one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def describe_age(seconds: float) -> str:
    """How long ago something was.

    >>> [describe_age(age) for age in (5, 240, 7_300, 260_000, -3)]
    ['5s', '4m', '2h', '3d', '0s']
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


# --- one run ----------------------------------------------------------------------------------


def report_run(path: Path) -> Report:
    """What a run has reached; every byte of its checkpoints is compared with its hash."""
    run, damaged, newest = RunDirectory.open(path), {}, None
    for update in run.checkpoints.updates():
        try:
            newest = run.checkpoints.load(update)
        except CheckpointError as error:
            if run.checkpoints.path(update).exists():  # a training has not just removed it
                damaged[update] = str(error)
    report = Record.read(path).to_dict() | {
        "checkpoints": run.checkpoints.updates(),
        "damaged": damaged,
        "config": run.config.to_flat(),
        "changed": changed_from_preset(run.config),
        "versions": run.versions,
        "machine": run.machine,
    }
    if newest is not None:
        report |= {
            "params_sha256": newest.card["about"]["params_sha256"],
            "state_sha256": fingerprint(newest.arrays),
        }
    return report


def describe_run(report: Report) -> str:
    """The same as text, folded to the terminal."""
    config, damaged = report["config"], report["damaged"]
    changed = {name: value for name, value in report["changed"].items() if name != "seed"}
    sound = [str(update) for update in report["checkpoints"] if update not in damaged]
    rows: dict[str, Any] = {
        "verdict": report["verdict"],
        "run": report["run"],
        "preset": f"{config['preset']}, seed {config['seed']}",
        "changed": _listed(changed) or "nothing",
        "stands at": f"update {report['update']}, {number_of(report['steps'], 'step')}, "
        f"{number_of(report['episodes'], 'episode')}",
        "time": describe_times(report["training_seconds"], report["total_seconds"]),
        "params": report.get("params_sha256"),
        "state": report.get("state_sha256"),
        "checkpoints": f"{', '.join(sound)}: each has its SHA-256" if sound else "none",
        "damaged": "; ".join(damaged.values()),
        "machine": ", ".join(map(str, report["machine"].values())),
        "versions": _listed(report["versions"]),
    }
    sections: dict[str, Report] = {}
    for name, value in config.items():
        section = OPTIONS[name].section
        is_used = section not in ("", *ALGORITHMS) or section == config["algorithm"]
        if is_used and name not in changed:
            sections.setdefault(section, {})[name] = value
    rows |= {name: _listed(values) for name, values in sections.items()}
    width = shutil.get_terminal_size().columns
    lines = [fold(str(value), width, f"{name:13}") for name, value in rows.items() if value]
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _listed(values: Report) -> str:
    """Names and values; `fold` never separates a name from its value."""
    known = {name: value for name, value in values.items() if value is not None}
    return ", ".join(f"{name}\N{NO-BREAK SPACE}{value}" for name, value in known.items())
