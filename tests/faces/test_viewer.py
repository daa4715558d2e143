"""The viewer for a room full of people: its controls, its keys, a pause that lasts, a live run."""

from __future__ import annotations

import json

import pytest
from pages import require_fitting_and_accessible, wait_for
from promises import promise
from web_client import make_trained, serving

from pixelpong.run.directory import RunDirectory

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

STEP = "Number(document.querySelector('.viewer').dataset.step)"
PLAYS = "document.querySelector('.viewer').dataset.playing"
SHOWN = ".viewer[data-part=whole]"
BOTTOM = """Math.max(...[...document.querySelectorAll('.controls > *, .timeline input')]
    .map((control) => control.getBoundingClientRect().bottom))"""
WINDOWS = {
    "a projector": (1024, 768), "a phone": (390, 844), "a phone held sideways": (844, 390),
    "a laptop at 200 %": (640, 400), "a projector at 200 %": (512, 384),
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A run, served."""
    folder = tmp_path_factory.mktemp("runs")
    make_trained(folder / "one", updates=6, save_every=1)
    with serving(folder) as served:
        yield served


def test_the_picture_and_all_controls_are_in_sight_in_every_window(site, open_page):
    page = open_page(f"{site.url}/#watch/package/club", motion="reduce")
    page.wait_for_selector(SHOWN)
    heights = {}
    for name, (width, height) in WINDOWS.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(BOTTOM) <= height, name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        box = page.locator("canvas.screen").bounding_box()
        assert box["y"] >= 0, name
        heights[name] = box["height"]
    assert heights["a projector"] > 2 * heights["a phone held sideways"] > 200
    require_fitting_and_accessible(page)


# What a key prints, and where it is: on a French keyboard, a Russian one, Dvorak's.
LEAVE = """(code) => document.dispatchEvent(new KeyboardEvent("keydown", code))"""


def press(page, key, code):
    event = {"key": key, "code": code, "bubbles": True, "cancelable": True}
    page.evaluate(LEAVE, event)


def test_space_and_arrows_and_f_work_in_the_viewer_and_the_page_stays(site, open_page):
    page = open_page(f"{site.url}/#watch/package/club")
    page.set_viewport_size({"width": 1024, "height": 400})
    page.wait_for_selector(".viewer[data-playing=true]")
    page.keyboard.press("Space")
    assert (page.evaluate(PLAYS), page.evaluate("scrollY")) == ("false", 0)
    step = page.evaluate(STEP)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(STEP) == step + 2
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(STEP) == step + 1
    page.get_by_role("button", name="Next point").click()  # after which Space is the game's
    page.keyboard.press("Space")
    assert page.evaluate(PLAYS) == "true"
    speed = page.locator(".controls select")
    speed.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(PLAYS) == "true", "a menu keeps its keys"
    speed.blur()

    full = "document.fullscreenElement?.className ?? ''"
    for key, code in (("f", "KeyF"), ("f", "KeyY"), ("а", "KeyF")):  # the last one is Cyrillic
        page.evaluate("document.activeElement.blur()")
        page.mouse.move(3, 3)
        page.mouse.down()  # browsers want the person to have done something
        page.mouse.up()
        press(page, key, code)
        wait_for(page, f"{full} === 'games'")
        press(page, key, code)
        wait_for(page, f"{full} === ''")
    page.goto(f"{site.url}/#runs")
    page.wait_for_selector("tbody tr")
    press(page, "f", "KeyF")
    assert page.evaluate(full) == "", "the keys belong to the viewer"


OVERLAPS = """(names) => {
    const boxes = names.map((name) => document.querySelector(name).getBoundingClientRect());
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
        && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const isCovered = (box, k) => boxes.some((other, j) => j < k && meet(other, box));
    return names.filter((_, k) => boxes[k].top < 0 || isCovered(boxes[k], k));
}"""


def test_in_full_screen_no_part_of_the_viewer_covers_another(site, open_page):
    page = open_page(f"{site.url}/#watch/package/club", motion="reduce")
    page.wait_for_selector(SHOWN)
    parts = [".agents", ".outcome", "canvas.screen", "canvas.sight", ".thoughts", ".controls"]
    parts += [".timeline input", ".about-line", ".expectation"]
    for name, (width, height) in WINDOWS.items():
        page.set_viewport_size({"width": width, "height": height})
        usual = page.locator("canvas.screen").bounding_box()
        page.keyboard.press("f")
        wait_for(page, "document.fullscreenElement !== null")
        assert page.evaluate(OVERLAPS, parts) == [], name
        assert page.evaluate(BOTTOM) <= height, name
        assert page.locator("canvas.screen").bounding_box()["height"] > usual["height"], name
        page.keyboard.press("f")
        wait_for(page, "document.fullscreenElement === null")
        thoughts, picture = (page.locator(it).bounding_box() for it in (".thoughts", ".games"))
        if name == "a phone":
            assert thoughts["width"] > 0.8 * picture["width"]


def live(run):
    """What the server says of a run that trains, in a browser's request."""
    return lambda route: route.fulfill(json=json.loads(route.fetch().text()) | run)


def test_a_pause_lasts_while_newer_agents_come_and_the_menu_names_what_is_shown(site, open_page):
    known = [str(update) for update in RunDirectory(site.runs / "one").list_agents()]
    state = {"is_live": True, "best": known[0]}
    page = open_page("about:blank")
    page.route("**/api/runs/one", live(state))
    page.clock.install()
    page.goto(f"{site.url}/#run/one")
    page.clock.resume()
    shown, newer = page.locator(".chooser select"), page.locator(".newer")
    try:
        wait_for(page, f"document.querySelector('{SHOWN}') !== null")
        wait_for(page, f"{STEP} > 2")
        page.get_by_role("button", name="Pause").click()
        step = page.evaluate(STEP)
        state["best"] = known[1]
        newer.wait_for()
        page.set_viewport_size({"width": 1024, "height": 768})
        assert page.evaluate(BOTTOM) <= 768
        for _ in range(20):
            page.clock.run_for(3000)
        assert (page.evaluate(STEP), page.evaluate(PLAYS)) == (step, "false")
        assert shown.input_value() == known[0]
        assert f"after update {known[0]}:" in page.locator(".outcome").inner_text()
        assert newer.inner_text() == f"Newer: update {known[1]}"
        newer.click()
        page.wait_for_selector(f".outcome:has-text('after update {known[1]}:')")
        assert shown.input_value() == known[1]
        newer.wait_for(state="detached")

        state["best"] = known[2]  # nobody has touched the game: the newer one is shown
        for _ in range(20):
            page.clock.run_for(3000)
        page.wait_for_selector(f".outcome:has-text('after update {known[2]}:')")
        assert shown.input_value() == known[2]
    finally:
        page.unroute("**/api/runs/one")


def test_while_a_run_learns_its_curve_comes_first_and_the_game_is_beside_it(site, open_page):
    state = {"is_live": True}
    page = open_page("about:blank", motion="reduce")
    page.route("**/api/runs/one", live(state))
    try:
        page.goto(f"{site.url}/#run/one")
        page.wait_for_selector(SHOWN)
        page.set_viewport_size({"width": 1024, "height": 768})
        curve, game = page.locator("[data-curve=return]"), page.locator(".games")
        assert page.evaluate(BOTTOM) <= 768
        one, other = curve.bounding_box(), game.bounding_box()
        assert one["x"] + one["width"] <= other["x"]
        assert one["y"] + one["height"] <= 768
        require_fitting_and_accessible(page)
        page.set_viewport_size({"width": 390, "height": 844})
        one, other = curve.bounding_box(), game.bounding_box()
        assert one["y"] + one["height"] <= min(other["y"], 844)
        heading = page.get_by_role("heading", name="Curves").bounding_box()
        assert other["y"] + other["height"] < heading["y"]
        assert heading["y"] < page.locator("[data-curve=entropy]").bounding_box()["y"]

        state["is_live"] = False  # then its result is what counts
        page.wait_for_selector(".both:not(.live)")
        assert curve.bounding_box()["y"] > page.locator(".facts").bounding_box()["y"]
    finally:
        page.unroute("**/api/runs/one")


@pytest.mark.parametrize(
    ("address", "title"),
    [("#watch/one/0", "Watch one, update 0"), ("#watch/package/club", "Watch club")],
)
def test_a_title_names_the_agent(site, open_page, address, title):
    page = open_page(f"{site.url}/{address}")
    page.wait_for_selector(SHOWN)
    assert page.get_by_role("heading", level=1).inner_text() == title
    assert page.title() == f"{title} · pixelpong"


def test_the_seconds_around_a_step_are_saved_as_a_film(site, open_page, tmp_path):
    av = pytest.importorskip("av")
    page = open_page(f"{site.url}/#watch/package/beginner?3/1", "reduce")
    page.wait_for_selector(SHOWN)
    page.locator("[type=range]").press("End")
    last = page.evaluate(STEP)
    page.get_by_role("button", name="Previous point").click()
    step = page.evaluate(STEP)
    with page.expect_download(timeout=0) as saving:
        page.get_by_role("button", name="Save a film").click()
    file = saving.value
    assert file.suggested_filename == f"game-1-of-seed-3-step-{step}.mp4"
    file.save_as(tmp_path / "film.mp4")
    with av.open(tmp_path / "film.mp4") as film:
        frames = sum(1 for _ in film.decode(video=0))
        rate = float(film.streams.video[0].average_rate)
    first = step - int(10 * rate)
    assert 0 <= frames - (last - first + round(rate)) <= 1, "from ten seconds before to the end"
    wait_for(page, "document.querySelector('.save-note').textContent === ''")
    assert page.locator(".save").is_enabled()


def test_a_film_that_cannot_be_made_says_why(site, open_page, monkeypatch):
    monkeypatch.setattr("pixelpong.machine.is_installed", lambda library: library != "av")
    page = open_page(f"{site.url}/#watch/package/beginner", "reduce")
    page.may_fail = True  # the browser reports an answer with an error
    page.wait_for_selector(SHOWN)
    page.get_by_role("button", name="Save a film").click()
    wait_for(page, "document.querySelector('.save-note').textContent.includes('[video]')")
    assert page.locator(".save").is_enabled()
