"""The loop: its order, its budget, and the target: when it is tested, and the result."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from promises import promise
from toys import TOY, same_training, stop_after, with_updates

from pixelpong import evaluation, learners, stopwatch, target
from pixelpong import session as session_module
from pixelpong.config import Config
from pixelpong.engines import Engine, EngineStats
from pixelpong.errors import CheckpointError, ConfigError, RunError
from pixelpong.evaluation import run_target_test
from pixelpong.items import BUILTIN, Episode
from pixelpong.learners import progress as progress_module
from pixelpong.learners.progress import POINT_WINDOW, Progress, expected_return
from pixelpong.loop import Began, Evaluated, Updated, train, training
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.run.record import Record
from pixelpong.schema import convert

# --- the loop ---------------------------------------------------------------------------------


@promise("lines first")
def test_the_disk_has_the_lines_then_the_checkpoint_and_then_its_name(make_run, monkeypatch):
    """Else a loss of power could leave a checkpoint of updates whose lines are gone, or half of it.

    At the end its folder is flushed.
    """
    run = make_run(updates=1, evaluate_every=1, evaluate_episodes=1, save_agent_every=0)
    tape, sync, replace = [], os.fsync, Path.replace

    def noted_sync(descriptor):
        tape.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def noted_replace(path, target):
        tape.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    train(run)
    first, last = (f".00000{update}.safetensors-{os.getpid()}" for update in (0, 1))
    lines = {"metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"}
    assert lines <= {*tape[tape.index(first) : tape.index(last)]}
    assert tape[tape.index(last) :] == [last, "rename", "checkpoints"]


def test_a_run_directory_holds_what_the_design_says(make_run):
    run = make_run(evaluate_every=2, evaluate_episodes=4)
    *events, outcome = training(run)
    assert [type(event) for event in events] == [Began, Updated, Updated, Evaluated, Updated]
    assert outcome.reason == "updates"
    assert sorted(path.name for path in run.path.iterdir()) == [
        "agents", "checkpoints", "config.json", "episodes.jsonl", "evaluations.jsonl",
        "metrics.jsonl", "run.lock",
    ]  # fmt: skip
    metrics, episodes = list(run.metrics.read()), list(run.episodes.read())
    assert [line["update"] for line in metrics] == [1, 2, 3]
    assert [line["episode"] for line in episodes] == list(range(1, 10))
    (evaluation,) = run.evaluations.read()
    assert (evaluation["update"], len(evaluation["returns"])) == (2, 4)
    assert metrics[-1]["steps"] == sum(line["steps"] for line in episodes) == outcome.progress.steps
    assert metrics[0]["mean_return"] == pytest.approx(
        np.mean([line["episode_return"] for line in episodes[:3]])
    )
    assert metrics[0]["timing"]["steps_per_second"] > 0
    assert outcome.params_sha256 == run.checkpoints.load(3).card["about"]["params_sha256"]


def test_the_budget_that_is_reached_first_ends_the_training():
    for budget, progress, reason in (
        ({"updates": 2}, {"update": 1}, None),
        ({"updates": 2}, {"update": 2}, "updates"),
        ({"episodes": 30}, {"episodes": 30}, "episodes"),
        ({"total_timesteps": 100}, {"steps": 99}, None),
        ({"total_timesteps": 100}, {"steps": 140}, "total_timesteps"),
        ({"updates": 9, "total_timesteps": 100}, {"update": 1, "steps": 100}, "total_timesteps"),
    ):
        assert Config(**budget).reached(Progress(**progress)) == reason


# --- what cannot be ---------------------------------------------------------------------------


def test_a_training_whose_run_is_deleted_does_not_claim_to_be_saved(make_run):
    run = make_run(updates=4)
    with pytest.raises(RunError, match="run no longer exists; if the run was deleted"):
        for event in training(run):
            if isinstance(event, Updated) and event.progress.update == 2:
                shutil.rmtree(run.path)
    assert not run.path.exists()


def test_a_configuration_that_does_not_fit_is_never_written(make_run):
    run = make_run(updates=2)
    train(run)
    before = (run.path / "config.json").read_bytes()
    with pytest.raises(ConfigError, match="was started with --hidden 20, not 21; leave"):
        train(run.with_config(run.config.updated({"hidden": 21}, "test")))
    assert (run.path / "config.json").read_bytes() == before
    changed = run.with_config(run.config.updated({"learning_rate": 0.1, "updates": 3}, "test"))
    train(changed)
    content = json.loads((run.path / "config.json").read_text())
    assert content["changes"] == [{"update": 2, "learning_rate": [3e-3, 0.1]}]
    assert RunDirectory(run.path).config == changed.config


def test_where_a_seed_draws_other_parameters_a_resume_is_refused(make_run, monkeypatch):
    """As with a NumPy whose generators differ: a checkpoint has only the rows that were touched."""
    run = make_run(updates=1)
    train(run)
    real = learners.draw_params
    monkeypatch.setattr(learners, "draw_params", lambda *a: real(*a[:4], a[4] + 1, a[5]))
    with pytest.raises(CheckpointError, match="different SHA-256 here: .* Use the versions in"):
        train(run)


def test_the_best_checkpoint_is_the_one_that_evaluated_best(make_run):
    run = make_run(updates=9, evaluate_every=2, evaluate_episodes=5, save_every=100)
    train(run)
    sure = {line["update"]: line["ci95"][0] for line in run.evaluations.read()}
    best = max(sure, key=lambda update: (sure[update], update))
    assert run.checkpoints.find_best() == best
    assert best in run.checkpoints.updates()


# --- the target: the return that is expected, when it is tested, and the result ------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.73, 0.999, 1.0])
def test_the_expected_return_is_that_of_games_of_independent_points(share):
    """The literal sum over all ways a game to 21 can end."""
    wanted = 0.0
    for loser in range(21):
        ways = math.comb(20 + loser, loser)
        wanted += ways * share**21 * (1 - share) ** loser * (21 - loser)
        wanted -= ways * (1 - share) ** 21 * share**loser * (21 - loser)
    assert expected_return(share) == pytest.approx(wanted, abs=1e-12)
    assert expected_return(1 - share) == pytest.approx(-wanted, abs=1e-12)


def test_the_estimate_waits_for_a_thousand_points():
    progress = Progress()
    progress.recent_points += [1] * (POINT_WINDOW - 1)
    assert (progress.points_won_1000, progress.estimated_return) == (1.0, None)
    progress.count([], [(BUILTIN, -1)], 10, 5.0, 5)
    assert progress.estimated_return == pytest.approx(expected_return(0.999))
    progress.count([], [(BUILTIN, -1)] * POINT_WINDOW, 10, 5.0, 5)
    assert progress.estimated_return == -21
    assert convert(dataclasses.asdict(progress), Progress) == progress


def train_and_watch(run):
    """The outcome, and the evaluations on the way."""
    events = list(training(run))
    return events[-1], [it.evaluation for it in events if isinstance(it, Evaluated)]


@pytest.fixture
def make_fast(make_run, monkeypatch):
    """Make a run of the fast mode with an estimate after its first update, and short evaluations.

    Two games if they are hopeless, or else four; five new ones after a win.
    """
    monkeypatch.setattr(progress_module, "POINT_WINDOW", 8)
    monkeypatch.setattr(evaluation, "STAGES", ((2, 0.0), (4, 0.0)))
    monkeypatch.setattr(evaluation, "FEWEST", 3)
    monkeypatch.setattr(session_module, "NEW_GAMES", 5)
    monkeypatch.setattr(
        target, "TEST_EVERY", 2 * TOY["fast"]["num_envs"] * TOY["fast"]["num_steps"]
    )
    return functools.partial(make_run, preset="fast")


def test_a_target_that_an_evaluation_confirms_ends_the_training_for_good(make_fast):
    """Resumed, as after a death just after it has won, it makes not a single update more."""
    run = make_fast(updates=50, until_return=-21.0)
    outcome, seen = train_and_watch(run)
    assert outcome.reason == "until_return"
    test = outcome.test
    assert test == seen[-1]
    assert test.is_won
    assert test.update == outcome.progress.update == run.checkpoints.find_best() < 5
    assert (len(test.returns), test.test_games) == (5, 4)
    assert test.mean_return == sum(test.returns) / 5
    assert 0 < test.total_seconds == Record.read(run.path).total_seconds
    (line,) = run.evaluations.read()
    assert convert(line, Evaluation) == test
    assert (line["target"], line["is_won"]) == (-21.0, True)
    assert run.checkpoints.updates() == [0, test.update], "of a run that has won, the last alone"
    again, seen = train_and_watch(RunDirectory(run.path))
    assert (again.reason, again.params_sha256) == (outcome.reason, outcome.params_sha256)
    assert (again.test, seen) == (test, []), "and not a single game"
    assert list(run.evaluations.read()) == [line]


@pytest.mark.slow
def test_a_target_that_is_not_reached_is_tried_again_whatever_stops_the_training(
    make_fast, monkeypatch
):
    """And at its end."""
    monkeypatch.setattr(Progress, "estimated_return", property(lambda self: 21.0))  # looks like it
    run = make_fast(updates=6, until_return=21.0)
    outcome, seen = train_and_watch(run)
    assert outcome.reason == "updates"
    assert [test.update for test in seen] == [1, 3, 5, 6]
    assert not any(test.is_won for test in seen)
    assert [len(test.returns) for test in seen] == [2, 2, 2, 4]  # hopeless
    for stop in (1, 2):
        stopped = make_fast(f"stopped {stop}", updates=6, until_return=21.0)
        stop_after(stopped, stop)
        train(RunDirectory(stopped.path))
        assert same_training(stopped, run) == []


def test_a_test_is_passed_by_what_is_surely_above_the_target_and_by_nothing_else():
    """As in the simulation; the games go on from stage to stage, and none is played twice."""
    rng, numbers = np.random.default_rng(0), []

    def play(mean, episodes, first):
        numbers.append((first, episodes))
        lost = np.minimum(rng.negative_binomial(4, 4 / (25 - mean), episodes), 20)
        return [Episode.of_points(1, 1, 0.0, 0, (), (1,) * 21 + (-1,) * int(it)) for it in lost]

    passed = {}
    for mean in (17.5, 18.0, 19.5):
        tests = [run_target_test(functools.partial(play, mean), 18.0) for _ in range(300)]
        passed[mean] = sum(test.is_passed for test in tests)
    assert passed[17.5] == 0
    assert passed[18.0] <= 4
    assert passed[19.5] >= 290
    test = run_target_test(functools.partial(play, 18.0), 18.0, gives_up=False)
    ends = [games for games, _ in evaluation.STAGES]
    assert [sum(each) for each in numbers[-len(ends) :]] == ends
    assert (len(test.played), test.is_passed) == (ends[-1], False)


@pytest.mark.slow
def test_the_time_to_win_leaves_the_evaluations_out(make_fast, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: clock[0])
    play_games = session_module.play_games

    def slow(*args, **kwargs):
        clock[0] += 50
        return play_games(*args, **kwargs)

    monkeypatch.setattr(session_module, "play_games", slow)
    run = make_fast()
    for updates, began in ((3, -7.0), (4, None)):
        budget = {"until_return": 21.0, "updates": updates}
        train(run.with_config(run.config.updated(budget, "test")), began=began)
        found = Record.read(run.path)
        assert (found.total_seconds, found.training_seconds) == (100 * updates - 193, 7)


# --- what the numbers of a won run may claim ------------------------------------------------------


def test_the_new_games_after_a_win_are_other_games_than_those_that_passed_the_test(
    make_fast, monkeypatch
):
    """What is handed to the engine, and what the file then says: no game counts twice."""
    evaluated, real = [], Engine.run

    def noted(engine, items, params):
        evaluated.extend(item for item in items if item.purpose == "evaluate")
        return real(engine, items, params)

    monkeypatch.setattr(Engine, "run", noted)
    test = train(make_fast(updates=50, until_return=-21.0)).test
    assert (test.is_won, test.test_games, len(test.returns)) == (True, 4, 5)
    played = [item for item in evaluated if item.update == test.update]
    assert [item.index for item in played] == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert {(item.seed, item.is_greedy, item.games) for item in played} == {(0, True, 1)}


def test_after_a_win_a_higher_target_is_tried_at_once(make_fast, monkeypatch):
    """As is the same one if the win was lost in a crash; after a failure, only 50,000 steps on."""
    run = make_fast(updates=50, until_return=-21.0)
    assert train(run).test.is_won
    monkeypatch.setattr(Progress, "estimated_return", property(lambda self: 5.0))
    raised = run.with_config(run.config.updated({"until_return": 5.0, "updates": 99}, "test"))
    session = session_module.Session(raised, 0.0)
    assert session.should_test(is_final=False)


@pytest.mark.parametrize(("estimate", "is_tried"), [(None, 0), (17.85, 0), (17.95, 1), (18.5, 1)])
def test_the_target_is_tried_from_a_tenth_below_it(make_fast, monkeypatch, estimate, is_tried):
    """The estimate is of sampled play, and greedy play is better."""
    monkeypatch.setattr(Progress, "estimated_return", property(lambda self: estimate))
    session = session_module.Session(make_fast(updates=9, until_return=18.0), 0.0)
    assert not session.should_test(is_final=True), "an agent that has not learned"
    session.learner.progress.update = 1
    assert (session.should_test(is_final=False), session.should_test(is_final=True)) == (
        bool(is_tried), True,
    )  # fmt: skip


def test_the_speed_and_the_share_of_time_that_workers_play_are_as_by_hand(make_run):
    """Four workers that could have played for 2 seconds each have played for 6; learning took 3."""
    run = make_run()
    times = {"play_seconds": 6.0, "rollout_seconds": 2.0, "learn_seconds": 3.0}
    metrics = {"attempt": 1}
    stats = learners.UpdateStats(
        episodes=(), running_means=(), steps=1000, metrics=metrics, **times
    )
    with session_module.opened(run, 0.0) as session:
        session.learner.progress.update = 1
        session.record(stats, EngineStats(workers=4))
    (line,) = run.metrics.read()
    assert (line["timing"]["steps_per_second"], line["timing"]["busy_share"]) == (200.0, 0.75)


@pytest.mark.parametrize(("opponent", "has_met"), [("builtin", False), ("self", True)])
def test_an_agent_that_has_met_others_is_kept_with_more_rows(
    make_run, monkeypatch, opponent, has_met
):
    given, real = [], session_module.encode_small

    def noted(agent, is_touched, squares, has_met_agents):
        given.append(has_met_agents)
        return real(agent, is_touched, squares, has_met_agents)

    monkeypatch.setattr(session_module, "encode_small", noted)
    run = make_run(preset="fast", opponent=opponent)
    with session_module.opened(run, 0.0) as session:
        session.save()
    assert (given, run.agents.updates()) == ([has_met], [0])


def test_a_clock_that_jumps_back_counts_for_nothing(make_run, monkeypatch):
    """As a debugger's or a virtual machine's may: the run has times that can be, and goes on."""
    run = make_run(updates=3, evaluate_every=2, evaluate_episodes=1)
    jumps, clock = itertools.cycle((1, -3600, 2)), [1e6]

    def jump() -> float:
        clock[0] += next(jumps)
        return clock[0]

    monkeypatch.setattr(stopwatch.time, "monotonic", jump)
    train(run)
    monkeypatch.undo()
    times = [line["timing"] for line in run.metrics.read()]
    walls = [it["wall_seconds"] for it in times]
    assert walls == sorted(walls)
    assert all(0 <= it["training_seconds"] <= it["wall_seconds"] < 1e5 for it in times)
    assert train(with_updates(RunDirectory(run.path), 4)).progress.update == 4


def test_a_target_that_was_missed_at_the_end_is_not_recorded_twice(make_fast):
    run = make_fast(updates=2, until_return=21.0)
    first, seen = train_and_watch(run)
    assert [it.update for it in seen] == [2]
    lines = list(run.evaluations.read())
    again, _ = train_and_watch(RunDirectory(run.path))
    assert (again.reason, again.test) == (first.reason, first.test)
    assert list(run.evaluations.read()) == lines


# --- the episodes at the end -------------------------------------------------------------------


def test_the_episodes_at_the_end_are_sampled_and_played_once_for_each_end(make_run):
    run = make_run(preset="atari", final_episodes=3)
    for updates, ends in ((3, [3]), (3, [3]), (5, [3, 5])):
        train(with_updates(run, updates))
        lines = list(run.evaluations.read())
        assert [line["update"] for line in lines] == ends
        assert {len(line["returns"]) for line in lines} == {3}


def test_a_run_whose_learning_rate_has_fallen_to_0_says_so_when_it_goes_on(make_run, capsys):
    run = make_run(preset="atari", anneal_steps=300)
    train(run)
    assert "learns nothing more" not in capsys.readouterr().err
    train(with_updates(run, 4))
    assert (
        "has fallen to 0 after 300 steps, so this run learns nothing more"
        in capsys.readouterr().err
    )
