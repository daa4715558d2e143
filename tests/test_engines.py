"""One contract for all engines, what threads promise, and the faults that processes bring."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import mmap
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import patience, wait_until
from fakes import (
    DeadlyWorker,
    EchoWorker,
    HoleWorker,
    OnceWorker,
    RaisingWorker,
    ThreadCountWorker,
    UnmakeableWorker,
    UnstartableWorker,
)

from pixelpong.config import EngineConfig
from pixelpong.engines import count_cores, make_engine, never, threads
from pixelpong.engines.batch import MAX_ATTEMPTS
from pixelpong.engines.serial import SerialEngine
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import Interrupted, WorkerError

pytestmark = pytest.mark.alone  # deadlines of seconds, and a look at all shared memory

ENGINES = {
    "serial": EngineConfig(engine="serial"),
    "threads-1": EngineConfig(engine="threads", workers=1),
    "threads-3": EngineConfig(engine="threads", workers=3),
    "ray-1": EngineConfig(engine="ray", workers=1),
    "ray-2": EngineConfig(engine="ray", workers=2),
    "ray-tasks": EngineConfig(engine="ray", workers=2, ray_mode="tasks"),
}

FAULTY = {
    "ray": EngineConfig(engine="ray", workers=2),
    "ray-tasks": EngineConfig(engine="ray", workers=2, ray_mode="tasks"),
}
"""Those whose workers are in other processes, which may die; actors, all of a node together."""


CONCURRENT = {"threads": EngineConfig(engine="threads", workers=2), **FAULTY}


def parametrize(engines):
    """Engines by name; those of Ray are marked, and share a cluster where they can."""
    names = [
        pytest.param(name, marks=pytest.mark.ray) if name.startswith("ray") else name
        for name in engines
    ]
    return pytest.fixture(params=names)


def build_from(engines, request):
    if request.param.startswith("ray"):
        request.getfixturevalue("ray_cluster")

    def build(make_worker, should_stop=never, **changes):
        config = dataclasses.replace(engines[request.param], **changes)
        return make_engine(config, make_worker, should_stop)

    return build


@parametrize(ENGINES)
def build(request):
    """Make an engine of any kind."""
    return build_from(ENGINES, request)


@parametrize(FAULTY)
def start(request):
    """Make an engine with two workers that are other processes."""
    return build_from(FAULTY, request)


@parametrize(CONCURRENT)
def share(request):
    """Make an engine with two workers that play at the same time."""
    return build_from(CONCURRENT, request)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def use(engine) -> set[tuple[int, int]]:
    """Let an engine of `EchoWorker` play a little; the processes and threads that did."""
    return {place for _, _, place in engine.run([(i, 0.05) for i in range(4)], None)}


# --- the contract -----------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_items(build):
    """The first item takes longest, so that with several workers it arrives last."""
    items = [(0, 0.3), (1, 0.1), (2, 0.0), (3, 0.0), (4, 0.0)]
    with closing(build(EchoWorker)) as engine:
        assert [number for number, _, _ in engine.run(items, "params")] == [0, 1, 2, 3, 4]


def test_every_run_gets_its_own_params(build):
    with closing(build(EchoWorker)) as engine:
        for params in ({"w": 1}, {"w": 2}):
            results = list(engine.run([(i, 0.0) for i in range(4)], params))
            assert all(got == params for _, got, _ in results)


def test_no_items_give_no_results(build):
    with closing(build(EchoWorker)) as engine:
        assert list(engine.run([], None)) == []


def test_a_worker_that_raises_brings_its_traceback_and_its_item_home(build):
    with closing(build(RaisingWorker)) as engine:
        with pytest.raises(
            WorkerError, match=r"result for bad, got ValueError: the item was bad"
        ) as e:
            list(engine.run(["good", "bad"], None))
        assert "in play" in e.value.details


def test_a_stop_that_is_asked_for_ends_the_run(build):
    with closing(build(EchoWorker, should_stop=lambda: True)) as engine:
        with pytest.raises(Interrupted):
            list(engine.run([(0, 0.0)], None))


def test_closing_twice_is_harmless(build):
    engine = build(EchoWorker)
    list(engine.run([(0, 0.0)], None))
    engine.close()
    engine.close()


# --- workers that play at the same time -------------------------------------------------------


def test_two_workers_share_the_work(share):
    with closing(share(EchoWorker)) as engine:
        assert wait_until(lambda: len(use(engine)) == 2, 20.0)


def test_an_idle_worker_gets_the_next_item_at_once(share):
    """One slow item must not hold the others back: 0.5 s beside 5 × 0.1 s, not in turns."""
    with closing(share(EchoWorker)) as engine:
        wait_until(lambda: len(use(engine)) == 2, 20.0)
        begin = time.monotonic()
        list(engine.run([(0, 0.5)] + [(i, 0.1) for i in range(5)], None))
        assert time.monotonic() - begin < 0.8


def test_a_worker_whose_making_raises_brings_its_reason_home(share):
    with closing(share(UnmakeableWorker)) as engine:
        with pytest.raises(WorkerError, match="the start of the worker, got ValueError: no wood"):
            list(engine.run(["item"], None))


def test_a_late_result_of_a_run_that_was_given_up_is_dropped(share):
    with closing(share(EchoWorker)) as engine:
        wait_until(lambda: len(use(engine)) == 2, 20.0)
        given_up = engine.run([(0, 0.0), (1, 0.5), (2, 0.5)], "old")
        next(given_up)
        given_up.close()
        # The first is there at once: the second would be taken from the run before.
        results = list(engine.run([(10, 0.0), (11, 0.3), (12, 0.3)], "new"))
        assert [(number, params) for number, params, _ in results] == [
            (10, "new"), (11, "new"), (12, "new"),
        ]  # fmt: skip


def test_a_stop_is_noticed_while_workers_play(share):
    asked = []
    with closing(share(EchoWorker, lambda: bool(asked))) as engine:
        list(engine.run([(0, 0.0)], None))
        signal.signal(signal.SIGALRM, lambda *_: asked.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            list(engine.run([(0, 3.0)], None))  # as a task, it keeps its core to the end
        assert time.monotonic() - begin < patience()


def test_an_error_of_a_run_that_was_given_up_is_not_the_next_ones(share):
    with closing(share(RaisingWorker)) as engine:
        given_up = engine.run(["good", "bad"], None)
        with contextlib.suppress(WorkerError):  # at once, where both travel together
            next(given_up)
        given_up.close()
        assert list(engine.run(["good"] * 5, None)) == ["good"] * 5


# --- threads ----------------------------------------------------------------------------------


def workers_of_ours() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("worker-")]


def test_threads_read_the_params_where_they_lie():
    params = {"w": np.zeros(3)}
    with closing(ThreadEngine(EchoWorker, 2, 30.0)) as engine:
        assert all(got is params for _, got, _ in engine.run([(i, 0.0) for i in range(4)], params))


def test_an_error_leaves_the_engine_as_good_as_before():
    with closing(ThreadEngine(RaisingWorker, 2, 30.0)) as engine:
        for _ in range(3):
            with pytest.raises(WorkerError):
                list(engine.run(["bad"] * 5, None))
            assert list(engine.run(["good"] * 5, None)) == ["good"] * 5


def test_workers_are_made_one_after_the_other():
    """The first compiles; the others find what it has compiled."""
    making, together = [], []

    def make():
        making.append(1)
        together.append(len(making))
        time.sleep(0.05)
        making.pop()
        return EchoWorker()

    with closing(ThreadEngine(make, 3, 30.0)) as engine:
        assert wait_until(lambda: len(together) == 3)
        assert len(list(engine.run([(i, 0.0) for i in range(6)], None))) == 6
    assert together == [1, 1, 1]


def test_an_item_that_takes_too_long_ends_the_run():
    with closing(ThreadEngine(EchoWorker, 2, 0.2)) as engine:
        begin = time.monotonic()
        with pytest.raises(WorkerError, match=r"a result for \(1, 1.5\) in 0 s, got none; give a"):
            list(engine.run([(0, 0.0), (1, 1.5)], None))
        assert time.monotonic() - begin < 0.5 + patience()


def test_no_thread_is_left_when_the_engine_closes():
    engine = ThreadEngine(EchoWorker, 3, 30.0)
    next(engine.run([(i, 0.1) for i in range(9)], None))  # and the others are never asked for
    begin = time.monotonic()
    engine.close()
    assert time.monotonic() - begin < patience()
    assert not workers_of_ours()


def test_an_engine_that_nobody_holds_ends_its_threads():
    engine = ThreadEngine(EchoWorker, 2, 30.0)
    list(engine.run([(0, 0.0)], None))
    del engine
    gc.collect()
    assert wait_until(lambda: not workers_of_ours())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give it back")
def test_what_a_worker_frees_goes_back_to_the_system(monkeypatch):
    monkeypatch.setattr(threads, "TRIM_SECONDS", 0.0)
    with closing(ThreadEngine(HoleWorker, 1, 30.0)) as engine:
        before = resident_mb()
        list(engine.run(["item"], None))
        assert resident_mb() - before < 16


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_other_c_libraries_keep_what_is_free(error, monkeypatch):
    def refuse(name):
        raise error

    monkeypatch.setattr(threads, "TRIM_SECONDS", 0.0)
    monkeypatch.setattr(threads.ctypes, "CDLL", refuse)
    with closing(ThreadEngine(EchoWorker, 1, 30.0)) as engine:
        assert len(list(engine.run([(0, 0.0)], None))) == 1


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE / 2**20


@pytest.mark.slow
def test_a_process_that_forgets_to_close_ends_while_its_threads_play():
    script = (
        "from numba import njit\n"
        "from pixelpong.engines.threads import ThreadEngine\n"
        "@njit(nogil=True)\n"
        "def spin(n):\n"
        "    total = 0\n"
        "    for i in range(n):\n"
        "        total = (total * 31 + i) % 1000003\n"
        "    return total\n"
        "class Spinner:\n"
        "    def play(self, item, params):\n"
        "        return spin(10**8)\n"
        "spin(1)\n"
        "engine = ThreadEngine(Spinner, 2, 60.0)\n"
        "next(engine.run(range(100), None))\n"
        "raise SystemExit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (7, "")


# --- processes --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["die", "hang"])
def test_a_worker_that_dies_or_hangs_is_replaced_and_its_item_runs_again(
    start, request, how, tmp_path
):
    items = [(0, ""), (1, str(tmp_path / "mark")), (2, ""), (3, "")]
    timeout = 1.0
    with closing(start(functools.partial(OnceWorker, how), worker_timeout=timeout)) as engine:
        assert list(engine.run([(8, ""), (9, "")], None)) == [8, 9]
        begin = time.monotonic()
        assert list(engine.run(items, None)) == [0, 1, 2, 3]
        # The room of a stopped task, or of a node's only actor, Ray frees after 5 s.
        is_slow = "ray-tasks" in request.node.name or how == "hang"
        assert time.monotonic() - begin < timeout + (6 if is_slow else 2) * patience()
        assert 1 <= engine.num_restarts <= (2 if is_slow else 1)


def test_an_item_that_kills_every_worker_is_given_up(start):
    with closing(start(DeadlyWorker)) as engine:
        with pytest.raises(WorkerError, match=rf"for item, got {MAX_ATTEMPTS} workers that failed"):
            list(engine.run(["item"], None))


def test_a_worker_that_cannot_start_is_one_line(start):
    with closing(start(UnstartableWorker, workers=1)) as engine:
        with pytest.raises(WorkerError, match=r"expected a worker to start, got 3 in a row"):
            list(engine.run(["item"], None))


def test_workers_use_one_blas_thread(start):
    with closing(start(ThreadCountWorker)) as engine:
        ((used, _),) = engine.run(["item"], None)
    assert used
    assert set(used) == {1}


def test_serial_keeps_one_worker_for_all_items():
    made = []

    def make():
        made.append(EchoWorker())
        return made[-1]

    engine = SerialEngine(make)
    list(engine.run([(0, 0.0)] * 3, None))
    list(engine.run([(0, 0.0)] * 3, None))
    assert len(made) == 1


def test_cores_are_those_this_process_may_use():
    assert count_cores() == len(os.sched_getaffinity(0)) >= 1
