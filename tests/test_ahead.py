"""Rollouts that lag one update behind: another training, but as exact as the other."""

from __future__ import annotations

import threading
import time

import pytest

from pixelpong.ahead import Ahead
from pixelpong.config import BudgetConfig
from pixelpong.engines.serial import SerialEngine
from pixelpong.learners import make_learner
from pixelpong.presets import load_preset
from pixelpong.run import Run
from pixelpong.store import fingerprint
from pixelpong.train import train
from pixelpong.worker import make_worker

UPDATES = 6


@pytest.fixture(params=["classic", "fast"])
def config(request):
    """The toy game, in both modes, with a lag."""
    small = {
        "classic": {"hidden": 20, "batch_size": 3},
        "fast": {"hidden": 8, "streams": 3, "horizon": 20, "minibatches": 2},
    }[request.param]
    changes = {
        **small, "environment": "Catch-v0", "updates": UPDATES, "engine": "serial", "lag": 1,
        "save_every": 1, "learning_rate": 3e-3,
    }  # fmt: skip
    return load_preset(request.param).updated(changes, "test")


@pytest.mark.slow
def test_engines_and_stops_change_nothing_but_the_lag_does(config, tmp_path):
    def go(name, stops=(UPDATES,), **changes):
        for stop in stops:
            step = config.updated({**changes, "updates": stop}, "test")
            path = tmp_path / name
            run = Run.open(path).with_config(step) if path.exists() else Run.create(path, step)
            outcome = train(run)
        lines = [
            {name: value for name, value in line.items() if name != "timing"}
            for line in run.metrics.read()
        ]
        return outcome.params_sha256, lines

    wanted = go("serial")
    assert go("threads", engine="threads", workers=2) == wanted
    assert go("stopped", stops=range(1, UPDATES + 1)) == wanted
    assert go("without", lag=0) != wanted


def test_a_round_is_played_with_the_params_of_two_updates_before(config):
    """The first two with those of the start."""
    learner, before, played_with = make_learner(config), [], []

    class Engine(SerialEngine):
        def run(self, items, params):
            played_with.append((items[0].update, fingerprint(params)))
            return super().run(items, params)

    before.append(fingerprint(learner.params))
    ahead = Ahead(learner, Engine(lambda: make_worker(config)), BudgetConfig())
    for _ in range(4):
        ahead.update()
        before.append(fingerprint(learner.params))
    assert [update for update, _ in played_with] == [1, 2, 3, 4, 5]
    assert [name for _, name in played_with] == [before[max(0, u - 2)] for u in range(1, 6)]


@pytest.mark.slow
def test_playing_and_learning_go_on_at_the_same_time(config, monkeypatch):
    learner = make_learner(config)
    apply, threads = learner.apply, set()

    def slow_apply(results):
        threads.add(threading.get_ident())
        time.sleep(0.3)
        return apply(results)

    class SlowEngine(SerialEngine):
        def run(self, items, params):
            threads.add(threading.get_ident())
            time.sleep(0.3)
            return super().run(items, params)

    monkeypatch.setattr(learner, "apply", slow_apply)
    ahead = Ahead(learner, SlowEngine(lambda: make_worker(config)), BudgetConfig(updates=4))
    ahead.update()  # compiles
    begin = time.monotonic()
    stats = [ahead.update() for _ in range(3)]
    assert time.monotonic() - begin < 3 * 0.6 - 0.3
    assert len(threads) > 1
    assert all(each.rollout_seconds >= 0.3 for each in stats)


def test_nothing_is_played_ahead_of_the_last_update(config):
    runs = []

    class Engine(SerialEngine):
        def run(self, items, params):
            runs.append(len(items))
            return super().run(items, params)

    learner = make_learner(config)
    ahead = Ahead(learner, Engine(lambda: make_worker(config)), BudgetConfig(updates=3))
    for _ in range(3):
        ahead.update()
    assert len(runs) == 3


@pytest.mark.slow
def test_a_stop_while_it_plays_ahead_loses_no_complete_update(config, tmp_path):
    asked = []
    run = Run.create(tmp_path / "run", config)

    def should_stop():
        asked.append(1)
        return len(asked) > 10

    stopped = train(run, should_stop=should_stop)
    assert stopped.reason == "interrupted"
    assert run.checkpoints.updates()[-1] == stopped.progress.update >= 1
    whole = train(Run.create(tmp_path / "whole", config))
    assert train(Run.open(run.path)).params_sha256 == whole.params_sha256
