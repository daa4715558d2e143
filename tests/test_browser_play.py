"""Playing against an agent or a friend, and watching, in a real Chromium: keys, mouse, finger."""

from __future__ import annotations

import random
import statistics
import time

import numpy as np
import pytest
from conftest import wait_until
from pages import LOOKS, PHONE, address, read_canvas, require_fitting_and_accessible, wait_for
from test_duel import OTHER, OWN, ball_of, paddle
from web_client import serving

from pixelpong.config.presets import load_preset
from pixelpong.env.duel import DuelEmulator
from pixelpong.faces.games import socket as sockets
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.browser

INDEX = {(236, 236, 236): 14, (144, 72, 17): 34, (213, 130, 74): OTHER, (92, 186, 92): 200}

TITLE = "(document.querySelector('.play-message:not([hidden]) .play-title')?.textContent ?? '')"
"""What the panel over the picture says, in one look: it comes and goes."""

BEGUN = "document.querySelector('.play-message').hidden"
"""The countdown is over."""

LISTEN = """
  window.heard = [];
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function () {
    window.heard.push(Math.round(this.frequency.value));
    start.call(this);
  };
"""

TITLES = """
  window.titles = [];
  new MutationObserver(() => {
    const title = document.querySelector(".play-message:not([hidden]) .play-title")?.textContent;
    if (title && title !== window.titles.at(-1)) window.titles.push(title);
  }).observe(document.querySelector(".play-message"), { childList: true });
"""

SCORE = "document.querySelector('.play-score strong').textContent"

COUNT = """(() => {
  const send = WebSocket.prototype.send, put = CanvasRenderingContext2D.prototype.putImageData;
  let pressed = null, top = null;
  Object.assign(window, { pictures: 0, delays: [] });
  WebSocket.prototype.send = function (text) {
    const { type, value } = JSON.parse(text);
    if (type === "seen") window.pictures = value;
    send.call(this, text);
  };
  addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  CanvasRenderingContext2D.prototype.putImageData = function (image, ...rest) {
    put.call(this, image, ...rest);
    const dots = new Uint32Array(image.data.buffer);
    let row = 34;
    while (row < 194 && dots[row * 160 + 17] !== 0xff4a82d5) row++;
    if (top !== null && row !== top && pressed !== null) {
      window.delays.push(performance.now() - pressed);
      pressed = null;
    }
    top = row;
  };
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with one run of real Pong, of an episode, and the agent in the package."""
    folder = tmp_path_factory.mktemp("gallery")
    changes = {"updates": 2, "batch_size": 1, "hidden": 4, "save_every": 1, "engine": "serial"}
    config = load_preset("classic").updated(changes, "test")
    train(RunDirectory.create(folder / "pong", config, [].append))
    with serving(folder) as served:
        yield served


@pytest.fixture
def open_game(site, open_page):
    """Open the game's page when every seat is free again, and wait for a title."""

    def open_at(url=f"{site.url}/#play/package/0", title="Ready?", **how):
        page = open_page(url, **how)
        page.wait_for_selector(".play-score strong")
        wait_for(page, f"{TITLE} === {title!r}")
        return page

    assert wait_until(lambda: sockets._taken == 0)
    return open_at


def screen_of(page):
    """[210, 160] palette indices, read from the canvas."""
    picture = read_canvas(page, ".play-canvas")
    screen = np.zeros((210, 160), np.uint8)
    for colour, index in INDEX.items():
        screen[(picture == colour).all(axis=2)] = index
    return screen


def own_row(page) -> float:
    """The row of the own paddle's middle; far away if it is not there."""
    place = paddle(screen_of(page), OTHER)
    return (place[0] + place[1]) / 2 if place else -1000


class Keys:
    """Holds one key at a time."""

    def __init__(self, page):
        self.page, self.held = page, None

    def hold(self, key):
        if key == self.held:
            return
        if self.held:
            self.page.keyboard.up(self.held)
        if key:
            self.page.keyboard.down(key)
        self.held = key


@pytest.mark.slow
def test_a_whole_point_is_played_by_key_presses(open_game):
    """At half speed, for a busy machine's sake: one return, and then the agent has its point."""
    page = open_game()
    page.get_by_label("Speed").select_option("0.5")
    page.keyboard.press("Space")
    keys, last, returned = Keys(page), None, False
    deadline = time.monotonic() + 60
    while page.evaluate(SCORE) == "0 : 0":
        assert time.monotonic() < deadline
        screen = screen_of(page)
        ball, own = ball_of(screen), paddle(screen, OTHER)
        if ball and last and last[2] < 60 and ball[2] > last[2]:
            returned = True
        missing = ball[0] + 2 - (own[0] + own[1]) / 2 if ball and own and not returned else 0
        keys.hold("w" if missing < -6 else "s" if missing > 6 else None)
        last = ball
    keys.hold(None)
    assert returned, "the ball never came back from the left paddle"
    assert page.evaluate(SCORE) in ("0 : 1", "1 : 0")
    names = page.locator(".play-score").inner_text()
    assert "You" in names
    assert "Agent" in names


@pytest.mark.slow
def test_pause_holds_the_picture_and_reload_begins_anew(open_game):
    page = open_game()
    page.get_by_label("Speed").select_option("2")
    page.keyboard.press("Space")
    wait_for(page, f"{SCORE} !== '0 : 0'")
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === 'Paused'")
    page.wait_for_timeout(1000)  # what was on its way may come after the title
    held = screen_of(page)
    page.wait_for_timeout(500)
    np.testing.assert_array_equal(screen_of(page), held)
    page.keyboard.press("Space")  # an impatient thumb: Space only serves
    page.wait_for_timeout(300)
    assert page.evaluate(TITLE) == "Paused"
    page.get_by_role("button", name="Go on").click()
    wait_for(page, f"{TITLE} !== 'Paused'")
    assert wait_until(lambda: (screen_of(page) != held).any())
    page.reload()
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate(SCORE) == "0 : 0"
    assert wait_until(lambda: sockets._taken == 1), "the seat from before the reload is free"


def look_away(page):
    """Choose another tab."""
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )


def test_a_tab_out_of_sight_pauses_by_itself(open_game):
    page = open_game()
    page.keyboard.press("Space")
    wait_for(page, BEGUN)
    look_away(page)
    wait_for(page, f"{TITLE} === 'Paused'")


def test_restart_speed_and_difficulty(site, open_game):
    page = open_game(f"{address(site, 'pong', 'play')}/2")
    page.get_by_label("Speed").select_option("2")
    page.keyboard.press("Space")
    wait_for(page, f"{SCORE} !== '0 : 0'")
    page.keyboard.press("r")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate(SCORE) == "0 : 0"
    choice = page.get_by_label("How strong")
    assert choice.evaluate("(select) => [...select.options].map((o) => o.value)") == ["0", "1", "2"]
    assert choice.locator("option").first.inner_text() == "untrained: after update 0"
    choice.select_option("1")
    wait_for(page, "document.querySelector('.play-opponent').textContent.includes('update 1')")
    assert page.url.endswith("/1")
    assert page.evaluate("document.activeElement.className") == "play-stage"
    page.keyboard.press("Space")
    wait_for(page, BEGUN)


def test_watching_goes_by_itself_and_obeys(site, open_game):
    page = open_game(f"{site.url}/#watch/package/0", title="")
    first = screen_of(page)
    assert wait_until(lambda: (screen_of(page) != first).any())
    assert wait_until(lambda: page.locator("[role=status].unseen").last.text_content() == "")
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === 'Paused'")
    assert "Opponent" in page.locator(".play-score").inner_text()


@pytest.mark.alone  # each figure of the countdown stands for a moment
def test_a_countdown_comes_before_the_first_ball_and_ends_if_nobody_looks(open_game):
    page = open_game()
    page.evaluate(f"() => {{ {TITLES} }}")
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === '2'")
    page.keyboard.press("Space")
    wait_for(page, BEGUN)
    assert page.evaluate("titles") == ["3", "2", "1"]
    for stop in ("restart", "look away"):
        page.keyboard.press("r")
        wait_for(page, f"{TITLE} === 'Ready?'")
        page.keyboard.press("Space")
        wait_for(page, f"{TITLE} === '2'")
        if stop == "restart":
            page.keyboard.press("r")
        else:
            look_away(page)
        assert page.evaluate(TITLE) == "Ready?"
        page.wait_for_timeout(2000)
        assert page.evaluate(TITLE) == "Ready?", "no ball flies"


def test_wall_paddle_and_point_bleep_until_a_key_says_no_and_that_is_remembered(site, open_game):
    page = open_game(f"{site.url}/#watch/package/beginner", title="")
    page.evaluate(f"() => {{ {LISTEN} }}")
    page.get_by_label("Speed").select_option("2")
    wait_for(page, "new Set(heard).size === 3")
    assert set(page.evaluate("heard")) == {226, 459, 490}
    page.keyboard.press("m")
    before = page.evaluate("heard.length"), page.evaluate(SCORE)
    wait_for(page, f"{SCORE} !== '{before[1]}'")
    assert page.evaluate("heard.length") == before[0]
    page.reload()
    page.get_by_role("button", name="Sound is off").click()
    page.reload()
    page.wait_for_selector("text=Sound is on")


def test_the_record_counts_games_by_strength_and_survives_damage(site, open_game, monkeypatch):
    is_won = property(lambda emulator: sum(emulator.points) > 0)
    monkeypatch.setattr(DuelEmulator, "is_over", is_won)
    page = open_game(f"{site.url}/#play/package/champion")
    for kept in ("{", "7", '{"champion": [1, -1, 3]}', '{"champion": {}, "x": 1}'):
        page.evaluate("(text) => localStorage.setItem('pixelpong-record', text)", kept)
        page.reload()
        wait_for(page, f"{TITLE} === 'Ready?'")
        assert page.locator(".play-record").is_hidden()
    page.get_by_label("Speed").select_option("2")
    for losses in (1, 2):
        page.keyboard.press("Space")
        page.mouse.move(*corner_of_field(page))
        wait_for(page, f"{TITLE} === 'The agent wins'")
        told = page.locator(".play-record").inner_text().split("\n")
        assert told == ["You against champion", f"0 won, {losses} lost; best −1"]
        page.get_by_role("button", name="New game").first.click()
        wait_for(page, f"{TITLE} === 'Ready?'")
    page.reload()
    assert "2 lost" in page.locator(".play-record").inner_text()


@pytest.mark.parametrize(
    ("results", "fitting"),
    [
        ("null", "club"),
        ("{", "club"),
        ('[["club", 3], 7, ["nobody", 1], ["club"]]', "strong"),
        ('[["club", -3]]', "club"),
        ('[["club", -3], ["club", -1]]', "beginner"),
        ('[["club", -3], ["strong", -1]]', "strong"),
        ('[["club", -3], ["club", -1], ["beginner", 2]]', "club"),
        ('[["club", 3], ["strong", -1], ["strong", -1]]', "club"),
        ('[["champion", 1]]', "champion"),
        ('[["beginner", -1], ["beginner", -1]]', "beginner"),
        ('[["untrained", -1], ["untrained", -1]]', "beginner"),
    ],
)
def test_play_begins_with_the_strength_that_fits_the_newest_results(open_game, results, fitting):
    page = open_game()
    page.evaluate("(text) => localStorage.setItem('pixelpong-results', text)", results)
    page.reload()
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.get_by_label("How strong").input_value() == fitting


def test_after_two_losses_the_page_offers_a_weaker_agent(open_game, monkeypatch):
    is_won = property(lambda emulator: sum(emulator.points) > 0)
    monkeypatch.setattr(DuelEmulator, "is_over", is_won)
    page = open_game()
    page.get_by_label("Speed").select_option("2")
    weaker = page.get_by_role("button", name="Play beginner")
    for loss in (1, 2):
        page.keyboard.press("Space")
        page.mouse.move(*corner_of_field(page))
        wait_for(page, f"{TITLE} === 'The agent wins'")
        assert weaker.is_visible() == (loss == 2)
        if loss == 1:
            page.keyboard.press("r")
            wait_for(page, f"{TITLE} === 'Ready?'")
    weaker.click()
    wait_for(page, "document.querySelector('.play-opponent').textContent.includes('beginner')")
    assert page.url.endswith("/beginner")
    assert page.evaluate(TITLE) == "Ready?"


def corner_of_field(page):
    """Where the paddle goes up to and the ball does not come."""
    box = page.locator(".play-canvas").bounding_box()
    return box["x"] + 60, box["y"] + 0.17 * box["height"]


def test_two_people_play_at_one_keyboard(site, open_game):
    page = open_game(f"{site.url}/#two")
    page.keyboard.press("Space")
    wait_for(page, BEGUN)
    before = own_row(page), paddle(screen_of(page), OWN)[0]
    page.keyboard.down("w")
    page.keyboard.down("ArrowDown")
    assert wait_until(lambda: own_row(page) < before[0] - 10)
    assert wait_until(lambda: paddle(screen_of(page), OWN)[0] > before[1] + 10)
    assert "Agent" not in page.locator(".play-score").inner_text()


def test_full_screen_shows_the_whole_field(open_game):
    page = open_game(size=(800, 400))
    page.keyboard.press("f")
    wait_for(page, "document.fullscreenElement?.className === 'play-field'")
    box = page.locator(".play-canvas").bounding_box()
    assert 300 < box["y"] + box["height"] <= page.evaluate("innerHeight")
    page.keyboard.press("f")
    wait_for(page, "document.fullscreenElement === null")


def test_arrow_keys_move_the_paddle_and_do_not_scroll(open_game):
    page = open_game(size=(800, 400))
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    before = own_row(page)
    page.keyboard.down("ArrowDown")
    assert wait_until(lambda: own_row(page) > before)
    page.keyboard.up("ArrowDown")
    assert page.evaluate("scrollY") == 0


def test_the_mouse_leads_the_paddle_and_where_it_rests_counts_however_quick_it_was(open_game):
    page = open_game()
    page.evaluate(
        """() => {
          const stage = document.querySelector(".play-canvas"), box = stage.getBoundingClientRect();
          for (const share of [0.3, 0.75]) stage.dispatchEvent(new PointerEvent("pointermove", {
            clientX: box.x + 60, clientY: box.y + share * box.height, bubbles: true }));
        }"""
    )
    page.keyboard.press("Space")
    assert wait_until(lambda: abs(own_row(page) - 0.75 * 210) < 12)
    box = page.locator(".play-canvas").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 0.3 * box["height"], steps=5)
    assert wait_until(lambda: abs(own_row(page) - 0.3 * 210) < 12)


def test_on_a_phone_a_finger_serves_and_leads_the_paddle(open_game):
    page = open_game(size=PHONE, scheme="dark")
    box = page.locator(".play-canvas").bounding_box()
    assert box["width"] > 300
    assert box["y"] + box["height"] < PHONE[1], "the whole field is in sight"
    for share in (0.3, 0.8):
        page.touchscreen.tap(box["x"] + 100, box["y"] + share * box["height"])
        assert wait_until(lambda wanted=share * 210: abs(own_row(page) - wanted) < 12)
    assert page.evaluate(TITLE) == ""


def test_a_finger_drags_the_paddle_and_neither_the_page_nor_a_second_finger_does(open_game):
    page = open_game(size=PHONE)
    box = page.locator(".play-canvas").bounding_box()
    touch = page.context.new_cdp_session(page)

    def place(kind, *shares):
        points = [
            {"x": box["x"] + 250, "y": box["y"] + share * box["height"], "id": finger}
            for finger, share in enumerate(shares)
        ]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    place("touchStart", 0.3)
    wait_for(page, BEGUN)
    for share in (0.4, 0.6, 0.8):
        place("touchMove", share)
    assert wait_until(lambda: abs(own_row(page) - 0.8 * 210) < 12)
    place("touchStart", 0.8, 0.3)
    place("touchMove", 0.8, 0.35)
    page.wait_for_timeout(500)
    assert abs(own_row(page) - 0.8 * 210) < 12
    assert page.evaluate("scrollY") == 0


def test_a_lost_connection_is_said_and_can_be_had_again(tmp_path, open_game):
    with serving(tmp_path) as served:
        page = open_game(f"{served.url}/#watch/package/0", title="")
        page.may_fail = True
    wait_for(page, f"{TITLE}.includes('lost')")
    page.get_by_role("button", name="Try again").click()
    wait_for(page, f"{TITLE} === 'No connection'")
    with serving(tmp_path, port=served.port):
        page.get_by_role("button", name="Try again").click()
        wait_for(page, BEGUN)


def test_one_game_too_many_is_told_in_words(open_game, monkeypatch):
    monkeypatch.setattr(sockets, "MAX_GAMES", 0)
    page = open_game(title="The game has ended")
    assert "expected a free seat" in page.locator(".play-message").inner_text()


@LOOKS
def test_the_game_is_accessible_and_fits(open_game, axe, scheme, size):
    require_fitting_and_accessible(open_game(size=size, scheme=scheme), axe, size)


@pytest.mark.slow
@pytest.mark.alone
def test_a_key_is_seen_within_50_ms_at_58_pictures_a_second(site, browser):
    """Medians over five seconds, the best of five tries: other tests may run beside this one."""
    measured = []
    for _ in range(5):
        page = browser.new_page()
        page.add_init_script(COUNT)
        page.goto(f"{site.url}/#play/package/0")
        wait_for(page, f"{TITLE} === 'Ready?'")
        page.keyboard.press("Space")
        wait_for(page, BEGUN)
        measured.append(measure(page, seconds=5))
        page.close()
        if measured[-1][0] <= 50 and measured[-1][1] >= 58:
            return
    raise AssertionError(measured)


def measure(page, seconds: float):
    """Median key-to-frame in ms, and pictures a second."""
    page.wait_for_timeout(500)
    begin, before, rng = time.monotonic(), page.evaluate("pictures"), random.Random(0)
    page.evaluate("delays.length = 0")
    keys = Keys(page)
    while time.monotonic() < begin + seconds:
        for key in ("w", "s"):
            keys.hold(key)
            page.wait_for_timeout(120 + 40 * rng.random())
            keys.hold(None)
            page.wait_for_timeout(200 + 60 * rng.random())
    took = time.monotonic() - begin
    delays = page.evaluate("delays")
    assert len(delays) > seconds
    return statistics.median(delays), (page.evaluate("pictures") - before) / took
