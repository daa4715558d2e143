"""Stop and go on: wherever a training is stopped, what comes of it is the same, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from outcomes import outcome_of

from pixelpong.config.presets import load_preset
from pixelpong.loop import Updated, train
from pixelpong.run.directory import RunDirectory

UPDATES = 20

TOY = {
    "classic": {"hidden": 20, "batch_size": 3, "learning_rate": 3e-3},
    "fast": {"hidden": 8, "num_envs": 4, "num_steps": 25, "num_minibatches": 2},
}

ENGINES = ["serial", "threads", pytest.param("ray", marks=pytest.mark.ray)]


class StopAfter:
    """Asks for a stop once an update is done, as Ctrl-C would."""

    def __init__(self, update: int) -> None:
        self._update, self._is_done = update, update == 0

    def __call__(self, event) -> None:
        if isinstance(event, Updated):
            self._is_done = event.progress.update >= self._update

    def should_stop(self) -> bool:
        return self._is_done


def make(path: Path, mode: str, engine: str = "serial") -> RunDirectory:
    changes = {
        **TOY[mode], "max_frames": 300, "updates": UPDATES, "engine": engine, "workers": 2,
        "save_every": 7, "save_agent_every": 1, "evaluate_every": 6,
        "evaluate_episodes": 4,
    }  # fmt: skip
    return RunDirectory.create(path, load_preset(mode).updated(changes, "test"))


def stop_and_go_on(path: Path, mode: str, engine: str, stops: list[int]) -> dict:
    run = make(path, mode, engine)
    for update in stops:
        display = StopAfter(update)
        outcome = train(run, display, display.should_stop)
        assert (outcome.reason, outcome.progress.update) == ("interrupted", update)
        run = RunDirectory(path)
        assert run.checkpoints.updates()[-1] == update
    train(run)
    return outcome_of(run)


@pytest.fixture(params=TOY)
def mode(request) -> str:
    return request.param


@pytest.fixture
def undisturbed(tmp_path, mode) -> dict:
    run = make(tmp_path / "undisturbed", mode)
    train(run)
    wanted = outcome_of(run)
    lines = [line["update"] for line in wanted["metrics.jsonl"]]
    assert lines == list(range(1, UPDATES + 1))
    episodes = [line["episode"] for line in wanted["episodes.jsonl"]]
    assert episodes == list(range(1, len(episodes) + 1))
    assert len(wanted["evaluations.jsonl"]) == 3
    assert len([name for name in wanted if name.startswith("agent")]) > 8
    return wanted


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_at_each_of_twenty_updates_changes_nothing(
    tmp_path, mode, engine, undisturbed, request
):
    if engine == "ray":
        request.getfixturevalue("ray_cluster")
    same = [
        update
        for update in range(UPDATES)
        if stop_and_go_on(tmp_path / f"{update}", mode, engine, [update]) == undisturbed
    ]
    assert same == list(range(UPDATES))


@pytest.mark.slow
def test_a_stop_at_every_update_changes_nothing(tmp_path, mode, undisturbed):
    every = list(range(UPDATES))
    assert stop_and_go_on(tmp_path / "stopped", mode, "serial", every) == undisturbed
