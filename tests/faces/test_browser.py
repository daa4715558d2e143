"""The page in a real Chromium: what a person sees, and that it stays on this machine.

A test is a visit. Every page that it opens is watched: a console error, or a request to anywhere
but the server, fails it (`pages.watched_pages`).
"""

from __future__ import annotations

import json
import shutil
import threading
import urllib.request

import numpy as np
import pytest
from pages import look_again, read_canvas, require_fitting_and_accessible, step_of, wait_for
from promises import promise
from toys import toy_config, toy_evaluation
from web_client import make_trained, serving

from pixelpong.agent.choice import Agents
from pixelpong.agent.game import play_game
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES
from pixelpong.faces import plots
from pixelpong.items import DOWN, UP
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import SWEEP_FILE, Record

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

RETURN = "figure[data-curve=return]"
STEP = "Number(document.querySelector('.viewer').dataset.step)"
HOSTILE = "<img src=x onerror=alert(1)> \"'&"
CODES = {name: action for action, name in ACTION_NAMES.items()}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Two seeds, of which one has won, a copy of the second, a hostile name, a run of a sweep."""
    folder = tmp_path_factory.mktemp("gallery")
    for seed in (0, 1):
        make_trained(folder / f"seed-{seed}", updates=12, seed=seed, until_return=18.0)
    shutil.copytree(folder / "seed-1", folder / "copy")
    make_trained(folder / HOSTILE, "classic", updates=4)
    shutil.copytree(folder / HOSTILE, folder / "sweep-001" / "classic-0")
    (folder / "sweep-001" / SWEEP_FILE).write_text("")
    won = toy_evaluation(12, 18.5, target=18.0, is_won=True, timing={"wall_seconds": 51.0})
    (folder / "seed-0" / "evaluations.jsonl").write_text(json.dumps(won) + "\n")
    return folder


@pytest.fixture(scope="module")
def site(gallery):
    """The gallery, served."""
    with serving(gallery) as served:
        yield served


def test_a_visit_to_the_list_and_to_comparisons(site, gallery, open_page, axe):
    page = open_page(f"{site.url}/#run/%")
    page.wait_for_selector("tbody tr >> nth=3")
    assert HOSTILE in page.locator("tbody th").all_inner_texts()
    row = page.locator("tbody tr", has_text="seed-0").inner_text()
    assert all(word in row for word in ("won", "+18.5 greedy"))
    require_fitting_and_accessible(page, axe)

    page.get_by_label("Compare seed-1").check()
    page.wait_for_selector("text=1 selected: select another")
    page.get_by_label(f"Compare {HOSTILE}").check()
    page.get_by_role("link", name="Compare", exact=True).click()
    legend = page.locator(f"{RETURN} .legend li")
    legend.nth(1).wait_for()
    assert legend.all_inner_texts() == ["seed-1", HOSTILE]
    dashes = legend.locator("path").evaluate_all(
        "(all) => all.map((path) => path.getAttribute('stroke-dasharray'))"
    )
    assert dashes[0] != dashes[1], "not told apart by the line"
    table = page.get_by_role("region", name="The runs").inner_text()
    assert "--batch-size" in table
    assert "environment" not in table, "the same in both"
    require_fitting_and_accessible(page, axe)
    page.get_by_role("link", name="Remove seed-1").click()
    page.wait_for_selector("text=Select at least two runs")

    names = "seed-0", "seed-1", "copy"
    page.goto(f"{site.url}/#compare/{','.join(names)}")
    band = page.locator(f"{RETURN} .plot path[fill^=var]").last
    band.wait_for(state="attached")
    assert band.get_attribute("opacity") == "0.2"
    assert page.locator(f"{RETURN} .plot path[stroke^='var(--series']").count() == 1 + 2
    told = page.locator("figure[data-curve=entropy] figcaption .number").inner_text()
    drawn = mean_in_the_picture([gallery / name for name in names], "entropy of the policy, nats")
    assert float(told) == pytest.approx(drawn, rel=5e-3)
    page.get_by_label("Join runs").uncheck()
    legend.nth(1).wait_for()
    assert legend.count() == 3


def mean_in_the_picture(paths, title) -> float:
    """Where the mean of several seeds ends in `pixelpong plot`."""
    with plots.house_style():
        figure = plots.KINDS["health"](plots.name_settings([Record.read(path) for path in paths]))
    (panel,) = (axes for axes in figure.axes if axes.get_title() == title)
    (line,) = (line for line in panel.get_lines() if "seeds" in str(line.get_label()))
    return line.get_ydata()[-1]


def test_a_visit_to_a_sweep_and_to_a_run_of_a_hostile_name(site, gallery, open_page):
    page = open_page(f"{site.url}/#runs", motion="reduce")
    page.locator("tbody tr", has_text="sweep-001").get_by_text("0 of 1 won").wait_for()
    page.get_by_role("link", name="sweep-001", exact=True).click()
    summary = page.get_by_role("region", name="Results")
    summary.get_by_text("0 of 1").wait_for()
    page.get_by_role("link", name="sweep-001/classic-0", exact=True).click()
    page.get_by_role("heading", name="sweep-001/classic-0").wait_for()
    assert page.url.endswith("/#run/sweep-001/classic-0")
    link = page.get_by_role("link", name="Play against it")
    assert link.get_attribute("href") == "#play/sweep-001/classic-0/best"
    page.goto(f"{site.url}/#watch/sweep-001/classic-0/4")
    page.get_by_role("heading", name="Watch sweep-001/classic-0").wait_for()
    page.goto(f"{site.url}/#runs")
    page.get_by_role("link", name=HOSTILE, exact=True).click()
    page.get_by_role("heading", name=HOSTILE).wait_for()
    require_the_very_frames(page, RunDirectory(gallery / HOSTILE))


def test_a_visit_to_a_run(site, gallery, open_page, axe):
    page, run = open_page(f"{site.url}/#run/seed-0"), RunDirectory(gallery / "seed-0")
    page.wait_for_selector(".verdict:not(:empty)")
    verdict = page.locator(".verdict").inner_text()
    assert "Won: greedy return +18.50" in verdict
    assert "over 200 games, target +18.0, after 0:51 in total" in verdict
    facts = dict(
        zip(*(page.locator(f".facts {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True)
    )
    assert list(facts)[:3] == ["greedy return", "estimated return", "mean of the last 100"]
    steps = f"{list(run.metrics.read())[-1]['steps']:,}"
    assert (facts["update"], facts["steps played"]) == ("12", steps)
    assert page.locator(".health-item").count() >= 1
    assert page.locator(f"{RETURN} .target-name").all_text_contents() == ["target +18.0"]
    for curve in ("entropy", "kl", "learning_rate", "grad_norm", "steps_per_second"):
        assert page.locator(f"[data-curve={curve}]").get_attribute("data-points") == "12", curve
    dots = page.locator(f"{RETURN} .plot path[stroke='var(--ink)']").get_attribute("d")
    assert dots.count("M") == 1, "an evaluation is a dot"
    page.locator("summary").click()
    page.wait_for_selector(".config dt:has-text('gae_lambda')")

    # The best agent's game plays unasked, and silently.
    page.wait_for_selector(".viewer[data-step]")
    best = run.checkpoints.find_best()
    assert f"The agent after update {best}:" in page.locator(".outcome").inner_text()
    page.evaluate(
        """() => {
            window.said = 0;
            for (const region of document.querySelectorAll("[role=status], [aria-live]")) {
                new MutationObserver(() => { window.said += 1; })
                    .observe(region, { childList: true, characterData: true, subtree: true });
            }
        }"""
    )
    wait_for(page, f"{STEP} > 5")
    assert page.evaluate("said") == 0, "live regions are silent while it plays"
    page.get_by_role("button", name="One step back").click()
    still = step_of(page)
    page.get_by_role("button", name="One step forward").click()
    assert step_of(page) == still + 1
    page.get_by_role("button", name="Next point").click()
    assert step_of(page) > still
    states = page.evaluate(
        """() => {
            const [viewer] = document.getElementsByClassName("viewer");
            const button = viewer.querySelector(".controls .primary");
            return ["Play", "Pause", "Play"].map((word) => {
                const state = [button.textContent === word, viewer.dataset.playing];
                button.click();
                return state;
            });
        }"""
    )
    assert states == [[True, "false"], [True, "true"], [True, "false"]]
    page.get_by_role("button", name="Pause").click()
    require_the_very_frames(page, run)
    require_fitting_and_accessible(page, axe)

    # Another age of the agent.
    first = run.list_agents()[0]
    page.locator(".chooser select").select_option(str(first))
    page.wait_for_selector(f".outcome:has-text('The agent after update {first}:')")
    *_, last = play_game(Agents.of_run(run).load(str(first)), run.config.seed)
    lost, won = last.points
    words = f"return {won - lost} ({won} points won, {lost} lost) in {last.step:,} steps."
    assert words in page.locator(".outcome").inner_text().replace("−", "-")

    page.emulate_media(media="print")
    assert page.locator(".curve .plot > svg").count() == 7
    assert page.locator(f"{RETURN} .plot path[stroke^=var]").count() >= 1


def require_the_very_frames(page, run) -> None:
    """The best agent's game: its frames, and what the network makes of them."""
    page.wait_for_selector(".viewer[data-step]")
    moments = list(play_game(Agents.of_run(run).load(), run.config.seed, explains_every=1))
    last = len(moments) - 1
    for step in (0, 3, last, 1, last // 2):
        moment, explanation = moments[step], moments[step].explanation
        page.locator(".timeline input").fill(str(step))
        np.testing.assert_array_equal(read_canvas(page, "canvas.screen"), moment.frame)
        require_field(read_canvas(page, "canvas.sight")[..., 0], explanation.field)
        shares = page.locator(".action .number").all_inner_texts()
        wanted = [f"{100 * p:.0f} %" for p in np.round(explanation.probabilities, 4)]
        assert [share.split(" %")[0] + " %" for share in shares] == wanted
        if explanation.value is not None:
            value = page.locator(".thoughts .value").first.inner_text().replace("−", "-")
            assert float(value) == pytest.approx(explanation.value, abs=0.006)
    telling = max(range(last), key=lambda step: np.abs(moments[step].explanation.saliency).max())
    page.get_by_label("What moved the decision").check()
    page.locator(".timeline input").fill(str(telling))
    saliency = moments[telling].explanation.saliency
    shares = np.rint(127 * saliency / np.abs(saliency).max())
    corners = read_canvas(page, "canvas.sight").reshape(80, 6, 80, 6, 3)[:, 1, :, 1].astype(int)
    np.testing.assert_array_equal(corners.any(axis=2), abs(shares) >= 16)
    for action, sign in ((UP, 1), (DOWN, -1)):
        colour = list(bytes.fromhex(ACTION_COLOURS[action][1:]))
        np.testing.assert_allclose(corners[sign * shares >= 16] - colour, 0, atol=3)


def require_field(red, field) -> None:
    """Pixels that stayed, appeared and vanished are told apart by shape, as in a film."""
    cells = red.reshape(80, 6, 80, 6)
    middle, edge = cells[:, 2, :, 4] > 100, cells[:, 1, :, 1] > 100
    np.testing.assert_array_equal(cells.max(axis=(1, 3)) > 100, field > 0)
    np.testing.assert_array_equal(middle, (field == 1) | (field == 2))
    np.testing.assert_array_equal(edge, (field == 2) | (field == 3))


@pytest.mark.slow
def test_a_visit_to_a_game_with_what_the_agent_expects(site, open_page, axe):
    page = open_page(f"{site.url}/#watch/package/club", motion="reduce")
    page.wait_for_selector(".viewer[data-step]")
    assert step_of(page) == 0, "nothing moves for those who want no motion"
    assert "The club in the package: return" in page.locator(".outcome").inner_text()
    with urllib.request.urlopen(f"{site.url}/api/runs/package/reels/club") as answer:
        reel = json.load(answer)
    for expectation in reel["expectations"][:2]:
        page.get_by_role("button", name="Next time the ball comes").click()
        assert step_of(page) == expectation["step"]
        drawn, ball = read_canvas(page, "canvas.choices"), 3 * (expectation["ball"][0] + 2)
        count = 0
        for height, shares in zip(reel["heights"], expectation["probabilities"], strict=True):
            row, best = 3 * (height + 7) + 3, int(np.argmax(shares))
            if max(shares) < 0.5 or abs(row - ball) < 4:
                continue
            colour = bytes.fromhex(ACTION_COLOURS[CODES[reel["action_names"][best]]][1:])
            middle = int(465 * (sum(shares[:best]) + shares[best] / 2))
            assert tuple(drawn[row, middle]) == tuple(colour), height
            count += 1
        assert count > 5
    require_fitting_and_accessible(page, axe)
    page.locator(".chooser select").select_option("beginner")
    page.wait_for_selector(".outcome:has-text('The beginner in the package')")


def test_a_visit_with_the_keyboard_alone(site, open_page):
    page = open_page(site.url, motion="reduce")
    page.wait_for_selector("tbody tr")
    assert press_tab_until(page, "Skip to the content")
    assert press_tab_until(page, "seed-0")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('seed-0')")
    page.wait_for_selector(".viewer[data-step]")
    assert press_tab_until(page, "Step of the game")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert step_of(page) == 2
    page.go_back()
    page.wait_for_selector("tbody tr")


def press_tab_until(page, name: str) -> bool:
    for _ in range(150):  # once around
        page.keyboard.press("Tab")
        words = page.evaluate(
            "[document.activeElement.getAttribute('aria-label'), document.activeElement.innerText]"
        )
        if name in words:
            return True
    return False


@pytest.mark.slow
def test_a_run_is_followed_from_its_first_moment_to_its_end(tmp_path, open_page, axe):
    """Its name is hostile, and nothing of it is taken for more than a name."""
    with serving(tmp_path / "runs") as served:
        page = open_page(served.url)
        page.may_fail = True  # what is deleted, or not served, is asked for in vain
        page.wait_for_selector("text=pixelpong train")
        require_fitting_and_accessible(page, axe)
        config = toy_config("fast", updates=None, total_timesteps=10**7)
        run = RunDirectory.create(tmp_path / "runs" / HOSTILE, config)
        page.wait_for_selector("tbody tr:has-text('interrupted')")
        assert not page.locator("text=pixelpong train").is_visible()
        page.get_by_role("link", name=HOSTILE, exact=True).click()
        page.wait_for_selector("text=No update has finished yet")
        page.wait_for_selector("text=No agent has been saved yet")
        stop = threading.Event()
        training = threading.Thread(target=train, args=(run,), kwargs={"should_stop": stop.is_set})
        training.start()
        try:
            look_again(page)
            page.wait_for_selector(".state.training:has-text('training')")
            points = "Number(document.querySelector('[data-curve=entropy]').dataset.points)"
            wait_for(page, f"{points} > {page.evaluate(points)} + 10")
        finally:
            stop.set()
            training.join()
        page.wait_for_selector(".state:has-text('interrupted')")
        page.wait_for_selector(".viewer[data-step]")
        assert page.locator("h1").inner_text() == HOSTILE
    look_again(page)
    page.wait_for_selector("#banner:has-text('server')")
    with serving(tmp_path / "runs", port=served.port):
        look_again(page)
        page.wait_for_selector("#banner", state="hidden")
        shutil.rmtree(run.path)
        look_again(page)
        page.wait_for_selector(".problem:has-text('Deleted or moved')")
        assert page.locator(".facts").is_visible(), "what was read before stays"
        assert page.locator("text=No agent has been saved yet").count() == 0
        page.get_by_role("link", name="Runs", exact=True).click()
        page.wait_for_selector("text=pixelpong train")
    assert page.locator("main img").count() == 0
    assert {url.rpartition("/")[2] for url in page.urls}.isdisjoint({"x", "x%20onerror=alert(1)"})


def test_charts_draw_constants_means_and_bands(site, open_page):
    page = open_page(site.url)
    for value, height in ((0.002, 500), (0.0, 1000), (300.0, 500)):
        columns = {"update": [1, 2], "steps": [100, 200], "learning_rate": [value] * 2}
        for seeds in (1, 10):  # a mean may be an ulp off
            page.evaluate(
                """async (series) => {
                    const { mountCurves } = await import("/static/charts.js");
                    const main = document.querySelector("main");
                    main.replaceChildren();
                    mountCurves(main)(series);
                }""",
                [{"name": "one", "members": [columns] * seeds}],
            )
            plot = page.locator("[data-curve=learning_rate] .plot")
            line = plot.locator("path[stroke='var(--series-1)']").last.get_attribute("d")
            assert round(float(line.split("L")[0].split()[1])) == height, (value, seeds)
            assert 3 <= plot.locator("text.tick").count() <= 6

    joined = page.evaluate(
        """async () => {
            const { joinSeeds } = await import("/static/charts.js");
            return joinSeeds([
                [[0, 0], [20, 2], [50, 5], [90, 9]], [[0, 4], [60, 4]], [[20, 0], [45, 3], [99, 8]],
            ]);
        }"""
    )
    points, band = np.array(joined["points"]), np.array(joined["band"])
    assert list(points[:, 0]) == [20, 50], "as far as all of them go"
    table = [[2, 5], [4, 4], [0, 3]]
    np.testing.assert_allclose(points[:, 1], np.mean(table, axis=0))
    low, high = np.split(band[:, 1], 2)
    np.testing.assert_allclose([low, high[::-1]], [np.min(table, axis=0), np.max(table, axis=0)])
