"""Sweeps over games: one more axis, and one table of their scores."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from toys import toy_config, toy_evaluation

from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.faces.comparing import describe_sweep
from pixelpong.seeding import make_rng
from pixelpong.sweeps.grid import label_of, make_grid, name_runs, read_games, varied
from pixelpong.sweeps.settings import make_settings
from pixelpong.sweeps.suites import make_suites
from pixelpong.sweeps.sweep import create_sweep, read_sweep, sum_up


def test_games_are_an_axis_of_the_grid():
    content = {"game": read_games("breakout, seaquest"), "seeds": "0-2", "hidden": [8, 16]}
    configs = make_grid(content, {}, "sweep")
    found = [(it.game, it.hidden, it.seed) for it in configs]
    assert sorted(found) == sorted(itertools.product(["breakout", "seaquest"], [8, 16], range(3)))
    assert {it.preset for it in configs} == {"atari"}
    assert varied(configs) == ["game", "hidden"]
    assert name_runs(configs)[0] == "game-breakout-hidden-8-seed-0"


def test_all_games_are_those_that_can_be_learned():
    configs = make_grid({"game": read_games("all"), "seeds": "0"}, {}, "sweep")
    assert sorted(it.game for it in configs) == sorted(scored_names())
    assert len(configs) == 103


def test_options_that_follow_from_the_game_are_not_named():
    """Pong has a preset of its own, which differs in nearly all options."""
    configs = make_grid({"game": ["pong", "breakout"], "seeds": "0-1"}, {}, "sweep")
    assert varied(configs) == ["game"]
    assert label_of(configs[0], varied(configs)) == "game pong"
    assert name_runs(configs)[0] == "game-pong-seed-0"


# --- the scores -------------------------------------------------------------------------------


@pytest.fixture
def sweep_of(tmp_path):
    """Make a sweep of these games, with a run that is done for each score."""

    def make(scores, **options):
        configs = [
            toy_config("atari", game=game, seed=seed, updates=1, **options)
            for game, values in scores.items()
            for seed in range(len(values))
        ]
        path = create_sweep(tmp_path / "sweep", configs)
        for record in read_sweep(path):
            score = scores[record.config.game][record.config.seed]
            if score is not None:
                record.run.metrics.append({"update": 1, "steps": 9, "mean_return_100": 0.0})
                protocol = str(record.config.protocol)
                record.run.evaluations.append(toy_evaluation(1, score, protocol=protocol))
        return path

    return make


BREAKOUT = [1.7, 16.1, 30.5, 44.9]  # 0, 50, 100 and 150 %
BOXING = [0.1, 0.1, 12.1, 24.1]  # 0, 0, 100 and 200 %


def test_a_suite_has_each_game_and_the_interquartile_mean_of_all(sweep_of):
    path = sweep_of({"breakout": BREAKOUT, "boxing": BOXING, "tetris": [1.0, 2.0]})
    (suite,) = sum_up(path)["suites"]
    boxing, breakout, tetris = suite["games"]
    assert [it["game"] for it in suite["games"]] == ["boxing", "breakout", "tetris"]
    assert (breakout["score"], breakout["done"]) == (pytest.approx(23.3), 4)
    assert breakout["human_normalised"] == pytest.approx(0.75)
    assert breakout["interquartile_mean"]["mean"] == pytest.approx(0.75)
    assert boxing["human_normalised"] == pytest.approx(0.75)
    assert boxing["interquartile_mean"]["mean"] == pytest.approx(0.5)
    assert (tetris["score"], tetris["human_normalised"]) == (1.5, None)
    assert tetris["interquartile_mean"] is None
    total = suite["all"]
    assert (total["games"], total["done"], total["trainings"]) == (2, 10, 10)
    assert total["human_normalised"] == total["median_human_normalised"] == pytest.approx(0.75)
    # Of 0, 0, 0, 0.5, 1, 1, 1.5 and 2, two are cut off at each end.
    assert total["interquartile_mean"]["mean"] == pytest.approx(0.625)


def test_the_interval_draws_the_runs_of_each_game_apart(sweep_of):
    (suite,) = sum_up(sweep_of({"breakout": BREAKOUT, "boxing": BOXING}))["suites"]
    rng = make_rng(5, "bootstrap")
    drawn = [
        np.sort([*rng.choice([0, 0.5, 1, 1.5], 4), *rng.choice([0, 0, 1, 2], 4)])[2:6].mean()
        for _ in range(4000)
    ]
    low, high = suite["all"]["interquartile_mean"]["ci95"]
    assert (low, high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.08)


@pytest.mark.parametrize("others", [{}, {"breakout": BREAKOUT}])
def test_too_few_runs_have_no_interval(sweep_of, others):
    """A game with a single run would seem to be known exactly."""
    (suite,) = sum_up(sweep_of({"boxing": [1.0]} | others))["suites"]
    assert suite["all"]["interquartile_mean"]["ci95"] is None


def test_the_text_is_one_table(sweep_of):
    path = sweep_of({"breakout": [*BREAKOUT[:3], None], "boxing": BOXING, "tetris": [1.0, 2.0]})
    facts = sum_up(path) | {"resume": "pixelpong sweep sweep"}
    lines = describe_sweep(facts).splitlines()
    assert lines[0].split() == [
        "game",
        "runs",
        "score",
        "human-normalised",
        "interquartile",
        "mean",
    ]
    assert re.fullmatch(r"boxing +4 +9\.1 +75 % +50 % \(0 % to 200 %\)", lines[1])
    assert re.fullmatch(r"breakout +3 of 4 +16\.1 +50 % +50 %", lines[2])
    assert re.fullmatch(r"tetris +2 +1\.5 +– +–", lines[3])
    assert re.fullmatch(r"all +9 of 10 +6\d % +\d\d % \(\d+ % to \d+ %\)", lines[4])
    assert lines[5].startswith("all: over 2 games with known scores of a person; their median is")
    assert lines[6:] == [
        "1 run left to train; continue with:", "  pixelpong sweep sweep", f"saved in {path}",
    ]  # fmt: skip


def test_other_options_make_a_table_each(tmp_path):
    content = {"game": ["breakout", "boxing"], "hidden": [8, 16], "seeds": "0"}
    path = create_sweep(tmp_path / "sweep", make_grid(content, {}, "sweep"))
    suites = make_suites(make_settings(read_sweep(path)))
    assert [it.label for it in suites] == ["hidden 8", "hidden 16"]
    assert [[it.config.game for it in suite.settings] for suite in suites] == [
        ["boxing", "breakout"],
    ] * 2  # fmt: skip


def test_a_sweep_of_pong_alone_has_no_table_of_games(tmp_path):
    path = create_sweep(tmp_path / "sweep", [toy_config("classic", seed=k) for k in (0, 1)])
    facts = sum_up(path)
    assert facts["suites"] == []
    header = (path / "sweep.csv").read_text().splitlines()[0]
    assert "human_normalised" not in header
    assert describe_sweep(facts | {"resume": "go on"}).startswith("won")


def test_the_file_has_the_game_and_the_share_of_each_run(sweep_of):
    path = sweep_of({"breakout": [16.1], "tetris": [3.0]})
    sum_up(path)
    rows = list(csv.DictReader((path / "sweep.csv").read_text().splitlines()))
    assert [(row["game"], row["final_return"]) for row in rows] == [
        ("tetris", "3.0"), ("breakout", "16.1"),
    ]  # fmt: skip
    assert [row["human_normalised"] for row in rows] == ["", "0.5000000000000001"]


@pytest.mark.slow
def test_a_sweep_of_games_is_trained_and_continued_from_the_command_line(call, report):
    words = ["--num-envs", "2", "--num-steps", "40", "--max-frames", "300", "--updates", "2"]
    words += ["--final-episodes", "10", "--engine", "serial", "--out", "s"]
    told = report("sweep", "--games", "breakout,boxing", "--seeds", "0-1", *words)
    (suite,) = told["suites"]
    assert [(it["game"], it["done"]) for it in suite["games"]] == [("boxing", 2), ("breakout", 2)]
    lost = next(it for it in read_sweep(Path("s")) if it.config.game == "boxing")
    lost.run.evaluations.path.write_bytes(b"")  # as if it had been killed in its last games
    assert sum_up(lost.path.parent)["suites"][0]["games"][0]["done"] == 1
    code, out, _ = call("sweep", "s", "--engine", "serial")
    assert (code, "s: 4 runs, 1 to train" in out) == (0, True)
    again = report("sweep", "s", "--engine", "serial")
    assert again["suites"] == told["suites"]
    (listed,) = report("runs", ".")["sweeps"]
    assert (listed["state"], listed["game"]) == ("done 4 of 4", "2 games")
