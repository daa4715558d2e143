"""Any game against its agent in a real browser: keys, fingers, both scores, the record."""

from __future__ import annotations

from contextlib import closing

import pytest
from pages import require_fitting_and_accessible, wait_for
from promises import promise
from waiting import wait_until
from web_client import serving

from pixelpong.agent.choice import open_agent
from pixelpong.faces.page.game import Seats
from pixelpong.faces.page.rival import RivalGame

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

TITLE = "(document.querySelector('.play-message:not(.unseen) .play-title')?.textContent ?? '')"
HELD = "[...document.querySelectorAll('.pad .held')].map((it) => it.dataset.hold).join(',')"
WINDOWS = (1024, 768), (390, 844), (844, 390)


@pytest.fixture(scope="module")
def site(breakout_run):
    with serving(breakout_run.parent) as served:
        yield served


@pytest.fixture
def games(monkeypatch):
    """The games on the server, the newest last."""
    made, make = [], Seats.make_game

    async def note(*words):
        made.append(await make(*words))
        return made[-1]

    monkeypatch.setattr(Seats, "make_game", note)
    return made


def wait_here(page, condition):
    wait_until(condition, meanwhile=lambda: page.wait_for_timeout(20))


def end(game, score):
    """Let both games end at once, with this score of the person and 2 of the agent."""

    class Ended(RivalGame):
        is_over, points = property(lambda _: True), property(lambda _: (score, 2))

    game.__class__ = Ended


def open_game(page_of, site, seed=""):
    page = page_of(f"{site.url}/#play/breakout/best{seed}")
    wait_for(page, f"{TITLE} === 'Ready?'")
    return page


def test_a_person_plays_loses_sees_both_scores_and_the_record_and_plays_again(
    site, open_page, games
):
    page = open_game(open_page, site, "?41")
    page.evaluate("localStorage.clear()")
    assert page.url.endswith("?41")
    assert page.get_by_role("heading").inner_text() == "Play against breakout, update 12"
    assert page.locator(".seed").inner_text() == "41"
    assert "noop, fire, right, left" in page.locator("dl").inner_text()
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")  # from now on Space fires
    for keys, held in (
        (["ArrowRight"], ["right"]), (["d", "Space"], ["right", "fire"]),
        (["a", "w"], ["left", "up"]),
    ):  # fmt: skip
        for key in keys:
            page.keyboard.down(key)
        wait_here(page, lambda held=held: games[-1]._held == held)
        for key in keys:
            page.keyboard.up(key)
        wait_here(page, lambda: games[-1]._held == [])
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === 'Paused'")
    page.evaluate(
        "const press = (code) => document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { code, bubbles: true }));"
        "press('KeyP'); dispatchEvent(new Event('blur')); press('ArrowRight')"
    )
    wait_here(page, lambda: games[-1]._held == ["right"])
    assert games[-1].phase == "paused", "it continued while the window was behind another"
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === ''")
    end(games[-1], 1)
    wait_for(page, f"{TITLE} === 'The agent wins'")
    said = page.locator(".play-message").inner_text()
    assert "You 1, agent 2. That is the best in this browser." in said
    assert page.locator(".record").inner_text() == "1"
    for width, height in ((360, 740), *reversed(WINDOWS)):
        page.set_viewport_size({"width": width, "height": height})
        panel, picture = (page.locator(it).bounding_box() for it in (".play-message", ".own"))
        assert panel["y"] + panel["height"] <= picture["y"] + picture["height"], width
    page.get_by_role("button", name="Same seed again").click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert (len(games), page.url.endswith("?41")) == (2, True)
    page.keyboard.press("Space")
    wait_here(page, lambda: games[-1].phase == "playing")
    end(games[-1], 0)
    wait_for(page, f"{TITLE} === 'The agent wins'")
    assert "Best in this browser: 1." in page.locator(".play-message").inner_text()
    page.get_by_role("button", name="New game (Space)").click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert not page.url.endswith("?41")


def test_a_browser_that_keeps_nothing_is_no_hindrance(site, open_page, games):
    page = open_game(open_page, site)
    page.evaluate(
        "Object.defineProperty(window, 'localStorage', { configurable: true,"
        " get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    page.get_by_role("button", name="New game").first.click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    page.keyboard.press("Space")
    wait_here(page, lambda: games[-1].phase == "playing")
    end(games[-1], 3)
    wait_for(page, f"{TITLE} === 'You win!'")
    assert "The browser does not keep it." in page.locator(".play-message").inner_text()
    page.reload()  # so that the next page has its storage again


def test_the_games_and_the_pad_fit_every_window_and_fingers_hold_the_pad(site, open_page, games):
    page = open_game(open_page, site)
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        parts = [".own canvas", "figure + figure canvas", ".own-score", ".its-score"]
        parts += [".pause", ".restart"] + [".pad .fire"] * (width < 1000)
        for part in parts:
            box = page.locator(part).bounding_box()
            assert box["y"] >= 0, (part, width)
            assert box["y"] + box["height"] <= height, (part, width)
            assert box["x"] + box["width"] <= width, (part, width)
        assert page.locator(".own canvas").bounding_box()["height"] > height / 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not page.locator(".pad [data-hold='up']").is_visible(), "there is no up in this game"
    page.locator(".pad .fire").tap()
    wait_here(page, lambda: games[-1].phase == "playing")
    box = page.locator(".pad [data-hold='left']").bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down()
    wait_here(page, lambda: games[-1]._held == ["left"])
    wait_for(page, f"{HELD} === 'left'")
    page.mouse.up()
    wait_here(page, lambda: games[-1]._held == [])
    page.evaluate("dispatchEvent(new Event('blur'))")
    wait_for(page, f"{TITLE} === 'Paused'")
    require_fitting_and_accessible(page)
    page.emulate_media(color_scheme="dark")
    require_fitting_and_accessible(page)
    page.emulate_media(forced_colors="active")
    colours = "getComputedStyle(document.querySelector('.pad .fire')).borderTopStyle"
    assert page.evaluate(colours) == "solid"
    page.emulate_media(forced_colors="none")


@pytest.mark.parametrize("has_touch", [True, False])
def test_keys_are_listed_where_there_is_a_keyboard(site, browser, has_touch):
    with closing(browser.new_context(has_touch=has_touch)) as context:
        page = context.new_page()
        for agent, count in (("breakout/best", 5), ("package/club", 4)):
            page.goto(f"{site.url}/#play/{agent}")
            wait_for(page, f"document.querySelectorAll('.keyboard').length === {count}")
            lines = page.locator("dl div")
            shown = [each for each in lines.all() if each.is_visible()]
            assert len(shown) == lines.count() - has_touch * count
            assert shown


def test_full_screen_fills_a_projector_and_the_buttons_stay_in_sight(site, browser):
    page = browser.new_page(viewport={"width": 1024, "height": 768})  # with a mouse, without a pad

    def visit(address):
        page.goto(address)
        return page

    try:
        open_game(visit, site)
        usual = page.locator(".own canvas").bounding_box()["height"]
        page.keyboard.press("f")
        wait_for(page, "document.fullscreenElement !== null")
        parts = [".own canvas", "figure + figure canvas", ".pause", ".full-screen", ".speed"]
        for part in parts:
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= 768, part
            assert box["x"] + box["width"] <= 1024, part
        assert page.locator(".own canvas").bounding_box()["height"] > 1.4 * usual
        assert 0 <= page.locator(".own-score").bounding_box()["y"] < 40, "what is above it?"
    finally:
        page.close()


def test_the_agents_own_game_is_that_of_the_seed(site, open_page, breakout_run):
    page = open_game(open_page, site, "?5")
    assert page.locator(".watch").get_attribute("href") == "#watch/breakout/12?5/0"
    assert open_agent(breakout_run)[1].protocol.game == "breakout"
