"""The page in a real Chromium: what a person sees, and that it stays on this machine.

Every page that a test opens is watched: a console error, or a request to anywhere but the server,
fails the test (`pages.watched_pages`).
"""

from __future__ import annotations

import os
import shutil
import threading

import numpy as np
import pytest
from pages import (
    LAPTOP,
    LOOKS,
    address,
    make_toy,
    make_trained,
    pause_at_start,
    read_canvas,
    require_fitting_and_accessible,
    step_of,
    wait_for,
)
from web_client import serving

from pixelpong.agent.choice import find_game, list_updates
from pixelpong.agent.explain import explain
from pixelpong.agent.legend import ACTION_COLOURS
from pixelpong.items import DOWN, UP
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.browser

FAST = {
    "streams": 2, "horizon": 30, "updates": 24, "hidden": 8, "save_every": 4,
    "evaluate_every": 12,
}  # fmt: skip
CLASSIC = {"updates": 6, "save_every": 2, "frame_skip": 1}
RETURN = "figure[data-curve=return]"
STEP = "document.querySelector('.viewer').dataset.step"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """A folder of two trained runs, the second newer."""
    folder = tmp_path_factory.mktemp("gallery")
    make_trained(folder / "classic-toy", "classic", **CLASSIC)
    make_trained(folder / "fast-toy", "fast", **FAST)
    metrics = folder / "classic-toy" / "metrics.jsonl"
    os.utime(metrics, (metrics.stat().st_mtime - 100,) * 2)
    return folder


@pytest.fixture(scope="module")
def site(gallery):
    """The gallery, served."""
    with serving(gallery) as served:
        yield served


def draw_return(page) -> None:
    """Bring the first chart into sight."""
    page.locator(RETURN).scroll_into_view_if_needed()
    page.wait_for_selector(f"{RETURN}[data-points]")


# ---- the list and the comparison


def test_the_list_tells_how_runs_stand_and_ticked_ones_are_compared(site, open_page):
    page = open_page(site.url)
    page.wait_for_selector(".run-row")
    assert page.locator(".run-name").all_inner_texts() == ["fast-toy", "classic-toy"], "newest"
    row = page.locator(".run-row", has_text="fast-toy").inner_text()
    assert "stopped" in row
    assert "update 24" in row
    assert "seed 0" in row
    page.get_by_label("Compare fast-toy").check()
    page.wait_for_selector("text=1 ticked: tick another")
    page.get_by_label("Compare classic-toy").check()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_selector(f"{RETURN} .chart-legend li >> nth=1")
    legend = page.locator(f"{RETURN} .chart-legend li")
    assert legend.all_inner_texts() == ["fast-toy", "classic-toy"]
    looks = legend.evaluate_all(
        "(all) => all.map((key) => [...key.querySelectorAll('path')].flatMap((path) =>"
        " [path.getAttribute('stroke-dasharray'), path.getAttribute('d')]))"
    )
    assert looks[0][0] != looks[1][0], "not told apart by the line"
    assert looks[0][3] != looks[1][3], "not told apart by the marks"
    table = page.get_by_role("region", name="How the runs differ").inner_text()
    assert "--batch-size" in table
    assert "environment" not in table, "the same in both"
    rows = [line.split("\t")[0] for line in table.splitlines()]
    assert len(rows) == len(set(rows)), "an option is told from what was played"


def test_an_empty_folder_says_how_to_train_until_a_run_appears(tmp_path, open_page):
    with serving(tmp_path / "runs") as served:
        page = open_page(served.url)
        page.wait_for_selector("text=pixelpong train")
        run = make_toy(tmp_path / "runs" / "begun", "fast")
        page.wait_for_selector(".run-row:has-text('nothing trained yet')")
        assert page.locator("text=pixelpong train").count() == 0
        page.goto(address(served, "begun"))
        page.wait_for_selector("text=No update is finished yet")
        page.wait_for_selector("text=Nothing to show yet")
        page.wait_for_selector("text=No checkpoint is saved yet")
        page.may_fail = True  # the data of a deleted run are asked for in vain
        shutil.rmtree(run.path)
        page.wait_for_selector("#banner:has-text('not there any more')")
        page.wait_for_selector("text=No checkpoint is saved yet", state="hidden")
        assert page.locator("text=No update is finished yet").is_hidden()
        assert page.locator("text=Nothing to show yet").count() == 0


def test_a_run_that_cannot_be_read_is_listed_and_does_no_harm(tmp_path, open_page):
    make_toy(tmp_path / "sound", "classic")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"format": 99}')
    with serving(tmp_path) as served:
        page = open_page(served.url)
        page.wait_for_selector(".run-row:has-text('nothing trained yet')")
        page.wait_for_selector(".run-row:has-text('cannot be read')")
        page.get_by_role("link", name="other").click()
        page.wait_for_selector("text=This run cannot be shown")
        page.wait_for_selector(".problem:has-text('format 99')")


# ---- a run


@pytest.mark.slow
def test_curves_grow_while_a_real_training_writes(tmp_path, open_page):
    run = make_toy(tmp_path / "live", "fast", **FAST | {"updates": None, "steps": 10**7})
    stop = threading.Event()
    training = threading.Thread(target=train, args=(run,), kwargs={"should_stop": stop.is_set})
    training.start()
    with serving(tmp_path) as served:
        try:
            page = open_page(address(served, "live"))
            page.wait_for_selector(".state.live:has-text('training now')")
            draw_return(page)
            points = f"Number(document.querySelector('{RETURN}').dataset.points)"
            wait_for(page, f"{points} > {page.evaluate(points)} + 20")
            update = "document.querySelector('[data-fact=update] dd').innerText"
            wait_for(page, f"{update} !== '{page.evaluate(update)}'")
        finally:
            stop.set()
            training.join(60)
        page.wait_for_selector(".state.rest:has-text('interrupted')")
    # A toy's newest replay may be thinned out before the page has asked for it.
    page.errors = [error for error in page.errors if "status of 422" not in error]


def test_curves_are_redrawn_at_most_twice_a_second(site, open_page):
    page = open_page(address(site, "fast-toy"))
    draw_return(page)
    drawn = page.evaluate(
        """async () => {
            const { mountCurves } = await import("/static/charts.js");
            const place = document.createElement("section");
            document.querySelector("main").prepend(place);
            const curves = mountCurves(place);
            const drawn = [];
            const plot = place.querySelector("[data-curve=return] .plot");
            const look = new MutationObserver(() => { drawn.push(performance.now()); });
            look.observe(plot, { childList: true });
            place.scrollIntoView();
            const begin = performance.now();
            const columns = { update: [], steps: [], mean_return_100: [] };
            while (drawn.length < 6 && performance.now() < begin + 30000) {
                const update = columns.update.length;
                for (const name in columns) columns[name].push(update);
                curves.update([{ name: "one", columns }]);
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
            curves.unmount();
            return drawn;
        }"""
    )
    assert len(drawn) == 6
    assert drawn[-1] - drawn[0] > 2000


def test_a_resumed_run_goes_on_where_it_was_cut_back(site, open_page):
    page = open_page(site.url)
    merged = page.evaluate(
        """async () => {
            const { mergeColumns } = await import("/static/run.js");
            const before = { update: [1, 2, 3], entropy: [7, 8, 9] };
            return [
                mergeColumns(before, { update: [3, 4], kl: [0, 1] }, 2),
                mergeColumns(before, { update: [] }, 2),
                mergeColumns({}, { update: [1] }, 0),
            ];
        }"""
    )
    cut = {"update": [1, 2, 3, 4], "entropy": [7, 8, None, None], "kl": [None, None, 0, 1]}
    assert merged == [cut, {"update": [1, 2], "entropy": [7, 8]}, {"update": [1]}]


def test_all_curves_are_there_and_the_rest_of_the_run(site, gallery, open_page):
    lines = list(RunDirectory.open(gallery / "fast-toy").metrics.read())
    count = [
        sum(line[name] is not None for line in lines) for name in ("mean_return", "mean_return_100")
    ]
    numbers = {"return": max(count)}
    page = open_page(address(site, "fast-toy"))
    for curve in ("return", "points", "entropy", "kl", "learning_rate", "grad_norm", "speed"):
        page.locator(f"[data-curve={curve}]").scroll_into_view_if_needed()
        page.wait_for_selector(f"[data-curve={curve}][data-points='{numbers.get(curve, 24)}']")
    page.get_by_label("Over").select_option("time")
    page.locator("[data-curve=speed]").get_by_text("minutes in all").wait_for()
    assert not page.locator(".weights").is_visible(), "nothing to see for a person in the fast mode"
    page.locator("summary", has_text="First layer").click()
    page.locator(".weights").scroll_into_view_if_needed()
    page.wait_for_selector(".unit canvas")
    assert page.locator(".unit").count() == 8
    assert page.get_by_role("region", name="Evaluations").locator("tbody tr").count() == 2
    page.locator("summary", has_text="Configuration").click()
    page.wait_for_selector(".config dt:has-text('gae_lambda')")
    assert page.locator(".health-item").count() >= 1
    page.reload()
    page.wait_for_selector(".viewer[data-step]")
    assert page.locator("h1").all_inner_texts() == ["fast-toy"]


def test_the_weights_are_drawn_as_they_are(site, gallery, open_page):
    page = open_page(address(site, "classic-toy"))
    page.locator(".weights").scroll_into_view_if_needed()
    name = page.locator(".unit canvas").first.get_attribute("aria-label")
    run = RunDirectory.open(gallery / "classic-toy")
    params = run.checkpoints.load(list_updates(run)[-1]).params
    row = params["W1"][:, int(name.split()[1].rstrip(","))]
    grey = read_canvas(page, ".unit canvas")[..., 0].reshape(-1) - 128.0
    np.testing.assert_allclose(grey, row / np.abs(row).max() * 127, atol=0.51)


@pytest.mark.slow
def test_a_server_that_ends_is_told_and_found_again_when_it_is_back(gallery, open_page):
    with serving(gallery) as site:
        page = open_page(address(site, "fast-toy"))
        page.may_fail = True
        page.wait_for_selector(".fact")
    page.wait_for_selector("#banner:has-text('server')")
    with serving(gallery, port=site.port):
        page.wait_for_selector("#banner", state="hidden")
        page.get_by_role("link", name="Runs", exact=True).click()
        page.wait_for_selector(".run-row")


# ---- episodes


def test_a_game_plays_by_itself_silently_and_obeys(site, open_page):
    page = open_page(address(site, "classic-toy"))
    page.wait_for_selector(".viewer[data-step]")
    page.evaluate(
        """() => {
            window.said = 0;
            for (const region of document.querySelectorAll("[role=status], [aria-live], output")) {
                new MutationObserver(() => { window.said += 1; })
                    .observe(region, { childList: true, characterData: true, subtree: true });
            }
        }"""
    )
    wait_for(page, f"{STEP} > 20")
    assert page.evaluate("said") == 0, "live regions are silent while it plays"
    page.get_by_role("button", name="Pause").click()
    still = step_of(page)
    page.wait_for_timeout(300)
    assert step_of(page) == still
    page.get_by_role("button", name="One step on").click()
    assert step_of(page) == still + 1
    page.get_by_role("button", name="One step back").click()
    assert step_of(page) == still
    page.get_by_role("button", name="Next point").click()
    assert step_of(page) > still
    page.locator(".controls select").select_option("8")
    page.get_by_role("button", name="Play", exact=True).click()
    wait_for(page, f"{STEP} === document.querySelector('.timeline input').max")
    page.wait_for_selector(".viewer[data-playing=false]")


@pytest.mark.parametrize("name", ["classic-toy", "fast-toy"])
def test_the_very_frames_are_shown_and_what_the_network_made_of_them(
    site, gallery, open_page, name
):
    page = open_page(address(site, name))
    pause_at_start(page)
    chosen = find_game(RunDirectory.open(gallery / name))
    moments = list(explain(chosen.replay, chosen.agent))
    last = len(moments) - 1
    for step in (0, 3, last, 1, last // 2, last - 1, 0, 2, min(last, 11)):
        moment, explanation = moments[step]
        page.locator(".timeline input").fill(str(step))
        frame = read_canvas(page, "canvas.screen")[1::3, 1::3]
        np.testing.assert_array_equal(frame, moment.frame)
        require_field(read_canvas(page, "canvas.sight")[..., 0], explanation.field)
        shares = page.locator(".action .number").all_inner_texts()
        wanted = [f"{100 * p:.0f} %" for p in np.round(explanation.probabilities, 4)]
        assert [share.split(" %")[0] + " %" for share in shares] == wanted
        if explanation.value is not None:
            value = page.locator(".thoughts dd").first.inner_text().replace("−", "-")
            assert float(value) == pytest.approx(explanation.value, abs=0.006)


def require_field(red, field) -> None:
    """Pixels that stayed, appeared and vanished are told apart by shape."""
    cells = red.reshape(80, 6, 80, 6)
    middle, edge = cells[:, 2, :, 2] > 100, cells[:, 1, :, 1] > 100
    np.testing.assert_array_equal(cells.max(axis=(1, 3)) > 100, field > 0)
    np.testing.assert_array_equal(middle, (field == 1) | (field == 2))
    np.testing.assert_array_equal(edge, (field == 2) | (field == 3))


def test_what_moved_the_decision_has_the_colours_of_up_and_down_and_can_be_switched(
    site, open_page
):
    page = open_page(address(site, "fast-toy"))
    pause_at_start(page)
    page.locator(".timeline input").fill("5")
    without, game = read_canvas(page, "canvas.sight"), read_canvas(page, "canvas.screen")
    page.get_by_label("What moved the decision").check()
    with_it = read_canvas(page, "canvas.sight")
    np.testing.assert_array_equal(read_canvas(page, "canvas.screen"), game)
    colours = [tuple(bytes.fromhex(ACTION_COLOURS[action][1:])) for action in (UP, DOWN)]
    assert any((with_it == colour).all(axis=2).any() for colour in colours)
    assert not any((without == colour).all(axis=2).any() for colour in colours)


def test_the_slider_shows_the_same_agent_learn(site, gallery, open_page):
    page = open_page(address(site, "fast-toy"))
    page.get_by_label("See the same agent learn").check()
    run = RunDirectory.open(gallery / "fast-toy")
    updates = list_updates(run)
    page.wait_for_selector(f".outcome:has-text('Agent of update {updates[-1]},')")
    slider = page.get_by_label("The agent as it was")
    assert slider.get_attribute("max") == str(len(updates) - 1)
    for place in (0, len(updates) // 2):
        slider.fill(str(place))
        page.wait_for_selector(f".outcome:has-text('Agent of update {updates[place]},')")
        replay = find_game(run, str(updates[place])).replay
        words = page.locator(".outcome").inner_text()
        sign = "−" if replay.episode_return < 0 else "+"
        assert f"return {sign}{abs(replay.episode_return):.0f}" in words
        assert f"in {len(replay)} steps" in words


# ---- for everybody


@pytest.mark.slow
@LOOKS
@pytest.mark.parametrize("view", ["list", "empty", "replay", "agent", "compare"])
def test_every_view_is_accessible_and_fits(
    site, open_page, axe, tmp_path_factory, view, scheme, size
):
    if view == "empty":
        with serving(tmp_path_factory.mktemp("none")) as empty:
            page = open_page(empty.url, size, scheme)
            page.wait_for_selector(".empty")
            require_fitting_and_accessible(page, axe, size)
        return
    urls = {
        "list": site.url,
        "compare": f"{address(site, 'fast-toy', 'compare')},"
        + address(site, "classic-toy").rpartition("/")[2],
    }
    page = open_page(urls.get(view, address(site, "fast-toy")), size, scheme)
    page.wait_for_selector(".run-row" if view == "list" else ".curve")
    if view != "list":
        draw_return(page)
    if view in ("replay", "agent"):
        pause_at_start(page)
        for summary in page.locator("summary").all():
            summary.click()
        page.locator(".weights").scroll_into_view_if_needed()
        page.wait_for_selector(".unit")
    if view == "agent":
        page.get_by_label("See the same agent learn").check()
        page.wait_for_selector(".outcome:has-text('Agent of update 24,')")
    require_fitting_and_accessible(page, axe, size)


def test_the_dark_scheme_is_dark_and_its_charts_are_readable(site, open_page):
    page = open_page(address(site, "fast-toy"), LAPTOP, "dark")
    draw_return(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    text = f"getComputedStyle(document.querySelector('{RETURN} .plot text')).fill"
    assert brightness(page.evaluate(ground)) < 40
    assert brightness(page.evaluate(text)) > 150
    page.emulate_media(color_scheme="light")
    assert brightness(page.evaluate(text)) < 100
    assert brightness(page.evaluate(ground)) > 200


def brightness(colour: str) -> float:
    numbers = [float(word) for word in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(numbers) / 3


def test_a_run_can_be_looked_through_with_the_keyboard_alone(site, open_page):
    page = open_page(site.url)
    page.wait_for_selector(".run-row")
    assert press_tab_until(page, "Skip to the content")
    assert press_tab_until(page, "fast-toy")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('fast-toy')")
    pause_at_start(page)
    assert press_tab_until(page, "Step of the episode")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert step_of(page) == 2
    page.keyboard.press(" ")
    page.wait_for_selector(".viewer[data-playing=true]")
    page.go_back()
    page.wait_for_selector(".run-row")
    page.go_forward()
    page.wait_for_selector(".viewer[data-step]")


def press_tab_until(page, name: str) -> bool:
    for _ in range(150):  # once around: every figure has its "?", every chart its keys
        page.keyboard.press("Tab")
        words = page.evaluate(
            "[document.activeElement.getAttribute('aria-label'), document.activeElement.innerText]"
        )
        if name in words:
            return True
    return False


def test_nothing_moves_for_those_who_want_no_motion(site, open_page):
    page = open_page(address(site, "fast-toy"), motion="reduce")
    page.wait_for_selector(".viewer[data-step]")
    page.wait_for_timeout(500)
    assert step_of(page) == 0
    assert page.locator(".viewer").get_attribute("data-playing") != "true"


def test_the_policy_is_strict_the_first_paint_quick_and_all_weighs_little(site, open_page):
    page = open_page(address(site, "fast-toy"))
    policy = page.request.get(site.url).headers["content-security-policy"]
    assert "unsafe" not in policy
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    weights: list[int] = []
    session.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.reload()
    draw_return(page)
    page.wait_for_selector(".viewer[data-step]")
    paint = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint').map((each) => each.startTime)"
    )
    print(f"first paint after {paint[0]:.0f} ms, {sum(weights) / 1e6:.2f} MB in all")
    assert paint[0] <= 1000
    assert 2e4 < sum(weights) <= 5e5
