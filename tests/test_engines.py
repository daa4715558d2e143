"""One contract for all engines, and the faults that processes bring."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import platform
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import patience, wait_until
from fakes import (
    DeadlyWorker,
    EchoWorker,
    HeapWorker,
    OnceWorker,
    RaisingWorker,
    ThreadCountWorker,
    UnmakeableWorker,
    UnstartableWorker,
)

from pixelpong.config import EngineConfig
from pixelpong.engines import count_cores, make_engine, never
from pixelpong.engines.channel import Channel, encode
from pixelpong.engines.processes import MAX_ATTEMPTS, ProcessEngine
from pixelpong.engines.serial import SerialEngine
from pixelpong.errors import Interrupted, WorkerError

pytestmark = pytest.mark.alone  # deadlines of seconds, and a look at all shared memory

ENGINES = {
    "serial": EngineConfig(engine="serial"),
    "processes-1": EngineConfig(engine="processes", workers=1),
    "processes-3": EngineConfig(engine="processes", workers=3),
    "ray-1": EngineConfig(engine="ray", workers=1),
    "ray-2": EngineConfig(engine="ray", workers=2),
    "ray-nodes": EngineConfig(engine="ray", workers=2, ray_mode="nodes"),
    "ray-tasks": EngineConfig(engine="ray", workers=2, ray_mode="tasks"),
}

FAULTY = {
    "processes": EngineConfig(engine="processes", workers=2),
    "ray": EngineConfig(engine="ray", workers=2),
    "ray-nodes": EngineConfig(engine="ray", workers=2, ray_mode="nodes"),
    "ray-tasks": EngineConfig(engine="ray", workers=2, ray_mode="tasks"),
}
"""Those whose workers are other processes, which may die."""


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


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def use(engine) -> set[int]:
    """Let an engine of `EchoWorker` play a little; the processes that did."""
    return {pid for _, _, pid in engine.run([(i, 0.05) for i in range(4)], None)}


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


# --- processes --------------------------------------------------------------------------------


def test_workers_are_other_processes_and_share_the_work(start):
    with closing(start(EchoWorker)) as engine:
        wait_until(lambda: len(use(engine)) == 2, 20.0)  # both have started
        pids = {pid for _, _, pid in engine.run([(i, 0.1) for i in range(6)], None)}
        assert len(pids) == 2
        assert os.getpid() not in pids


def test_an_idle_worker_gets_the_next_item_at_once(start):
    """One slow item must not hold the others back: 0.5 s beside 5 × 0.1 s, not in turns."""
    with closing(start(EchoWorker)) as engine:
        wait_until(lambda: len(use(engine)) == 2, 20.0)
        begin = time.monotonic()
        list(engine.run([(0, 0.5)] + [(i, 0.1) for i in range(5)], None))
        assert time.monotonic() - begin < 0.8


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
        # Of a stopped task, Ray frees the room only after 5 s; what waits for it may be late too.
        is_slow = "ray-tasks" in request.node.name
        assert time.monotonic() - begin < timeout + (6 if is_slow else 2) * patience()
        assert 1 <= engine.num_restarts <= (2 if is_slow else 1)


def test_a_worker_that_is_replaced_is_gone():
    with closing(ProcessEngine(EchoWorker, 2, 0.5)) as engine:
        wait_until(lambda: len(use(engine)) == 2, 20.0)
        before = set(engine.worker_pids)
        os.kill(min(before), signal.SIGSTOP)
        begin = time.monotonic()
        list(engine.run([(number, 0.1) for number in range(6)], None))
        assert time.monotonic() - begin < 0.5 + 2 * patience()
        gone = before - set(engine.worker_pids)
        assert len(gone) == 1
        assert wait_until(lambda: not any(is_alive(pid) for pid in gone))


def test_an_item_that_kills_every_worker_is_given_up(start):
    with closing(start(DeadlyWorker)) as engine:
        with pytest.raises(WorkerError, match=rf"for item, got {MAX_ATTEMPTS} workers that failed"):
            list(engine.run(["item"], None))


def test_a_worker_that_cannot_start_is_one_line(start):
    with closing(start(UnstartableWorker, workers=1)) as engine:
        with pytest.raises(WorkerError, match=r"expected a worker to start, got 3 in a row"):
            list(engine.run(["item"], None))


def test_a_worker_whose_making_raises_brings_its_reason_home(start):
    with closing(start(UnmakeableWorker)) as engine:
        with pytest.raises(WorkerError, match="the start of the worker, got ValueError: no wood"):
            list(engine.run(["item"], None))


def test_a_late_result_of_a_run_that_was_given_up_is_dropped(start):
    with closing(start(EchoWorker)) as engine:
        while len({pid for *_, pid in engine.run([(0, 0.1)] * 2, "first")}) < 2:
            pass  # until both are there
        given_up = engine.run([(0, 0.0), (1, 0.5), (2, 0.5)], "old")
        next(given_up)
        given_up.close()
        # The first is there at once: the second would be taken from the run before.
        results = list(engine.run([(10, 0.0), (11, 0.3), (12, 0.3)], "new"))
        assert [(number, params) for number, params, _ in results] == [
            (10, "new"), (11, "new"), (12, "new"),
        ]  # fmt: skip


def test_no_worker_is_left_when_the_engine_closes():
    engine = ProcessEngine(EchoWorker, 2, 30.0)
    list(engine.run([(0, 0.0)] * 2, None))
    pids = engine.worker_pids
    busy = engine.run([(0, 60.0)] * 2, None)
    engine._should_stop = lambda: True
    with pytest.raises(Interrupted):
        list(busy)
    begin = time.monotonic()
    engine.close()
    assert time.monotonic() - begin < 2 * patience()
    assert not any(is_alive(pid) for pid in pids)


def test_a_stop_is_noticed_while_workers_play(start):
    asked = []
    with closing(start(EchoWorker, lambda: bool(asked))) as engine:
        list(engine.run([(0, 0.0)], None))
        signal.signal(signal.SIGALRM, lambda *_: asked.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            list(engine.run([(0, 8.0)], None))  # as a task, it keeps its core to the end
        assert time.monotonic() - begin < patience()


def test_a_stop_is_noticed_while_a_stopped_worker_does_not_take_its_params():
    """Five megabytes do not fit into the pipe of a process that does not read."""
    asked = []
    with closing(ProcessEngine(EchoWorker, 1, 60.0, lambda: bool(asked))) as engine:
        list(engine.run([(0, 0.0)], None))
        os.kill(engine.worker_pids[0], signal.SIGSTOP)
        signal.signal(signal.SIGALRM, lambda *_: asked.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            list(engine.run([(0, 0.0)], b"x" * 5_000_000))
        assert time.monotonic() - begin < patience()


def test_no_message_is_waited_for_beyond_its_deadline():
    """Neither one of which the other end has sent a part, nor one that it does not take."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours)
        theirs.sendall(encode("a result")[:1])
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            channel.receive(0.2)
        with pytest.raises(TimeoutError):
            channel.send(bytes(16 << 20), 0.2)
        assert time.monotonic() - begin < 2 * patience()


def test_an_error_of_a_run_that_was_given_up_is_not_the_next_ones(start):
    with closing(start(RaisingWorker)) as engine:
        given_up = engine.run(["good", "bad"], None)
        with contextlib.suppress(WorkerError):  # at once, where both travel together
            next(given_up)
        given_up.close()
        assert list(engine.run(["good"] * 5, None)) == ["good"] * 5


def test_workers_that_cannot_be_started_are_one_line_and_leave_none():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(ProcessEngine(EchoWorker, 1, 30.0)) as engine:  # starts what spawning needs
        list(engine.run([(0, 0.0)], None))
    in_use = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 8, before[1]))
    try:
        with pytest.raises(WorkerError, match=r"to start 20 workers, got \d+ and then: Too many"):
            ProcessEngine(EchoWorker, 20, 30.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_workers_use_one_blas_thread(start):
    with closing(start(ThreadCountWorker)) as engine:
        ((threads, _),) = engine.run(["item"], None)
    assert threads
    assert set(threads) == {1}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's heap learns")
def test_what_a_worker_frees_leaves_no_holes_in_its_heap(start):
    with closing(start(HeapWorker)) as engine:
        assert list(engine.run(["item"], None)) == [False]


def test_workers_never_get_ctrl_c():
    with closing(ProcessEngine(ThreadCountWorker, 1, 30.0)) as engine:
        ((_, is_blocked),) = engine.run(["item"], None)
    assert is_blocked


def test_workers_die_with_their_driver(tmp_path):
    """Even in the middle of an item, when nobody reads the pipe."""
    import subprocess
    import sys

    script = tmp_path / "driver.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from fakes import EchoWorker\n"
        "from pixelpong.engines.processes import ProcessEngine\n"
        "if __name__ == '__main__':\n"
        "    engine = ProcessEngine(EchoWorker, 2, 60.0)\n"
        "    list(engine.run([(0, 0.0)] * 2, None))\n"
        "    print(*engine.worker_pids, flush=True)\n"
        "    list(engine.run([(0, 60.0)] * 2, None))\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as driver:
        pids = [int(word) for word in driver.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.3)
        driver.kill()
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids), seconds=2)


def test_nothing_is_left_in_shared_memory():
    before = set(Path("/dev/shm").iterdir())
    with closing(ProcessEngine(EchoWorker, 2, 30.0)) as engine:
        list(engine.run([(0, 0.0)] * 4, b"x" * 5_000_000))
    assert set(Path("/dev/shm").iterdir()) <= before


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
