"""One contract for all engines, what threads promise, and the faults that processes bring."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import threading
from contextlib import closing
from unittest.mock import Mock

import pytest
from fakes import DeadlyWorker, EchoWorker, MeetingWorker, OnceWorker
from promises import promise
from toys import same_training, toy_config
from waiting import pause, wait_until

from pixelpong import loop
from pixelpong.config import Config
from pixelpong.engines import make_engine
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import Interrupted, WorkerError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

ENGINES = {
    "serial": Config(engine="serial"),
    "threads": Config(engine="threads", workers=3),
    "ray": Config(engine="ray", workers=2),
    "ray-tasks": Config(engine="ray", workers=2, ray_mode="tasks"),
}


ON_RAY = [pytest.param(name, marks=pytest.mark.ray) for name in ("ray", "ray-tasks")]


def make(request):
    """Makes engines of a kind; those of Ray share a cluster."""
    if "ray" in request.param:
        request.getfixturevalue("ray_cluster")
    return functools.partial(make_engine, ENGINES[request.param])


build = pytest.fixture(make, params=["serial", "threads", *ON_RAY])
share = pytest.fixture(make, params=["threads", *ON_RAY])  # workers play at the same time
start = pytest.fixture(make, params=ON_RAY)  # they are in other processes, which may die


# --- the contract -----------------------------------------------------------------------------


@promise("any engine")
def test_results_come_in_the_order_of_the_items(build):
    with closing(build(EchoWorker)) as engine:
        for params in ({"w": 1}, {"w": 2}):
            results = list(engine.run(range(50), params))
            assert results == [(number, params) for number in range(50)]
        assert list(engine.run([], None)) == []


@promise("a worker raises")
def test_a_worker_that_raises_brings_its_traceback_and_its_item_home(build):
    with closing(build(EchoWorker)) as engine:
        with pytest.raises(WorkerError, match=r"bad failed with ValueError: the item was bad") as e:
            list(engine.run(["good", "bad"], None))
        assert "in play" in e.value.details
        assert list(engine.run(["good"] * 5, 1)) == [("good", 1)] * 5, "as good as before"


# --- workers that play at the same time -------------------------------------------------------


def test_one_slow_item_holds_nobody_back(share, tmp_path):
    """The first item and the last one wait for each other; those between are played meanwhile."""
    items = [("0", "5"), ("1", ""), ("2", ""), ("3", ""), ("4", ""), ("5", "0")]
    with closing(share(MeetingWorker)) as engine:
        assert list(engine.run(items, str(tmp_path))) == [name for name, _ in items]


def test_a_worker_whose_making_raises_brings_its_reason_home(share):
    with closing(share(functools.partial(int, "no number"))) as engine:
        with pytest.raises(WorkerError, match="the worker failed with ValueError: .*no number"):
            list(engine.run(["item"], None))


def test_a_stop_is_noticed_while_workers_play(share, tmp_path):
    with closing(share(MeetingWorker, (tmp_path / "0").exists)) as engine:
        with pytest.raises(Interrupted):
            list(engine.run([("0", "stopped")], str(tmp_path)))
        (tmp_path / "stopped").touch()
        engine.close()  # and twice is harmless


def test_nothing_of_a_run_that_was_given_up_reaches_the_next(share):
    """Neither a late result nor a late error."""
    with closing(share(EchoWorker)) as engine:
        given_up = engine.run([*range(50), "bad", *range(50)], "old")
        with contextlib.suppress(WorkerError):  # at once, if both travel together
            next(given_up)
        given_up.close()
        assert list(engine.run(range(100), "new")) == [(number, "new") for number in range(100)]


# --- threads ----------------------------------------------------------------------------------


def workers_of_ours() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("worker_")]


def test_workers_are_made_once_and_one_after_the_other(tmp_path):
    """The first compiles; the others find what it has compiled."""
    making, together = [], []

    def make():
        making.append(1)
        together.append(len(making))
        pause(0.05)  # the others would come meanwhile
        making.pop()
        return MeetingWorker()

    items = [("0", "2"), ("1", "2"), ("2", "1")]  # each plays in a thread of its own
    with closing(ThreadEngine(make, 3)) as engine:
        for _ in range(2):
            assert list(engine.run(items, str(tmp_path))) == ["0", "1", "2"]
    assert together == [1, 1, 1]


def test_a_system_that_cannot_start_so_many_threads_is_one_line(monkeypatch):
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(WorkerError, match="Starting a thread failed with .*: can't start new"):
        list(ThreadEngine(EchoWorker, 3).run([0], None))


def test_no_thread_is_left_when_the_engine_closes(tmp_path):
    """Items under way end; those that wait are never begun."""
    engine = ThreadEngine(MeetingWorker, 2)
    items = [("0", ""), ("1", "go"), ("2", "go"), ("3", ""), ("4", "")]
    results = engine.run(items, str(tmp_path))
    assert next(results) == "0"
    assert wait_until((tmp_path / "2").exists)
    results.close()
    (tmp_path / "go").touch()
    engine.close()
    assert not workers_of_ours()
    assert not (tmp_path / "4").exists()


def test_an_engine_that_nobody_holds_ends_its_threads():
    engine = ThreadEngine(EchoWorker, 2)
    list(engine.run([0], None))
    del engine
    gc.collect()
    assert wait_until(lambda: not workers_of_ours())


# --- processes --------------------------------------------------------------------------------


# A worker is made when it first plays: one that dies then is lost with its item too.
DIES_EARLY = pytest.param(functools.partial(os._exit, 3), marks=pytest.mark.soak)


@pytest.mark.parametrize("make", [DeadlyWorker, DIES_EARLY])
def test_an_item_that_kills_every_worker_is_given_up(start, make):
    with closing(start(make)) as engine:
        with pytest.raises(WorkerError, match=r"item failed 3 times"):
            list(engine.run(["item"], None))


CLASSIC, FAST = toy_config("classic", batch_size=12), toy_config("fast", num_envs=12)


@promise("a worker is lost")
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "config", "ray_mode", "where"),
    [
        (signal.SIGKILL, CLASSIC, "actors", ["2-1", "3-0"]),
        (signal.SIGKILL, FAST, "tasks", ["2-1", "3-0"]),
        (signal.SIGSTOP, FAST, "actors", ["2-1"]),
    ],
)
def test_workers_that_die_or_hang_in_a_training_change_no_bit(
    number, config, ray_mode, where, ray_cluster, tmp_path, monkeypatch
):
    """Where: the update and the item's number."""
    undisturbed = RunDirectory.create(tmp_path / "undisturbed", config)
    train(undisturbed)
    seconds = 60.0 if number == signal.SIGKILL else 4.0
    on_ray = {"engine": "ray", "workers": 2, "ray_mode": ray_mode, "worker_timeout": seconds}
    run = RunDirectory.create(tmp_path / "run", config.updated(on_ray, "test"))
    monkeypatch.setattr(loop, "make_worker", functools.partial(OnceWorker, number, where, tmp_path))
    train(run)
    assert {path.name for path in tmp_path.glob("*-*")} == {*where}
    assert same_training(run, undisturbed) == []
