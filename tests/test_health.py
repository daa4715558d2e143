"""Health in plain words: each finding for what it is meant for, and for nothing else."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from toys import toy_config

from pixelpong.faces.page import health
from pixelpong.faces.page.health import assess
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record


def columns(size=60, **changes):
    sound = {
        "update": list(range(1, size + 1)),
        "steps": [4096.0 * i for i in range(1, size + 1)],
        "estimated_return": [-20 + 20 * i / size for i in range(size)],
        "entropy": [1.0 - 0.5 * i / size for i in range(size)],
        "up_share": [0.33 + 0.01 * math.sin(i) for i in range(size)],
        "loss": [0.05 + 0.005 * math.sin(i) for i in range(size)],
        "grad_norm": [1.0 + 0.1 * math.cos(i) for i in range(size)],
        "kl": [0.03] * size,
    }
    return {name: column[-size:] for name, column in (sound | changes).items()}


def findings(algorithm="ppo", **changes):
    return assess(record_of(columns(**changes), algorithm))


def record_of(figures, algorithm="ppo"):
    config = toy_config("fast" if algorithm == "ppo" else "classic")
    rows = [dict(zip(figures, row, strict=True)) for row in zip(*figures.values(), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.create(Path(folder) / "run", config)
        run.metrics.append(*rows)
        return Record.read(run.path)


def titles(**changes):
    return [each.title for each in findings(**changes)]


def ended_with(value, name, count=10):
    return columns()[name][:-count] + [value] * count


def test_a_sound_run_is_well():
    (only,) = findings()
    assert (only.level, only.title) == ("good", "All is well")
    assert "−0.3" in only.text


@pytest.mark.parametrize(
    ("title", "changes"),
    [
        ("Entropy gone", {"entropy": ended_with(0.02, "entropy")}),
        ("One action only", {"up_share": ended_with(0.99, "up_share")}),
        ("One action only", {"up_share": ended_with(0.01, "up_share")}),
        ("Steps too large", {"kl": ended_with(0.2, "kl")}),
    ],
)
def test_what_is_wrong_is_warned_of_with_advice(title, changes):
    (only,) = findings(**changes)
    assert (only.level, only.title) == ("warning", title)
    assert only.advice
    assert only.text.endswith(".")


def test_what_is_only_worth_a_word_is_a_note_beside_the_good_news():
    still = {"steps": [1e5 * i for i in range(60)], "estimated_return": [-19.0] * 60}
    first, second = findings(**still)
    assert first.title == "All is well"
    assert (second.level, second.title) == ("note", "No progress")


def test_what_is_no_reason_for_concern_is_not_warned_of():
    assert titles(entropy=[0.02] * 60, estimated_return=[19.0] * 60) == ["All is well"]
    assert titles(steps=[1e5 * i for i in range(60)]) == ["All is well"]  # it improves
    late = {"steps": [1e5 * i for i in range(60)], "estimated_return": [18.0] * 60}
    assert titles(**late) == ["All is well"]
    assert titles(loss=[0.05] * 60) == ["All is well"]


def test_the_largest_entropy_is_that_of_the_actions_there_are():
    share = 1.2 * health.ENTROPY_GONE
    assert titles(entropy=[share * math.log(3)] * 60) == ["All is well"]
    assert titles(entropy=[share * math.log(2)] * 60) == ["Entropy gone"]
    assert titles(entropy=[share * math.log(2)] * 60, algorithm="reinforce") == ["All is well"]


def test_too_early_or_without_figures_it_says_so():
    for figures in ({}, {"update": [1, 2]}, columns(4)):
        (only,) = assess(record_of(figures))
        assert only.title == "Too early to tell"
    bare = {"update": list(range(20))}
    unknown = {name: [None] * 20 for name in columns()} | bare
    for figures in (bare, unknown):
        assert [each.title for each in assess(record_of(figures))] == ["All is well"]
