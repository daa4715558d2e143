"""What Ray alone brings: killed actors, lost drivers, clusters that are full or not there."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import wait_until
from fakes import EchoWorker

import pixelpong.engines.ray as ray_engine
from pixelpong.config.presets import load_preset
from pixelpong.engines.ray import RayEngine, seats
from pixelpong.engines.ray.connection import _MORTAL
from pixelpong.engines.ray.seats import _Actor
from pixelpong.errors import WorkerError
from pixelpong.loop import Updated, train
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.ray


def processes_with(text: str) -> set[int]:
    """Processes whose command line has `text` in it."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                is_dead = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if text in line and not is_dead:
                found.add(int(folder.name))
    return found


@pytest.fixture
def pong(tmp_path):
    """A short training on real Pong in the fast mode."""

    def make(name: str, **changes) -> RunDirectory:
        small = {"streams": 4, "horizon": 200, "hidden": 8, "minibatches": 2, "save_every": 5}
        config = load_preset("fast").updated({**small, "workers": 2, **changes}, "test")
        return RunDirectory.create(tmp_path / name, config)

    return make


# --- faults -----------------------------------------------------------------------------------


class Killer:
    """Kills an actor at random in the middle of every fifth update."""

    def __init__(self) -> None:
        self.killed = 0
        self._rng = random.Random(0)

    def __call__(self, event) -> None:
        if isinstance(event, Updated) and event.progress.update % 5 == 0:
            threading.Timer(event.stats.rollout_seconds / 3, self._kill).start()

    def _kill(self) -> None:
        # Of those that play: where starting ones die too, three in a row are a broken cluster.
        wait_until(lambda: processes_with("ray::_Actor.play"), 2)
        if actors := processes_with("ray::_Actor.play"):
            os.kill(self._rng.choice(sorted(actors)), signal.SIGKILL)
            self.killed += 1


@pytest.mark.parametrize(
    ("times", "updates"), [(3, 60), pytest.param(20, 400, marks=pytest.mark.soak)]
)
def test_killed_actors_change_nothing(ray_cluster, pong, times, updates):
    undisturbed = train(pong("undisturbed", updates=updates, engine="threads"))
    run, killer = pong("disturbed", updates=updates, engine="ray"), Killer()
    disturbed = train(run, killer)
    assert killer.killed >= times
    assert disturbed.params_sha256 == undisturbed.params_sha256
    timings = [line["timing"] for line in run.metrics.read()]
    assert timings[-1]["restarts"] >= times / 2  # others had just been done, and were idle
    seconds = [timing["rollout_seconds"] for timing in timings[1:]]
    assert max(seconds) - np.median(seconds) < 5


def test_no_state_leaks_from_task_to_task(ray_cluster):
    """Items in any order, over processes that have played others, equal those played alone."""
    config = load_preset("fast").updated({"streams": 6, "horizon": 16, "hidden": 8}, "test")
    from pixelpong.learners import make_learner

    learner, make = make_learner(config), functools.partial(make_worker, config)
    alone = make()
    items = learner.items()
    with closing(RayEngine(make, 2, 60.0, mode="tasks")) as engine:
        for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3, 1, 4, 2], [2, 2, 5, 5, 0, 0]):
            chosen = [items[number] for number in order]
            for item, result in zip(chosen, engine.run(chosen, learner.params), strict=True):
                wanted = alone.play(item, learner.params)
                for name in ("previous", "current"):
                    assert np.array_equal(getattr(result.state, name), getattr(wanted.state, name))
                assert result.state.snapshot == wanted.state.snapshot
                assert result.state.last_action == wanted.state.last_action
                for name, array in vars(wanted.segment).items():
                    assert np.array_equal(getattr(result.segment, name), array)


def test_params_that_did_not_come_are_never_played_without():
    actor = _Actor()
    actor._worker = EchoWorker()
    actor.play("old", pickle.dumps([]), {})
    actor.play("old", pickle.dumps([]))
    with pytest.raises(AssertionError, match="did not come"):
        actor.play("new", b"")


TRAIN = "import sys; from pixelpong.faces.cli import main; sys.exit(main(sys.argv[1:]))"


def command(folder: Path, *changes: str) -> list[str]:
    """A training on the command line, small but real."""
    return [sys.executable, "-c", TRAIN, "train", "--run", str(folder), "--preset", "classic",
            "--environment", "Catch-v0", "--batch-size", "20", "--engine", "ray", "--workers", "2",
            "--save-every", "1", *changes]  # fmt: skip


def processes_marked(mark: str) -> set[int]:
    """Processes that have `mark` in their environment, as all those that a marked one starts."""
    found = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found


@pytest.mark.parametrize("mode", ["actors", pytest.param("nodes", marks=pytest.mark.soak)])
def test_a_driver_that_is_killed_leaves_no_process_and_resumes_to_the_same_bits(tmp_path, mode):
    line = command(tmp_path / "killed", "--updates", "100000", "--ray-mode", mode)
    out, mark = subprocess.DEVNULL, uuid.uuid4().hex
    environment = {**os.environ, "PIXELPONG_MARK": mark}
    with subprocess.Popen(line, stdout=out, stderr=out, env=environment) as driver:
        checkpoints = tmp_path / "killed" / "checkpoints"
        assert wait_until(lambda: (checkpoints / "000003").exists(), 60)
        assert len(processes_marked(mark)) > 4  # Ray's own, and at least an actor
        driver.kill()
    assert wait_until(lambda: not processes_marked(mark), 20)
    run = RunDirectory.open(tmp_path / "killed")
    updates = max(run.checkpoints.updates()) + 3
    config = run.config.updated({"updates": updates, "engine": "serial"}, "test")
    resumed = train(run.with_config(config))
    whole = train(RunDirectory.create(tmp_path / "whole", config))
    assert resumed.params_sha256 == whole.params_sha256


def test_ctrl_c_saves_and_leaves_nothing_behind(tmp_path):
    with subprocess.Popen(
        command(tmp_path / "run", "--updates", "100000"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as driver:  # fmt: skip
        assert wait_until(lambda: (tmp_path / "run" / "checkpoints" / "000002").exists(), 60)
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does it: to everybody
        _, said = driver.communicate(timeout=20)
    assert driver.returncode == 130, said
    ours = f"pixelpong-ray-{driver.pid}-"
    assert wait_until(lambda: not processes_with(ours), 5)
    assert not [path for path in Path("/tmp").iterdir() if path.name.startswith(ours)]


# --- whole nodes ------------------------------------------------------------------------------


def test_a_node_whose_workers_are_killed_changes_nothing(ray_cluster, pong):
    """They are threads of one actor, which the driver replaces."""
    undisturbed = train(pong("undisturbed", updates=12, engine="threads"))
    run = pong("disturbed", updates=12, engine="ray", ray_mode="nodes")

    def kill() -> None:
        (actor,) = processes_with("ray::_Actor")
        os.kill(actor, signal.SIGKILL)

    def disturb(event) -> None:
        if isinstance(event, Updated) and event.progress.update == 5:
            threading.Timer(event.stats.rollout_seconds / 3, kill).start()

    disturbed = train(run, disturb)
    assert disturbed.params_sha256 == undisturbed.params_sha256
    timings = [line["timing"] for line in run.metrics.read()]
    assert timings[-1]["restarts"] == 1
    assert {timing["workers"] for timing in timings[1:]} == {2}


class Node(NamedTuple):
    """A seat as `ask_for_seats` sees it."""

    size: int


@pytest.mark.parametrize(
    ("cores", "taken", "num_workers", "wanted"),
    [
        ([0, 4, 4], [], None, [4, 4]),  # the head has none
        ([0, 4, 4], [4], None, [4]),
        ([4, 4], [4, 4], None, []),
        ([4, 8], [4], None, [8]),
        ([4, 4, 4], [], 6, [4, 2]),
        ([4, 4], [4, 2], 6, []),  # no more than it was told
        ([4], [4, 4], None, []),  # a node was lost, whose seat waits for another
        ([], [], None, []),
    ],
)
def test_a_seat_is_asked_for_on_every_node(monkeypatch, cores, taken, num_workers, wanted):
    nodes = [{"Alive": True, "Resources": {"CPU": float(n)} if n else {}} for n in cores]
    nodes.append({"Alive": False, "Resources": {"CPU": 99.0}})
    monkeypatch.setattr(seats.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(seats, "NodeSeat", lambda recipe, timeout, size: Node(size))
    asked = seats.ask_for_seats("nodes", b"", 1.0, num_workers, [Node(n) for n in taken])
    assert [seat.size for seat in asked] == wanted


# --- what others learn of it --------------------------------------------------------------------


def listening_addresses(pids: set[int]) -> set[str]:
    """Where processes can be reached, as Linux writes addresses: 127.0.0.1 is ``0100007F``."""
    inodes = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(file.readlink().name.removeprefix("socket:[").removesuffix("]"))
    tables = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()[1:]]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes}


def test_our_own_ray_is_reached_by_nobody_elsewhere(ray_cluster):
    daemons = processes_with(f"pixelpong-ray-{os.getpid()}-")
    assert len(daemons) >= 4  # the store of the cluster's state, the node's, its agents
    loopback = "0100007F"
    in_ipv6 = f"0000000000000000FFFF0000{loopback}"
    found = listening_addresses(daemons)
    assert found
    assert found <= {loopback, in_ipv6}


def test_our_own_ray_tells_nobody_that_it_is_used(ray_cluster):
    """No process for usage statistics, which asks and tells even where they are switched off."""
    from ray._common.usage import usage_lib

    assert not usage_lib.usage_stats_enabled()
    assert not processes_with("--modules-to-load=UsageStatsHead")
    for pid in processes_with(f"pixelpong-ray-{os.getpid()}-"):
        assert b"RAY_USAGE_STATS_ENABLED=0" in Path(f"/proc/{pid}/environ").read_bytes()


def test_the_helpers_of_our_own_ray_end_with_its_daemon(ray_cluster):
    """Its daemon is told to start them so; that it works is shown in `faults/test_driver.py`."""
    for name in ("dashboard_agent", "runtime_env_agent"):
        assert processes_with(f"--{name}_command={sys.executable} -u {_MORTAL} ")


# --- what cannot be used ----------------------------------------------------------------------


def test_without_ray_it_says_what_to_install(tmp_path):
    script = "import sys; sys.modules['ray'] = None\n" + TRAIN
    line = command(tmp_path / "run", "--updates", "1")
    done = subprocess.run([line[0], "-c", script, *line[3:]], capture_output=True, text=True)
    assert done.returncode == 2
    said = done.stderr.strip().splitlines()[-1]
    assert said.endswith("name, got no ray; pip install 'pixelpong[ray]'"), said


def test_without_ray_the_bench_says_so():
    script = "import sys; sys.modules['ray'] = None\n" + TRAIN
    words = [sys.executable, "-c", script, "bench", "throughput", "--ray"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "pip install 'pixelpong[ray]'" in done.stderr


def test_a_cluster_without_room_is_one_line(ray_cluster, monkeypatch):
    with closing(RayEngine(EchoWorker, 2, 30.0)) as first:
        while len(first.worker_pids) < 2:
            list(first.run([(0, 0.05)], None))
        monkeypatch.setattr(ray_engine, "PLACE_TIMEOUT", 1.0)
        with closing(RayEngine(EchoWorker, 2, 30.0)) as second:
            with pytest.raises(WorkerError, match="room for a worker .*, got 0 free of 2 CPUs"):
                list(second.run([(0, 0.0)], None))


def test_other_versions_on_a_node_are_refused(ray_cluster, monkeypatch):
    versions = {**ray_engine.collect_versions(), "numpy": "1.0"}
    monkeypatch.setattr(ray_engine, "collect_versions", lambda: versions)
    with closing(RayEngine(EchoWorker, 1, 30.0)) as engine:
        with pytest.raises(WorkerError, match=r"expected numpy 1.0 on every node, got numpy 2"):
            list(engine.run([(0, 0.0)], None))


def test_another_processor_on_a_node_is_said(ray_cluster, monkeypatch):
    monkeypatch.setattr(ray_engine, "describe_machine", lambda: {"processor": "an abacus"})
    with closing(RayEngine(EchoWorker, 1, 30.0)) as engine:
        with pytest.warns(UserWarning, match="the processor of .* is another than the driver's"):
            list(engine.run([(0, 0.0)], None))


def test_parameters_that_do_not_fit_into_the_store_are_one_line(ray_cluster, monkeypatch):
    import ray

    def refuse(value):
        raise ray.exceptions.ObjectStoreFullError("it is full")

    monkeypatch.setattr(ray, "put", refuse)
    with closing(RayEngine(EchoWorker, 1, 30.0)) as engine:
        with pytest.raises(WorkerError, match="room for the parameters in Ray's object store, got"):
            list(engine.run([(0, 0.0)], None))


def test_what_travels_is_counted(ray_cluster):
    with closing(RayEngine(EchoWorker, 1, 30.0)) as engine:
        params = np.random.default_rng(0).random(1000)  # nothing that could be compressed
        list(engine.run([(number, 0.0) for number in range(5)], params))
        moved = engine.last_run
    assert 8000 <= moved.params_bytes < 9000
    assert 0 < moved.bytes_sent < 1000
    assert moved.bytes_received > 5 * 7000  # an echo has the params in it
    assert moved.workers == 1


def test_verify_covers_ray_in_both_modes(ray_cluster, capsys):
    from pixelpong.faces.cli import main

    words = ["verify", "--engines", "serial,ray", "--environment", "Catch-v0", "--updates", "2"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "fast: all" in out
    assert "classic: all" in out
    assert "ray, stopped" in out
