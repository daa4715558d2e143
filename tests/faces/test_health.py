"""Health in plain words: each finding for what it is meant for, and for nothing else."""

from __future__ import annotations

import math

import pytest
from toys import toy_config

from pixelpong.faces.page import health
from pixelpong.faces.page.health import assess
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record

SIZE = 60
GONE = [1.2 * health.ENTROPY_GONE * math.log(2)] * SIZE
"""Entropies that are just enough for two actions, and not for three."""

SOUND = {
    "update": [*range(1, SIZE + 1)],
    "steps": [4096.0 * i for i in range(1, SIZE + 1)],
    "estimated_return": [-20 + 20 * i / SIZE for i in range(SIZE)],
    "entropy": [1.0 - 0.5 * i / SIZE for i in range(SIZE)],
    "up_share": [0.33 + 0.01 * math.sin(i) for i in range(SIZE)],
    "kl": [0.03] * SIZE,
}
LATE = {"steps": [1e5 * i for i in range(SIZE)]}
NO_GAIN = [-19] * SIZE  # whole numbers


NOTHING_KNOWN = {name: [None] * SIZE for name in SOUND if name != "update"}
STUCK = LATE | {"estimated_return": NO_GAIN}


def from_then_on(before, after):
    """A metric that is another one in the last million of six million steps."""
    return [before] * (SIZE - 10) + [after] * 10


LITTLE_GAIN = {"estimated_return": from_then_on(-20.2, -20.0)}
CLASSIC = LATE | LITTLE_GAIN | {"entropy": [0.69] * SIZE, "steps_per_point": [50.0] * SIZE}


def ended_with(name, value):
    return {name: SOUND[name][:-10] + [value] * 10}


@pytest.mark.parametrize(
    ("found", "changes", "preset"),
    [
        ("good No problems found", {}, "fast"),
        ("warning Entropy gone", ended_with("entropy", 0.02), "fast"),
        ("warning Entropy gone", {"entropy": GONE}, "fast"),
        ("good No problems found", {"entropy": GONE}, "classic"),
        ("good No problems found", {"entropy": GONE, "estimated_return": [19.0] * SIZE}, "fast"),
        ("warning One action only", ended_with("up_share", 0.99), "fast"),
        ("warning One action only", ended_with("up_share", 0.01), "fast"),
        ("warning Steps too large", ended_with("kl", 0.2), "fast"),
        ("warning Steps too large", ended_with("kl", 0.081), "fast"),
        ("good No problems found", ended_with("kl", 0.079), "fast"),
        ("warning Steps too large, note No progress", STUCK | ended_with("kl", 0.2), "fast"),
        ("note No progress", STUCK, "fast"),
        ("note No progress", LATE | LITTLE_GAIN, "fast"),
        ("good No problems found", LATE | {"estimated_return": from_then_on(-20.2, -19.7)}, "fast"),
        ("note No progress", CLASSIC, "classic"),
        ("good No problems found", CLASSIC | {"entropy": from_then_on(0.69, 0.68)}, "classic"),
        ("note No progress", CLASSIC | {"entropy": from_then_on(0.69, 0.685)}, "classic"),
        ("good No problems found", CLASSIC | {"steps_per_point": from_then_on(50, 52)}, "classic"),
        ("note No progress", CLASSIC | {"steps_per_point": from_then_on(50, 51)}, "classic"),
        ("note No progress", CLASSIC | {"steps_per_point": from_then_on(50, 52)}, "fast"),
        # One value of many says little: an average of ten does.
        ("good No problems found", {"kl": [0.03] * (SIZE - 1) + [0.5]}, "fast"),
        ("warning Steps too large", {"kl": [0.03] * (SIZE - 10) + [0.6] + [0.03] * 9}, "fast"),
        ("good No problems found", {"kl": [0.03] * (SIZE - 11) + [6.0] + [0.03] * 10}, "fast"),
        ("good No problems found", LATE, "fast"),  # it improves
        ("good No problems found", LATE | {"estimated_return": [18.0] * SIZE}, "fast"),
        (
            "good No problems found",
            {name: [None] * SIZE for name in SOUND if name != "update"},
            "fast",
        ),
        ("note Too early to tell", {name: SOUND[name][:4] for name in SOUND}, "fast"),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(tmp_path, found, changes, preset):
    run, columns = RunDirectory.create(tmp_path / "run", toy_config(preset)), SOUND | changes
    rows = zip(*columns.values(), strict=True)
    run.metrics.append(*(dict(zip(columns, row, strict=True)) for row in rows))
    each = assess(Record.read(run.path))
    assert ", ".join(f"{it.level} {it.title}" for it in each) == found
    assert all(it.text.endswith(".") or it.level == health.GOOD for it in each)
    assert len(each) == 1 or all(it.level != health.GOOD for it in each), "it contradicts itself"


def test_no_progress_is_said_of_a_gain_of_less_than_half_a_point(tmp_path):
    columns = SOUND | CLASSIC
    run = RunDirectory.create(tmp_path / "run", toy_config("classic"))
    rows = zip(*columns.values(), strict=True)
    run.metrics.append(*(dict(zip(columns, row, strict=True)) for row in rows))
    (finding,) = assess(Record.read(run.path))
    assert finding.text.startswith(
        "The return has improved by less than half a point in 1,000,000 steps: its best was −20.2 "
        "before and −20.0 since. "
    )
    assert "not improved" not in finding.text


@pytest.mark.parametrize(
    ("name", "quiet", "loud"),
    [
        ("kl", 0.068, 0.1),  # the largest of nine trainings; more, and short of twice the limit
        ("up_share", 0.96, 0.98),
        ("up_share", 0.04, 0.02),
        ("entropy", 0.06 * math.log(3), 0.04 * math.log(3)),
    ],
)
def test_a_limit_is_where_it_is_documented(tmp_path, name, quiet, loud):
    warnings = []
    for value in (quiet, loud):
        columns = SOUND | ended_with(name, value)
        run = RunDirectory.create(tmp_path / str(value), toy_config("fast"))
        rows = zip(*columns.values(), strict=True)
        run.metrics.append(*(dict(zip(columns, row, strict=True)) for row in rows))
        found = assess(Record.read(run.path))
        warnings.append(sum(it.level == health.WARNING for it in found))
    assert warnings == [0, 1]
