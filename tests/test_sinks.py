"""Sinks: what other programs are told of a run, each line once, live or afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import types
from collections import defaultdict

import numpy as np
import pytest
from conftest import wait_until
from test_train import with_updates

from pixelpong.cli import main
from pixelpong.errors import ConfigError, RunError
from pixelpong.report import sinks
from pixelpong.report.sinks import describe_track, follow, make_sink
from pixelpong.report.sinks.source import Source
from pixelpong.report.sinks.tensorboard import read_records
from pixelpong.run import Run
from pixelpong.train import train


def never() -> bool:
    return False


def track(run, to="tensorboard", is_live=False, should_stop=never, **kwargs):
    return follow(run, make_sink(to, run, **kwargs), is_live=is_live, should_stop=should_stop)


def parse_records(content: bytes) -> list[bytes]:
    """The records of an event file, by the book; fails on anything that is not whole."""
    from tensorboardX.crc32c import crc32c

    def mask(data: bytes) -> int:
        crc = crc32c(data) & 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    records, place = [], 0
    while place < len(content):
        head = content[place : place + 8]
        size = int.from_bytes(head, "little")
        assert int.from_bytes(content[place + 8 : place + 12], "little") == mask(head)
        record = content[place + 12 : place + 12 + size]
        end = content[place + 12 + size : place + 16 + size]
        assert len(record) == size
        assert int.from_bytes(end, "little") == mask(record)
        records.append(record)
        place += 16 + size
    return records


def read_board(folder) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would draw: tag → (step, value), as its event accumulator keeps them.

    Of a file of version 2, a session that starts at a step drops that step and those behind it.
    """
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    drawn = defaultdict(list)
    for path in sorted(folder.glob("*tfevents*")):
        events = [Event.FromString(record) for record in parse_records(path.read_bytes())]
        assert events[0].file_version == "brain.Event:2"
        for event in events[1:]:
            if event.session_log.status == SessionLog.START:
                for tag in drawn:
                    drawn[tag] = [point for point in drawn[tag] if point[0] < event.step]
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    drawn[value.tag].append((event.step, value.simple_value))
    return {tag: points for tag, points in drawn.items() if points}


def wanted_board(run) -> dict[str, list[tuple[int, float]]]:
    """The same, from the run's files and the meaning of the names."""
    drawn = defaultdict(list)
    for line in run.metrics.read():
        step, timing = line.pop("update"), line.pop("timing")
        for group, values in (("training", line), ("timing", timing)):
            for name, value in values.items():
                if value is not None:
                    drawn[f"{group}/{name}"].append((step, float(np.float32(value))))
    for line in run.evaluations.read():
        low, high = line.pop("ci95")
        for name, value in (line | {"ci95_low": low, "ci95_high": high}).items():
            if name not in ("update", "returns"):
                drawn[f"evaluation/{name}"].append((line["update"], float(np.float32(value))))
    return drawn


def steps_of(folder) -> list[int]:
    """The updates in all files, of each as far as it is whole."""
    from tensorboardX.proto.event_pb2 import Event

    paths = sorted(folder.glob("*tfevents*"))
    events = [Event.FromString(record) for path in paths for record in read_records(path)]
    tags = [(event.step, value.tag) for event in events for value in event.summary.value]
    return [step for step, tag in tags if tag == "training/entropy"]


class Recorder:
    """A run of wandb, as far as its documentation promises: a step that goes down is ignored."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, float]] = {}
        self.calls: list[int] = []

    def log(self, data, step=None):
        self.calls.append(step)
        if self.rows and step < max(self.rows):
            return
        self.rows.setdefault(step, {}).update(data)


def rows_of(run) -> dict[int, dict[str, float]]:
    rows = defaultdict(dict)
    for line in run.metrics.read():
        timing = line.pop("timing")
        both = (("training", line), ("timing", timing))
        rows[line["update"]] = {
            f"{group}/{name}": value
            for group, values in both
            for name, value in values.items()
            if value is not None and name != "update"
        }
    for line in run.evaluations.read():
        (low, high), update = line.pop("ci95"), line.pop("update")
        line = line | {"ci95_low": low, "ci95_high": high}
        rows[update] |= {f"evaluation/{k}": v for k, v in line.items() if k != "returns"}
    return rows


@pytest.fixture
def trained(make_run):
    run = make_run(updates=5, evaluate_every=2, evaluate_episodes=2)
    train(run)
    return run


def test_the_event_file_holds_every_number_of_the_run(trained):
    report = track(trained)
    board = read_board(trained.path / "tensorboard")
    assert board == wanted_board(trained)
    assert [step for step, _ in board["training/entropy"]] == [1, 2, 3, 4, 5]
    assert [step for step, _ in board["evaluation/mean_return"]] == [2, 4]
    assert "timing/steps_per_second" in board
    assert (report["lines"], report["update"], report["is_stopped"]) == (7, 5, False)


def test_events_carry_the_configuration_and_the_times_of_the_training(trained):
    from tensorboardX.proto.event_pb2 import Event

    track(trained)
    (path,) = (trained.path / "tensorboard").glob("*tfevents*")
    events = [Event.FromString(record) for record in parse_records(path.read_bytes())]
    (text,) = [e for e in events if any("configuration" in v.tag for v in e.summary.value)]
    assert b"environment = Catch-v0" in text.summary.value[0].tensor.string_val[0]
    lines = list(trained.metrics.read())
    seconds = [line["timing"]["wall_seconds"] for line in lines]
    times = [e.wall_time for e in events if any("entropy" in v.tag for v in e.summary.value)]
    assert times[-1] - times[0] == pytest.approx(seconds[-1] - seconds[0], abs=0.01)
    assert times[-1] == pytest.approx(trained.metrics.path.stat().st_mtime, abs=0.01)


def test_nothing_is_written_twice(trained):
    for lines, known in ((7, 0), (0, 7), (0, 7)):
        report = track(trained)
        assert (report["lines"], report["lines_known"]) == (lines, known)
    assert read_board(trained.path / "tensorboard") == wanted_board(trained)
    assert len(list((trained.path / "tensorboard").glob("*tfevents*"))) == 1


def test_a_resumed_run_is_gone_on_with(trained):
    track(trained)
    train(with_updates(trained, 9))
    report = track(Run.open(trained.path))
    assert (report["lines"], report["lines_known"], report["update"]) == (6, 7, 9)
    assert read_board(trained.path / "tensorboard") == wanted_board(trained)
    drawn = read_board(trained.path / "tensorboard")["training/entropy"]
    assert [step for step, _ in drawn] == list(range(1, 10))


def test_tensorboard_drops_what_a_resume_has_cut_back(make_run):
    """The lines of updates that were played again differ, if only in how long they took."""
    run = make_run(updates=9, save_every=4)
    train(run)
    track(run)
    for update in run.checkpoints.updates():
        if update > 4:
            shutil.rmtree(run.checkpoints.path(update))
    before = read_board(run.path / "tensorboard")
    train(with_updates(run, 11))
    report = track(run)
    after = read_board(run.path / "tensorboard")
    assert after == wanted_board(run)
    assert after["timing/wall_seconds"][:4] == before["timing/wall_seconds"][:4]
    assert after["timing/wall_seconds"][4:9] != before["timing/wall_seconds"][4:9]
    assert (report["lines_known"], report["lines"]) == (4, 7)


def test_wandb_is_told_every_number_once(trained):
    logger = Recorder()
    report = track(trained, "wandb", logger=logger)
    assert logger.rows == rows_of(trained)
    assert logger.calls == [1, 2, 2, 3, 4, 4, 5]
    assert report["lines"] == 7
    track(trained, "wandb", logger=logger)
    assert len(logger.calls) == 7


def test_wandb_goes_on_after_a_resume_and_never_goes_back(make_run):
    run, logger = make_run(updates=6, save_every=4), Recorder()
    train(run)
    track(run, "wandb", logger=logger)
    shutil.rmtree(run.checkpoints.path(6))
    train(with_updates(run, 8))
    track(run, "wandb", logger=logger)
    assert logger.calls == [1, 2, 3, 4, 5, 6, 7, 8]
    assert set(logger.rows) == set(range(1, 9))


@pytest.mark.parametrize("to", sinks.SINKS)
def test_a_live_run_is_followed_to_its_end(make_run, monkeypatch, to):
    """The sink runs beside a training that waits, now and then, until its line has arrived."""
    monkeypatch.setattr(sinks, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(sinks, "_ASK_SECONDS", 0.01)
    run, logger, reports, seen = make_run(updates=8, evaluate_every=4), Recorder(), [], []
    sink = make_sink(to, run, logger=logger if to == "wandb" else None)
    write = sink.write
    monkeypatch.setattr(sink, "write", lambda e: (write(e), seen.extend(x.key for x in e)))
    thread = threading.Thread(
        target=lambda: reports.append(follow(run, sink, is_live=True, should_stop=never))
    )
    append = run.metrics.append

    def append_and_wait(*lines):
        append(*lines)
        (line,) = lines
        if line["update"] == 1:
            thread.start()
        if line["update"] in (1, 3, 5):
            assert wait_until(lambda: (line["update"], 0) in seen), "not live"

    monkeypatch.setattr(run.metrics, "append", append_and_wait, raising=False)
    train(run)
    thread.join(10)
    assert not thread.is_alive()
    assert [update for update, _ in seen] == [1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    assert reports[0]["lines"] == 10
    if to == "wandb":
        assert logger.rows == rows_of(run)
    else:
        assert read_board(run.path / to) == wanted_board(run)


@pytest.mark.parametrize("to", sinks.SINKS)
def test_a_run_cut_back_while_it_is_followed_confuses_nothing(trained, to):
    """A sink that has all lines sees the file shrink and grow again, past where it was."""
    logger = Recorder()
    sink = make_sink(to, trained, logger=logger if to == "wandb" else None)
    source = Source(trained)
    entries, is_whole = source.read(is_last=False)
    assert is_whole
    sink.write(sink.align(entries))
    lines = list(trained.metrics.read())
    trained.metrics.cut_back(2)
    trained.evaluations.cut_back(2)
    for line in lines[2:]:
        timing = line["timing"] | {"wall_seconds": line["timing"]["wall_seconds"] + 1.5}
        trained.metrics.append(line | {"timing": timing})
    trained.metrics.append(lines[-1] | {"update": 6})
    entries, is_whole = source.read(is_last=False)
    assert is_whole
    sink.write(sink.align(entries))
    assert source.read(is_last=False) == ([], False)
    sink.close()
    if to == "tensorboard":
        assert read_board(trained.path / to) == wanted_board(trained)
    else:
        assert logger.calls == [1, 2, 2, 3, 4, 4, 5, 6]


def test_half_a_line_waits_for_its_other_half(trained):
    source = Source(trained)
    source.read(is_last=False)
    text = json.dumps(next(iter(trained.metrics.read())) | {"update": 6}).encode()
    with trained.metrics.path.open("ab", buffering=0) as file:
        file.write(text[:50])
        assert source.read(is_last=False) == ([], False)
        file.write(text[50:] + b"\n")
    (entry,), _ = source.read(is_last=False)
    assert entry.key == (6, 0)


def test_an_evaluation_waits_for_the_metrics_of_its_update(trained):
    source = Source(trained)
    source.read(is_last=False)
    line = next(iter(trained.evaluations.read()))
    trained.evaluations.append(line | {"update": 6}, line | {"update": 6})
    assert source.read(is_last=False)[0] == []
    trained.metrics.append(next(iter(trained.metrics.read())) | {"update": 6})
    assert [e.key for e in source.read(is_last=False)[0]] == [(6, 0), (6, 1), (6, 2)]
    trained.evaluations.append(line | {"update": 7})
    assert [e.key for e in source.read(is_last=True)[0]] == [(7, 1)]


def test_lines_that_are_damaged_are_left_out(trained):
    whole = trained.metrics.path.read_bytes().splitlines(keepends=True)
    odd = [b"{]\n", b"[1]\n", b'{"update": "x"}\n', b"[" * 5000 + b"\n", b'{"update": true}\n']
    huge = b'{"update": 3, "x": "' + b"y" * (3 << 20) + b'"}\n'
    half = whole[4][:20]
    trained.metrics.path.write_bytes(b"".join([*whole[:2], *odd, huge, *whole[3:], half]))
    entries, _ = Source(trained).read(is_last=False)
    assert [e.update for e in entries if e.key[1] == 0] == [1, 2, 4, 5]


def test_a_damaged_event_file_is_replaced_from_there_on(trained):
    track(trained)
    (path,) = (trained.path / "tensorboard").glob("*tfevents*")
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(bytes(content))
    assert len(list(read_records(path))) == 8, "version, configuration and six of seven lines"
    report = track(trained)
    assert (report["lines_known"], report["lines"]) == (6, 1)
    assert steps_of(trained.path / "tensorboard") == [1, 2, 3, 4, 5]


def test_a_full_disk_is_one_line_and_no_hang(trained, small_disk):
    disk = small_disk("64k")
    (disk / "ballast").write_bytes(bytes(48 << 10))
    with pytest.raises(RunError, match=r"^expected to write .* No space left on device; make") as e:
        for _ in range(40):
            line = list(trained.metrics.read())[-1]
            trained.metrics.append(*(line | {"update": line["update"] + k} for k in range(1, 9)))
            track(trained, out=disk / "board")
    assert "\n" not in str(e.value)
    (disk / "ballast").unlink()
    track(trained, out=disk / "board")
    assert steps_of(disk / "board") == [line["update"] for line in trained.metrics.read()]


def test_a_stop_between_two_chunks_leaves_the_rest_for_later(trained, monkeypatch):
    monkeypatch.setattr(sinks, "_CHUNK", 2)
    asked = iter([False, False, True, True, True, True])
    report = track(trained, should_stop=lambda: next(asked))
    assert (report["lines"], report["is_stopped"]) == (4, True)
    assert "stopped" in describe_track(report)
    assert (track(trained)["lines"], read_board(trained.path / "tensorboard")) == (
        3,
        wanted_board(trained),
    )


def test_a_logger_that_fails_is_one_line_and_loses_nothing(trained):
    logger = Recorder()
    log, calls = logger.log, []

    def fail_at_the_third(data, step):
        calls.append(step)
        if len(calls) == 3:
            raise ConnectionError("no\nroute")
        log(data, step)

    logger.log = fail_at_the_third
    with pytest.raises(RunError, match="expected wandb to take a step, got no route; see"):
        track(trained, "wandb", logger=logger)
    track(trained, "wandb", logger=logger)
    assert logger.calls == [1, 2, 2, 3, 4, 4, 5]
    assert logger.rows == rows_of(trained)


def test_a_folder_of_another_run_is_refused(trained, make_run, tmp_path):
    other = make_run("other")
    train(other)
    track(trained, out=tmp_path / "board")
    with pytest.raises(ConfigError, match=r"expected a folder for this run alone, got .*run"):
        track(other, out=tmp_path / "board")
    assert track(trained, out=tmp_path / "board")["lines_known"] == 7


def test_a_run_that_was_moved_keeps_its_own_folder(trained, tmp_path):
    track(trained)
    moved = Run.open(trained.path.rename(tmp_path / "moved"))
    assert track(moved)["lines_known"] == 7


def test_a_run_that_is_deleted_meanwhile_is_one_line(trained):
    source = Source(trained)
    source.read(is_last=False)
    trained.metrics.path.unlink()
    with pytest.raises(RunError, match="expected a run in .*, got no metrics.jsonl"):
        source.read(is_last=False)


@pytest.mark.parametrize("content", ["", "[]", "[" * 10000, '{"run": 3}'])
def test_a_folder_with_a_strange_state_is_one_line(trained, tmp_path, content):
    folder = tmp_path / "board"
    folder.mkdir()
    (folder / "pixelpong.json").write_text(content)
    with pytest.raises((RunError, ConfigError), match="choose another --out"):
        track(trained, out=folder)


def test_an_unknown_sink_is_one_line(trained, capsys):
    assert main(["track", str(trained.path), "--to", "nobody"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ConfigError, match="use one of tensorboard, wandb"):
        make_sink("nobody", trained)


@pytest.mark.parametrize(
    ("to", "advice"),
    [("tensorboard", "pip install 'pixelpong[track]'"), ("wandb", "pip install wandb")],
)
def test_a_library_that_is_missing_is_one_line(trained, monkeypatch, to, advice):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        make_sink(to, trained)
    assert str(caught.value).endswith(advice)


def test_the_module_wandb_is_used_offline_unless_the_user_says_otherwise(
    trained, monkeypatch, tmp_path
):
    logger, began = Recorder(), []
    logger.finish = lambda: began.append("finish")
    module = types.ModuleType("wandb")
    module.Settings = dict
    module.init = lambda **kwargs: (began.append((os.environ["WANDB_MODE"], kwargs)), logger)[1]
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: module)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "x")
    for mode in (None, "online"):
        monkeypatch.setenv("WANDB_MODE", "x")
        monkeypatch.delenv("WANDB_MODE")
        if mode:
            monkeypatch.setenv("WANDB_MODE", mode)
        track(trained, "wandb")
    (first, given), end, (second, again), end = began
    assert (first, second, end) == ("offline", "online", "finish")
    assert given["config"]["environment"] == "Catch-v0"
    assert given["id"] == again["id"], "a second call goes on with the same run"
    assert (given["resume"], again["resume"]) == (None, "allow")
    assert logger.rows == rows_of(trained)


def test_the_command_reports(trained, capsys):
    assert main(["track", str(trained.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == 7
    assert main(["track", str(trained.path)]) == 0
    assert "0 lines written, 7 were there" in capsys.readouterr().out
