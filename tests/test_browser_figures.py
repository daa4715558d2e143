"""What a run's page says in a real Chromium: verdict, charts, the "?", a moment explained."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from conftest import wait_until
from pages import LAPTOP, LOOKS, address, make_trained, read_canvas, require_fitting_and_accessible
from PIL import Image
from web_client import serving

from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES

pytestmark = pytest.mark.browser

FAST = {"streams": 2, "horizon": 30, "updates": 24, "hidden": 8, "until_return": 18.0}
RETURN = "figure[data-curve=return]"
STATIC = Path(__file__).parents[1] / "src/pixelpong/faces/page/static"
GLOSSARY = json.loads((STATIC / "glossary.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two seeds of the same options, of which one has won, and another run; served."""
    folder = tmp_path_factory.mktemp("seeds")
    for seed in (0, 1):
        make_trained(folder / f"seed-{seed}", "fast", seed=seed, **FAST)
    make_trained(folder / "other", "classic", updates=4, save_every=2)
    won = {
        "update": 24, "mean_return": 18.5, "std": 1.0, "ci95": [18.1, 18.9],
        "returns": [18.0, 19.0], "target": 18.0, "is_won": True, "timing": {"wall_seconds": 51.0},
    }  # fmt: skip
    (folder / "seed-0" / "evaluations.jsonl").write_text(json.dumps(won) + "\n")
    with serving(folder) as served:
        yield served


def open_run(open_page, site, name, *more):
    """The page of a run, with its charts drawn."""
    page = open_page(address(site, name), *more)
    page.locator(RETURN).scroll_into_view_if_needed()
    page.wait_for_selector(f"{RETURN}[data-points]")
    return page


def test_the_verdict_comes_first_and_the_chart_shows_the_target_and_where_it_was_reached(
    site, open_page
):
    page = open_run(open_page, site, "seed-0")
    verdict = page.locator(".verdict").inner_text()
    assert "Won: greedy return +18.5 over 2 games (+18.1 to +18.9), after 0:51" in verdict
    facts = page.locator(".fact dt").all_inner_texts()
    names = [fact.split(" ?")[0] for fact in facts[:3]]
    assert names == ["greedy return", "estimated return", "mean of the last 100"]
    assert page.locator(f"{RETURN} .target-name").all_text_contents() == [
        "won at +18.0",
        "won here",
    ]
    page = open_run(open_page, site, "seed-1")
    assert "ot won" in page.locator(".verdict").inner_text()
    assert page.locator(f"{RETURN} .target-name").all_text_contents() == ["won at +18.0"]


@pytest.mark.parametrize("name", ["greedy return", "entropy", "KL divergence"])
def test_a_question_mark_shows_the_glossarys_sentence(site, open_page, name):
    page = open_run(open_page, site, "seed-0")
    page.locator(f"button.help[aria-label='What is: {name}?']").first.click()
    page.wait_for_selector(f".help-words:popover-open:has-text({json.dumps(GLOSSARY[name])})")
    page.keyboard.press("Escape")
    assert not page.locator(".help-words").is_visible()


@LOOKS
def test_every_question_mark_has_a_sentence_and_an_open_one_fits(
    site, open_page, axe, size, scheme
):
    page = open_run(open_page, site, "seed-0", size, scheme)
    labels = page.locator("button.help").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    terms = {label.removeprefix("What is: ").removesuffix("?") for label in labels}
    assert len(terms) >= 13
    assert terms <= GLOSSARY.keys()
    page.locator(".fact .help").nth(3).click()
    page.wait_for_selector(".help-words:popover-open strong")
    box = page.locator(".help-words").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size[0]
    require_fitting_and_accessible(page, axe, size)


def test_a_tile_holds_the_longest_time(site, open_page):
    page = open_run(open_page, site, "seed-0")
    cut = page.evaluate(
        """() => {
            const tile = document.querySelector("[data-fact=written]");
            tile.querySelector("dd").textContent = "59 min 59 s ago";
            return [tile.scrollWidth - tile.clientWidth, tile.getBoundingClientRect().right];
        }"""
    )
    assert cut[0] <= 0
    assert cut[1] <= LAPTOP[0]


def draw_charts(page, series) -> None:
    """Charts of figures of our own, in place of the page."""
    page.evaluate(
        """async (series) => {
            const { mountCurves } = await import("/static/charts.js");
            const main = document.querySelector("main");
            main.replaceChildren();
            mountCurves(main).update(series);
        }""",
        series,
    )
    page.wait_for_selector(f"{RETURN}[data-points]")


@pytest.mark.parametrize("value", [0.0012, 0.0, 300.0])
def test_a_constant_is_drawn_at_its_own_height(site, open_page, value):
    page = open_page(site.url)
    columns = {"update": [1, 2, 3], "steps": [100, 200, 300], "learning_rate": [value] * 3}
    draw_charts(page, [{"name": "one", "columns": {**columns, "mean_return": [1, 2, 3]}}])
    plot = page.locator("[data-curve=learning_rate] .plot")
    plot.scroll_into_view_if_needed()
    plot.locator("path[stroke='var(--series-1)']").wait_for(state="attached")
    line = plot.locator("path[stroke='var(--series-1)']").get_attribute("d")
    height = float(line.split("L")[0].split()[1])
    ticks = {
        float(each.text_content().replace("−", "-")): float(each.get_attribute("y")) - 4
        for each in plot.locator("text[text-anchor=end]").all()
    }
    (low, low_y), (high, high_y) = min(ticks.items()), max(ticks.items())
    wanted = low_y + (high_y - low_y) * (value - low) / (high - low)
    assert height == pytest.approx(wanted, abs=1.0)


def test_runs_that_differ_by_the_seed_become_one_curve_with_a_band(site, open_page):
    page = open_page(site.url)
    page.locator(".run-row", has_text="seed-0").get_by_text("one of 2 seeds").click()
    page.wait_for_selector(f"{RETURN}[data-points]")
    lines, band = f"{RETURN} .plot path[stroke^='var(--series']", f"{RETURN} .plot path[fill^=var]"
    assert page.locator(band).first.get_attribute("opacity") == "0.2"
    assert page.locator(lines).count() == 1
    page.get_by_label("Runs that differ by the seed alone").uncheck()
    page.wait_for_selector(f"{RETURN} .chart-legend li >> nth=1")
    names = page.locator(f"{RETURN} .chart-legend li").all_inner_texts()
    assert sorted(names) == ["seed-0", "seed-1"]


def test_mean_and_band_are_those_of_the_runs_and_one_that_ended_stays(site, open_page):
    joined = open_page(site.url).evaluate(
        """async () => {
            const { joinRuns } = await import("/static/charts.js");
            return joinRuns([[[0, 0], [100, 10]], [[0, 4], [50, 4]], [[20, 0], [100, 8]]]);
        }"""
    )
    points, band = np.array(joined["points"]), np.array(joined["band"])
    x = points[:, 0]
    assert (x[0], x[-1]) == (20, 100)
    table = [np.interp(x, [0, 100], [0, 10]), np.full(len(x), 4), np.interp(x, [20, 100], [0, 8])]
    np.testing.assert_allclose(points[:, 1], np.mean(table, axis=0))
    np.testing.assert_allclose(band[:, 1:].T, [np.min(table, axis=0), np.max(table, axis=0)])


def test_a_chart_is_saved_as_its_figures_and_as_a_picture(site, open_page, tmp_path):
    page = open_run(open_page, site, "seed-0")
    with page.expect_download() as caught:
        page.get_by_label("Save Return as CSV").click()
    assert caught.value.suggested_filename == "return.csv"
    head, *rows = Path(caught.value.path()).read_text().splitlines()
    assert head == '"curve","steps of the agent","Return points an episode"'
    last = [row for row in rows if row.startswith('"mean of the last 100"')][-1]
    with urllib.request.urlopen(f"{site.url}/api/runs") as answer:
        runs = {run["name"]: run for run in json.load(answer)["runs"]}
    _, steps, value = last.split(",")
    assert int(steps) == runs["seed-0"]["steps"]
    assert float(value) == pytest.approx(runs["seed-0"]["mean_return_100"], rel=1e-4)
    with page.expect_download() as caught:
        page.get_by_label("Save Return as PNG").click()
    caught.value.save_as(tmp_path / "return.png")
    picture = np.array(Image.open(tmp_path / "return.png").convert("RGB")).reshape(-1, 3)
    assert len(np.unique(picture, axis=0)) > 20, "the curves are in it, in their colours"
    page.urls = [url for url in page.urls if not url.startswith("blob:")]


def test_smoothing_and_the_pointer_go_for_all_charts(site, open_page):
    page = open_run(open_page, site, "seed-0")
    entropy = page.locator("[data-curve=entropy]")
    entropy.scroll_into_view_if_needed()  # only what is in sight is drawn
    line = entropy.locator(".plot path[stroke='var(--series-1)']")
    before = line.get_attribute("d")
    page.get_by_label("Smoothing").select_option("5")
    entropy.scroll_into_view_if_needed()
    assert wait_until(lambda: line.get_attribute("d") != before)
    plot = page.locator("[data-curve=points] .plot")
    plot.scroll_into_view_if_needed()
    plot.hover(position={"x": plot.bounding_box()["width"] - 16, "y": 60})  # once it stands still
    entropy.locator(".chart-words").wait_for()
    told = entropy.locator(".chart-words").inner_text()
    assert (
        told.split("\n")[0]
        == page.locator("[data-curve=points] .chart-words div").first.inner_text()
    )
    page.mouse.move(2, 2)
    assert not entropy.locator(".chart-words").is_visible()


def test_the_list_is_sorted_and_filtered(site, open_page):
    page = open_page(site.url)
    page.wait_for_selector(".run-row")
    page.get_by_label("Sort by").select_option("name")
    assert page.locator(".run-name").all_inner_texts() == ["other", "seed-0", "seed-1"]
    page.get_by_label("Sort by").select_option("best return")
    assert page.locator(".run-name").first.inner_text() == "seed-0"
    row = page.locator(".run-row").first
    assert "won" in row.inner_text()
    assert row.locator(".spark svg path").count() == 2
    page.get_by_label("Filter").fill("fast seed 1")
    assert page.locator(".run-name").all_inner_texts() == ["seed-1"]


def test_the_newest_agent_is_followed_until_the_slider_is_touched(site, open_page):
    page = open_page(site.url)
    run = address(site, "seed-1").rpartition("/")[2]
    places = page.evaluate(
        """async (id) => {
            const { Episodes } = await import("/static/episodes.js");
            const run = await (await fetch(`/api/runs/${id}`)).json();
            const place = document.createElement("div"), seen = [];
            document.querySelector("main").append(place);
            const common = { ...run, is_live: true, replays: [] };
            const live = (count) => ({ ...common, agents: run.agents.slice(0, count) });
            const episodes = new Episodes(place, live(2));
            const take = (count) => {
                episodes.update(live(count));
                seen.push(Number(episodes.slider.value));
            };
            take(3);
            take(4);
            episodes.slider.value = 1;
            episodes.slider.dispatchEvent(new Event("input"));
            take(5);
            episodes.unmount();
            return seen;
        }""",
        run,
    )
    assert places == [2, 3, 1]


def test_what_the_agent_expects_is_drawn_as_the_network_answers(site, open_page):
    page = open_page(site.url)
    page.evaluate(
        """async () => {
            const { mountMoment } = await import("/static/moment.js");
            const main = document.querySelector("main");
            main.replaceChildren();
            mountMoment(main, { id: "package", agents: [{ update: 0 }] });
        }"""
    )
    page.locator(".moment figure").nth(3).wait_for(timeout=120_000)
    with urllib.request.urlopen(f"{site.url}/api/runs/package/moments/0") as answer:
        moment = json.load(answer)
    assert page.locator(".moment figcaption strong").all_inner_texts()[0] == "The game"
    drawn = read_canvas(page, ".moment figure:nth-child(3) canvas")
    codes = {name: action for action, name in ACTION_NAMES.items()}
    ball = 3 * (moment["ball"][0] + 2)
    for height, shares in zip(moment["heights"], moment["height_probabilities"], strict=True):
        row = 3 * (height + 7) + 3
        if max(shares) < 0.9 or abs(row - ball) < 4:
            continue
        name = moment["action_names"][int(np.argmax(shares))]
        colour = tuple(bytes.fromhex(ACTION_COLOURS[codes[name]][1:]))
        middle = int(465 * (sum(shares[: int(np.argmax(shares))]) + max(shares) / 2))
        assert tuple(drawn[row, middle]) == colour, height
