"""A resume that is refused leaves everything as it was, to the byte, and says why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from disks import contents
from promises import promise
from toys import toy_evaluation, with_updates

import pixelpong
from pixelpong import learners
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.faces.training import _require_work_left
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record

pytestmark = promise("refusals")


@pytest.fixture(params=["stopped", "won", "never locked"])
def run(request, tmp_path, toy_runs, mode) -> RunDirectory:
    """A finished run; or one that was copied without its lock."""
    run = RunDirectory(shutil.copytree(toy_runs[mode], tmp_path / "run"))
    if request.param == "won" and mode == "atari":
        pytest.skip("only Pong has a target")
    if request.param == "won":
        config = run.config.updated({"updates": 12, "until_return": 18.0}, "test")
        run.with_config(config).write_config(12)
        run.evaluations.append(toy_evaluation(12, 19.0, target=18.0, is_won=True))
    if request.param == "never locked":
        (run.path / "run.lock").unlink()
    return run


def check_refusal(run: RunDirectory, resume, says: str) -> None:
    before, state = contents(run.path.parent), Record.read(run.path).state
    with pytest.raises(PixelpongError) as caught:
        resume()
    assert says in str(caught.value)
    assert contents(run.path.parent) == before
    assert Record.read(run.path).state == state != "failed"


CHANGES = [
    ({"seed": 9}, "was started with --seed 0, not 9; leave the option out, or train a new run."),
    ({"hidden": 50}, "was started with --hidden 8, not 50; leave"),
    ({"dtype": "float64"}, "was started with --dtype float32, not float64; leave"),
    ({"seed": 1, "hidden": 9}, "was started with --seed 0, not 1, --hidden 8, not 9; leave"),
    ({"algorithm": {"classic": "ppo", "fast": "reinforce"}}, "was started with --algorithm "),
    ({"opponent": "slef"}, "slef is not a run, an agent or an agent's file; did you mean self?"),
    ({"opponent": "damaged.safetensors"}, "cannot use the agent in damaged"),
]


@pytest.mark.parametrize(("changes", "says"), CHANGES, ids=str)
def test_options_that_cannot_change_are_named(run, mode, changes, says, monkeypatch):
    monkeypatch.chdir(run.path.parent)
    Path("damaged.safetensors").write_bytes(b"x" * 1000)
    if mode == "atari" and {"algorithm", "opponent"} & set(changes):
        changes, says = {"opponent": "slef"}, "opponent is for Pong alone"
    elif isinstance(changes.get("algorithm"), dict):
        changes = {"algorithm": changes["algorithm"][mode]}
    options = changes | {"updates": 14}
    if mode != "atari":
        options["until_return"] = 20.0
    if mode == "classic" and "opponent" in changes:
        return  # REINFORCE has no opponents
    check_refusal(run, lambda: pixelpong.resume(run.path, allow_changes=True, **options), says)


def resume(run: RunDirectory) -> None:
    config = run.config.updated({"updates": 14}, "test")
    train(RunDirectory(run.path).with_config(config))


def test_a_run_whose_checkpoints_cannot_be_used(run, capsys):
    for update in run.checkpoints.updates():
        run.checkpoints.path(update).write_bytes(b"damaged")
    check_refusal(run, lambda: resume(run), "None of the checkpoints in ")
    for update in run.checkpoints.updates():
        run.checkpoints.path(update).unlink()
    check_refusal(run, lambda: resume(run), "There are no checkpoints in ")


def test_what_a_kill_in_the_last_evaluation_left_is_done_without_a_new_budget_only(make_run):
    """The old budget is spent in both cases."""
    run = make_run("killed", updates=2)
    train(run)
    config = run.config.updated({"until_return": 20.0, "updates": 2}, "test")
    run.with_config(config).write_config(2)
    _require_work_left(RunDirectory(run.path), config, has_new_budget=False)
    with pytest.raises(ConfigError, match="Nothing is left to train"):
        _require_work_left(RunDirectory(run.path), config, has_new_budget=True)


def test_libraries_that_draw_other_numbers(run, monkeypatch):
    real = learners.draw_params
    monkeypatch.setattr(learners, "draw_params", lambda *a: real(*a[:4], a[4] + 1, a[5]))
    says = "the installed libraries draw other numbers from the seed. Use the versions in config"
    check_refusal(run, lambda: resume(run), says)


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl"])
def test_lines_that_are_lost_far_beyond_what_a_crash_costs(run, name, capsys):
    """Going back to where they end would cost the checkpoints after it."""
    run.checkpoints.remove([10])
    content = (run.path / name).read_bytes()
    (run.path / name).write_bytes(content[: len(content) // 2])
    says = f"{name} ends before the checkpoint of update 12, and the previous checkpoint is much"
    check_refusal(run, lambda: resume(run), says)


def test_a_training_that_has_the_lock(run):
    config = run.config.updated({"updates": 14, "until_return": 20.0}, "test")
    other = RunDirectory(run.path).with_config(config)
    with run.lock() as lock:
        lock.is_kept = True
        before = contents(run.path)
        with pytest.raises(PixelpongError, match=r"Process \d+ is training in"):
            train(other)
        assert contents(run.path) == before


def test_the_same_run_goes_on_if_nothing_is_wrong(run):
    train(with_updates(run, 13))
    assert Record.read(run.path).update == 13
