"""Playing against an agent in a real Chromium: keys, mouse, finger, pause."""

from __future__ import annotations

import numpy as np
import pytest
from pages import PHONE, read_canvas, require_fitting_and_accessible, wait_for
from waiting import wait_until
from web_client import serving

from pixelpong.env.duel import DuelEmulator
from pixelpong.run.directory import RunDirectory

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TITLE = "(document.querySelector('.play-message:not(.unseen) .play-title')?.textContent ?? '')"
"""What the panel over the picture says, in one look: it comes and goes."""

SCORE = "document.querySelector('.play-score strong').textContent"
ORANGE = (213, 130, 74)  # the left paddle


@pytest.fixture(scope="module")
def site(toy_runs):
    """A folder with one run, and the agents in the package."""
    with serving(toy_runs["fast"].parent) as served:
        yield served


@pytest.fixture
def open_game(site, open_page):
    """Open the game's page, and wait until it is ready."""

    def open_at(url=f"{site.url}/#play/package/beginner", **how):
        page = open_page(url, **how)
        page.wait_for_selector(".play-score strong")
        wait_for(page, f"{TITLE} === 'Ready?'")
        return page

    return open_at


def own_row(page) -> float:
    """The row of the own paddle's middle; far away if it is not there."""
    field = read_canvas(page, ".play-stage canvas")[34:194]
    rows = np.flatnonzero((field == ORANGE).all(axis=2).any(axis=1))
    return 34 + (rows[0] + rows[-1]) / 2 if len(rows) else -1000


def has_moved_to(page, share) -> bool:
    """Whether the paddle comes to a place of the field."""
    return wait_until(lambda: abs(own_row(page) - share * 210) < 12)


def test_a_visit_with_keys_and_mouse(open_game, axe):
    page = open_game()
    np.testing.assert_array_equal(read_canvas(page, "canvas"), DuelEmulator().frame())
    require_fitting_and_accessible(page, axe)
    page.set_viewport_size({"width": 800, "height": 400})
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")
    for key, sign in (("w", -1), ("s", 1), ("ArrowUp", -1), ("ArrowDown", 1)):
        before = own_row(page)
        page.keyboard.down(key)
        assert wait_until(lambda before=before, sign=sign: sign * (own_row(page) - before) > 8), key
        page.keyboard.up(key)
    assert page.evaluate("scrollY") == 0, "arrows do not scroll"
    page.get_by_label("Speed").select_option("2")
    wait_for(page, f"{SCORE} !== '0 : 0'")
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === 'Paused'")
    page.keyboard.press("Space")  # an impatient thumb: Space only serves
    page.keyboard.press("r")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate(SCORE) == "0 : 0"

    # Where the mouse rests counts, however quick it was.
    page.evaluate(
        """() => {
          const stage = document.querySelector(".play canvas"), box = stage.getBoundingClientRect();
          for (const share of [0.3, 0.75]) stage.dispatchEvent(new PointerEvent("pointermove", {
            clientX: box.x + 60, clientY: box.y + share * box.height, bubbles: true,
            isPrimary: true }));
        }"""
    )
    page.keyboard.press("Space")
    assert has_moved_to(page, 0.75)
    box = page.locator(".play-stage canvas").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 0.3 * box["height"], steps=5)
    assert has_moved_to(page, 0.3)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_for(page, f"{TITLE} === 'Paused'")


def test_a_choice_of_agents_and_the_end_of_a_game(site, toy_runs, open_game, monkeypatch):
    is_won = property(lambda emulator: sum(emulator.points) > 0)
    monkeypatch.setattr(DuelEmulator, "is_over", is_won)
    agents = [str(update) for update in RunDirectory(toy_runs["fast"]).list_agents()]
    page = open_game(f"{site.url}/#play/fast/{agents[-1]}")
    choice = page.locator(".chooser select")
    assert choice.evaluate("(select) => [...select.options].map((o) => o.value)") == agents
    choice.select_option(agents[1])
    assert wait_until(lambda: page.url.endswith(f"/{agents[1]}"))
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate("document.activeElement.className") == "play-stage"
    page.get_by_label("Speed").select_option("2")
    page.keyboard.press("Space")
    wait_for(page, f"['The agent wins', 'You win!'].includes({TITLE})")
    page.get_by_role("button", name="New game").first.click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    page.get_by_role("link", name="Watch the agent's own game").click()
    page.wait_for_selector(".viewer[data-step]")


def test_a_finger_serves_and_drags_the_paddle_and_neither_the_page_nor_a_second_finger_does(
    open_game,
):
    page = open_game(size=PHONE)
    box = page.locator(".play-stage canvas").bounding_box()
    assert box["width"] > 300
    assert box["y"] + box["height"] < PHONE[1], "the whole field is in sight"
    touch = page.context.new_cdp_session(page)

    def place(kind, *shares):
        points = [
            {"x": box["x"] + 250, "y": box["y"] + share * box["height"], "id": finger}
            for finger, share in enumerate(shares)
        ]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    place("touchStart", 0.3)
    wait_for(page, f"{TITLE} === ''")
    for share in (0.4, 0.6, 0.8):
        place("touchMove", share)
    assert has_moved_to(page, 0.8)
    page.evaluate(
        "() => { window.aims = []; const { prototype } = WebSocket, { send } = prototype;"
        " prototype.send = function (text) { aims.push(text); send.call(this, text); }; }"
    )
    place("touchStart", 0.8, 0.3)
    place("touchMove", 0.8, 0.35)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    aims = page.evaluate("aims.map((one) => JSON.parse(one)).filter((one) => 'aim' in one)")
    assert all(abs(aim["aim"] - 0.8) < 0.02 for aim in aims)
    assert page.evaluate("scrollY") == 0


def test_a_lost_connection_is_said_and_can_be_had_again(tmp_path, open_game):
    with serving(tmp_path) as served:
        page = open_game(f"{served.url}/#play/package/best")
        assert page.locator(".chooser select").input_value() == "club"
        page.may_fail = True
    wait_for(page, f"{TITLE}.includes('lost')")
    page.get_by_role("button", name="Try again").click()
    wait_for(page, f"{TITLE}.includes('lost')")
    with serving(tmp_path, port=served.port):
        page.get_by_role("button", name="Try again").click()
        wait_for(page, f"{TITLE} === 'Ready?'")
