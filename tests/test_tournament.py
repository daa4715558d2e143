"""Tournaments: scripted players, games that are pure functions, ratings, and the command."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import wait_until
from test_duel import ball_of
from test_game import SpiedAgent, make_agent

from pixelpong.agent.file import Agent, encode_agent
from pixelpong.agent.hand import Hand
from pixelpong.bench.followers import SCRIPTS, Follower, Script, find_ball
from pixelpong.engines import never
from pixelpong.env.duel import LEFT, RIGHT, DuelEmulator
from pixelpong.env.preprocess import mirror
from pixelpong.errors import RunError, WorkerError
from pixelpong.faces.text import describe_tournament
from pixelpong.items import BUILTIN, STAY
from pixelpong.loop import train
from pixelpong.run import files
from pixelpong.seeding import make_rng
from pixelpong.tournament import games, ratings
from pixelpong.tournament import tournament as tournaments_module
from pixelpong.tournament.games import Rules, order, play, play_round, watch, watch_rally
from pixelpong.tournament.players import MAX_PLAYERS, Player, find_player, find_players
from pixelpong.tournament.report import read_report
from pixelpong.tournament.tournament import carry_out, summarize

SHORT = Rules(points=2, frames=1500)


def agent_player(name="random", seed=1, environment="ALE/Pong-v5", kind=SpiedAgent):
    return Player(name, make_agent(environment, kind, seed), f"{seed:064x}")


def players_of(*names):
    return [find_player(name) for name in names]


@pytest.fixture
def agent_file(tmp_path):
    """A small agent's file, made with another seed or protocol."""

    def make(name="agent.safetensors", **changes):
        agent = make_agent(**changes)
        path = tmp_path / name
        path.write_bytes(encode_agent(agent, np.arange(len(agent.params["W1"]))))
        return path

    return make


# --- scripted players -------------------------------------------------------------------------


def test_a_follower_sees_the_ball_where_the_picture_shows_it():
    game, seen = DuelEmulator(), 0
    hands = [Follower(SCRIPTS["follower-0"], side, make_rng(0, "play")) for side in (LEFT, RIGHT)]
    for _ in range(1500):
        game.act(*(hand.move(game) for hand in hands), fires=True)
        shown, found = ball_of(game.screen), find_ball(game)
        if found is None:
            assert shown is None
        elif shown and shown[1] - shown[0] == 3:  # not cut off by a wall
            assert found[0] == shown[2]
            assert 0 <= found[1] - shown[0] <= 1
            seen += 1
    assert seen > 1000


class Board:
    """Stands for a game: a ball that is moved by hand, and the row that a player steers to."""

    def __init__(self):
        self.memory = np.zeros(128, np.uint8)

    def put(self, column, row):
        self.memory[[49, 54]] = column + 49, row + 14

    def steer(self, row, side):
        self.row = row
        return STAY


@pytest.mark.parametrize(("delay", "frames"), [(0, 0), (100, 6), (200, 12), (330, 20)])
@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_a_follower_aims_where_the_ball_was_so_long_ago(side, delay, frames):
    board, hand = Board(), Follower(Script(delay), side, make_rng(0, "play"))
    rows = []
    for k in range(60):
        board.put(80 + k * (1 if side == RIGHT else -1), 50 + 2 * k)
        hand.move(board)
        rows.append(board.row)
    assert SCRIPTS[f"follower-{delay}"].delay == delay
    offsets = [rows[k] - (50 + 2 * (k - frames) + 2) for k in range(frames + 2, 60)]
    assert np.ptp(offsets) < 1e-9
    assert abs(offsets[0]) <= 4


def test_a_follower_waits_in_the_middle_while_the_ball_flies_away_or_is_not_there():
    board, hand = Board(), Follower(Script(), LEFT, make_rng(0, "play"))
    hand.move(board)
    assert board.row == 113.5
    for k in range(30):
        board.put(60 + k, 50 + k)
        hand.move(board)
        assert board.row == 113.5


def test_the_noisy_follower_misjudges_anew_each_time_the_ball_turns_back():
    board, offsets = Board(), []
    hand = Follower(SCRIPTS["follower-200-noisy"], RIGHT, make_rng(0, "play"))
    for _ in range(40):
        for column in (*range(60, 30, -1), *range(30, 60)):
            board.put(column, 100)
            hand.move(board)
        offsets.append(board.row - 102)
    assert len(set(offsets)) == 40
    assert 5 < np.ptp(offsets) <= 20


def test_the_predictor_knows_where_the_ball_will_come(monkeypatch):
    """Bounces off the walls included, from half the field away."""
    aims, steer = [], DuelEmulator.steer

    def noted(game, row, side=LEFT):
        if side == RIGHT:
            aims.append(row)
        return steer(game, row, side)

    monkeypatch.setattr(DuelEmulator, "steer", noted)
    script, other = dataclasses.replace(SCRIPTS["predictor"], noise=0.0), Script(0, noise=9.0)
    game, balls = DuelEmulator(), []
    hands = Follower(other, LEFT, make_rng(0, "play")), Follower(script, RIGHT, make_rng(1, "play"))
    for _ in range(6000):
        balls.append(find_ball(game))
        game.act(*(hand.move(game) for hand in hands), fires=True)
    errors, walls = [], 0
    for k in range(60, 6000):
        if balls[k] and balls[k][0] == 137 and balls[k - 60] and balls[k - 60][0] == 77:
            rows = [ball[1] for ball in balls[k - 60 : k + 1]]
            walls += len({np.sign(b - a) for a, b in itertools.pairwise(rows)} - {0}) == 2
            errors.append(aims[k - 60] - 2 - rows[-1])
    assert len(errors) > 15
    assert walls >= 5
    assert np.abs(errors).max() <= 7, "the ball would miss the paddle's middle half"
    assert np.median(np.abs(errors)) <= 2


# --- games ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["ALE/Pong-v5", "Pong-v0"])
def test_a_game_against_the_builtin_player_is_that_of_an_evaluation(monkeypatch, environment):
    player = agent_player(environment=environment)
    monkeypatch.setattr(games, "make_rng", lambda *_: make_rng(7, "evaluate", 0, 2))
    played = play(find_player(BUILTIN), player, 0, Rules())
    replay = player.mind.play_episode(7, 2)
    assert played.points[RIGHT] - played.points[LEFT] == replay.episode_return
    assert max(played.points) == 21


@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_an_agent_decides_every_fourth_frame_on_its_own_view_and_its_moves_stick(side):
    agent, views, moves = make_agent(), [], []
    hand, game = Hand(agent, make_rng(0, "play"), is_left=side == LEFT), DuelEmulator()
    for k in range(400):
        if k % 4 == 0:
            views.append((mirror(game.screen) if side == LEFT else game.screen).tobytes())
        moves.append(hand.move(game))
        assert hand.looks == (k % 4 == 3)
        game.act(*((moves[-1], STAY) if side == LEFT else (STAY, moves[-1])), fires=True)
    assert hand.network.shown == views
    wanted = np.repeat(hand.network.chosen, 4)
    turns = [k for k in range(1, 400) if wanted[k] != moves[k - 1]]
    stuck = np.mean([moves[k] == moves[k - 1] for k in turns])
    assert len(turns) > 20
    assert 0.05 < stuck < 0.5


def test_the_field_is_mirrored_so_that_the_left_paddle_is_on_the_right():
    game = DuelEmulator()
    game.act(STAY, STAY)
    columns = np.nonzero((mirror(game.screen)[60:180] == 56).any(axis=0))[0]
    assert set(columns) == {139, 140, 141, 142}


@pytest.mark.slow
@pytest.mark.parametrize("names", [("champion", "club"), ("predictor", "champion")])
def test_pictures_that_nobody_looks_at_need_not_be_drawn(names):
    """A game is the same with and without; greedy or not is not."""
    left, right = players_of(*names)
    for rules in (SHORT, dataclasses.replace(SHORT, is_greedy=False)):
        *_, game = watch(left, right, 3, rules)
        played = play(left, right, 3, rules)
        assert (tuple(game.points), game.num_frames) == (played.points, played.frames)


def test_a_game_depends_on_its_players_its_number_and_the_seed_alone():
    one, other = players_of("club", "beginner")
    rules = Rules(points=3)
    first = play_round(one, other, 0, rules)
    assert play_round(other, one, 0, rules) == first
    for changed in (
        play_round(one, other, 1, rules),
        play_round(one, other, 0, dataclasses.replace(rules, seed=1)),
    ):
        assert [each.frames for each in changed] != [each.frames for each in first]
    named = play_round(dataclasses.replace(one, name="another"), other, 0, rules)
    assert [each.frames for each in named] == [each.frames for each in first]


def test_a_pair_changes_sides_but_the_cartridge_keeps_its_own():
    one, other, builtin = *players_of("follower-0", "predictor"), find_player(BUILTIN)
    for pair in ((one, other), (other, one)):
        assert order(*pair, 0) == order(*pair, 1)[::-1] == order(*pair, 2)
    for pair in ((one, builtin), (builtin, one)):
        assert order(*pair, 0) == order(*pair, 1) == (builtin, one)


def test_a_game_ends_at_so_many_points_or_frames():
    left, right = players_of("follower-0", "follower-330")
    assert max(play(left, right, 0, Rules(points=3)).points) == 3
    assert play(left, right, 0, Rules(frames=100)) == games.Played(
        ("follower-0", "follower-330"), 0, (0, 0), 100, None
    )


def test_two_games_of_scripts_are_not_alike():
    pair = players_of("follower-0", "follower-100")
    played = [play(*pair, number, Rules(points=5)) for number in range(4)]
    assert len({each.frames for each in played}) == 4


@pytest.mark.parametrize("names", [("club", "follower-100"), (BUILTIN, "club")])
@pytest.mark.slow
def test_the_longest_rally_can_be_watched_again_frame_by_frame_without_its_players(names):
    left, right = players_of(*names)
    rules = Rules(points=3)
    played = play(left, right, 0, rules)
    points, shown = {0: (0, 0)}, []
    for game in watch(left, right, 0, rules):
        points[game.num_frames] = tuple(game.points)
        shown.append(game.frame())
    ends = [frame for frame in sorted(points)[1:] if points[frame] != points[frame - 1]]
    longest = max(itertools.pairwise([0, *ends]), key=lambda pair: pair[1] - pair[0])
    assert played.rally == (longest[0] + 1, longest[1])
    frames = [(game.frame(), tuple(game.points)) for game in watch_rally(played)]
    assert len(frames) == longest[1] - longest[0]
    for k, (frame, score) in enumerate(frames, longest[0]):
        assert np.array_equal(frame, shown[k])
        assert score == points[k + 1]


@pytest.fixture(scope="module")
def short_report():
    """A small tournament, as its file has it."""
    players = players_of("follower-0", "follower-330", BUILTIN)
    played = list(carry_out(players, 1, SHORT, 1, never))
    return json.loads(json.dumps(summarize(players, played, 1, SHORT)))


def test_the_file_keeps_the_best_rally_of_each_pair_in_a_few_kilobytes(short_report, tmp_path):
    (tmp_path / "tournament.json").write_text(json.dumps(short_report))
    assert (tmp_path / "tournament.json").stat().st_size < 8000
    report = read_report(tmp_path)
    assert [each.name for each in report.players] == [it["name"] for it in short_report["players"]]
    for number, pair in enumerate(short_report["pairs"]):
        begin, end = pair["best_rally"]["rally"]
        assert len(list(watch_rally(report.find_rally(number)))) == end - begin + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 9}, "format 9"),
        ({"players": 3}, "players that is int, not array"),
        ({"players": []}, "0 players of 0 names"),
        ({"matrix": [[1.0]]}, "a matrix of another size"),
        ({"triples": [["follower-0", "builtin", "none"]]}, "an unknown player none"),
        ({"pairs": [{"players": ["a", "b"]}]}, "best_rally"),
        ("{", "Input data was truncated"),
        ('{"games": ' + "[" * 100_000, "nested"),
    ],
)
def test_a_damaged_file_is_one_line(short_report, tmp_path, changes, message):
    text = changes if isinstance(changes, str) else json.dumps(short_report | changes)
    (tmp_path / "tournament.json").write_text(text)
    with pytest.raises(RunError, match=r"expected a tournament\.json that can be read") as caught:
        read_report(tmp_path)
    assert message in str(caught.value)


def packed(moves):
    return base64.b64encode(zlib.compress(moves)).decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"moves": "!"},
        {"moves": "AAAA"},
        {"moves": ""},
        {"moves": packed(bytes(10**8))},
        {"moves": packed(bytes(10**8)), "rally": (1, 10**8)},
        {"moves": packed(b"\x77" * 300), "rally": (1, 300)},
        {"moves": packed(bytes(40)), "rally": (1, 40)},
        {"rally": (1, 10**15)},
        {"rally": (9, 8)},
        {"rally": None},
    ],
)
def test_moves_that_are_damaged_are_one_line(short_report, changes):
    pair = short_report["pairs"][0]
    played = games.Played(**pair["best_rally"], moves=pair["moves"])
    with pytest.raises(RunError, match="expected a rally that ends with a point, got"):
        list(watch_rally(dataclasses.replace(played, **changes)))


# --- ratings ----------------------------------------------------------------------------------

BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ],
    np.float64,
)
"""Milwaukee, Detroit, Toronto, New York, Boston, Cleveland, Baltimore in 1987.

Source: Agresti (2002), Categorical Data Analysis, table 10.10; the fit is that of R's package
BradleyTerry2 (Turner and Firth 2012, section 2.2), with Baltimore at 0.
"""


def test_ratings_are_the_published_ones_of_a_baseball_season():
    theta = ratings.fit(BASEBALL, prior=0)
    published = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]
    np.testing.assert_allclose(theta - theta[-1], published, atol=6e-5)


def test_at_the_most_probable_ratings_everybody_wins_as_many_points_as_expected():
    """The likelihood's equation, also for many fits at once and with the prior."""
    rng = np.random.default_rng(0)
    wins = rng.integers(0, 40, (5, 6, 6)).astype(np.float64) * (1 - np.eye(6))
    for one, theta in zip(wins, ratings.fit(wins, prior=0), strict=True):
        p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        np.testing.assert_allclose(((one + one.T) * p).sum(axis=1), one.sum(axis=1), atol=1e-6)
        np.testing.assert_allclose(ratings.fit(one, prior=0), theta, atol=1e-9)


def test_a_whitewash_has_a_finite_rating_and_400_more_are_ten_times_the_odds():
    rated, ends = ratings.rate({(0, 1): [(21, 0)] * 20, (1, 2): [(21, 0)] * 20}, 3)
    assert np.isfinite(ends).all()
    assert 400 < rated[0] - rated[1] < 4000
    rated, _ = ratings.rate({(0, 1): [(200, 20)] * 200}, 2)
    assert rated[0] - rated[1] == pytest.approx(400, abs=1)
    assert rated.sum() == pytest.approx(0)


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


def test_a_few_games_that_ended_alike_prove_little():
    for score in ((2, 0), (21, 0), (12, 9)):
        rated, ends = ratings.rate({(0, 1): [score] * 2}, 2)
        n, p = 2 * sum(score) + 2, 1 / (1 + 10 ** (-(rated[0] - rated[1]) / 400))
        width = ratings.ELO * 2 * 1.96 / np.sqrt(n * p * (1 - p)) / 2
        assert ends[0, 1] - ends[0, 0] > 0.8 * width


def test_the_interval_is_wide_if_the_points_of_a_game_hang_together():
    """The same points, whose games differ as if drawn one by one, or as much as they can."""
    alike = ratings.rate({(0, 1): [(11, 10), (10, 11)] * 10}, 2)[1]
    unlike = ratings.rate({(0, 1): [(21, 0), (0, 21)] * 10}, 2)[1]
    assert np.ptp(unlike[0]) > 3 * np.ptp(alike[0])


def test_intransitive_triples_are_found_once_and_only_if_each_win_is_certain():
    sure, close = [(21, 10)] * 4, [(21, 20)] * 2
    other = [(b, a) for a, b in sure]
    assert ratings.find_triples({(0, 1): sure, (1, 2): sure, (0, 2): other}) == [(0, 1, 2)]
    assert ratings.find_triples({(0, 1): other, (1, 2): other, (0, 2): sure}) == [(0, 2, 1)]
    assert ratings.find_triples({(0, 1): sure, (1, 2): sure, (0, 2): close}) == []
    assert ratings.find_triples({(0, 1): sure, (1, 2): sure, (0, 2): sure}) == []
    assert ratings.find_triples({(0, 1): sure, (1, 2): sure}) == []


def test_the_binomial_interval_is_the_published_one():
    """Source: Newcombe (1998), "Two-sided confidence intervals", table I, method 3."""
    cases = {(81, 263): 0.2553, (15, 148): 0.0624, (0, 20): 0.0, (1, 29): 0.0061}
    for (won, played), low in cases.items():
        assert ratings.wilson_low(won, played) == pytest.approx(low, abs=6e-5)


# --- the tournament ---------------------------------------------------------------------------


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_report():
    players = [
        *players_of("follower-0", BUILTIN, "beginner"),
        agent_player(kind=Agent),
    ]
    reports = []
    for workers in (1, 2):
        played = list(carry_out(players, 2, SHORT, workers, never))
        assert len(played) == 2 * 4 * 3
        reports.append(summarize(players, played, 2, SHORT))
    assert reports[0] == reports[1]
    backwards = summarize(players, list(reversed(played)), 2, SHORT)
    assert backwards == reports[0]


def test_a_report_adds_up():
    players = players_of("follower-100", BUILTIN, "follower-330")
    played = list(carry_out(players, 2, SHORT, 1, never))
    report = json.loads(json.dumps(summarize(players, played, 2, SHORT)))
    assert report["games_played"] == report["games_planned"] == len(report["games"]) == 12
    assert {each["name"] for each in report["players"]} == {each.name for each in players}
    found = [each["rating"] for each in report["players"]]
    assert found == sorted(found, reverse=True)
    for each in report["players"]:
        mine = [it for it in report["games"] if each["name"] in it["players"]]
        won = sum(it["points"][it["players"].index(each["name"])] for it in mine)
        assert (each["games"], each["points_won"]) == (8, won)
        assert each["ci95"][0] <= each["rating"] <= each["ci95"][1]
    for pair in report["pairs"]:
        theirs = [it for it in report["games"] if set(it["players"]) == set(pair["players"])]
        longest = max(np.ptp(it["rally"]) for it in theirs if it["rally"])
        assert pair["best_rally"] in theirs
        assert np.ptp(pair["best_rally"]["rally"]) == longest
    names = [each["name"] for each in report["players"]]
    for row, column in itertools.permutations(range(3), 2):
        assert report["matrix"][row][column] == -report["matrix"][column][row]
    (pair,) = [it for it in report["pairs"] if set(it["players"]) == set(names[:2])]
    sign = 1 if pair["players"][0] == names[0] else -1
    assert report["matrix"][0][1] == sign * pair["mean_return"]


class Deadly(Script):
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.slow
def test_a_process_that_dies_is_one_line():
    players = [*players_of("follower-0"), Player("deadly", Deadly(), "0" * 64)]
    with pytest.raises(WorkerError, match=r"got one that died; look for too little memory"):
        list(carry_out(players, 1, SHORT, 2, never))


def test_a_stop_drops_the_game_under_way():
    players, asked = players_of("follower-0", "predictor"), []

    def should_stop():
        asked.append(None)
        return len(asked) > 40

    played = list(carry_out(players, 100, Rules(frames=1000), 1, should_stop))
    assert 0 < len(played) < 5
    assert {each.frames for each in played} == {1000}


# --- the command ------------------------------------------------------------------------------

WORDS = ("tournament", "follower-0", "follower-330", "builtin", "--workers", 1, "--points", 1)


def test_the_command_prints_a_table_of_80_columns_and_writes_report_and_picture(call, tmp_path):
    code, out, err = call(*WORDS, "--games", 2, "-o", "ladder")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-2:] == ["12 games", "saved in ladder"]
    report = json.loads((tmp_path / "ladder/tournament.json").read_text())
    assert [line.split()[1] for line in out.splitlines()[1:4]] == [
        each["name"] for each in report["players"]
    ]
    code, _, err = call(*WORDS, "-o", "ladder")
    assert code == 1
    assert "got one with a tournament; give another one" in err


def test_a_tournament_is_kept_where_the_page_finds_it_under_the_next_number(call, tmp_path):
    words, folder = (*WORDS, "--games", 1), tmp_path / "tournaments"
    for number in (1, 2):
        _, out, _ = call(*words)
        saved = f"saved in tournaments/tournament-00{number}"
        assert out.splitlines()[-1] == f"{saved}; to see the rallies: pixelpong dashboard"
    assert [len(list(path.iterdir())) for path in folder.iterdir()] == [1, 1]
    shutil.rmtree(folder)
    folder.touch()
    code, out, err = call(*words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "expected a folder tournaments for --out" in err


def test_the_command_reports_json(report):
    found = report(*WORDS, "--games", 1, "--sampled", "--seed", 3)
    assert found["folder"] == "tournaments/tournament-001"
    assert found["rules"] == {"seed": 3, "is_greedy": False, "points": 1, "frames": 65_000}
    assert found["games_played"] == 6


def test_agents_come_from_runs_updates_files_and_the_package(make_run, agent_file):
    run = make_run(
        preset="fast", environment="ALE/Pong-v5", streams=1, horizon=4, updates=2, hidden=2
    )
    train(run)
    words = [str(run.path), f"{run.path}@0", str(agent_file()), "club"]
    found = find_players(words)
    assert [each.name for each in found] == words
    assert len({each.sha256 for each in found}) == 4
    assert [each.mind.about["update"] for each in found[:2]] == [2, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected PLAYER, got none"),
        (("champion",), "expected 2 to 64 players, got 1; name more"),
        (["builtin"] * 1000, "expected 2 to 64 players, got 1000; leave some out"),
        (("club", "builtin", "club"), "got club and club, which are the same; leave one out"),
        (("champion", "package"), "got champion and package, which are the same"),
        (("club", "folower-0"), "got 'folower-0'; did you mean follower-0?"),
        (("club", "none"), "got none, which is not one"),
        (("club", "champion@5"), "expected an agent in the package, got '5'"),
        (("club", "builtin", "--games", "0"), "--games"),
        (("club", "builtin", "--points", "22"), "--points"),
        (("club", "builtin", "--out", "file/inside"), "expected a folder file/inside for --out"),
        (("club", "damaged.safetensors"), "expected an agent in damaged.safetensors"),
        (("club", "other.safetensors"), "expected parameters of the algorithm reinforce"),
    ],
)
def test_bad_input_is_one_line_before_the_first_game(
    call, agent_file, tmp_path, monkeypatch, words, message
):
    (tmp_path / "file").touch()
    (tmp_path / "mine").mkdir()
    content = bytearray(agent_file("damaged.safetensors").read_bytes())
    content[-1000] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    agent = make_agent()
    agent.params["W2"] = agent.params["W2"][:3]
    rows = np.arange(len(agent.params["W1"]))
    (tmp_path / "other.safetensors").write_bytes(encode_agent(agent, rows))
    monkeypatch.setattr(tournaments_module, "carry_out", None)
    code, out, err = call("tournament", *words)
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1)
    assert message in err


@pytest.fixture
def interrupted_after(monkeypatch):
    """Let so many games be played; then something happens, or the command is interrupted."""

    def make(count, happens=None):
        def carry_out_some(*args):
            yield from itertools.islice(carry_out(*args), count)
            if happens:
                raise happens

        monkeypatch.setattr(tournaments_module, "carry_out", carry_out_some)

    return make


def test_what_has_been_played_is_kept_and_named_after_ctrl_c(call, tmp_path, interrupted_after):
    interrupted_after(3)
    code, out, _ = call(*WORDS, "-o", "ladder")
    assert (code, out.splitlines()[-2]) == (130, "only 3 of 60 games were played")
    assert json.loads((tmp_path / "ladder/tournament.json").read_text())["games_played"] == 3
    interrupted_after(0)
    assert call(*WORDS)[:2] == (130, "")
    assert not list((tmp_path / "tournaments").iterdir())


def test_what_has_been_played_is_kept_after_an_error(call, tmp_path, interrupted_after):
    interrupted_after(3, WorkerError("expected one, got another; look"))
    code, out, err = call(*WORDS, "-o", "ladder")
    assert (code, out.splitlines()[-2]) == (1, "only 3 of 60 games were played")
    assert "expected one, got another" in err


def test_a_disk_that_takes_no_report_is_one_line_and_the_table_names_no_folder(
    call, tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise RunError("expected room, got none; make some")

    monkeypatch.setattr(files, "write_whole", refuse)
    code, out, err = call(*WORDS, "--games", 1, "-o", "ladder")
    assert (code, err) == (1, "pixelpong: error: expected room, got none; make some\n")
    assert out.splitlines()[-1] == "6 games"
    assert not (tmp_path / "ladder").exists()


def members(group):
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, leader = path.read_text().rpartition(")")[2].split()[:3]
            if int(leader) == group and state != "Z":
                found.append(path.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("is_early", [False, True])
def test_a_signal_ends_all_processes_and_nobody_complains(tmp_path, number, is_early):
    """A terminal sends it to each of them; SIGKILL is for the command alone."""
    words = ["tournament", "follower-0", "predictor", "--games", "1000", "--workers", "2"]
    command = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", *words], start_new_session=True, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert wait_until(lambda: len(members(command.pid)) >= 4)  # with Python's resource tracker
    time.sleep(0 if is_early else 3)
    if number == signal.SIGKILL:
        command.kill()
    else:
        os.killpg(command.pid, number)
    out, err = command.communicate(timeout=60)
    assert wait_until(lambda: not members(command.pid))
    if number != signal.SIGKILL:
        assert command.returncode == 130
        saved = "saved in tournaments/tournament-001; to see the rallies: pixelpong dashboard\n"
        assert (err == "") == out.endswith(f"of 2,000 games were played\n{saved}")
        assert err in ("", "pixelpong: interrupted\n")


def test_an_agent_may_be_deleted_after_the_first_game(agent_file):
    path = agent_file()
    players = find_players([str(path), "follower-0"])
    played = carry_out(players, 1, SHORT, 1, never)
    next(played)
    path.unlink()
    assert len(list(played)) == 1


def made_up(size):
    """A report of so many players."""
    rng = np.random.default_rng(0)
    players = [Player(f"runs/{'long-' * (k % 7)}name-{k}", None, f"{k:064x}") for k in range(size)]
    played = [
        games.Played((a.name, b.name), 0, (21, int(rng.integers(21))), 9000, (1, 900))
        for a, b in itertools.combinations(players, 2)
    ]
    return summarize(players, played, 1, Rules())


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 16, 17, MAX_PLAYERS])
def test_table_and_picture_hold_as_many_players_as_there_may_be(size):
    report = made_up(size)
    text = describe_tournament(report)
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, describe_tournament(report, 60).splitlines())) <= 60
    assert ("too many for a table" in text) == (size > 16)


def test_circles_are_named():
    report = made_up(3) | {"triples": [["a", "b", "c"]]}
    text = describe_tournament(report)
    assert "\na circle: a beats b, b beats c, c beats a\n" in text
    text = describe_tournament(report | {"triples": [["a", "b", "\x1b"]] * 10})
    assert (text.count("circle:"), "\x1b" in text) == (8, False)
    assert "\nand 2 more circles: see --json\n" in text
