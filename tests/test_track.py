"""`pixelpong track`: what TensorBoard and wandb are told of a run, each line once."""

from __future__ import annotations

import os
import struct
import sys
import threading
import types
from collections import defaultdict

import numpy as np
import pytest
from conftest import wait_until
from toys import with_updates

from pixelpong.errors import ConfigError, RunError
from pixelpong.faces.track import describe_track, track
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory


@pytest.fixture
def trained(make_run):
    run = make_run(updates=4, evaluate_every=2)
    train(run)
    return run


def read_board(folder) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would draw: tag → (step, value), as its event accumulator keeps them.

    A session that starts at a step drops that step and all behind it.
    """
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    drawn = defaultdict(list)
    for path in sorted(folder.glob("*tfevents*"), key=lambda path: path.stat().st_mtime_ns):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (size,) = struct.unpack_from("<Q", content, place)
            event = Event.FromString(content[place + 12 : place + 12 + size])
            place += 16 + size
            if event.session_log.status == SessionLog.START:
                for tag in drawn:
                    drawn[tag] = [point for point in drawn[tag] if point[0] < event.step]
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    drawn[value.tag].append((event.step, value.simple_value))
    return {tag: points for tag, points in drawn.items() if points}


def rows_of(run) -> dict[int, dict[str, float]]:
    """The same numbers, from the run's files and the meaning of the names."""
    rows = defaultdict(dict)
    for line in run.metrics.read():
        both = (("timing", line.pop("timing")), ("training", line))
        rows[line["update"]] = {
            f"{group}/{name}": value
            for group, values in both
            for name, value in values.items()
            if value is not None and name != "update"
        }
    for line in run.evaluations.read():
        (low, high), update = line.pop("ci95"), line.pop("update")
        line = line | {"ci95_low": low, "ci95_high": high}
        figures = {k: v for k, v in line.items() if k not in ("returns", "timing", "is_won")}
        rows[update] |= {f"evaluation/{k}": v for k, v in figures.items()}
    return rows


def wanted_board(run) -> dict[str, list[tuple[int, float]]]:
    board = defaultdict(list)
    for step, row in rows_of(run).items():
        for name, value in row.items():
            board[name].append((step, float(np.float32(value))))
    return board


class Recorder(types.ModuleType):
    """A module wandb and its run, as far as they are documented: no step goes down."""

    Settings = dict

    def __init__(self) -> None:
        super().__init__("wandb")
        self.__spec__ = types.SimpleNamespace(name="wandb")
        self.rows: dict[int, dict[str, float]] = {}
        self.begun: list[dict] = []

    def init(self, **given):
        self.begun.append(given | {"WANDB_MODE": os.environ["WANDB_MODE"]})
        return self

    def log(self, data, step):
        assert not self.rows or step >= max(self.rows)
        self.rows.setdefault(step, {}).update(data)

    def finish(self) -> None:
        pass


@pytest.fixture
def wandb(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", Recorder())
    monkeypatch.setenv("WANDB_MODE", "x")  # so that it is as before in the end
    monkeypatch.delenv("WANDB_MODE")
    return sys.modules["wandb"]


def test_tensorboard_has_every_number_of_the_run_once(trained):
    report = track(trained)
    assert (report["lines"], report["update"]) == (6, 4)
    assert track(trained)["lines"] == 0
    assert read_board(trained.path / "tensorboard") == wanted_board(trained)
    assert "tensorboard --logdir" in describe_track(report)
    train(with_updates(trained, 6))
    assert track(trained)["lines"] == 3
    assert read_board(trained.path / "tensorboard") == wanted_board(trained)


def cut_back(run) -> RunDirectory:
    """Train it again after its newest checkpoint is damaged, to an update beyond."""
    newest = run.checkpoints.updates()[-1]
    (run.checkpoints.path(newest) / "params.safetensors").unlink()
    train(with_updates(RunDirectory.open(run.path), 6))
    return run


def test_tensorboard_forgets_what_a_resume_has_cut_back(trained):
    track(trained)
    track(cut_back(trained))
    assert read_board(trained.path / "tensorboard") == wanted_board(trained)


def test_wandb_keeps_what_it_was_told_before_a_resume_cut_the_run_back(trained, wandb):
    track(trained, "wandb")
    told = rows_of(trained)
    track(cut_back(trained), "wandb")
    assert wandb.rows == rows_of(trained) | told


def test_a_live_run_is_followed_to_its_end(make_run):
    run = make_run(updates=4)
    with run.lock():
        thread = threading.Thread(target=track, args=(run,), kwargs={"is_live": True})
        thread.start()
        assert wait_until(lambda: (run.path / "tensorboard").exists(), 20)
    train(run)
    thread.join(60)
    track(run)
    assert read_board(run.path / "tensorboard") == wanted_board(run)


def test_wandb_is_told_every_number_once(trained, wandb):
    assert track(trained, "wandb")["lines"] == 6
    assert wandb.rows == rows_of(trained)
    train(with_updates(trained, 6))
    track(trained, "wandb")
    assert wandb.rows == rows_of(trained)
    assert len({given["id"] for given in wandb.begun}) == 1


def test_wandb_is_offline_unless_the_user_says_otherwise(trained, wandb, monkeypatch):
    track(trained, "wandb")
    monkeypatch.setenv("WANDB_MODE", "online")
    track(trained, "wandb")
    assert [given["WANDB_MODE"] for given in wandb.begun] == ["offline", "online"]
    assert [given["resume"] for given in wandb.begun] == [None, "allow"]


def test_a_failure_of_wandb_is_one_line(trained, wandb):
    def fail(data, step):
        raise OSError("the server\nis gone")

    wandb.log = fail
    with pytest.raises(RunError, match="expected wandb to take it, got the server is gone"):
        track(trained, "wandb")


def test_a_full_disk_is_one_line_and_no_hang(trained, small_disk):
    disk = small_disk("2m")
    (disk / "ballast").write_bytes(bytes(1500 << 10))
    with pytest.raises(RunError, match=r"^expected to write .* No space left on device; make"):
        track(trained, out=disk / "board")
    (disk / "ballast").unlink()
    track(trained, out=disk / "board")
    assert read_board(disk / "board") == wanted_board(trained)


def test_a_folder_of_another_run_is_refused(trained, make_run, tmp_path):
    track(trained, out=tmp_path / "board")
    with pytest.raises(ConfigError, match="expected a folder for this run alone"):
        track(make_run("other"), out=tmp_path / "board")


@pytest.mark.parametrize("content", ["", "[]", "[" * 10000, '{"run": "", "count": -1}'])
@pytest.mark.slow
def test_a_folder_with_a_strange_state_is_one_line(trained, tmp_path, content):
    (tmp_path / "pixelpong.json").write_text(content)
    with pytest.raises((RunError, ConfigError), match="expected"):
        track(trained, out=tmp_path)


def test_wrong_wishes_are_one_line(trained, monkeypatch):
    with pytest.raises(ConfigError, match="expected a sink, got 'prometheus'"):
        track(trained, "prometheus")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[track\]'"):
        track(trained)


def test_the_command_reports(trained, call, report):
    assert report("track", trained.path)["lines"] == 6
    assert "0 lines written, up to update 4" in call("track", trained.path)[1]
