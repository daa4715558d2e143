"""What Ray alone brings: tasks, its network, clusters that are full or not there."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from disks import contents
from fakes import EchoWorker, MeetingWorker
from processes import processes_with
from promises import promise
from waiting import wait_until

import pixelpong.engines.ray as ray_engine
from pixelpong import training
from pixelpong.config import Config
from pixelpong.engines.ray import RayEngine, cluster, connection
from pixelpong.engines.ray.jobs import connected_trainer
from pixelpong.errors import Interrupted, WorkerError
from pixelpong.loop import train
from pixelpong.machine import collect_versions
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.ray


def test_tasks_that_play_are_not_cancelled_when_the_engine_closes(
    ray_cluster, monkeypatch, tmp_path
):
    """If one finished at that moment, Ray's core would end this process."""
    cancelled = []
    monkeypatch.setattr(ray_engine.ray, "cancel", lambda *args, **options: cancelled.append(args))
    config = Config(workers=2, ray_mode="tasks")
    with closing(RayEngine(MeetingWorker, config, (tmp_path / "0").exists)) as engine:
        with pytest.raises(Interrupted):
            list(engine.run([("0", "go"), ("1", "go")], str(tmp_path)))
    (tmp_path / "go").touch()
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


@promise("Ray tells nobody")
def test_our_own_ray_is_reached_by_nobody_elsewhere_and_tells_nobody(ray_cluster):
    """What it asks the network at its start goes nowhere; `test_network` looks from outside."""
    daemons = processes_with(f"pixelpong.ray-{os.getpid()}-")
    found = listening_addresses(daemons)
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}  # loopback, also in IPv6
    environments = [Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in daemons]
    readable = [each for each in environments if each[0]]  # over others lies a title
    assert len(readable) >= 4  # the store of the cluster's state, the node's, its agents
    for environment in readable:
        assert b"RAY_USAGE_STATS_ENABLED=0" in environment
        assert b"http_proxy=http://127.0.0.1:9" in environment
    assert "http_proxy" not in os.environ, "the driver's own errands are none of Ray's business"


# --- a cluster that is lost -------------------------------------------------------------------


def test_a_head_elsewhere_may_be_silent_for_a_while_and_one_here_is_gone_at_once(monkeypatch):
    """`test_ray_nodes` loses real ones."""
    monkeypatch.setattr(cluster, "TRY_SECONDS", 0.0)
    answers = []

    def connect(*_):
        if answers[0]:
            raise answers[0]
        return here

    def failures(end, error):
        """How many tries it takes until the end counts as lost."""
        answers[:] = [error]
        end.close()
        return next(number for number in itertools.count(1) if end.is_lost())

    monkeypatch.setattr(cluster, "connect", connect)
    answers[:] = [None]
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        for is_here, error, tries in [
            (False, TimeoutError("timed out"), cluster.LOST_TRIES),
            (False, ConnectionRefusedError("refused"), cluster.LOST_TRIES),
            (True, TimeoutError("timed out"), cluster.LOST_TRIES),
            (True, ConnectionRefusedError("refused"), 1),
        ]:
            answers[:] = [None]
            end = cluster._Link("it", "host:1", is_local=is_here)
            assert not end.is_lost()
            monkeypatch.setattr(end, "close", lambda end=end: setattr(end, "_socket", None))
            assert failures(end, error) == tries
            answers[:] = [None]
            assert not end.is_lost(), "it answers again"


# --- what cannot be used ----------------------------------------------------------------------


@promise("refusals")
def test_a_training_or_a_sweep_that_is_refused_leaves_no_run(make_run, tmp_path):
    """So `latest` is still the run before. In processes that have no Ray yet."""
    train(make_run("runs/before"))
    runs = tmp_path / "runs"
    for command in ("train --updates 9", "resume latest --updates 9", "sweep --seeds 0 --out new"):
        words = [*command.split(), "--engine", "ray", "--ray-address", "127.0.0.1:1"]
        done = subprocess.run(
            [sys.executable, "-m", "pixelpong", *words],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2
        assert "a Ray cluster at 127.0.0.1:1: Connection refused" in done.stderr
        assert [path.name for path in (*tmp_path.iterdir(), *runs.iterdir())] == ["runs", "before"]
        assert RunDirectory(runs / "before").config.engine == "serial"


def refuse(*_, **__):
    raise ray_engine.exceptions.ObjectStoreFullError("it is full")


@pytest.fixture
def no_ray_yet(monkeypatch):
    """As in a process that is not connected; what Ray is asked for: its address each time."""
    asked = []
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection.ray, "shutdown", lambda: None)

    def refuse_to_start(where, **options):
        asked.append(where)
        refuse()

    monkeypatch.setattr(connection.ray, "init", refuse_to_start)
    return asked


def test_a_cluster_that_cannot_be_joined_is_one_line(no_ray_yet, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))  # no cluster was started there
    with pytest.raises(WorkerError, match="cannot connect .* at auto: ObjectStoreFull"):
        with connection.connected("auto", None):
            pass
    assert no_ray_yet == ["auto"]


def test_a_ray_of_our_own_that_does_not_start_is_started_once_more(no_ray_yet):
    """On a busy machine it can be too slow."""
    with pytest.raises(WorkerError, match="cannot start Ray: ObjectStoreFull"):
        with connection.connected(None, 1):
            pass
    assert no_ray_yet == ["local", "local"]


@promise("refusals")
@pytest.mark.parametrize(
    "command",
    ["train --name new --updates 9", "resume latest --updates 9", "sweep --seeds 0 --out new"],
)
def test_if_no_ray_of_our_own_starts_nothing_is_made_or_changed(
    no_ray_yet, make_run, tmp_path, call, command
):
    train(make_run("runs/before"))
    before = contents(tmp_path)
    code, out, err = call(*command.split(), "--engine", "ray")
    assert (code, out) == (1, "")
    assert "cannot start Ray: ObjectStoreFull" in err
    assert contents(tmp_path) == before
    if command.startswith("train"):
        with pytest.raises(WorkerError, match="cannot start Ray"):
            next(training("fast", name="new", updates=9, engine="ray"))
        assert contents(tmp_path) == before


@promise("any surroundings")
@pytest.mark.slow
def test_under_uv_run_and_with_hooks_for_clusters_our_own_ray_is_as_without(tmp_path):
    """Ray takes a parent process that is called ``uv run`` for it; here it is a shell."""
    words = "train --engine ray --workers 1 --preset classic --max-frames 300 --hidden 10"
    command = [sys.executable, "-m", "pixelpong", *words.split(), "--batch-size", "2"]
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "run").write_text(f"{shlex.join(command)} --updates 1 -q; exit $?")
    hooks = {"RAY_RUNTIME_ENV_HOOK": "nowhere.hook", "RAY_JOB_CONFIG_JSON_ENV_VAR": "nonsense"}
    done = subprocess.run(
        ["uv", "run"], executable="/bin/sh", cwd=tmp_path / "notes", env=os.environ | hooks,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_rays_reason_is_told_in_whole_sentences():
    said = "It was killed. The memory was full (3.7 of 4 GB). " + "Read this (if you like: " * 40
    error = ray_engine.exceptions.OutOfMemoryError(said)
    wanted = "OutOfMemoryError: It was killed. The memory was full (3.7 of 4 GB)"
    assert connection.in_one_line(error) == wanted
    assert connection.in_one_line(ValueError("a\n b")) == "ValueError: a b"
    assert len(connection.in_one_line(ValueError("x" * 9999))) < 600


def test_a_cluster_without_room_is_one_line_and_with_a_little_room_is_used(
    ray_cluster, monkeypatch
):
    """As `ray job submit --entrypoint-num-cpus 1` leaves one of two CPUs."""
    config = Config(workers=2)
    with closing(RayEngine(EchoWorker, Config(workers=1))) as first:
        list(first.run([0], None))
        assert wait_until(lambda: free_cpus(first) == 1)
        with closing(RayEngine(EchoWorker, config)) as second:
            assert list(second.run(range(9), None)) == [(number, None) for number in range(9)]
            assert second.stats.workers == 1
            assert wait_until(lambda: free_cpus(second) == 0)
            monkeypatch.setattr(ray_engine, "ROOM_SECONDS", 1.0)
            with closing(RayEngine(EchoWorker, config)) as third:
                with pytest.raises(WorkerError, match="No worker started within .*: 0 of 2 CPUs"):
                    list(third.run([0], None))
            first.close()  # what becomes free is used
            assert wait_until(lambda: list(second.run([0], None)) and second.stats.workers == 2)


def free_cpus(engine: RayEngine) -> int:
    return sum(node.free for node in engine._cluster.nodes())


@pytest.mark.parametrize(
    ("name", "instead", "words"),
    [
        ("collect_versions", lambda: collect_versions() | {"numpy": "1"}, "instead of numpy 1;"),
        ("ray.put", refuse, "the parameters to Ray's .* failed with ObjectStoreFull"),
    ],
)
def test_a_node_or_a_store_that_does_not_fit_is_one_line(
    ray_cluster, monkeypatch, name, instead, words
):
    monkeypatch.setattr(f"pixelpong.engines.ray.{name}", instead)
    with closing(RayEngine(EchoWorker, Config(workers=1))) as engine:
        with pytest.raises(WorkerError, match=words):
            list(engine.run([0], None))


def test_a_node_with_other_versions_trains_no_run_of_a_sweep(ray_cluster, monkeypatch, tmp_path):
    wanted = collect_versions() | {"numpy": "1"}
    monkeypatch.setattr("pixelpong.engines.ray.jobs.collect_versions", lambda: wanted)
    with connected_trainer(print, 1, None) as trainer:
        job = trainer.start(tmp_path)
        assert wait_until(lambda: trainer.find_error(job) is not None)
        assert "instead of numpy 1; install the same versions" in trainer.find_error(job)


def test_a_node_that_does_not_see_the_runs_of_a_sweep_ends_it_with_one_line(ray_cluster, tmp_path):
    with connected_trainer(print, 1, None) as trainer:
        job = trainer.start(tmp_path / "elsewhere")
        what = "cannot see .*elsewhere: give --out a folder that all nodes share"
        with pytest.raises(WorkerError, match=what):
            wait_until(lambda: trainer.find_error(job) is not None)
