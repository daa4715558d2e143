"""The page in a real Chromium: what a person sees, and that it stays on this machine.

Every page that a test opens is watched: a console error, or a request to anywhere but the server,
fails the test. The fixtures `serve_page` and `open_page` are for other tests of pages.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from conftest import wait_until

from pixelpong.agent.choice import choose_replay, list_updates
from pixelpong.config.presets import load_preset
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

pytestmark = pytest.mark.browser

LAPTOP, PHONE = (1280, 800), (360, 740)
FAST = {
    "preset": "fast", "environment": "Catch-v0", "engine": "serial", "streams": 2, "horizon": 30,
    "updates": 24, "hidden": 8, "replay_every": 1, "save_every": 4, "evaluate_every": 12,
}  # fmt: skip
CLASSIC = {
    "preset": "classic", "environment": "Catch-v0", "engine": "serial", "batch_size": 3,
    "updates": 6, "hidden": 20, "replay_every": 2, "save_every": 2, "frame_skip": 1,
}  # fmt: skip


# ---- fixtures, for other tests of pages too


@dataclass
class Served:
    """A page that is served from a thread."""

    url: str
    thread: threading.Thread
    asked_to_stop: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def stop(self) -> None:
        self.asked_to_stop.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def serving(runs_dir: Path, *, port: int = 0, **chosen) -> Iterator[Served]:
    """Serve a folder of runs, as the commands do."""
    from pixelpong.faces.page import serve

    lines: list[str] = []
    asked = threading.Event()
    options = {
        "host": "127.0.0.1", "port": port, "token": None, "opens_browser": False, "page": "/",
        "tell": lines.append, "should_stop": asked.is_set,
    }  # fmt: skip
    thread = threading.Thread(target=serve, args=(runs_dir,), kwargs=options | chosen, daemon=True)
    thread.start()
    assert wait_until(lambda: any("http://" in line for line in lines), 20), lines
    url = next(word for line in lines for word in line.split() if word.startswith("http://"))
    served = Served(url.split("#")[0], thread, asked)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def serve_page():
    """Serve a folder of runs until the test is over: ``serve_page(folder).url``."""
    with contextlib.ExitStack() as stack:
        yield lambda runs_dir, **chosen: stack.enter_context(serving(runs_dir, **chosen))


@pytest.fixture
def open_page(browser):
    """Open an address: ``open_page(url, size, scheme)``; the page is watched until the end.

    A test in which errors belong to the matter sets ``page.may_fail = True``.
    """
    pages, contexts = [], []

    def open_at(url, size=LAPTOP, scheme="light", motion="no-preference"):
        is_phone = size[0] < 500
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme,
            reduced_motion=motion, is_mobile=is_phone, has_touch=is_phone,
        )  # fmt: skip
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.may_fail, page.errors, page.urls = False, [], []
        page.on("console", lambda note: note.type == "error" and page.errors.append(note.text))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.urls.append(request.url))
        contexts.append(context)
        pages.append(page)
        page.goto(url)
        return page

    yield open_at
    for page in pages:
        hosts = {urlsplit(url).hostname for url in page.urls if not url.startswith("data:")}
        assert hosts == {"127.0.0.1"}
        assert page.may_fail or page.errors == []
    for context in contexts:
        context.close()


def make_toy(path: Path, **options) -> RunDirectory:
    """A run of the toy game, not yet trained."""
    return RunDirectory.create(
        path, load_preset(options["preset"]).updated(options, "test"), [].append
    )


@pytest.fixture(scope="module")
def gallery(tmp_path_factory) -> Path:
    """A folder of two trained runs, the second newer."""
    folder = tmp_path_factory.mktemp("gallery")
    for name, options in (("classic-toy", CLASSIC), ("fast-toy", FAST)):
        run = make_toy(folder / name, **options)
        train(run)
        assert list(run.replays.read())
    metrics = folder / "classic-toy" / "metrics.jsonl"
    os.utime(metrics, (metrics.stat().st_mtime - 100,) * 2)
    return folder


@pytest.fixture(scope="module")
def site(gallery) -> Iterator[Served]:
    """The gallery, served."""
    with serving(gallery) as served:
        yield served


def address(site: Served, name: str, view: str = "run") -> str:
    """Of a view of a run of a site."""
    return f"{site.url}#{view}/{id_of_run(site, name)}"


def id_of_run(site: Served, name: str) -> str:
    import json
    import urllib.request

    with urllib.request.urlopen(f"{site.url}api/runs") as answer:
        runs = json.load(answer)["runs"]
    return next(run["id"] for run in runs if run["name"] == name)


def wait_for(page, expression: str) -> None:
    """Wait until it is true; playwright's own way needs `eval`, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def wait_for_viewer(page, *, update: int | None = None) -> None:
    page.wait_for_selector(".viewer[data-step]")
    if update is not None:
        page.wait_for_selector(f".outcome:has-text('Agent of update {update},')")


def pause_at_start(page) -> None:
    wait_for_viewer(page)
    if page.locator(".viewer").get_attribute("data-playing") == "true":
        page.get_by_role("button", name="Pause").click()
    page.locator(".timeline input").fill("0")


def step_of(page) -> int:
    return int(page.locator(".viewer").get_attribute("data-step"))


# ---- the list


def test_the_list_says_in_words_how_runs_stand_the_newest_first(site, open_page):
    page = open_page(site.url)
    page.wait_for_selector(".run-row")
    assert page.locator(".run-name").all_inner_texts() == ["fast-toy", "classic-toy"]
    row = page.locator(".run-row", has_text="fast-toy").inner_text()
    assert "not training" in row
    assert "update 24" in row
    page.get_by_role("link", name="fast-toy").click()
    page.wait_for_selector("h1:has-text('fast-toy')")


def test_an_empty_folder_says_how_to_train_until_a_run_appears(tmp_path, serve_page, open_page):
    page = open_page(serve_page(tmp_path / "runs").url)
    page.wait_for_selector("text=pixelpong train")
    make_toy(tmp_path / "runs" / "begun", **CLASSIC)
    page.wait_for_selector(".run-row:has-text('nothing trained yet')")
    assert page.locator("text=pixelpong train").count() == 0


def test_a_run_that_cannot_be_read_is_listed_with_a_word_and_does_no_harm(
    tmp_path, serve_page, open_page
):
    make_toy(tmp_path / "sound", **CLASSIC)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"format": 99}')
    page = open_page(serve_page(tmp_path).url)
    page.wait_for_selector(".run-row:has-text('cannot be read')")
    page.get_by_role("link", name="other").click()
    page.wait_for_selector("text=This run cannot be shown")
    page.wait_for_selector(".problem:has-text('format 99')")


def test_ticked_runs_are_compared_and_where_they_differ_is_told(site, open_page):
    page = open_page(site.url)
    page.get_by_label("Compare fast-toy").check()
    page.wait_for_selector("text=1 ticked: tick another")
    page.get_by_label("Compare classic-toy").check()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_selector("figure[data-curve=return] .plot .scatterlayer .trace >> nth=1")
    traces = page.evaluate(
        "document.querySelector('[data-curve=return] .plot').data"
        ".map((t) => [t.name, t.line.dash, t.marker.symbol])"
    )
    assert [name for name, _, _ in traces] == ["fast-toy", "classic-toy"]
    assert len({mark for _, *mark in map(tuple, traces) for mark in mark}) == 4, "not by shape"
    table = page.get_by_role("region", name="How the runs differ").inner_text()
    assert "batch_size" in table
    assert "environment" not in table, "the same in both"


# ---- a run


@pytest.mark.slow
def test_curves_grow_while_a_real_training_writes(tmp_path, serve_page, open_page):
    run = make_toy(tmp_path / "live", **FAST | {"updates": None, "steps": 10**7})
    stop = threading.Event()
    training = threading.Thread(target=train, args=(run,), kwargs={"should_stop": stop.is_set})
    training.start()
    try:
        site = serve_page(tmp_path)
        page = open_page(address(site, "live"))
        page.wait_for_selector(".state.live:has-text('training now')")
        page.locator("figure[data-curve=return]").scroll_into_view_if_needed()
        page.wait_for_selector("figure[data-curve=return][data-points]")
        count = "Number(document.querySelector('[data-curve=return]').dataset.points)"
        before = page.evaluate(count)
        wait_for(page, f"{count} > {before} + 20")
        drawn = "document.querySelector('[data-curve=return] .plot').data[0].x.length"
        assert page.evaluate(drawn) > before
        update = page.locator("[data-fact=update] dd").inner_text()
        wait_for(page, f"document.querySelector('[data-fact=update] dd').innerText !== '{update}'")
    finally:
        stop.set()
        training.join(60)
    page.wait_for_selector(".state.rest:has-text('not training')")
    # A toy's newest replay may be thinned out before the page has asked for it; nothing else fails.
    page.errors = [error for error in page.errors if "status of 422" not in error]


def test_curves_are_redrawn_at_most_twice_a_second(site, open_page):
    page = open_page(address(site, "fast-toy"))
    page.locator("figure[data-curve=return]").scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-curve=return][data-points]")
    drawn = page.evaluate(
        """async () => {
            const { mountCurves } = await import("/static/charts.js");
            const place = document.querySelector(".curves");
            const curves = mountCurves(place);
            const react = window.Plotly.react;
            let drawn = 0;
            window.Plotly.react = (element, ...rest) => {
                drawn += element.parentElement.dataset.curve === "return";
                return react(element, ...rest);
            };
            const begin = performance.now();
            const columns = { update: [], steps: [], mean_return_100: [] };
            while (performance.now() < begin + 2200) {
                const update = columns.update.length;
                for (const name in columns) columns[name].push(update);
                curves.update([{ name: "one", columns }]);
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
            curves.unmount();
            return drawn;
        }"""
    )
    assert 3 <= drawn <= 6


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


def test_all_curves_are_there_and_the_rest_of_the_run(site, open_page):
    page = open_page(address(site, "fast-toy"))
    for curve in ("return", "points", "entropy", "kl", "learning_rate", "grad_norm", "speed"):
        page.locator(f"[data-curve={curve}]").scroll_into_view_if_needed()
        page.wait_for_selector(f"[data-curve={curve}][data-points='24']")
    page.get_by_label("Over").select_option("time")
    wait_for(
        page,
        "document.querySelector('[data-curve=speed] .plot').layout.xaxis.title.text"
        " === 'minutes of training'",
    )
    page.locator(".weights").scroll_into_view_if_needed()
    page.wait_for_selector(".unit canvas")
    assert page.locator(".unit").count() == 8
    assert page.get_by_role("region", name="Evaluations").locator("tbody tr").count() == 2
    page.locator("summary").click()
    page.wait_for_selector(".config dt:has-text('gae_lambda')")
    assert page.locator(".health-item").count() >= 1


def test_the_weights_are_drawn_as_they_are(site, gallery, open_page):
    page = open_page(address(site, "classic-toy"))
    page.locator(".weights").scroll_into_view_if_needed()
    unit = page.locator(".unit canvas").first
    name = unit.get_attribute("aria-label")
    grey = page.evaluate(
        "(canvas) => Array.from(canvas.getContext('2d').getImageData(0, 0, 80, 80).data)"
        ".filter((_, place) => place % 4 === 0)",
        unit.element_handle(),
    )
    run = RunDirectory.open(gallery / "classic-toy")
    params = run.checkpoints.load(list_updates(run)[-1]).params
    row = params["W1"][:, int(name.split()[1].rstrip(","))]
    np.testing.assert_allclose(np.array(grey) - 128, row / np.abs(row).max() * 127, atol=0.51)


def test_a_run_without_an_update_says_so(tmp_path, serve_page, open_page):
    make_toy(tmp_path / "begun", **FAST)
    page = open_page(address(serve_page(tmp_path), "begun"))
    page.wait_for_selector("text=No update is finished yet")
    page.wait_for_selector("text=Nothing to show yet")
    page.wait_for_selector("text=No checkpoint is saved yet")


def test_a_run_that_is_deleted_under_the_eyes_is_told(tmp_path, serve_page, open_page):
    run = make_toy(tmp_path / "doomed", **FAST)
    page = open_page(address(serve_page(tmp_path), "doomed"))
    page.may_fail = True  # its data are asked for in vain
    page.wait_for_selector("text=No update is finished yet")
    shutil.rmtree(run.path)
    page.wait_for_selector("#banner:has-text('not there any more')")


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


def test_the_newest_replay_plays_by_itself_and_obeys(site, open_page):
    page = open_page(address(site, "classic-toy"))
    wait_for_viewer(page)
    assert "Episode" in page.locator(".outcome").inner_text()
    wait_for(page, "document.querySelector('.viewer').dataset.step > 5")
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
    wait_for(
        page,
        "document.querySelector('.viewer').dataset.step"
        " === document.querySelector('.timeline input').max",
    )
    page.wait_for_selector(".viewer[data-playing=false]")


@pytest.mark.parametrize("name", ["classic-toy", "fast-toy"])
def test_the_canvas_shows_the_very_frames_however_one_jumps(site, gallery, open_page, name):
    page = open_page(address(site, name))
    pause_at_start(page)
    page.get_by_label("What moved the decision").uncheck()
    moments = list(choose_replay(RunDirectory.open(gallery / name)).replay.watch())
    last = len(moments) - 1
    for step in (0, 3, last, 1, last // 2, last - 1, 0):
        page.locator(".timeline input").fill(str(step))
        np.testing.assert_array_equal(
            read_canvas(page, "canvas.screen")[1::3, 1::3], moments[step].frame
        )


def read_canvas(page, selector) -> np.ndarray:
    """The colours of a canvas: [height, width, 3] uint8."""
    from PIL import Image

    url = page.evaluate("(name) => document.querySelector(name).toDataURL()", selector)
    picture = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.array(picture.convert("RGB"))


def test_what_the_network_sees_is_shown_by_shape_and_its_mind_in_numbers(site, gallery, open_page):
    page = open_page(address(site, "fast-toy"))
    pause_at_start(page)
    page.get_by_label("What moved the decision").uncheck()
    show = choose_replay(RunDirectory.open(gallery / "fast-toy"))
    policy = show.agent.make_network()
    for moment in show.replay.watch():
        policy.follow(moment.screen, moment.action)
        explanation = policy.explain()
        if moment.step not in (0, 2, 11):
            continue
        page.locator(".timeline input").fill(str(moment.step))
        cells = read_canvas(page, "canvas.explanation")[..., 0].reshape(80, 6, 80, 6)
        is_on = cells.max(axis=(1, 3)) > 100
        np.testing.assert_array_equal(is_on, explanation.field > 0)
        middle, edge = cells[:, 2, :, 2] > 100, cells[:, 1, :, 1] > 100
        np.testing.assert_array_equal(middle, (explanation.field == 1) | (explanation.field == 2))
        np.testing.assert_array_equal(edge, (explanation.field == 2) | (explanation.field == 3))
        shares = page.locator(".action .number").all_inner_texts()
        wanted = [f"{100 * p:.0f} %" for p in np.round(explanation.probabilities, 4)]
        assert [share.split(" %")[0] + " %" for share in shares] == wanted
        value = page.locator(".thoughts dd").first.inner_text().replace("−", "-")
        assert float(value) == pytest.approx(explanation.value, abs=0.006)


def test_saliency_can_be_switched(site, open_page):
    page = open_page(address(site, "fast-toy"))
    pause_at_start(page)
    page.locator(".timeline input").fill("5")
    with_it = read_canvas(page, "canvas.explanation")
    page.get_by_label("What moved the decision").uncheck()
    without = read_canvas(page, "canvas.explanation")
    assert (without[..., 0] == without[..., 2]).all(), "only grey"
    assert (with_it[..., 0] != with_it[..., 2]).any(), "coloured marks"


def test_the_slider_shows_the_same_agent_learn(site, gallery, open_page):
    page = open_page(address(site, "fast-toy"))
    wait_for_viewer(page)
    page.get_by_label("See the same agent learn").check()
    run = RunDirectory.open(gallery / "fast-toy")
    updates = list_updates(run)
    wait_for_viewer(page, update=updates[-1])
    slider = page.get_by_label("The agent as it was")
    assert slider.get_attribute("max") == str(len(updates) - 1)
    for place in (0, len(updates) // 2):
        slider.fill(str(place))
        wait_for_viewer(page, update=updates[place])
        replay = choose_replay(run, which=str(updates[place])).replay
        words = page.locator(".outcome").inner_text()
        sign = "−" if replay.episode_return < 0 else "+"
        assert f"return {sign}{abs(replay.episode_return):.0f}" in words
        assert f"in {len(replay)} steps" in words


def test_a_replay_is_chosen_from_the_list(site, gallery, open_page):
    page = open_page(address(site, "classic-toy"))
    wait_for_viewer(page)
    first = next(iter(RunDirectory.open(gallery / "classic-toy").replays.read()))
    page.locator(".chooser-part select").select_option(str(first["episode"]))
    page.wait_for_selector(f".outcome:has-text('Episode {first['episode']} of the training')")


# ---- for everybody


VIEWS = {
    "list": lambda site: site.url,
    "empty": None,
    "replay": lambda site: address(site, "fast-toy"),
    "agent": lambda site: address(site, "fast-toy"),
    "compare": lambda site: (
        f"{site.url}#compare/{id_of_run(site, 'fast-toy')},{id_of_run(site, 'classic-toy')}"
    ),
}


def open_view(view, site, serve_page, open_page, folder, *look):
    url = VIEWS[view](site) if VIEWS[view] else serve_page(folder / "none").url
    page = open_page(url, *look)
    page.wait_for_selector({"list": ".run-row", "empty": ".empty"}.get(view, ".curve"))
    if view not in ("list", "empty"):
        page.locator("[data-curve=return]").scroll_into_view_if_needed()
        page.wait_for_selector("[data-curve=return][data-points]")
    if view in ("replay", "agent"):
        pause_at_start(page)
        page.locator("summary").click()
        page.locator(".weights").scroll_into_view_if_needed()
        page.wait_for_selector(".unit")
    if view == "agent":
        page.get_by_label("See the same agent learn").check()
        wait_for_viewer(page, update=24)
    return page


@pytest.mark.slow
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible_and_fits(
    site, serve_page, open_page, tmp_path, view, scheme, size
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_view(view, site, serve_page, open_page, tmp_path, size, scheme)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= size[0], "it scrolls sideways"
    results = axe.run(page)
    assert results.violations_count == 0, results.generate_report()


def test_the_dark_scheme_is_dark_and_its_charts_are_readable(site, open_page):
    page = open_page(address(site, "fast-toy"), LAPTOP, "dark")
    page.locator("figure[data-curve=return]").scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-curve=return][data-points]")
    colours = "getComputedStyle(document.body).backgroundColor"
    font = "document.querySelector('[data-curve=return] .plot').layout.font.color"
    assert brightness(page.evaluate(colours)) < 40
    assert int(page.evaluate(font)[1:3], 16) > 200
    page.emulate_media(color_scheme="light")
    wait_for(page, f"parseInt({font}.slice(1, 3), 16) < 80")
    assert brightness(page.evaluate(colours)) > 200


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


def press_tab_until(page, name: str) -> bool:
    for _ in range(60):
        page.keyboard.press("Tab")
        words = page.evaluate(
            "[document.activeElement.getAttribute('aria-label'), document.activeElement.innerText]"
        )
        if name in words:
            return True
    return False


def test_nothing_moves_for_those_who_want_no_motion(site, open_page):
    page = open_page(address(site, "fast-toy"), motion="reduce")
    wait_for_viewer(page)
    page.wait_for_timeout(500)
    assert step_of(page) == 0
    assert page.locator(".viewer").get_attribute("data-playing") != "true"


def test_a_view_is_the_same_after_a_reload(site, open_page):
    page = open_page(address(site, "fast-toy"))
    page.goto(f"{site.url}#runs")
    page.wait_for_selector(".run-row")
    page.goto(address(site, "fast-toy"))
    wait_for_viewer(page)
    url = page.url
    page.reload()
    wait_for_viewer(page)
    assert page.url == url
    assert page.locator("h1").all_inner_texts() == ["fast-toy"]
    page.go_back()
    page.wait_for_selector(".run-row")
    page.go_forward()
    wait_for_viewer(page)


def test_live_regions_are_silent_while_a_replay_plays(site, open_page):
    page = open_page(address(site, "classic-toy"))
    wait_for_viewer(page)
    page.evaluate(
        """() => {
            window.said = 0;
            for (const region of document.querySelectorAll("[role=status], [aria-live], output")) {
                new MutationObserver(() => { window.said += 1; })
                    .observe(region, { childList: true, characterData: true, subtree: true });
            }
        }"""
    )
    wait_for(page, "document.querySelector('.viewer').dataset.step > 20")
    assert page.evaluate("window.said") == 0


def test_the_policy_is_strict_and_plotly_has_its_rules(site, open_page):
    page = open_page(address(site, "fast-toy"))
    page.locator("figure[data-curve=return]").scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-curve=return][data-points]")
    rules = page.evaluate(
        "[...document.getElementById('plotly.js-style-global').sheet.cssRules]"
        ".filter((rule) => rule.cssText.includes('.js-plotly-plot')).length"
    )
    assert rules > 10
    policy = page.request.get(site.url).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert page.evaluate("document.querySelectorAll('style').length") == 0


def test_first_paint_comes_within_a_second_and_all_weighs_little(site, browser, open_page):
    page = open_page(address(site, "fast-toy"))
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    weights: list[int] = []
    session.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.reload()
    page.locator("figure[data-curve=return]").scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-curve=return][data-points]")
    wait_for_viewer(page)
    paint = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint').map((each) => each.startTime)"
    )
    print(f"first paint after {paint[0]:.0f} ms, {sum(weights) / 1e6:.2f} MB in all")
    assert paint[0] <= 1000
    assert 1e6 < sum(weights) <= 5e6, "plotly alone is more than one"
