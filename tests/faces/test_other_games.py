"""Films, replays and the page for agents of games other than Pong; what is Pong's is refused."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest
from toys import toy_config, toy_evaluation
from web_client import make_trained, serving

import pixelpong
from pixelpong.agent.choice import open_agent
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import protocol_of
from pixelpong.errors import ConfigError
from pixelpong.faces.comparing import describe_sweep
from pixelpong.faces.look import overlay, reel
from pixelpong.faces.look.legend import colour_cells, name_actions
from pixelpong.faces.page.game import BrowserGame
from pixelpong.faces.page.health import assess
from pixelpong.faces.page.library import Library
from pixelpong.play.networks import PLAYER
from pixelpong.play.scenes import scene_of
from pixelpong.run.directory import RunDirectory
from pixelpong.run.folders import PLAN_FILE
from pixelpong.run.record import Record
from pixelpong.seeding import make_rng
from pixelpong.sight.blobs import Sight
from pixelpong.sweeps.settings import make_settings
from pixelpong.sweeps.suites import make_suites

RULES = "ALE/Breakout-v5 with at most 1,200 frames"


@pytest.fixture(scope="module")
def agent(breakout_run):
    return open_agent(breakout_run)[1]


def test_actions_have_the_names_of_the_game_and_cells_its_colours():
    assert name_actions(scene_of("breakout")) == ["noop", "fire", "right", "left"]
    assert name_actions(scene_of("boxing"))[-1] == "downleftfire"
    assert name_actions(scene_of("pong")) == ["stay", "up", "down"]
    classes = np.full(256, 15, np.uint8)
    classes[[0x46, 0x80, 0x0E]] = 1, 2, 3
    sight = Sight(np.zeros((210, 160), np.uint8), False, classes, 1, 9)
    # Its own colour; a dark one brighter; white; all that have no colour of their own are grey.
    assert colour_cells(sight) == [0x48, 0x88, 0x0E, *[0x0A] * 12]


# --- films --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_film_is_of_the_evaluations_game_and_says_its_score(breakout_run, report, call):
    pytest.importorskip("av", reason="films need the extra [video]")
    found = pixelpong.evaluate(breakout_run, 3, seed=5, engine="serial", sampled=True)
    words = [
        "record",
        breakout_run,
        "--seed",
        5,
        "--episode",
        2,
        "--scale",
        1,
        "--speed",
        60,
        "--whole",
    ]
    told = report(*words, "--out", "film.gif")
    assert (told["score"], told["is_cut"]) == (found.returns[2], False)
    assert told["title"].endswith(f": sampled episode 2, seed 5, {RULES}")
    out = call(*words, "--seconds", "0.1", "--out", "film.gif")[1]
    assert f", {RULES}, score " in out
    assert "opponent" not in out
    media = pixelpong.Policy.load(breakout_run).replay(2, seed=5, seconds=0.2)
    assert ": sampled episode 2, seed 5, " in media.title
    media = pixelpong.Run(breakout_run).replay(seconds=0.2, sampled=False)
    assert ": greedy episode 0, seed 0, " in media.title


def test_an_overlay_has_cells_in_their_colours_a_frame_and_bars_as_long_as_probabilities(agent):
    pytest.importorskip("PIL", reason="films need the extra [video]")
    moments = [moment for moment in play_game(agent, 3, explains_every=9) if moment.explanation]
    frames = 0
    for moment in moments[:8]:
        picture = np.asarray(overlay.draw_overlay(moment, agent, "a game", 3))
        assert picture.shape == (3 * (overlay.TITLE + 210), 3 * 448)
        seen = moment.explanation
        cells = picture[3 * 66 + 1 : 3 * 171 : 3, 3 * 168 + 1 : 3 * 248 : 3]
        slots = np.array([overlay.PAPER, *(it >> 1 for it in colour_cells(agent.sight))])
        np.testing.assert_array_equal(cells, slots[seen.field % PLAYER])
        own = np.argwhere(seen.field >= PLAYER)
        if len(own):
            top, left = own.min(axis=0)
            assert picture[3 * (66 + top) - 1, 3 * (168 + left)] == overlay.INK
            frames += 1
        for row, p in enumerate(seen.probabilities):
            y = 3 * (29 + 12 * row) + 6
            bar = picture[y, 3 * 394 : 3 * 426]
            assert (bar != overlay._BAR).sum() == pytest.approx(3 * 32 * p, abs=1)
            mark = picture[y - 6 : y + 18, 3 * 343 : 3 * 348]
            assert (mark != overlay.PAPER).any() == (row == moment.action)
    assert frames > 4


# --- replays and the page -----------------------------------------------------------------------


def unpack(packed, shape):
    """The pictures of a reel, by the words of `pixelpong.faces.look.reel`."""
    content, at, picture = zlib.decompress(base64.b64decode(packed)), 0, np.zeros(shape, np.uint8)
    while at < len(content):
        count = int.from_bytes(content[at : at + 2], "little")
        indices = np.frombuffer(content, "<u2", count, at + 2)
        picture.ravel()[indices] = np.frombuffer(content, np.uint8, count, at + 2 + 2 * count)
        at += 2 + 3 * count
        yield picture.copy()


def test_a_reel_has_the_cells_the_lives_and_the_score_of_the_whole_game(agent, monkeypatch):
    whole = json.loads(json.dumps(reel.make_reel(agent, 3, 1)))
    moments = [*play_game(agent, 3, 1, explains_every=1)]
    assert (whole["game"], whole["episode_return"]) == ("breakout", moments[-1].score)
    assert whole["lives"] == [moment.lives for moment in moments]
    assert whole["actions"] == [moment.action for moment in moments]
    assert whole["action_names"] == ["noop", "fire", "right", "left"]
    assert whole["expectations"] == []
    assert len(whole["cell_colours"]) == 15
    fields = list(unpack(whole["field"], whole["shapes"]["field"]))
    screens = list(unpack(whole["screen"], whole["shapes"]["screen"]))
    for moment, field, screen in zip(moments, fields, screens, strict=True):
        np.testing.assert_array_equal(field, moment.explanation.field)
        np.testing.assert_array_equal(screen, moment.screen)
    monkeypatch.setattr(reel, "MAX_MOMENTS_OF_OTHERS", 20)
    cut = reel.make_reel(agent, 3, 1)
    assert (cut["is_cut"], len(cut["actions"]), cut["steps"]) == (True, 20, whole["steps"])
    assert cut["episode_return"] == whole["episode_return"]


def test_the_page_lists_agents_by_their_scores_and_knows_the_scores_of_others(breakout_run):
    library = Library(breakout_run.parent)
    told = library.describe("breakout")
    kinds = {agent["which"]: agent["kind"] for agent in told["agents"]}
    assert (kinds["12"], kinds["10"]) == ("sampled", "mean of the last 100")
    assert told["scores"] == {"random": 1.7, "human": 30.5}
    assert (told["game"], told["target"]) == ("breakout", None)
    path = breakout_run / "agents" / "000010.safetensors"
    if path.exists():
        file = Library(breakout_run / "none", path)
        assert file.describe(file.id_of(path))["game"] == "breakout"
    library.close()


def test_health_says_nothing_of_points_and_paddles(breakout_run, tmp_path):
    (finding,) = assess(Record.read(breakout_run))
    assert (finding.level, finding.title) == ("good", "No problems found")
    assert "Its mean score of the last 100 games is " in finding.text
    assert "(random 1.7, human 30.5)" in finding.text
    record = Record(breakout_run)
    for name, value, title in ("entropy", 0.01, "Entropy gone"), ("kl", 0.5, "Steps too large"):
        table = record.columns() | {name: np.full(len(record.rows), value)}
        record.curve = lambda name=None, table=table: (
            table["steps"], table[name or "mean_return_100"]
        )  # fmt: skip
        assert [finding.title for finding in assess(record)] == [title]


@pytest.mark.browser
def test_a_visit_to_a_run_of_breakout(breakout_run, tmp_path, open_page):
    from pages import read_canvas, require_fitting_and_accessible

    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "breakout").symlink_to(breakout_run)
    with serving(tmp_path / "runs") as served:
        page = open_page(f"{served.url}/#runs", motion="reduce")
        page.wait_for_selector("tbody tr")
        assert "game" in page.locator("thead").inner_text()
        assert "breakout" in page.locator("tbody tr").inner_text()
        page.get_by_role("link", name="breakout", exact=True).click()
        page.wait_for_selector(".viewer[data-part=whole]")
        assert page.get_by_role("link", name="Play against it").is_visible()
        curve = page.locator("figure[data-curve=return]")
        assert curve.locator("h3").inner_text() == "Score points per game"
        assert "random 1.7" in curve.inner_text()
        assert not page.locator("figure[data-curve=points]").is_visible()
        facts = page.locator(".facts").inner_text()
        assert "human-normalised" in facts
        assert "points won" not in facts
        game = page.locator(".games").inner_text()
        assert f"on {RULES}, with sampled actions." in game
        for word in ("score 0, lives 5", "noop", "fire", "the player", "discounted sum"):
            assert word in game
        for word in ("opponent", "A mark above it is a point won", "appeared"):
            assert word not in game
        agent = open_agent(breakout_run)[1]
        moments = [*play_game(agent, 0, explains_every=1)]
        for step in (0, 40, 20):
            page.locator(".timeline input").fill(str(step))
            shown = read_canvas(page, "canvas.screen")
            np.testing.assert_array_equal(shown, moments[step].frame)
            cells = read_canvas(page, "canvas.sight").max(axis=-1)[3::6, 3::6]
            np.testing.assert_array_equal(cells > 0, moments[step].explanation.field > 0)
        page.get_by_label("What moved the decision").check()
        best = int(moments[20].explanation.probabilities.argmax())
        names = name_actions(agent.scene)
        assert f"for {names[best]}" in page.locator(".games").inner_text()
        saliency = moments[20].explanation.saliency
        shares = np.rint(127 * saliency / np.abs(saliency).max())
        drawn = read_canvas(page, "canvas.sight").any(axis=-1)[1::6, 1::6]
        np.testing.assert_array_equal(drawn, abs(shares) >= 16)
        require_fitting_and_accessible(page)


@pytest.mark.browser
def test_the_page_compares_games_as_the_terminal_does(breakout_run, tmp_path, open_page):
    folder = tmp_path / "runs" / "sweep-001"
    folder.mkdir(parents=True)
    (folder / PLAN_FILE).write_text("{}")
    (folder / "breakout-0").symlink_to(breakout_run)
    RunDirectory.create(folder / "seaquest-0", toy_config("atari", game="seaquest"))
    records = [Record(folder / name) for name in ("breakout-0", "seaquest-0")]
    (suite,) = make_suites(make_settings(records))
    facts = {"suites": [suite.summarize()], "runs": [], "sweep": "sweep-001"}
    expected = [re.split("  +", line) for line in describe_sweep(facts).splitlines()[:4]]
    assert [line[0] for line in expected] == ["game", "breakout", "seaquest", "all"]
    with serving(tmp_path / "runs") as served:
        page = open_page(f"{served.url}/#sweep/sweep-001", motion="reduce")
        results = page.get_by_role("region", name="Results")
        results.locator("tbody tr").nth(2).wait_for()
        rows = [row.locator("th, td").all_inner_texts() for row in results.locator("tr").all()]
        assert [[cell for cell in row if cell] for row in rows] == expected
        text = page.locator("main").inner_text()
        assert "won" not in text
        assert "Means of the runs that are done; 95 % intervals from four runs up." in text


@pytest.mark.browser
def test_runs_of_pong_alone_have_no_column_of_games(tmp_path, open_page):
    make_trained(tmp_path / "pong", updates=1)
    (tmp_path / "pong" / "evaluations.jsonl").write_text(json.dumps(toy_evaluation(1, 3.0)) + "\n")
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#runs", motion="reduce")
        page.wait_for_selector("tbody tr")
        assert "game" not in page.locator("thead").inner_text()
        assert "+3.0 greedy" in page.locator("tbody tr").inner_text()


# --- what is Pong's alone -----------------------------------------------------------------------

REFUSED = "breakout plays breakout, and only Pong has two sides. Choose an agent of Pong, such as "


def test_what_needs_two_sides_is_refused_in_a_sentence(breakout_run, agent, call):
    for words in (
        ("tournament", "champion", breakout_run),
        ("train", "--opponent", breakout_run, "--run", "new"),
    ):  # fmt: skip
        code, out, err = call(*words)
        assert (code, out) == (2, "")
        assert REFUSED in err
        assert err.count("\n") == 1
    with pytest.raises(ConfigError, match=REFUSED):
        pixelpong.make_env(opponent=str(breakout_run))
    with pytest.raises(ConfigError, match="This agent plays breakout"):
        BrowserGame(agent, make_rng(0, "play"))
    assert protocol_of("breakout").plays_greedy is False
