"""Records read on: a run that grows is not read anew, and one that was changed is."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from toys import toy_evaluation
from waiting import join

from pixelpong.run import lines, record
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record
from pixelpong.run.table import Table


@pytest.fixture
def run(make_run) -> RunDirectory:
    return make_run()


@pytest.fixture
def count(monkeypatch):
    """The bytes that were read of files of lines since the last call."""
    read, real = [0], lines.open_to_read

    class Counted(lines.FileIO):
        def readinto(self, buffer):
            number = super().readinto(buffer)
            read[0] += number
            return number

        def read(self, size=-1):
            content = super().read(size)
            read[0] += len(content)
            return content

    def opened(path: Path):
        with real(path) as file:
            return Counted(os.dup(file.fileno()), "rb")

    def since() -> int:
        number, read[0] = read[0], 0
        return number

    monkeypatch.setattr(lines, "open_to_read", opened)
    return since


def line(update: int, **more: object) -> dict:
    return {"update": update, "steps": 10 * update, "timing": {"wall_seconds": 0.25}} | more


def updates(run: RunDirectory) -> list[int]:
    return [row["update"] for row in Record.read(run.path).rows]


def test_after_a_new_line_only_that_line_and_the_one_before_are_read(run, count):
    run.metrics.append(*map(line, range(1, 20_001)))
    run.evaluations.append(*(toy_evaluation(update, 3.0) for update in range(1, 200)))
    assert len(Record.read(run.path).rows) == 20_000
    assert count() > 1_000_000
    for update in range(20_001, 20_011):
        run.metrics.append(line(update))
        assert Record.read(run.path).update == update
        assert count() < 500
        Record.read(run.path)
        assert count() == 0
    run.evaluations.append(toy_evaluation(20_010, 5.0))
    assert Record.read(run.path).evaluation.mean_return == 5.0
    assert count() < 5_000


def test_a_record_shows_one_moment_though_the_run_grows(run):
    run.metrics.append(line(1), line(2, loss=1.5))
    before = Record.read(run.path)
    run.metrics.append(*map(line, range(3, 300)))
    after = Record.read(run.path)
    assert (len(before.rows), before.update, len(after.rows)) == (2, 2, 299)
    assert before.columns()["steps"].tolist() == [10, 20]
    assert after.columns()["steps"].dtype == np.int64
    assert np.isnan(after.columns()["loss"]).sum() == 298
    assert after.rows[-1] == {"update": 299, "steps": 2990, "loss": None, "wall_seconds": 0.25}
    assert [row["update"] for row in after.rows[::-1][::100]] == [299, 199, 99]


def test_half_a_line_waits_for_its_rest(run):
    run.metrics.append(line(1))
    whole = json.dumps(line(2)).encode() + b"\n"
    with run.metrics.path.open("ab", buffering=0) as file:
        for piece in (whole[:7], whole[7:-1]):
            file.write(piece)
            assert updates(run) == [1]
        file.write(whole[-1:])
        assert updates(run) == [1, 2]


def cut_back(run: RunDirectory) -> None:
    run.metrics.cut_back(1)


def cut_back_and_grow(run: RunDirectory) -> None:
    run.metrics.cut_back(1)
    run.metrics.append(*(line(update, more=0.5) for update in (2, 3, 4, 5)))


def replaced(run: RunDirectory) -> None:
    new = run.path / "new"
    new.write_bytes(b"".join(json.dumps(line(it)).encode() + b"\n" for it in range(4, 40)))
    new.replace(run.metrics.path)


def changed_in_place(run: RunDirectory) -> None:
    content = run.metrics.path.read_bytes()
    run.metrics.path.write_bytes(content.replace(b'"update": 2', b'"update": x'))
    os.utime(run.metrics.path, (1, 1))


CHANGES = {
    cut_back: [1],
    cut_back_and_grow: [1, 2, 3, 4, 5],
    replaced: [*range(4, 40)],
    changed_in_place: [1, 3],
    lambda run: run.metrics.path.unlink(): [],
    lambda run: os.truncate(run.metrics.path, 0): [],
}


@pytest.mark.parametrize(("change", "left"), CHANGES.items(), ids=range(len(CHANGES)))
def test_a_file_that_has_not_only_grown_is_read_anew(run, change, left):
    run.metrics.append(*map(line, (1, 2, 3)))
    assert updates(run) == [1, 2, 3]
    change(run)
    assert updates(run) == left
    with run.metrics.path.open("ab") as file:
        file.write(json.dumps(line(99)).encode() + b"\n")
    assert updates(run) == [*left, 99]


def test_a_line_that_is_too_long_is_left_out_and_takes_no_memory(run, monkeypatch):
    monkeypatch.setattr(lines, "LINE_LIMIT", 1000)
    for update in (1, 2):
        run.metrics.append(line(update), line(50, name="x" * 3500), line(50, name="x" * 930))
    with run.metrics.path.open("ab") as file:
        file.write(b"x" * 1000 + b'{"update": 50}\n')  # its end looks like a line
    assert updates(run) == [1, 2]
    assert run.metrics.last(lines.Line).update == 2
    assert run.metrics.cut_back(1) == 1


def test_readers_at_once_read_each_line_once(run):
    run.metrics.append(*map(line, range(1, 3000)))
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(Record.read(run.path).rows)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    join(*threads)
    assert found == [2999] * 8


def test_what_was_not_read_for_long_is_forgotten(make_run, monkeypatch):
    monkeypatch.setattr(record, "MAX_RUNS", 2)
    monkeypatch.setattr(record, "MAX_ROWS", 5)
    cache = record.RecordCache()
    monkeypatch.setattr(record, "_cache", cache)
    runs = [make_run(f"run {number}") for number in range(4)]
    for run in runs:
        run.metrics.append(*map(line, (1, 2)))
    first = Record.read(runs[0].path)
    assert Record.read(runs[0].path) is first
    for run in runs[1:]:
        Record.read(run.path)
    assert len(cache) == 2
    assert Record.read(runs[0].path) is not first
    runs[0].metrics.append(*map(line, range(3, 9)))
    for _ in range(2):
        assert Record.read(runs[0].path).update == 8
    assert len(cache) == 1, "many rows of one run are enough"


def test_a_table_is_what_its_rows_are():
    table = Table()
    empty = table.rows()
    assert (len(empty), empty.to_lists(), list(empty)) == (0, {}, [])
    rows = [{"a": 1, "b": 2}, {"a": 2, "b": 0.5, "c": 7}, {"a": 10**12, "c": None}]
    table.add(rows[:1])
    table.add(rows[1:])
    found = table.rows()
    assert found.to_lists() == {"a": [1, 2, 10**12], "b": [2, 0.5, None], "c": [None, 7, None]}
    assert list(found) == [{"a": 1, "b": 2, "c": None}, rows[1], {**rows[2], "b": None}]
    kinds = {name: found.column(name).dtype.kind for name in found.names()}
    assert kinds == {"a": "i", "b": "f", "c": "f"}
    assert found[:1].column("b").dtype == np.int64
    assert found[::-1][::2].column("a").tolist() == [10**12, 1]
