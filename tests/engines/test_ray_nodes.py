"""Nodes that come and go while a training runs on them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from drivers import Driver
from fakes import EchoWorker
from lose_a_node import LocalCluster
from processes import processes_with
from promises import promise
from toys import same_training
from waiting import wait_until

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines.ray import RayEngine
from pixelpong.loop import Updated, train
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.ray

SMALL = {"num_envs": 6, "num_steps": 16, "hidden": 8, "num_minibatches": 2, "restart_after": 0}


@pytest.fixture(scope="module")
def cluster(workers_find_tests):
    """Two nodes of one core."""
    cluster = LocalCluster(2)
    yield cluster
    cluster.close()


@promise("a worker is lost")
def test_a_lost_node_and_a_new_one_change_nothing(cluster, tmp_path):
    """A node goes while both play, and another one comes."""
    seen, steps = [], [(2, cluster.lose_node), (1, cluster.add_node), (2, int)]

    def disturb(event) -> None:
        if isinstance(event, Updated) and steps and event.engine.workers == steps[0][0]:
            seen.append(event.engine)
            steps.pop(0)[1]()

    budget = {"updates": 10**6, "until_return": None}
    config = load_preset("fast").updated({**SMALL, **budget, "engine": "threads"}, "test")
    changes = {"engine": "ray", "ray_address": cluster.address}
    run = RunDirectory.create(tmp_path / "disturbed", config.updated(changes, "test"))
    train(run, disturb, lambda: not steps)
    assert [engine.restarts > 0 for engine in seen] == [False, True, True]
    updates = run.checkpoints.load_latest().update
    whole = config.updated({"updates": updates}, "test")
    undisturbed = RunDirectory.create(tmp_path / "undisturbed", whole)
    train(undisturbed)
    assert same_training(run, undisturbed) == []


def test_a_job_finds_its_cluster_by_the_environment(cluster, monkeypatch):
    """As `ray job submit` starts it: no address on the command line."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    with closing(RayEngine(EchoWorker, Config())) as engine:
        list(engine.run([0], None))
        assert wait_until(lambda: list(engine.run([0], None)) and engine.stats.workers == 2)


def check_lost(driver: Driver, run: RunDirectory, config: Config, words: str) -> None:
    """The command ends with one line of ours, and its last complete update is saved."""
    assert driver.wait() == 1
    last = driver.said().splitlines()[-1]
    lost = f"pixelpong: error: The Ray cluster is lost: {words} does not answer"
    pattern = f"{lost} .*; continue with 'pixelpong resume run'"
    assert re.fullmatch(pattern, last)
    updates = run.checkpoints.load_latest().update
    assert updates == max(line["update"] for line in run.metrics.read()) >= 3
    whole = config.updated({"updates": updates}, "test")
    undisturbed = RunDirectory.create(run.path.with_name("undisturbed"), whole)
    train(undisturbed)
    assert same_training(run, undisturbed) == []


ENDLESS = {
    **SMALL, "engine": "threads", "updates": 10**6, "until_return": None, "save_every": 10**6,
}  # fmt: skip


@promise("a lost head")
@pytest.mark.slow
def test_a_lost_head_costs_no_complete_update(tmp_path):
    """Ray itself would end the process after a while, without a word of ours."""
    config = load_preset("fast").updated(ENDLESS, "test")
    run = RunDirectory.create(tmp_path / "run", config)
    others = processes_with("/gcs_server\0")
    with closing(LocalCluster(1)) as cluster:
        ours = processes_with("/gcs_server\0") & processes_with(f"pixelpong.ray-{os.getpid()}-")
        (head,) = ours - others
        on_it = "--engine", "ray", "--ray-address", cluster.address
        with Driver(tmp_path, "resume", "run", *on_it, "--quiet") as driver:
            driver.wait_for_lines(3)
            os.kill(head, signal.SIGKILL)
            check_lost(driver, run, config, f"the head at {cluster.address}")


@promise("a lost head")
@pytest.mark.soak
def test_a_ray_of_our_own_that_dies_costs_no_complete_update(tmp_path):
    """At the next update, Ray itself would end the process. `test_same_bits` always has one."""
    config = load_preset("fast").updated(ENDLESS, "test")
    run = RunDirectory.create(tmp_path / "run", config)
    words, accident = (
        ["resume", "run", "--engine", "ray", "--quiet"],
        ["raylet", "pixelpong.session:Session.record", 3],
    )
    with Driver(tmp_path, *words, accident=accident) as driver:
        check_lost(driver, run, config, "Ray on this machine")


@pytest.mark.soak
def test_the_example_that_loses_a_node_shows_the_same_bits():
    example = Path(__file__).parents[2] / "examples" / "lose_a_node.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^[1-9]\d* items played again", done.stdout, re.M)
    assert "the same bits" in done.stdout
