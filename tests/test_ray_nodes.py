"""Nodes that come and go while a training runs on them."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import workers_find_tests
from fakes import EchoWorker
from lose_a_node import LocalCluster

from pixelpong.config.presets import load_preset
from pixelpong.engines.ray import RayEngine
from pixelpong.loop import Updated, train
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cluster():
    """Two nodes, and two again after each test."""
    with workers_find_tests():
        cluster = LocalCluster(2)
        yield cluster
        cluster.close()


class Weather:
    """Loses a node in the middle of one update, and adds one after another."""

    def __init__(self, cluster) -> None:
        self._cluster = cluster

    def __call__(self, event) -> None:
        if not isinstance(event, Updated):
            return
        if event.progress.update == 3:
            threading.Timer(event.stats.rollout_seconds / 2, self._cluster.lose_node).start()
        if event.progress.update == 6:
            self._cluster.add_node()


def test_a_lost_node_and_a_new_one_change_nothing(cluster, tmp_path):
    small = {"streams": 6, "horizon": 128, "hidden": 8, "minibatches": 2, "updates": 40}
    config = load_preset("fast").updated({**small, "engine": "threads", "workers": 2}, "test")
    undisturbed = train(RunDirectory.create(tmp_path / "undisturbed", config))
    # ALE's items are long enough for a node to be lost, and another to join, between two of them.
    changes = {"engine": "ray", "ray_address": cluster.address, "workers": None, "emulator": "ale"}
    run = RunDirectory.create(tmp_path / "disturbed", config.updated(changes, "test"))
    begin = time.monotonic()
    disturbed = train(run, Weather(cluster))
    assert time.monotonic() - begin < 120
    assert disturbed.params_sha256 == undisturbed.params_sha256
    timings = [line["timing"] for line in run.metrics.read()]
    assert timings[-1]["restarts"] >= 1
    workers = [timing["workers"] for timing in timings]
    assert 1 in workers
    assert workers[-1] == 2, workers


def test_a_job_finds_its_cluster_by_the_environment(cluster, monkeypatch):
    """As `ray job submit` starts it: no address on the command line."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    with closing(RayEngine(EchoWorker, None, 30.0)) as engine:
        pids = set()
        while len(pids) < 2:  # a worker on each node, and none of a Ray of its own
            pids |= {pid for _, _, (pid, _) in engine.run([(i, 0.05) for i in range(4)], None)}
        assert len(engine.worker_pids) == 2


def test_the_example_that_loses_a_node_shows_the_same_bits():
    example = Path(__file__).parents[1] / "examples" / "lose_a_node.py"
    words = [sys.executable, str(example), "--updates", "8"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^[1-9]\d* workers lost, [1-9]\d* items played again", done.stdout, re.M)
    assert "the same bits; " in done.stdout
