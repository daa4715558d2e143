"""A replay that is too long for the page: the result is that of the whole game, in words too."""

from __future__ import annotations

import json
import threading

import pytest
from dense import make_params
from pages import wait_for
from waiting import PATIENCE
from web_client import serving

import pixelpong
from pixelpong.agent.file import Agent
from pixelpong.config.protocols import MAX_FRAMES, find_protocol
from pixelpong.faces.look import reel
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.threads import in_thread

MOMENTS = 60


@pytest.fixture
def agent() -> Agent:
    """One that is not trained, in games that are cut at 200 steps and have a point or more."""
    protocol = find_protocol("ALE/Pong-v5", max_frames=800)
    return Agent(make_params("ppo"), "ppo", protocol, {"update": 0})


def test_the_result_of_a_reel_that_is_cut_is_that_of_the_whole_game(agent, monkeypatch):
    whole = reel.make_reel(agent, 3, 1)
    steps = whole["steps"] - 1
    assert (steps, whole["is_cut"]) == (200, False)
    (value,) = pixelpong.evaluate(pixelpong.Policy(agent), 2, seed=3, engine="serial").returns[1:]
    assert whole["episode_return"] == value != 0
    shown = [name for name, it in whole.items() if isinstance(it, tuple) and len(it) == steps + 1]
    assert {*shown} == {"actions", "points", "probabilities", "values"}
    for moments in (MOMENTS, steps, steps + 1):
        monkeypatch.setattr(reel, "MAX_MOMENTS", moments)
        cut = reel.make_reel(agent, 3, 1)
        assert cut["is_cut"] == (moments <= steps)
        for name in ("episode_return", "final_points", "steps"):
            assert cut[name] == whole[name]
        for name in shown:
            assert cut[name] == whole[name][:moments]
        assert cut["expectations"] == [it for it in whole["expectations"] if it["step"] < moments]
        monkeypatch.undo()
        assert reel.make_reel(agent, 3, 1, moments) == cut, "as the beginning that was asked for"
    assert cut == whole
    assert whole["final_points"] == whole["points"][-1]


@pytest.mark.browser
def test_a_game_begins_while_the_rest_of_it_is_explained(agent, open_page, tmp_path, monkeypatch):
    asked, rest = [], threading.Event()

    async def answer(library, run_id, which, *, viewer, is_brief):
        asked.append(is_brief)
        await in_thread(lambda: is_brief or rest.wait(PATIENCE))
        return json.dumps(reel.make_reel(agent, 0, 0, MOMENTS if is_brief else None)).encode()

    monkeypatch.setattr(Library, "reel", answer)
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#watch/package/club", motion="reduce")
        page.wait_for_selector(".viewer[data-part=beginning]")
        assert "in 200 steps" in page.locator(".outcome").inner_text(), "its end is known"
        for key, step in (("ArrowRight", 1), ("End", MOMENTS - 1), ("ArrowRight", MOMENTS - 1)):
            page.locator("[type=range]").press(key)
            assert page.locator(".step").inner_text() == f"step {step} of 200"
        page.locator(".controls .primary").click()  # it waits for what comes
        rest.set()
        page.wait_for_selector(".viewer[data-part=whole]")
        wait_for(page, f"Number(document.querySelector('.viewer').dataset.step) > {MOMENTS}")
        assert "Only its first" not in page.locator(".outcome").inner_text()
    assert asked == [True, False]


def test_no_game_of_the_usual_rules_is_cut():
    protocol = find_protocol("ALE/Pong-v5")
    assert max(protocol.frame_skips) * (reel.MAX_MOMENTS - 1) >= protocol.max_frames == MAX_FRAMES


@pytest.mark.browser
def test_the_page_says_the_whole_result_and_how_much_of_it_is_shown(
    agent, open_page, tmp_path, monkeypatch
):
    monkeypatch.setattr(reel, "MAX_MOMENTS", MOMENTS)
    game = reel.make_reel(agent, 0)
    for is_cut in (True, False):
        shown = json.dumps(game if is_cut else {**game, "is_cut": False}).encode()

        async def answer(*_, content=shown, **__):
            return content

        monkeypatch.setattr(Library, "reel", answer)
        with serving(tmp_path) as served:
            page = open_page(f"{served.url}/#watch/package/club", motion="reduce")
            page.wait_for_selector(".viewer[data-part=whole]")
            words, (lost, won) = page.locator(".outcome").inner_text(), game["final_points"]
            assert f"({won} points won, {lost} lost) in 200 steps." in words
            assert words.endswith("Only its first 60 steps are shown.") == is_cut
            assert page.locator(".step").inner_text() == "step 0 of 59"
