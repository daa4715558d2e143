"""The score of a checkpoint, by which the best agent of a run is found."""

from __future__ import annotations

from pixelpong import session as session_module
from pixelpong.items import Episode
from pixelpong.loop import Evaluated, Updated, train, training
from pixelpong.run.directory import RunDirectory


def test_without_evaluations_nothing_is_best_before_a_hundred_episodes(make_run):
    run = make_run(updates=2, batch_size=60, save_every=1)
    train(run)
    scores = [run.checkpoints.load(update).card["score"] for update in (1, 2)]
    assert scores == [None, list(run.metrics.read())[1]["mean_return_100"]]


def test_a_steady_agent_is_better_than_one_with_a_higher_mean_and_a_wide_interval(
    make_run, monkeypatch
):
    """The lower end of the interval decides."""
    returns = {1: [0] * 10, 2: [21] * 6 + [-21] * 4}

    def play_games(engine, params, *, update=0, **more):
        update = len(list(run.metrics.read()))
        return [Episode.of_points(9, 9, 0.0, 0, (8,) * 21, ends_of(it)) for it in returns[update]]

    def ends_of(value):
        return (1 if value > 0 else -1,) * abs(value)

    monkeypatch.setattr(session_module, "play_games", play_games)
    run = make_run(updates=2, evaluate_every=1)
    train(run)
    steady, wide = run.evaluations.read()
    assert (steady["mean_return"], steady["ci95"]) == (0, [0, 0])
    assert wide["mean_return"] > 4
    assert wide["ci95"][0] < 0
    assert run.checkpoints.find_best() == 1
    scores = [run.checkpoints.load(update).card["score"] for update in (1, 2)]
    assert scores == [0, wide["ci95"][0]]


def test_an_evaluation_that_no_checkpoint_has_yet_becomes_its_score(make_run, monkeypatch):
    """Stopped during the evaluation, and the next time killed just after it."""
    run = make_run(updates=2, evaluate_every=2, evaluate_episodes=2)
    updates = []
    for event in training(run, lambda: len(updates) == 2):
        if isinstance(event, Updated):
            updates.append(event)
    assert run.checkpoints.load(2).card["score_of"] == "mean_return_100"
    with monkeypatch.context() as patch:
        patch.setattr(session_module.Session, "save", lambda session: None)
        events = training(RunDirectory(run.path))
        assert any(isinstance(event, Evaluated) for event in events)
        events.close()
    assert run.checkpoints.load(2).card["score_of"] == "mean_return_100"
    train(RunDirectory(run.path))
    card = run.checkpoints.load(2).card
    (evaluation,) = run.evaluations.read()
    assert (card["score_of"], card["score"]) == ("evaluation", evaluation["ci95"][0])
