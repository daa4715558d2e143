"""The records of benchmarks/ have their form, and the scripts that write them run."""

from __future__ import annotations

import doctest
import importlib
import json
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from pixelpong.faces.display import steps_left

FOLDER = Path(__file__).parents[2] / "benchmarks"


def read(name):
    return json.loads((FOLDER / name).read_text("utf-8"))


def test_two_types_of_processor_won_after_the_same_steps_with_the_same_bits():
    fields = "seed", "steps", "params_sha256"
    first, second = (
        [[seed[name] for name in fields] for seed in read(name)["seeds"]]
        for name in ("solve.json", "solve_xeon.json")
    )
    assert first == second
    assert len(first) == 20
    carried = statistics.median(steps for _, steps, _ in first)
    assert steps_left(None) == carried, "what the package carries"


def test_records_are_written_with_a_line_for_each_row(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    records = importlib.import_module("records")
    assert doctest.testmod(records) == (0, 1)
    paths = list(FOLDER.glob("*.json"))
    assert len(paths) >= 5
    for path in paths:
        assert path.read_text("utf-8") == records.to_text(read(path.name)), path


@pytest.mark.soak
@pytest.mark.parametrize(
    ("script", "words", "rows"),
    [
        ("batches.py", "--json --engine serial --sizes 1,10", ["batches"]),
        (
            "ladder.py",
            "--json --steps 3000 --seeds 0 --only '+ PPO' --out {tmp}/ladder.json",
            ["rungs"],
        ),
        ("throughput.py", "--seconds 0.1 --rounds 1 --workers 1", ["steps_per_second", "ratios"]),
    ],
)
def test_a_script_measures_and_reports(script, words, rows, tmp_path):
    command = [sys.executable, FOLDER / script, *shlex.split(words.format(tmp=tmp_path))]
    report = json.loads(subprocess.check_output(command))
    assert all(report[row] for row in rows)
