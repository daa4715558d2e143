"""What Ray alone brings: killed actors, lost drivers, clusters that are full or not there."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fakes import EchoWorker

import pixelpong.engines.ray as ray_engine
from pixelpong.config.presets import load_preset
from pixelpong.engines.ray import RayEngine
from pixelpong.errors import WorkerError
from pixelpong.play.worker import make_worker

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


# --- faults -----------------------------------------------------------------------------------


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
                for name, array in vars(wanted.segments[0]).items():
                    assert np.array_equal(getattr(result.segments[0], name), array)


def test_tasks_that_play_are_not_cancelled_when_the_engine_closes(ray_cluster, monkeypatch):
    """If one finished at that moment, Ray's core would end this process."""
    import ray

    cancelled = []
    monkeypatch.setattr(ray, "cancel", lambda *args, **options: cancelled.append(args))
    engine = RayEngine(EchoWorker, 2, 30.0, mode="tasks")
    next(engine.run([(0, 0.0), (1, 0.2), (2, 0.2)], None))
    engine.close()
    assert not cancelled


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
    """What it asks the network at its start goes nowhere; `test_network` looks from outside."""
    for pid in processes_with(f"pixelpong-ray-{os.getpid()}-"):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"RAY_USAGE_STATS_ENABLED=0" in environment
        assert b"http_proxy=http://127.0.0.1:9" in environment
    assert "http_proxy" not in os.environ, "the driver's own errands are none of Ray's business"


# --- what cannot be used ----------------------------------------------------------------------


def test_without_ray_it_says_what_to_install(tmp_path):
    words = "train --max-frames 300 --updates 1 --engine ray"
    script = (
        "import sys; sys.modules['ray'] = None\n"
        "from pixelpong.faces.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", script, *words.split()]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    (said,) = done.stderr.strip().splitlines()
    assert said.endswith("name, got no ray; pip install 'pixelpong[ray]'"), said


def test_a_cluster_without_room_is_one_line(ray_cluster, monkeypatch):
    with closing(RayEngine(EchoWorker, 2, 30.0)) as first:
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
        with pytest.warns(UserWarning, match="the processor of .* differs from the driver's"):
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
        params = np.random.default_rng(0).random(1000)
        items = [(params + number, 0.0) for number in range(5)]
        results = engine.run(items, params)
        assert len(list(results)) == 5
        moved = results.stats
    assert 8000 <= moved.params_bytes < 9000
    assert 5 * 8000 < moved.bytes_sent < 5 * 9000
    assert 6 * 8000 < moved.bytes_received < 10 * 9000  # an echo has item and params in it
    assert moved.workers == 1


@pytest.mark.parametrize("preset", ["fast", pytest.param("classic", marks=pytest.mark.soak)])
def test_verify_covers_ray(ray_cluster, capsys, preset):
    """The classic mode is held to the bits by those whose workers are killed, too."""
    from pixelpong.faces.cli import main

    words = ["verify", "--engines", "serial,ray", "--presets", preset, "--updates", "2"]
    assert main([*words, "--max-frames", "300"]) == 0
    out = capsys.readouterr().out
    assert f"{preset}: all" in out
    assert "ray, stopped" in out


@pytest.mark.soak
def test_more_workers_than_ray_expects_are_not_in_the_report(tmp_path):
    """Sixteen processes; Ray tells of them on stdout."""
    words = ["train", "--preset", "classic", "--max-frames", "300", "--batch-size", "32"]
    words += ["--updates", "3", "--engine", "ray", "--ray-mode", "tasks", "--workers", "16"]
    done = subprocess.run(
        [sys.executable, "-m", "pixelpong", *words, "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["update"] == 3
