"""The game against a person: nothing throws it away unasked, any keyboard and window will do."""

from __future__ import annotations

import json

import pytest
from pages import require_fitting_and_accessible, wait_for
from promises import promise
from waiting import wait_until
from web_client import make_trained, serving

from pixelpong.agent.choice import Agents
from pixelpong.faces.page import View
from pixelpong.faces.page.game import BrowserGame, Message

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

TITLE = "(document.querySelector('.play-message:not(.unseen) .play-title')?.textContent ?? '')"
SCORE = "document.querySelector('.play-score strong')?.textContent"
TOLD = ("phase", "points", "speed")  # of the state, to the browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A run that has won, one that has not, and an agent's file, served."""
    folder = tmp_path_factory.mktemp("runs")
    run = make_trained(folder / "runs" / "one", updates=3)
    file = folder / "alice.safetensors"
    Agents.of_run(run).load("latest").write(file)
    with serving(folder / "runs", view=View("play", file)) as served:
        yield served


@pytest.fixture
def game(monkeypatch):
    """What the game's state is, and what the browser sends; a serve changes nothing."""
    state = {"phase": "playing", "points": [19, 20], "speed": 1}
    heard = []
    monkeypatch.setattr(BrowserGame, "describe", lambda _: {name: state[name] for name in TOLD})
    monkeypatch.setattr(BrowserGame, "obey", lambda _, message: heard.append(message))
    state["heard"] = heard
    return state


def wait_here(page, condition) -> None:
    """Wait until something is so in this process."""
    wait_until(condition, meanwhile=lambda: page.wait_for_timeout(20))


def moves(game) -> list[str]:
    return [message.move for message in game["heard"] if message.move]


def test_keys_count_by_what_they_print_and_otherwise_by_where_they_are(site, open_page, game):
    page = open_page(f"{site.url}/#play/package/club")
    wait_for(page, f"{SCORE} === '19 : 20'")
    for key, code, wanted in (
        ("w", "KeyZ", "up"),  # French
        ("z", "KeyW", "up"),  # French: where others have W
        ("s", "Semicolon", "down"),  # Dvorak
        ("ц", "KeyW", "up"),  # Russian
        ("W", "KeyW", "up"),  # with Shift
    ):
        game["heard"].clear()
        for kind in ("keydown", "keyup"):
            event = {"key": key, "code": code, "bubbles": True}
            page.evaluate(
                "([kind, event]) => document.dispatchEvent(new KeyboardEvent(kind, event))",
                [kind, event],
            )
        wait_here(page, lambda wanted=wanted: moves(game) == [wanted, "stay"])
    game["heard"].clear()
    event = {"key": "p", "code": "KeyR", "bubbles": True}  # Dvorak's P is where R is
    page.evaluate("(event) => document.dispatchEvent(new KeyboardEvent('keydown', event))", event)
    wait_here(page, lambda: Message(pause=True) in game["heard"])


def test_nothing_throws_a_game_away_without_a_question(site, open_page, game):
    page = open_page(f"{site.url}/#play/package/club")
    asked = "window.asked ?? 0"

    def answer(words):
        reply = f"() => {{ window.asked = ({asked}) + 1; return {words}; }}"
        page.evaluate(f"() => {{ window.confirm = {reply}; }}")

    wait_for(page, f"{SCORE} === '19 : 20'")
    answer("false")
    address, sockets = page.url, []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.keyboard.press("r")
    page.get_by_role("button", name="New game").first.click()
    page.locator(".chooser select").select_option("strong")
    page.get_by_role("link", name="Runs", exact=True).click()
    wait_for(page, f"{asked} === 4")
    assert (page.url, page.locator(".chooser select").input_value()) == (address, "club")
    assert (page.evaluate(SCORE), sockets) == ("19 : 20", [])
    wait_here(page, lambda: Message(pause=True) in game["heard"])  # it waits for the answer
    event = "(() => { const e = new Event('beforeunload', { cancelable: true });"
    assert page.evaluate(f"{event} dispatchEvent(e); return e.defaultPrevented; }})()")

    answer("true")
    page.keyboard.press("r")
    wait_for(page, f"{asked} === 5")
    wait_for(page, f"{TITLE} === ''")  # the new game is there
    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_selector("tbody tr")
    assert page.evaluate(asked) == 6
    page.get_by_role("link", name="Play", exact=True).click()
    wait_for(page, f"{SCORE} === '19 : 20'")
    game["points"] = [0, 0]  # a game that has not begun is nobody's loss
    wait_for(page, f"{SCORE} === '0 : 0'")
    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_selector("tbody tr")
    assert page.evaluate(asked) == 6


def test_after_the_last_point_space_begins_a_new_game(site, open_page, game):
    game |= {"phase": "over", "points": [21, 20]}
    page = open_page(f"{site.url}/#play/package/club")
    wait_for(page, f"{TITLE} === 'You win!'")
    game |= {"phase": "ready", "points": [0, 0]}
    wait_for(page, f"{TITLE} === 'Ready?'")
    game |= {"phase": "over", "points": [21, 20]}
    wait_for(page, f"{TITLE} === 'You win!'")
    sockets = []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === 'You win!'")
    wait_here(page, lambda: len(sockets) == 1)


def test_the_field_fits_every_window_and_the_title_names_a_friends_file(site, open_page):
    start = next(line for line in site.told if "#play/" in line).split("#")[1]
    page = open_page(f"{site.url}/#{start}")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.get_by_role("heading").inner_text() == "Play against alice"
    assert page.title() == "Play against alice · pixelpong"
    for width, height in ((1024, 768), (844, 390), (390, 844), (640, 400), (512, 384)):
        page.set_viewport_size({"width": width, "height": height})
        box = page.locator(".play-stage").bounding_box()
        assert (box["y"] >= 0, box["y"] + box["height"] <= height) == (True, True), (width, height)
        assert box["height"] > height / 2
        for name in ("Pause", "New game"):
            button = page.get_by_role("button", name=name).first.bounding_box()
            assert button["y"] + button["height"] <= height, (width, height, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    require_fitting_and_accessible(page)


def test_the_list_leads_to_the_file_with_which_the_server_was_started(site, open_page):
    page = open_page(f"{site.url}/")
    page.wait_for_selector("tbody tr")
    assert "alice.safetensors" in page.locator("main").inner_text()
    require_fitting_and_accessible(page)
    page.get_by_role("link", name="Play against it").click()
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.get_by_role("heading").inner_text() == "Play against alice"


def test_the_menu_leads_to_the_agent_that_was_shown_last(site, open_page):
    start = next(line for line in site.told if "#play/" in line).split("#play")[1]
    page = open_page(f"{site.url}/#runs")
    page.wait_for_selector("tbody tr")
    menu = page.locator("nav a")
    assert [each.get_attribute("href") for each in menu.all()][1:3] == [
        "#play/package/best",
        "#watch/package/best",
    ]
    page.goto(f"{site.url}/#play{start}")
    wait_for(page, f"{TITLE} === 'Ready?'")
    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_selector("tbody tr")
    assert [each.get_attribute("href") for each in menu.all()][1:3] == [
        f"#play{start}",
        f"#watch{start}",
    ]
    page.locator("tbody a").first.click()
    wait_for(page, "location.hash.startsWith('#run/')")
    run = page.evaluate("location.hash").removeprefix("#run")
    assert menu.nth(1).get_attribute("href") == f"#play{run}/best"


def test_the_list_on_a_phone_shows_the_result(site, open_page):
    page = open_page(f"{site.url}/#runs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_selector("tbody tr")
    value = page.locator("tbody strong").first.bounding_box()
    assert value["x"] >= 0
    assert value["x"] + value["width"] <= 370
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        logo = page.locator(".logo").bounding_box()
        for link in page.locator("nav a:visible").all():
            box = link.bounding_box()
            is_beside, is_below = (
                box[axis] >= logo[axis] + logo[size]
                for axis, size in (("x", "width"), ("y", "height"))
            )
            assert is_beside or is_below, (width, link.inner_text())


def test_a_list_of_several_games_fits_a_projector(site, open_page):
    def answer(route):
        (run,) = json.loads(route.fetch().text())["runs"]
        facts = {"steps": 1_234_567, "total_seconds": 144, "estimated_return": 17.9}
        other = {"id": "other", "name": "breakout", "game": "breakout", "preset": "atari"}
        other["sampled"] = {"mean_return": 30.5}
        route.fulfill(json={"runs": [run | facts | {"state": "interrupted"}, run | facts | other]})

    page = open_page("about:blank")
    page.route("**/api/runs", answer)
    page.goto(f"{site.url}/#runs")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.wait_for_selector("tbody tr")
    assert "breakout" in page.locator("tbody").inner_text()
    widths = "(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])"
    table, window = page.evaluate(f"{widths}(document.querySelector('.scroller'))")
    assert table <= window, page.locator("tbody").inner_text()
    page.unroute("**/api/runs")


def test_what_is_said_in_colours_keeps_them_in_high_contrast(site, open_page):
    page = open_page(f"{site.url}/#watch/package/club", motion="reduce")
    page.emulate_media(forced_colors="active")
    try:
        page.wait_for_selector(".viewer[data-part=whole]")
        for each in (".action .bar", ".key.stayed", ".key.vanished"):
            image = f"getComputedStyle(document.querySelector('{each}')).backgroundImage"
            assert "gradient" in page.evaluate(image), each
        colour = "getComputedStyle(document.querySelector('.key.appeared')).backgroundColor"
        assert page.evaluate(colour) not in ("rgb(0, 0, 0)", "rgb(255, 255, 255)")
    finally:
        page.emulate_media(forced_colors="none")
