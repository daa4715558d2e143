"""Tournaments on the page: over a real connection, and in a real Chromium."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest
from pages import LAPTOP, PHONE, read_canvas, require_fitting_and_accessible
from test_reel import pictures_in
from web_client import serving

from pixelpong.engines import never
from pixelpong.faces.page.view import id_of
from pixelpong.tournament.games import Rules, watch
from pixelpong.tournament.players import find_player
from pixelpong.tournament.tournament import carry_out, summarize

RULES = Rules(points=2, frames=1500)
NAMES = ("follower-0", "follower-330", "builtin")
CIRCLE = "builtin beats follower-330, follower-330 beats follower-0, follower-0 beats builtin"


@pytest.fixture(scope="module")
def report():
    """A tournament of scripts; its circle is made up."""
    players = [find_player(name) for name in NAMES]
    found = summarize(players, list(carry_out(players, 1, RULES, 1, never)), 1, RULES)
    return found | {"triples": [["builtin", "follower-330", "follower-0"]]}


@pytest.fixture(scope="module")
def site(report, tmp_path_factory):
    """It and others, damaged and under way, beside a folder of runs."""
    folder = tmp_path_factory.mktemp("place")
    contents = {"ladder": json.dumps(report), "damaged": '{"format": 1}', "cut": "{", "begun": None}
    for name, content in contents.items():
        (folder / "tournaments" / name).mkdir(parents=True)
        if content is not None:
            (folder / "tournaments" / name / "tournament.json").write_text(content)
    (folder / "tournaments" / "file").touch()
    with serving(folder / "runs") as served:
        served.folder = folder / "tournaments"
        yield served


@pytest.fixture
def ask(site):
    """Ask the server: ``ask(rest, name)`` is its answer about a tournament."""
    with httpx.Client(base_url=f"{site.url}/api/tournaments", timeout=60) as client:
        yield lambda rest="", name="ladder": client.get(f"/{id_of(site.folder / name)}{rest}")


def pair_of(report, *names):
    """Number, and best rally, of two players."""
    pairs = enumerate(report["pairs"])
    return next((n, it["best_rally"]) for n, it in pairs if set(it["players"]) == set(names))


def rally_frames(rally):
    """The slow oracle: the players play the game again."""
    players = [find_player(name) for name in rally["players"]]
    begin, end = rally["rally"]
    games = watch(*players, rally["number"], RULES)
    return [(game.screen.copy(), game.frame()) for game in games][begin - 1 : end]


def test_tournaments_beside_the_runs_are_listed_damaged_ones_with_one_line(site, report):
    listed = httpx.get(f"{site.url}/api/tournaments").json()["tournaments"]
    assert {each["name"] for each in listed} == {"ladder", "damaged", "cut", "begun"}
    found = {each["name"]: each for each in listed}
    assert found["ladder"]["players"] == [each["name"] for each in report["players"]]
    assert found["ladder"]["games_played"] == 6
    problems = [found[name]["problem"] for name in ("damaged", "cut", "begun")]
    assert all(text.startswith("expected a tournament.json") for text in problems)
    assert "none yet; it comes when the games have been played" in problems[2]


def test_a_tournament_is_told_with_what_the_page_shows(ask, report):
    told = ask().json()
    for name in ("matrix", "triples", "rules", "games_played", "games_planned"):
        assert told[name] == report[name]
    for name in ("name", "rating", "ci95", "points_won"):
        assert [each[name] for each in told["players"]] == [it[name] for it in report["players"]]


@pytest.mark.parametrize("other", ["follower-330", "builtin"])
@pytest.mark.slow
def test_the_film_of_a_rally_is_what_the_players_played(ask, report, other):
    number, rally = pair_of(report, "follower-0", other)
    film = ask(f"/rallies/{number}").json()
    frames = rally_frames(rally)
    assert film["steps"] == len(frames)
    assert film["sides"] == list(rally["players"])
    screens = pictures_in(film["screen"], 210 * 160, len(frames)).reshape(-1, 210, 160)
    assert np.array_equal(screens, [screen for screen, _ in frames])
    assert np.array_equal(np.array(film["palette"])[screens[0]], frames[0][1])


def test_what_is_not_there_is_one_line_and_the_page_goes_on(ask):
    for status, answer in (
        (422, ask("/rallies/999")),
        (404, ask("/rallies/x")),
        (404, ask(name="none")),
        (404, ask(name="damaged")),
        (404, ask(name="begun")),
        (422, ask("/rallies/0", "cut")),
    ):
        assert answer.status_code == status
        assert answer.json()["error"].startswith("expected ")
    assert ask().status_code == 200


def test_a_file_that_is_damaged_later_is_read_again(ask, site, report):
    file = site.folder / "ladder" / "tournament.json"
    assert ask().status_code == 200
    content = file.read_bytes()
    file.write_text("{}")
    assert ask().status_code == 404
    file.write_bytes(content)
    assert ask().json()["matrix"] == report["matrix"]


@pytest.mark.browser
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_the_ladder_is_shown_and_a_figure_plays_the_pairs_best_rally(
    site, report, open_page, axe, size
):
    page = open_page(f"{site.url}/#runs", size)
    page.get_by_role("link", name="Tournaments").click()
    page.wait_for_selector(".tournament:has-text('none yet')")
    require_fitting_and_accessible(page, axe, size)
    page.get_by_role("link", name="ladder").click()
    page.wait_for_selector(f"text={CIRCLE}")
    names = [f"{rank} {each['name']}" for rank, each in enumerate(report["players"], 1)]
    ladder = page.get_by_role("region", name="The ladder")
    assert ladder.locator("tbody th").all_inner_texts() == names
    _, rally = pair_of(report, "follower-0", "follower-330")
    page.get_by_role("button", name="follower-330 against follower-0").click()
    page.wait_for_selector(".viewer[data-step]")
    require_fitting_and_accessible(page, axe, size)
    frames = rally_frames(rally)
    for place in (len(frames) - 1, 0):
        page.get_by_label("Frame of the rally").fill(str(place))
        page.wait_for_selector(f"text=frame {place} of {len(frames) - 1}")
        if page.locator(".viewer").get_attribute("data-playing") == "true":
            page.get_by_role("button", name="Pause").click()
            page.get_by_label("Frame of the rally").fill(str(place))
        shown = read_canvas(page, ".viewer .screen")[1::3, 1::3]
        assert np.array_equal(shown, frames[place][1])
    left, right = rally["players"]
    assert f"{left} on the left, {right} on the right" in page.locator(".outcome").inner_text()
