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
GONE = 1.2 * health.ENTROPY_GONE
"""A share of the largest entropy that is just enough."""

SOUND = {
    "update": [*range(1, SIZE + 1)],
    "steps": [4096.0 * i for i in range(1, SIZE + 1)],
    "estimated_return": [-20 + 20 * i / SIZE for i in range(SIZE)],
    "entropy": [1.0 - 0.5 * i / SIZE for i in range(SIZE)],
    "up_share": [0.33 + 0.01 * math.sin(i) for i in range(SIZE)],
    "kl": [0.03] * SIZE,
}


@pytest.fixture
def findings(tmp_path):
    """Assess a run with these columns of metrics."""

    def go(columns, preset):
        run = RunDirectory.create(tmp_path / "run", toy_config(preset))
        rows = zip(*columns.values(), strict=True)
        run.metrics.append(*(dict(zip(columns, row, strict=True)) for row in rows))
        return assess(Record.read(run.path))

    return go


def ended_with(name, value):
    return {name: SOUND[name][:-10] + [value] * 10}


LATE = {"steps": [1e5 * i for i in range(SIZE)]}


@pytest.mark.parametrize(
    ("found", "changes"),
    [
        ("good All is well", {}),
        ("warning Entropy gone", ended_with("entropy", 0.02)),
        ("warning Entropy gone", {"entropy": [GONE * math.log(2)] * SIZE}),
        ("good All is well", {"entropy": [GONE * math.log(3)] * SIZE}),
        ("good All is well", {"entropy": [GONE * math.log(2)] * SIZE, "preset": "classic"}),
        ("good All is well", {"entropy": [0.02] * SIZE, "estimated_return": [19.0] * SIZE}),
        ("warning One action only", ended_with("up_share", 0.99)),
        ("warning Steps too large", ended_with("kl", 0.2)),
        ("good All is well, note No progress", LATE | {"estimated_return": [-19.0] * SIZE}),
        ("good All is well", LATE),  # it improves
        ("good All is well", LATE | {"estimated_return": [18.0] * SIZE}),
        ("good All is well", {name: [None] * SIZE for name in SOUND if name != "update"}),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(found, changes, findings):
    """An entropy is compared with that of the actions there are: the classic mode has two."""
    columns = SOUND | changes
    each = findings(columns, columns.pop("preset", "fast"))
    assert ", ".join(f"{it.level} {it.title}" for it in each) == found
    assert all(it.text.endswith(".") and (it.advice or it.level == "good") for it in each)
    if not changes:
        assert "−0.3" in each[0].text


def test_too_early_it_says_so(findings):
    (only,) = findings({name: column[:4] for name, column in SOUND.items()}, "fast")
    assert only.title == "Too early to tell"
