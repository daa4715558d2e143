"""Results as text: nothing is left out in silence."""

from __future__ import annotations

import time

import pytest

from pixelpong.faces.comparing import describe_tournament
from pixelpong.faces.gauges import PongGauge
from pixelpong.faces.live import draw_curve
from pixelpong.faces.report import describe_ending, describe_runs, table
from pixelpong.learners.progress import Progress
from pixelpong.loop import Ended
from pixelpong.run.lines import Evaluation
from pixelpong.run.words import signed


@pytest.mark.parametrize(("width", "shown"), [(80, 3), (19, 3), (18, 2), (12, 2), (11, 1), (1, 1)])
def test_a_table_names_the_columns_for_which_there_is_no_room(width, shown):
    """Columns of 6, 4 and 5 with two spaces between them."""
    heads, row = ["name", "size", "age"], ["abcdef", "1 MB", "5 min"]
    lines = table(heads, [row], width=width)
    names = {3: [], 2: ["age"], 1: ["size and age"]}[shown]
    told = [f"too wide to show: {name}; --json has everything" for name in names]
    assert " ".join(lines[2:]) == "".join(told)
    assert [line.split()[:shown] for line in lines[:1]] == [heads[:shown]]


def make_run(**changes):
    facts = {
        "name": "fast-001", "state": "won", "greedy": None, "sampled": None, "game": "pong",
        "estimated_return": 3.0, "mean_return_100": None, "steps": 9,
        "seed": 0, "preset": "fast", "bytes": 10**6, "modified": time.time(), "problem": "",
    }  # fmt: skip
    return facts | changes


def test_a_list_of_runs_shows_all_of_a_problem_and_that_a_word_was_shortened():
    problem = "cannot read the configuration: " + "it is damaged, " * 9 + "all of it"
    runs = [make_run(preset="a-long-preset", problem=problem)]
    text = describe_runs({"runs": runs, "sweeps": []})
    assert problem in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert " …ng-preset " in text


def test_a_return_that_training_alone_knows_is_called_an_estimate():
    runs = [make_run(), make_run(greedy={"mean_return": 17.5}), make_run(estimated_return=None)]
    text = describe_runs({"runs": runs, "sweeps": []})
    assert [line.split()[2] for line in text.splitlines()[1:4]] == ["~+3.0", "+17.5", "–"]
    assert "; ~ is an estimate" in text
    assert "; ~ is an estimate" not in describe_runs({"runs": runs[1:], "sweeps": []})


@pytest.mark.parametrize(("target", "more"), [(18.0, "19"), (20.5, "21"), (21.0, "21")])
def test_the_end_of_a_run_that_won_proposes_a_higher_target(target, more):
    test = Evaluation(20.9, 0.1, (20.8, 21.0), (21.0,) * 200, 9.0, target=target, is_won=True)
    outcome = Ended("until_return", Progress(), "ab", test)
    facts = {"run": "r", "resume": "pixelpong resume r", "machine": "m", "preset": "half"}
    facts |= dict.fromkeys(("training_seconds", "total_seconds", "sampled")) | {"game": "pong"}
    text = describe_ending(facts, outcome, is_brief=False)
    assert text.startswith("Won: ")
    assert text.endswith(f"\n  pixelpong resume r --until-return {more}")


def test_a_large_tournaments_matrix_names_the_columns_that_are_left_out():
    player = {"name": "p", "rating": 0.0, "ci95": (-1.0, 1.0), "mean_return": 0.0}
    players = [{**player, "points_won": k, "points_lost": 20 - k} for k in range(12)]
    matrix = [[float(k)] * 12 for k in range(12)]
    facts = {"players": players, "matrix": matrix, "games_played": 1, "games_planned": 1}
    facts |= {"rules": {"points": 21, "frames": 65_000}, "games": []}
    lines = describe_tournament(facts).splitlines()
    heads = next(line for line in lines if "return against" in line).split()[2:]
    left_out = [str(number) for number in range(1, 13) if str(number) not in heads]
    assert left_out
    *others, last = left_out
    names = f"{', '.join(others)} and {last}" if others else last
    assert f"too wide to show: {names}; --json has everything" in lines


CUT = "ended at the limit of 65,000 frames, before either side had won"


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([(21, 3), (4, 21)], []),
        ([(20, 20), (4, 21)], [f"1 game {CUT}"]),
    ],
)
def test_a_tournament_says_how_many_games_nobody_won(points, said):
    player = {"name": "p", "rating": 0.0, "ci95": (-1.0, 1.0), "mean_return": 0.0}
    player |= {"points_won": 15, "points_lost": 5}
    facts = {"players": [player] * 2, "matrix": [[None, 1.0], [-1.0, None]]}
    facts |= {"games_played": 2, "games_planned": 2, "games": [{"points": it} for it in points]}
    facts |= {"rules": {"points": 21, "frames": 65_000}}
    lines = describe_tournament(facts).splitlines()
    assert lines[-1 - len(said) :] == ["2 games", *said]
    assert lines[1].split()[-2:] == ["75", "%"]


@pytest.mark.parametrize(("target", "row"), [(21.0, 0), (10.0, 2), (-10.0, 6), (-21.0, 8)])
def test_the_live_curve_has_a_line_and_a_label_at_the_target(target, row):
    """Nine rows from +21 to −21."""
    lines = [line.plain for line in draw_curve([], PongGauge(target).axis([]), 40)]
    assert [number for number, line in enumerate(lines) if "┄" in line] == [row]
    assert lines[row].split()[0] == signed(target, 0)
    assert not any("┄" in line.plain for line in draw_curve([], PongGauge(None).axis([]), 40))
