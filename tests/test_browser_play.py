"""Playing against an agent in a real Chromium: keys, mouse, finger, pause."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import wait_until
from pages import PHONE, address, read_canvas, require_fitting_and_accessible, wait_for
from test_duel import OTHER, paddle
from web_client import make_trained, serving

from pixelpong.env.duel import DuelEmulator

pytestmark = pytest.mark.browser

INDEX = {(236, 236, 236): 14, (144, 72, 17): 34, (213, 130, 74): OTHER, (92, 186, 92): 200}

TITLE = "(document.querySelector('.play-message:not(.unseen) .play-title')?.textContent ?? '')"
"""What the panel over the picture says, in one look: it comes and goes."""

SCORE = "document.querySelector('.play-score strong').textContent"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with one run, and the agents in the package."""
    folder = tmp_path_factory.mktemp("gallery")
    make_trained(folder / "mine", updates=2)
    with serving(folder) as served:
        yield served


@pytest.fixture
def open_game(site, open_page):
    """Open the game's page, and wait for a title."""

    def open_at(url=f"{site.url}/#play/package/beginner", title="Ready?", **how):
        page = open_page(url, **how)
        page.wait_for_selector(".play-score strong")
        wait_for(page, f"{TITLE} === {title!r}")
        return page

    return open_at


def screen_of(page):
    """[210, 160] palette indices, read from the canvas."""
    picture = read_canvas(page, ".play-stage canvas")
    screen = np.zeros((210, 160), np.uint8)
    for colour, index in INDEX.items():
        screen[(picture == colour).all(axis=2)] = index
    return screen


def own_row(page) -> float:
    """The row of the own paddle's middle; far away if it is not there."""
    place = paddle(screen_of(page), OTHER)
    return (place[0] + place[1]) / 2 if place else -1000


@pytest.mark.slow
def test_a_visit_with_the_keyboard(open_game, axe):
    page = open_game()
    require_fitting_and_accessible(page, axe)
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")
    for key, sign in (("w", -1), ("s", 1)):
        before = own_row(page)
        page.keyboard.down(key)
        assert wait_until(lambda before=before, sign=sign: sign * (own_row(page) - before) > 8)
        page.keyboard.up(key)
    page.get_by_label("Speed").select_option("2")
    wait_for(page, f"{SCORE} !== '0 : 0'")
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === 'Paused'")
    page.keyboard.press("Space")  # an impatient thumb: Space only serves
    page.keyboard.press("r")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate(SCORE) == "0 : 0"
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_for(page, f"{TITLE} === 'Paused'")


def test_arrow_keys_move_the_paddle_and_do_not_scroll(open_game):
    page = open_game(size=(800, 400))
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")
    before = own_row(page)
    page.keyboard.down("ArrowDown")
    assert wait_until(lambda: own_row(page) > before)
    assert page.evaluate("scrollY") == 0


def test_a_choice_of_agents_and_the_end_of_a_game(site, open_game, monkeypatch):
    is_won = property(lambda emulator: sum(emulator.points) > 0)
    monkeypatch.setattr(DuelEmulator, "is_over", is_won)
    page = open_game(f"{address(site, 'mine', 'play')}/2")
    choice = page.locator(".chooser select")
    assert choice.evaluate("(select) => [...select.options].map((o) => o.value)") == ["0", "1", "2"]
    choice.select_option("1")
    assert wait_until(lambda: page.url.endswith("/1"))
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate("document.activeElement.className") == "play-stage"
    page.get_by_label("Speed").select_option("2")
    page.keyboard.press("Space")
    wait_for(page, f"['The agent wins', 'You win!'].includes({TITLE})")
    page.get_by_role("button", name="New game").first.click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    page.get_by_role("link", name="Watch the agent's own game").click()
    page.wait_for_selector(".viewer[data-step]")


def test_the_mouse_leads_the_paddle_and_where_it_rests_counts_however_quick_it_was(open_game):
    page = open_game()
    page.evaluate(
        """() => {
          const stage = document.querySelector(".play canvas"), box = stage.getBoundingClientRect();
          for (const share of [0.3, 0.75]) stage.dispatchEvent(new PointerEvent("pointermove", {
            clientX: box.x + 60, clientY: box.y + share * box.height, bubbles: true,
            isPrimary: true }));
        }"""
    )
    page.keyboard.press("Space")
    assert wait_until(lambda: abs(own_row(page) - 0.75 * 210) < 12)
    box = page.locator(".play-stage canvas").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 0.3 * box["height"], steps=5)
    assert wait_until(lambda: abs(own_row(page) - 0.3 * 210) < 12)


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
    assert wait_until(lambda: abs(own_row(page) - 0.8 * 210) < 12)
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
