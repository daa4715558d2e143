"""Scores of random play, of a person and of DQN, and what is measured by them."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from toys import toy_evaluation

from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.evaluation import bootstrap_interval, stratified_interval
from pixelpong.loop import train
from pixelpong.run.lines import Evaluation
from pixelpong.run.record import Record
from pixelpong.run.words import compare, in_game, percent
from pixelpong.schema import convert
from pixelpong.scores import find_scores, human_normalised, source
from pixelpong.seeding import make_rng
from pixelpong.sweeps.suites import interquartile_mean

KNOWN = {
    "boxing": (0.1, 12.1, 88.0), "breakout": (1.7, 30.5, 385.5), "enduro": (0.0, 860.5, 729.0),
    "ms_pacman": (307.3, 6951.6, 3085.6), "pong": (-20.7, 14.6, 19.5),
    "skiing": (-17098.1, -4336.9, -13062.3), "double_dunk": (-18.6, -16.4, -6.6),
    "video_pinball": (16256.9, 17667.9, 196760.4),
}  # fmt: skip


def test_the_scores_are_those_of_the_57_games_that_publications_compare():
    games = [name for name in scored_names() if find_scores(name)]
    assert len(games) == 57
    found = {name: tuple(vars(find_scores(name)).values()) for name in KNOWN}
    assert found == KNOWN
    assert all(find_scores(name).random < find_scores(name).human for name in games)
    assert "Wang et al. (2016)" in source()


def test_a_score_is_measured_from_random_play_to_a_person():
    for name, (low, high, _) in KNOWN.items():
        found = [human_normalised(name, it) for it in (low, high, (low + high) / 2, 2 * high - low)]
        assert found == pytest.approx([0, 1, 0.5, 2])
    assert human_normalised("tetris", 5.0) is None
    assert human_normalised("breakout", None) is None
    assert compare(5.0, "tetris") == ""


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 100])
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(count):
    rng = random.Random(count)
    rows = [[rng.gauss(0, 1) for _ in range(count)] for _ in range(3)]
    middle = [sorted(row)[int(0.25 * count) : count - int(0.25 * count)] for row in rows]
    expected = [sum(row) / len(row) for row in middle]
    assert interquartile_mean(rows).tolist() == pytest.approx(expected)
    assert interquartile_mean(np.transpose(rows), axis=0).tolist() == pytest.approx(expected)


def test_each_game_is_drawn_from_its_own_runs():
    """Else a sample could have the good game twice, and the interval would be wide."""
    groups = [[0.0, 0.0, 0.0], [10.0, 10.0, 10.0]]
    assert stratified_interval(groups, make_rng(0, "bootstrap"), np.mean) == (5.0, 5.0)
    low, high = bootstrap_interval(np.concatenate(groups), make_rng(0, "bootstrap"))
    assert (low, high) == (pytest.approx(1.7, abs=0.1), pytest.approx(8.3, abs=0.1))


@pytest.mark.parametrize(
    ("value", "game", "said"),
    [
        (18.475, "pong", "+18.48"), (0.0, "pong", "0.00"), (18.475, "breakout", "18.5"),
        (-23.8, "tennis", "−23.8"), (-0.04, "tennis", "0.0"), (999_999.5, "atlantis", "1,000,000"),
        (1234.5, "qbert", "1,234"), (None, "qbert", "–"),
    ],
)  # fmt: skip
def test_only_pong_has_signs(value, game, said):
    assert in_game(value, game, 2) == said


def test_a_share_is_in_whole_percent():
    shares = (1.016, -0.004, -0.06, 12.3456, None)
    assert [percent(it) for it in shares] == ["102 %", "0 %", "−6 %", "1,235 %", "–"]


def test_scores_go_into_the_millions():
    line = toy_evaluation(1, 2_500_000.0, protocol="ALE/Atlantis-v5")
    found = convert(line, Evaluation)
    assert found.mean_in_words.startswith("2,500,000 (2,500,000 to 2,500,000) over")
    assert (found.game, round(found.human_normalised)) == ("atlantis", 154)


@pytest.mark.parametrize("returns", [[0.0, 21.0], [-21.0, 21.0], [0.0, 4.0, 9.0, 1e6], [5.0] * 3])
def test_a_histogram_of_scores_has_few_bars(returns):
    found = convert(toy_evaluation(1, 1.0, returns=returns, protocol="ALE/Qbert-v5"), Evaluation)
    bars = found._repr_html_().splitlines()[1:-1]
    assert 1 <= len(bars) <= 44
    assert sum(int(bar.split()[-1]) for bar in bars) == len(returns)


# --- a run ------------------------------------------------------------------------------------


@pytest.fixture
def scored(make_run):
    """A run of Breakout that has ended with ten games."""
    run = make_run("scored", "atari", final_episodes=10)
    train(run)
    return run


def test_a_run_of_another_game_is_known_by_its_score(scored):
    found = Record.read(scored.path)
    told = found.to_dict()
    assert (told["game"], told["greedy"], told["estimated_return"]) == ("breakout", None, None)
    assert told["sampled"]["games"] == 10
    mean = told["sampled"]["mean_return"]
    assert told["human_normalised"] == told["sampled"]["human_normalised"] == (mean - 1.7) / 28.8
    assert told["rules"] == "frame skip 4, sticky 0.25, at most 300 frames"
    assert found.summary.startswith(f"budget spent at update 3; mean score {mean:.1f} (")
    assert "human-normalised −" in found.summary
    for word in ("return", "points", "greedy", "estimated", "+"):
        assert word not in found.summary


def test_a_run_that_was_killed_in_its_last_games_is_not_done(scored):
    assert Record.read(scored.path).is_done
    scored.evaluations.path.write_bytes(b"")
    found = Record.read(scored.path)
    assert (found.state, found.is_done) == ("stopped", False)
    assert found.summary.startswith("budget spent at update 3; mean score of the last 100 games ")
    train(scored)
    assert Record.read(scored.path).is_done


def test_a_score_without_those_of_a_person_stands_alone(make_run):
    run = make_run("run", "atari", game="tetris")
    run.metrics.append({"update": 1, "steps": 9, "mean_return_100": 3.0})
    found = Record.read(run.path)
    assert found.result == "mean score of the last 100 games 3.0"
    assert (found.best_known, found.to_dict()["human_normalised"]) == (3.0, None)


def test_games_that_explore_are_left_out_of_the_curve(make_run):
    run = make_run("run", "atari")
    run.metrics.append({"update": 1, "steps": 9})
    lines = [{"update": 1, "episode_return": 5.0}, {"update": 1, "episode_return": 7.0}]
    run.episodes.append(lines[0], lines[1] | {"explores": True})
    assert Record.read(run.path).returns()[1].tolist() == [5.0]


def test_the_folder_of_a_run_is_named_after_its_game(call, report):
    words = ["--num-envs", "2", "--num-steps", "20", "--updates", "1", "--max-frames", "100"]
    told = report("train", "--game", "breakout", *words, "--quiet", "--engine", "serial")
    assert told["run"] == "runs/breakout-001"
    json.dumps(told)
