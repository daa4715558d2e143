"""What Ray alone brings: tasks, its network, clusters that are full or not there."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fakes import EchoWorker
from ledgers import seal

import pixelpong.engines.ray as ray_engine
from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine
from pixelpong.engines.ray import RayEngine, connection
from pixelpong.errors import ConfigError, WorkerError
from pixelpong.learners import make_learner
from pixelpong.loop import train
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.ray

SMALL = {"num_envs": 6, "num_steps": 16, "hidden": 8, "num_minibatches": 2}


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


# --- tasks ------------------------------------------------------------------------------------


def test_no_state_leaks_from_task_to_task(ray_cluster):
    """Items in any order, over processes that have played others, equal those played alone."""
    config = load_preset("fast").updated(SMALL, "test")
    learner, make = make_learner(config), functools.partial(make_worker, config)
    items, params = learner.items(), learner.params
    wanted = [seal(result) for result in Engine(make).run(items, params)]
    with closing(RayEngine(make, Config(workers=2, ray_mode="tasks"))) as engine:
        for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3, 1, 4, 2], [2, 2, 5, 5, 0, 0]):
            played = engine.run([items[number] for number in order], params)
            assert [seal(result) for result in played] == [wanted[number] for number in order]


def test_tasks_that_play_are_not_cancelled_when_the_engine_closes(ray_cluster, monkeypatch):
    """If one finished at that moment, Ray's core would end this process."""
    cancelled = []
    monkeypatch.setattr(ray_engine.ray, "cancel", lambda *args, **options: cancelled.append(args))
    engine = RayEngine(EchoWorker, Config(workers=2, ray_mode="tasks"))
    next(engine.run([(0, 0.0), (1, 0.2), (2, 0.2)], None))
    engine.close()
    assert not cancelled


# --- what others learn of it ------------------------------------------------------------------


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


def test_our_own_ray_is_reached_by_nobody_elsewhere_and_tells_nobody(ray_cluster):
    """What it asks the network at its start goes nowhere; `test_network` looks from outside."""
    daemons = processes_with(f"pixelpong-ray-{os.getpid()}-")
    assert len(daemons) >= 4  # the store of the cluster's state, the node's, its agents
    found = listening_addresses(daemons)
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}  # loopback, also in IPv6
    for pid in daemons:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"RAY_USAGE_STATS_ENABLED=0" in environment
        assert b"http_proxy=http://127.0.0.1:9" in environment
    assert "http_proxy" not in os.environ, "the driver's own errands are none of Ray's business"


# --- what cannot be used ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "words", "reason"),
    [
        ("sys.modules['ray'] = None", [], "name, got no ray; pip install 'pixelpong[ray]'"),
        (
            "",
            ["--ray-address", "127.0.0.1:1"],
            "a Ray cluster at 127.0.0.1:1, got Connection refused",
        ),
    ],
)
def test_a_training_that_is_refused_leaves_no_run(begin, words, reason, make_run, tmp_path):
    """So `latest` is still the run before."""
    train(make_run("runs/before"))
    script = f"import sys; {begin}\nfrom pixelpong.faces.cli import main; sys.exit(main())"
    options = ["--updates", "9", "--engine", "ray", *words]
    for command in (["train"], ["resume", "latest"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *command, *options],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2
        assert reason in done.stderr.replace("\n", "", 1), done.stderr
        assert [path.name for path in (tmp_path / "runs").iterdir()] == ["before"]
        assert RunDirectory(tmp_path / "runs" / "before").config.engine == "serial"


@pytest.fixture
def check(monkeypatch):
    """Check an address as a process does that has no Ray yet."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.5)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection.ray, "shutdown", lambda: None)

    def join(address):
        with connection.connected(address, None):
            pass

    return join


@pytest.mark.parametrize(
    "address", ["nonsense", "host:", ":1", "host:0", "host:99999", "ray://h:1"]
)
def test_an_address_that_is_none_is_one_line(address, check):
    with pytest.raises(ConfigError, match="expected --ray-address auto or HOST:PORT, got"):
        check(address)


def test_an_address_where_nobody_answers_is_one_line(check):
    """Ray itself waits for minutes, or for ever if the connection is taken."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"a Ray cluster at {address}, got timed out"):
            check(address)
    with pytest.raises(ConfigError, match=f"a Ray cluster at {address}, got .*refused"):
        check(address)


def test_a_cluster_that_cannot_be_joined_is_one_line(check, monkeypatch):
    def refuse(address, **options):
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(connection.ray, "init", refuse)
    with pytest.raises(WorkerError, match="expected a Ray cluster at auto, got ConnectionError"):
        check("auto")


def test_a_cluster_without_room_is_one_line(ray_cluster, monkeypatch):
    with closing(RayEngine(EchoWorker, Config(workers=2))) as first:
        list(first.run([(0, 0.05)], None))
        monkeypatch.setattr(ray_engine, "PLACE_SECONDS", 1.0)
        with closing(RayEngine(EchoWorker, Config(workers=2))) as second:
            with pytest.raises(WorkerError, match="room for a worker .*, got 0 free of 2 CPUs"):
                list(second.run([(0, 0.0)], None))


def test_other_versions_on_a_node_are_refused(ray_cluster, monkeypatch):
    versions = {**ray_engine.collect_versions(), "numpy": "1.0"}
    monkeypatch.setattr(ray_engine, "collect_versions", lambda: versions)
    with closing(RayEngine(EchoWorker, Config(workers=1))) as engine:
        with pytest.raises(WorkerError, match=r"expected numpy 1.0 on every node, got numpy 2"):
            list(engine.run([(0, 0.0)], None))


def test_another_processor_on_a_node_is_said(ray_cluster, monkeypatch):
    monkeypatch.setattr(ray_engine, "describe_machine", lambda: {"processor": "an abacus"})
    with closing(RayEngine(EchoWorker, Config(workers=1))) as engine:
        with pytest.warns(UserWarning, match="the processor of .* differs from the driver's"):
            list(engine.run([(0, 0.0)], None))


def test_parameters_that_do_not_fit_into_the_store_are_one_line(ray_cluster, monkeypatch):
    def refuse(value):
        raise ray_engine.exceptions.ObjectStoreFullError("it is full")

    monkeypatch.setattr(ray_engine.ray, "put", refuse)
    with closing(RayEngine(EchoWorker, Config(workers=1))) as engine:
        with pytest.raises(
            WorkerError, match="the parameters, sent to Ray's .*, got ObjectStoreFull"
        ):
            list(engine.run([(0, 0.0)], None))


# --- whole trainings --------------------------------------------------------------------------


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
