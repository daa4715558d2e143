"""Ray's workers may die and hang in the middle of an update: the same bits."""

from __future__ import annotations

import functools
import itertools
import signal

import pytest
from fakes import OnceWorker
from promises import promise
from toys import same_training, toy_config

from pixelpong import loop
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

pytestmark = [pytest.mark.ray, promise("a worker is lost")]

GAMES = {
    "short classic": ("classic", {"batch_size": 12}),
    "short fast": ("fast", {"num_envs": 12}),
    "pong classic": ("classic", {"max_frames": 20_000, "batch_size": 4}),
    "pong fast": ("fast", {"max_frames": 20_000, "num_envs": 12, "num_steps": 100}),
}
QUICK = [
    (signal.SIGKILL, "short classic", "actors", ["2-1", "3-0"]),
    (signal.SIGKILL, "short fast", "tasks", ["2-1", "3-0"]),
    (signal.SIGSTOP, "short fast", "actors", ["2-1"]),
]
EVERY = [f"{update}-{update % 4}" for update in range(1, 21)]
SOAK = itertools.product((signal.SIGKILL, signal.SIGSTOP), GAMES, ("actors", "tasks"), [EVERY])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("number", "game", "ray_mode", "where"),
    [*QUICK, *(pytest.param(*each, marks=pytest.mark.soak) for each in SOAK)],
)
def test_workers_that_die_or_hang_change_no_bit(
    number, game, ray_mode, where, ray_cluster, tmp_path, monkeypatch
):
    """Where: the update and the item's number."""
    preset, changes = GAMES[game]
    changes |= {"updates": int(where[-1].partition("-")[0]) + 1}
    undisturbed = RunDirectory.create(tmp_path / "undisturbed", toy_config(preset, **changes))
    train(undisturbed)
    seconds = 60.0 if number == signal.SIGKILL else 4.0
    changes |= {"engine": "ray", "workers": 2, "ray_mode": ray_mode, "worker_timeout": seconds}
    run = RunDirectory.create(tmp_path / "run", toy_config(preset, **changes))
    monkeypatch.setattr(loop, "make_worker", functools.partial(OnceWorker, number, where, tmp_path))
    train(run)
    assert {path.name for path in tmp_path.glob("*-*")} == {*where}
    assert same_training(run, undisturbed) == []
