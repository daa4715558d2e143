"""Tournaments: scripted players, games that are pure functions, ratings, and the command."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from two_paddles import ball_of

from pixelpong.agent.file import load_shipped
from pixelpong.agent.game import Controller, play_game
from pixelpong.engines import never
from pixelpong.errors import WorkerError
from pixelpong.items import BUILTIN, STAY
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.modes import LEFT, RIGHT
from pixelpong.pong.preprocess import mirror
from pixelpong.seeding import make_rng
from pixelpong.tournaments import games, ratings, scripts
from pixelpong.tournaments import tournament as tournaments_module
from pixelpong.tournaments.games import (
    Played,
    Player,
    Rules,
    find_player,
    find_players,
    order,
    play_duel,
)
from pixelpong.tournaments.scripts import SCRIPTS, Script, find_ball
from pixelpong.tournaments.tournament import (
    count_games,
    hold_tournament,
    play_tournament,
    summarize,
)

SHORT = Rules(points=2, frames=1500)
SLOW = Player("slow", functools.partial(Script, delay=20), "1" * 64)  # loses to everybody


# --- scripted players -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "seconds"), [("perfect", 0.0), ("person", 0.2)])
def test_a_script_sees_the_ball_as_late_as_its_description_says(name, seconds):
    """A game in which the ball flies to the right, one row lower in each of 60 frames a second."""
    aims = []
    game = SimpleNamespace(
        memory=np.zeros(128, np.uint8), steer=lambda row, side: aims.append(row) or STAY
    )
    script = SCRIPTS[name](RIGHT, make_rng(0, "play"), noise=0.0)
    for frame in range(40):
        game.memory[[scripts._BALL_COLUMN, scripts.BALL_ROW]] = 60 + 2 * frame, 50 + frame
        script.move(game)
    _, row = find_ball(game)
    assert aims[-1] == row - seconds * 60 + scripts._HALF_BALL


def test_a_script_sees_the_ball_where_the_picture_shows_it_and_knows_where_it_will_come(
    monkeypatch,
):
    """The predictor: bounces off the walls included, from half the field away."""
    aims, balls, seen, steer, game = [], [], 0, Duel.steer, Duel()
    predictor = SCRIPTS["predictor"](RIGHT, make_rng(1, "play"), noise=0.0)
    other = Script(LEFT, make_rng(0, "play"), noise=9.0)

    def noted(game, row, side=LEFT):
        if side == RIGHT:
            aims.append(row)
        return steer(game, row, side)

    monkeypatch.setattr(Duel, "steer", noted)
    for _ in range(6000):
        shown, found = ball_of(game.screen), find_ball(game)
        balls.append(found)
        if found is None:
            assert shown is None
        elif shown and shown[1] - shown[0] == 3:  # not cut off by a wall
            assert found[0] == shown[2]
            assert 0 <= found[1] - shown[0] <= 1
            seen += 1
        game.act(Move(other.move(game)), Move(predictor.move(game)), fires=True)
    errors, walls = [], 0
    for k in range(60, 6000):
        if balls[k] and balls[k][0] == 137 and balls[k - 60] and balls[k - 60][0] == 77:
            rows = [ball[1] for ball in balls[k - 60 : k + 1]]
            walls += len({*np.sign(np.diff(rows))} - {0}) == 2
            errors.append(aims[k - 60] - 2 - rows[-1])
    assert (seen > 4000, len(errors) > 15, walls >= 5) == (True, True, True)
    assert np.abs(errors).max() <= 7, "the ball would miss the paddle's middle half"
    assert np.median(np.abs(errors)) <= 2


# --- games ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_game_against_the_builtin_player_is_that_of_an_evaluation(monkeypatch):
    player = find_player("club")
    monkeypatch.setattr(games, "make_rng", lambda *_: make_rng(7, "evaluate", 0, 2))
    played = play_duel(find_player(BUILTIN), player, 0, Rules())
    *_, last = play_game(player.decider, 7, 2)
    assert played.points == last.points


def test_on_the_left_an_agent_decides_every_fourth_frame_on_the_mirrored_screen(monkeypatch):
    shown, views = [], []
    controller = Controller(load_shipped("beginner"), make_rng(0, "play"), is_left=True)
    game, act = Duel(), controller.network.act

    def spied(screen, *how):
        shown.append(screen.tobytes())
        return act(screen, *how)

    monkeypatch.setattr(controller.network, "act", spied)
    for k in range(400):
        views += [mirror(game.screen).tobytes()] * (k % 4 == 0)
        game.act(controller.move(game), Move(STAY), fires=True)
    assert shown == views


def test_a_game_depends_on_its_players_its_number_and_the_seed_alone():
    one, other = find_players(["club", "beginner"])
    rules = Rules(points=3)

    def frames(numbers=(0, 1), rules=rules, players=(one, other)):
        return [play_duel(*players, number, rules).frames for number in numbers]

    renamed = dataclasses.replace(one, name="another")
    assert frames() == frames(players=(other, one)) == frames(players=(renamed, other))
    assert frames((2, 3)) != frames() != frames(rules=dataclasses.replace(rules, seed=1))


def test_a_pair_changes_sides_but_the_cartridge_keeps_its_own_and_games_end_by_the_rules():
    one, other, builtin = find_players(["perfect", "predictor", BUILTIN])
    assert order(one, other, 0) == order(other, one, 0) == order(one, other, 1)[::-1]
    for number in range(2):
        assert order(one, builtin, number) == order(builtin, one, number) == (builtin, one)
    assert max(play_duel(SLOW, one, 0, Rules(points=3)).points) == 3
    names = tuple(each.name for each in order(SLOW, one, 0))
    assert play_duel(SLOW, one, 0, Rules(frames=100)) == Played(names, 0, (0, 0), 100)


# --- ratings ----------------------------------------------------------------------------------


def test_at_the_most_probable_ratings_everybody_wins_as_many_points_as_expected():
    """The likelihood's equation."""
    rng = np.random.default_rng(0)
    wins = rng.integers(0, 40, (5, 6, 6)).astype(np.float64) * (1 - np.eye(6))
    for one in wins:
        theta, _ = ratings.fit(one, prior=0)
        p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        np.testing.assert_allclose(((one + one.T) * p).sum(axis=1), one.sum(axis=1), atol=1e-6)


def test_a_whitewash_is_finite_400_more_are_ten_times_the_odds_and_games_differ():
    rated, ends = ratings.rate({(0, 1): [(21, 0)] * 20, (1, 2): [(21, 0)] * 20}, 3)
    assert np.isfinite(ends).all()
    assert 400 < rated[0] - rated[1] < 4000
    rated, _ = ratings.rate({(0, 1): [(200, 20)] * 200}, 2)
    assert rated[0] - rated[1] == pytest.approx(400, abs=1)
    alike = ratings.rate({(0, 1): [(11, 10), (10, 11)] * 10}, 2)[1]
    unlike = ratings.rate({(0, 1): [(21, 0), (0, 21)] * 10}, 2)[1]
    assert np.ptp(unlike[0]) > 3 * np.ptp(alike[0]), "the points of a game hang together"


def test_the_interval_holds_the_true_rating_as_often_as_it_says():
    rng, theta = np.random.default_rng(0), np.array([0.6, 0.1, -0.2, -0.5])
    covered = []
    for _ in range(60):
        played = {}
        for i, j in itertools.combinations(range(4), 2):
            won = rng.binomial(30, 1 / (1 + np.exp(theta[j] - theta[i])), 20)
            played[i, j] = [(int(k), 30 - int(k)) for k in won]
        _, ends = ratings.rate(played, 4)
        true = ratings.ELO * theta
        covered += ((ends[:, 0] <= true) & (true <= ends[:, 1])).tolist()
    assert 0.9 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("games", [3, 50])
def test_an_interval_holds_95_of_100_normal_errors(games):
    """Where the games differ no more than independent points do, nothing widens it."""
    wins = np.array([[0.0, 12.0], [9.0, 0.0]]) * games
    theta, covariance = ratings.fit(wins)
    rated, ends = ratings.rate({(0, 1): [(12, 9)] * games}, 2)
    np.testing.assert_allclose(rated, ratings.ELO * theta)
    errors = np.ptp(ends, axis=1) / 2 / ratings.ELO / np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(errors, statistics.NormalDist().inv_cdf(0.975), rtol=1e-6)


# --- the tournament ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_adds_up_and_the_number_of_processes_and_the_order_change_nothing():
    players = [*find_players(["perfect", BUILTIN, "beginner"]), SLOW]
    played = list(play_tournament(players, 1, SHORT, 2, never))
    report = summarize(players, played, 1, SHORT)
    alone = list(play_tournament(players, 1, SHORT, 1, never))
    assert summarize(players, alone[::-1], 1, SHORT) == report
    assert report["games_played"] == report["games_planned"] == len(report["games"]) == 12
    *names, worst = [each["name"] for each in report["players"]]
    assert ({*names}, worst) == ({"perfect", BUILTIN, "beginner"}, "slow")
    names.append(worst)
    found = [each["rating"] for each in report["players"]]
    assert found == sorted(found, reverse=True)
    for each in report["players"]:
        assert each["games"] == 6
        assert each["ci95"][0] <= each["rating"] <= each["ci95"][1]
    games = [dict(zip(it["players"], it["points"], strict=True)) for it in report["games"]]
    for (row, one), (column, other) in itertools.permutations(enumerate(names), 2):
        leads = [game[one] - game[other] for game in games if {*game} == {one, other}]
        assert report["matrix"][row][column] == np.mean(leads)


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.slow
def test_a_process_that_dies_is_one_line():
    players = [find_player("perfect"), Player("deadly", Deadly(), "0" * 64)]
    with pytest.raises(WorkerError, match=r"games died. Check the free memory"):
        list(play_tournament(players, 1, SHORT, 2, never))


@pytest.mark.parametrize("num_played", [0, 3])
def test_a_tournament_that_an_error_ends_keeps_what_was_played(monkeypatch, num_played):
    def play_some(*args):
        yield from range(num_played)
        raise WorkerError("it died")

    monkeypatch.setattr(tournaments_module, "play_tournament", play_some)
    told = []
    outcome = hold_tournament([], 1, SHORT, 1, never, told.append)
    assert outcome.played == [*range(num_played)]
    assert str(outcome.error) == "it died"
    assert told == [*range(1, num_played + 1)], "the number of games so far"


def test_a_tournament_that_is_stopped_has_no_error_and_fewer_games():
    players, told = find_players(["perfect", "predictor", "person"]), []
    outcome = hold_tournament(players, 2, SHORT, 1, lambda: len(told) == 2, told.append)
    assert (len(outcome.played), outcome.error, told) == (2, None, [1, 2])
    assert count_games(players, 2) == 12


# --- the command ------------------------------------------------------------------------------

WORDS = ("tournament", "perfect", "person", "builtin", "--workers", 1, "--points", 1)


def test_the_command_prints_a_table_and_writes_only_the_file_that_is_named(call, tmp_path):
    words = (*WORDS, "--games", 1, "--sampled", "--seed", 3)
    code, out, err = call(*words)
    assert (code, err, out.splitlines()[-1]) == (0, "", "6 games")
    assert max(map(len, out.splitlines())) <= 80
    assert not list(tmp_path.iterdir())
    report = json.loads(call(*words, "--json", "-o", "it.json")[1])
    assert json.loads((tmp_path / "it.json").read_text()) == report
    assert report["rules"] == {"seed": 3, "is_greedy": False, "points": 1, "frames": 65_000}
    names = [each["name"] for each in report["players"]]
    assert [line.split()[1] for line in out.splitlines()[1:4]] == names


@pytest.mark.parametrize("happens", [None, WorkerError("expected one, got another; look")])
def test_what_has_been_played_is_kept_and_named_after_ctrl_c_or_an_error(
    call, tmp_path, monkeypatch, happens
):
    def play_tournament_some(*args):
        yield from itertools.islice(play_tournament(*args), 3)
        if happens:
            raise happens

    monkeypatch.setattr(tournaments_module, "play_tournament", play_tournament_some)
    code, out, err = call(*WORDS, "-o", "it.json")
    last = "only 3 of 60 games were played"
    assert (code, out.splitlines()[-1]) == (1 if happens else 130, last)
    assert ("expected one, got another" in err) == (happens is not None)
    assert json.loads((tmp_path / "it.json").read_text())["games_played"] == 3


def test_an_interval_is_wider_by_the_square_root_of_the_dispersion():
    """By hand: as many points for both, so each of 20 games of 21 points has a χ² of 10.5² / 5.25.

    There are 20 games and one free rating.
    """
    alike = ratings.rate({(0, 1): [(11, 10), (10, 11)] * 10}, 2)[1]
    unlike = ratings.rate({(0, 1): [(21, 0), (0, 21)] * 10}, 2)[1]
    dispersion = 20 * 10.5**2 / 5.25 / 19
    assert np.ptp(unlike[0]) / np.ptp(alike[0]) == pytest.approx(dispersion**0.5)


def test_the_sides_change_with_every_game_of_a_pair():
    one, other = SLOW, Player("quick", functools.partial(Script, delay=1), "2" * 64)
    lefts = [order(one, other, number)[0].name for number in range(6)]
    assert lefts == ["slow", "quick"] * 3
