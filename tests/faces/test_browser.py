"""The page in a real Chromium: what a person sees and does, and that it stays on this machine.

A test is a visit. A console error, or a request to anywhere but the server, fails it
(`pages.watched_pages`).
"""

from __future__ import annotations

import itertools
import json
import shutil

import httpx
import numpy as np
import pytest
from pages import PHONE, read_canvas, require_fitting_and_accessible, wait_for
from PIL.ImageColor import getrgb
from promises import promise
from toys import toy_config, toy_evaluation
from waiting import PATIENCE, wait_until
from web_client import make_trained, serving

from pixelpong.agent.choice import Agents
from pixelpong.agent.file import SHIPPED
from pixelpong.agent.game import play_game
from pixelpong.faces.page.game import BrowserGame
from pixelpong.loop import train
from pixelpong.pong.duel import Duel
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import SWEEP_FILE

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

RETURN = "figure[data-curve=return]"
STEP = "Number(document.querySelector('.viewer').dataset.step)"
CELLS = 80, 6, 80, 6  # of the picture of what the network sees
HOSTILE = "<img src=x onerror=alert(1)> \"'&"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two seeds, of which one has won, a hostile name, a run of a sweep, all served."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        make_trained(folder / f"seed-{seed}", updates=12, seed=seed, until_return=18.0)
    make_trained(folder / HOSTILE, "classic")
    shutil.copytree(folder / HOSTILE, folder / "sweep-001" / "classic-0")
    (folder / "sweep-001" / SWEEP_FILE).write_text("")
    won = toy_evaluation(12, 18.5, target=18.0, is_won=True, timing={"wall_seconds": 51.0})
    (folder / "seed-0" / "evaluations.jsonl").write_text(json.dumps(won) + "\n")
    with serving(folder) as served:
        yield served


def test_a_visit_to_the_list_with_the_keyboard_to_a_sweep_and_to_comparisons(site, open_page):
    page = open_page(f"{site.url}/#run/%", motion="reduce")
    page.wait_for_selector("tbody tr >> nth=3")
    row = page.locator("tbody tr", has_text="seed-0").inner_text()
    assert all(word in row for word in ("won", "+18.5 greedy"))
    require_fitting_and_accessible(page)

    press_tab_until(page, "Skip to the content")
    press_tab_until(page, "seed-0")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('seed-0')")
    page.wait_for_selector(".viewer[data-part=whole]")
    press_tab_until(page, "Step of the game")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(STEP) == 1
    page.go_back()

    page.locator("tbody tr", has_text="sweep-001").get_by_text("0 of 1 won").wait_for()
    page.get_by_role("link", name="sweep-001", exact=True).click()
    page.get_by_role("region", name="Results").get_by_text("0 of 1").wait_for()
    page.get_by_role("link", name="sweep-001/classic-0", exact=True).click()
    page.get_by_role("heading", name="sweep-001/classic-0").wait_for()
    link = page.get_by_role("link", name="Play against it")
    assert link.get_attribute("href") == "#play/sweep-001/classic-0/best"
    require_the_very_frames(page, RunDirectory(site.runs / "sweep-001" / "classic-0"))

    page.goto(f"{site.url}/#runs")
    page.get_by_label("Compare seed-1").check()
    page.wait_for_selector("text=1 selected: select another")
    page.get_by_label(f"Compare {HOSTILE}").check()
    page.get_by_role("link", name="Compare", exact=True).click()
    legend = page.get_by_role("list", name="Key to the curves").locator("li")
    legend.nth(1).wait_for()
    assert legend.all_inner_texts() == ["seed-1", HOSTILE], "one key to all charts"
    assert page.locator("figure .legend li").count() == 0
    dashes = {line.get_attribute("stroke-dasharray") for line in legend.locator("path").all()}
    assert len(dashes) == 2, "not told apart by the line"
    table = page.get_by_role("region", name="The runs").inner_text()
    assert ("num envs" in table, "environment" in table) == (True, False), "what differs"
    require_fitting_and_accessible(page)
    page.get_by_role("link", name="Remove seed-1").click()
    page.wait_for_selector("text=Select at least two runs")
    page.wait_for_selector(".curve", state="hidden")  # there is nothing to compare

    page.goto(f"{site.url}/#compare/seed-0,seed-1")
    band = page.locator(f"{RETURN} .plot path[fill^=var]").last
    band.wait_for(state="attached")
    assert legend.all_inner_texts() == ["2 seeds like seed-0"], "how many seeds the band has"
    assert page.locator(f"{RETURN} .plot path[stroke^='var(--series']").count() == 1 + 2
    joined = page.evaluate(
        """async () => (await import("/static/charts.js")).joinSeeds([
            [[0, 0], [20, 2], [50, 5], [90, 9]], [[0, 4], [60, 4]], [[20, 0], [45, 3], [99, 8]],
        ])"""
    )
    # As far as all of them go, where each stands at its last step: 2, 4, 0 and then 5, 4, 3.
    assert joined["points"] == [[20, 2], [50, 4]]
    assert joined["band"] == [[20, 0], [50, 3], [50, 5], [20, 4]]


def press_tab_until(page, name: str) -> None:
    focused = "[document.activeElement.ariaLabel, document.activeElement.innerText]"
    while name not in page.evaluate(focused):
        page.keyboard.press("Tab")


def test_a_visit_to_a_run(site, open_page):
    page, run = open_page(f"{site.url}/#run/seed-0"), RunDirectory(site.runs / "seed-0")
    page.wait_for_selector(".verdict:has-text('Won after 0:51 in total: greedy return +18.50')")
    facts = dict(row.split("\n") for row in page.locator(".facts > div").all_inner_texts())
    assert (facts["time in total"], "time to the win, estimated" in facts) == ("0:51", False)
    page.locator("summary").click()
    options = dict(row.split("\n") for row in page.locator(".config > div").all_inner_texts())
    assert (options["num envs"], options["restart after"]) == ("4", "400,000")
    assert not options.keys() & {"batch size", "decay rate"}, "of the other algorithm"
    assert facts["steps played"] == f"{list(run.metrics.read())[-1]['steps']:,}"
    for curve in ("entropy", "kl", "learning_rate", "grad_norm", "steps_per_second"):
        assert page.locator(f"[data-curve={curve}]").get_attribute("data-points") == "12", curve

    # The best agent's game plays unasked, and silently.
    page.wait_for_selector(".viewer[data-part=whole]")
    assert all("?viewer=" in url for url in page.urls if "/reels/" in url)
    best = Agents.of_run(run).best
    assert f"The agent after update {best}:" in page.locator(".outcome").inner_text()
    live = page.locator("[role=status], [aria-live]")
    said = live.all_inner_texts()
    wait_for(page, f"{STEP} > 5")
    assert live.all_inner_texts() == said, "live regions are silent while it plays"
    page.get_by_role("button", name="One step back").click()
    still = page.evaluate(STEP)
    page.get_by_role("button", name="One step forward").click()
    assert page.evaluate(STEP) == still + 1
    page.get_by_role("button", name="Next point").click()
    assert page.evaluate(STEP) > still
    require_the_very_frames(page, run)
    require_fitting_and_accessible(page)

    # Another age of the agent.
    page.locator(".chooser select").select_option("0")
    page.wait_for_selector(".outcome:has-text('The agent after update 0:')")
    goals = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.hash)")[1:3]
    assert goals == [f"#play/{run.path.name}/0", f"#watch/{run.path.name}/0"]
    *_, last = play_game(Agents.of_run(run).load("0"), run.config.seed)
    assert f"in {last.step:,} steps." in page.locator(".outcome").inner_text()


def require_the_very_frames(page, run) -> None:
    """The best agent's game: its frames, and what the network makes of them."""
    page.wait_for_selector(".viewer[data-part=whole]")
    moments = list(play_game(Agents.of_run(run).load(), run.config.seed, explains_every=1))
    last = len(moments) - 1
    for step in (0, 3, last, 1, last // 2):
        explanation = moments[step].explanation
        page.locator(".timeline input").fill(str(step))
        np.testing.assert_array_equal(read_canvas(page, "canvas.screen"), moments[step].frame)
        # Pixels that stayed, appeared and vanished are told apart by shape, as in a film.
        drawn = (read_canvas(page, "canvas.sight")[..., 0] > 100).reshape(CELLS)
        field = explanation.field
        np.testing.assert_array_equal(drawn.any(axis=(1, 3)), field > 0)
        np.testing.assert_array_equal(drawn[:, 2, :, 4], (field == 1) | (field == 2))
        np.testing.assert_array_equal(drawn[:, 1, :, 1], (field == 2) | (field == 3))
        shares = page.locator(".action .number").all_inner_texts()
        wanted = [f"{100 * p:.0f}" for p in np.round(explanation.probabilities, 4)]
        assert [share.split(" %")[0] for share in shares] == wanted
        if explanation.value is not None:
            value = page.locator(".thoughts .value").inner_text().replace("−", "-")
            assert float(value) == pytest.approx(explanation.value, abs=0.006)
    step = max(range(last), key=lambda step: np.abs(moments[step].explanation.saliency).max())
    page.get_by_label("What moved the decision").check()
    page.locator(".timeline input").fill(str(step))
    saliency = moments[step].explanation.saliency
    shares = np.rint(127 * saliency / np.abs(saliency).max())
    drawn = read_canvas(page, "canvas.sight").any(axis=-1).reshape(CELLS)
    np.testing.assert_array_equal(drawn[:, 1, :, 1], abs(shares) >= 16)
    np.testing.assert_array_equal(drawn[:, 1, :, 4], shares >= 16)  # not for down


def test_a_visit_to_a_game_with_what_the_agent_expects(site, open_page):
    page = open_page(f"{site.url}/#watch/package/club", motion="reduce")
    page.wait_for_selector(".viewer[data-part=whole]")
    assert page.evaluate(STEP) == 0, "nothing moves for those who want no motion"
    assert "The club in the package: return" in page.locator(".outcome").inner_text()
    reel = httpx.get(f"{site.url}/api/runs/package/reels/club", timeout=PATIENCE).json()
    rows = 3 * (np.array(reel["heights"]) + 7) + 3
    for expectation in reel["expectations"][:2]:
        page.get_by_role("button", name="Next time the ball comes").click()
        assert page.evaluate(STEP) == expectation["step"]
        drawn = read_canvas(page, "canvas.choices")[rows, :465]
        seen = abs(rows - 3 * (expectation["ball"][0] + 2)) > 4  # not under the ball's line
        shares = np.array(expectation["probabilities"])
        for place, name in enumerate(reel["action_names"]):
            found = (drawn == getrgb(reel["colours"][name])).all(axis=2).mean(axis=1)
            np.testing.assert_allclose(found[seen], shares[seen, place], atol=0.01)
    require_fitting_and_accessible(page)


def test_a_run_is_followed_from_its_first_moment_to_its_end(tmp_path, open_page):
    """Its name is hostile, and nothing of it is taken for more than a name."""
    with serving(tmp_path / "runs") as served:
        page = open_page(served.url)
        page.may_fail = True  # what is deleted, or not served, is asked for in vain
        page.wait_for_selector("text=pixelpong train")
        require_fitting_and_accessible(page)
        run = RunDirectory.create(tmp_path / "runs" / HOSTILE, toy_config("fast"))
        page.wait_for_selector("tbody tr:has-text('interrupted')")
        assert not page.locator("text=pixelpong train").is_visible()
        page.get_by_role("link", name=HOSTILE, exact=True).click()
        page.wait_for_selector("text=No update has finished yet")
        page.wait_for_selector("text=No agent has been saved yet")
        with run.lock():
            look_again(page)
            page.wait_for_selector(".state.training:has-text('training')")
        train(run)
        look_again(page)
        page.wait_for_selector("[data-curve=entropy][data-points='3']")
        page.wait_for_selector(".state:has-text('stopped')")
        page.wait_for_selector(".viewer[data-part=whole]")
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
        page.get_by_role("link", name="All runs").click()
        page.wait_for_selector("text=pixelpong train")
        page.goto(f"{served.url}/#play/gone/best")
        page.wait_for_selector(".problem:has-text('not in the list') a[href='#runs']")
    assert page.locator("main img").count() == 0
    assert {url.rpartition("/")[2] for url in page.urls}.isdisjoint({"x", "x%20onerror=alert(1)"})


def look_again(page) -> None:
    """Come back to the page from elsewhere: it asks the server at once."""
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")


# --- playing against an agent -------------------------------------------------------------------

TITLE = "(document.querySelector('.play-message:not(.unseen) .play-title')?.textContent ?? '')"
"""What the panel over the picture says, in one look: it comes and goes."""

SCORE = "document.querySelector('.play-score strong').textContent"
ORANGE = (213, 130, 74)  # the left paddle


def wait_for_paddle(page, share) -> None:
    """Wait until the middle of the own paddle is at a place of the field."""

    def is_there():
        field = read_canvas(page, ".play-stage canvas")[34:194]
        rows = 34 + np.flatnonzero((field == ORANGE).all(axis=2).any(axis=1))
        return len(rows) and abs((rows[0] + rows[-1]) / 2 - share * 210) < 12

    wait_until(is_there)


def test_a_visit_with_keys_mouse_and_finger(site, open_page):
    page = open_page(f"{site.url}/#play/package/best")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.locator(".chooser select").input_value() == "club"
    assert page.get_by_role("heading").inner_text() == "Play against club"
    require_fitting_and_accessible(page)
    page.set_viewport_size({"width": 800, "height": 400})
    page.keyboard.press("Space")
    wait_for(page, f"{TITLE} === ''")
    for key, end in (("w", 0.19), ("s", 0.89), ("ArrowUp", 0.19), ("ArrowDown", 0.89)):
        page.keyboard.down(key)
        wait_for_paddle(page, end)
        page.keyboard.up(key)
    assert page.evaluate("scrollY") == 0, "arrows do not scroll"
    page.get_by_label("Speed").select_option("2")
    wait_for(page, f"{SCORE} !== '0 : 0'")
    page.keyboard.press("p")
    wait_for(page, f"{TITLE} === 'Paused'")
    page.keyboard.press("Space")  # an impatient thumb: Space only serves
    page.evaluate("() => { window.confirm = () => true; }")
    page.keyboard.press("r")
    wait_for(page, f"{TITLE} === 'Ready?'")
    assert page.evaluate(SCORE) == "0 : 0"

    # A finger serves and drags, and does not move the page.
    assert "width=device-width" in page.locator("meta[name=viewport]").get_attribute("content")
    page.set_viewport_size(PHONE)
    box = page.locator(".play-stage canvas").bounding_box()
    assert box["width"] > 300
    assert box["y"] + box["height"] < PHONE["height"], "the whole field is in sight"
    touch = page.context.new_cdp_session(page)

    def place(kind, *shares):
        points = [{"x": box["x"] + 250, "y": box["y"] + each * box["height"]} for each in shares]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    place("touchStart", 0.3)
    wait_for(page, f"{TITLE} === ''")
    for share in (0.4, 0.6, 0.8):
        place("touchMove", share)
    wait_for_paddle(page, 0.8)
    assert page.evaluate("scrollY") == 0
    place("touchEnd")

    page.mouse.move(box["x"] + 250, box["y"] + 0.3 * box["height"])
    wait_for_paddle(page, 0.3)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_for(page, f"{TITLE} === 'Paused'")


def test_who_has_won_is_offered_the_next_stronger_agent(site, open_page, monkeypatch):
    points = [21, 16]
    over = {"phase": "over", "points": points, "speed": 1}
    monkeypatch.setattr(BrowserGame, "describe", lambda _: over)
    page = open_page(f"{site.url}/#play/package/beginner")
    for one, other in itertools.pairwise(SHIPPED):
        wait_for(page, f"{TITLE} === 'You win!'")
        assert page.locator(".chooser select").input_value() == one
        page.get_by_role("button", name=f"Next: beat {other}").click()
        page.wait_for_url(f"**/{other}")
        assert page.locator("nav a").nth(2).get_attribute("href") == f"#watch/package/{other}"
    wait_for(page, f"{TITLE} === 'You win!'")
    assert not page.locator(".next").is_visible(), "there is no stronger one"
    require_fitting_and_accessible(page)
    points.reverse()
    page.locator(".chooser select").select_option("club")
    wait_for(page, f"{TITLE} === 'The agent wins'")
    assert not page.locator(".next").is_visible()


def test_an_agent_is_chosen_a_game_ends_and_a_lost_connection_can_be_had_again(
    site, open_page, monkeypatch
):
    is_won = property(lambda emulator: sum(emulator.points) > 0)
    monkeypatch.setattr(Duel, "is_over", is_won)
    agents = [str(update) for update in RunDirectory(site.runs / "seed-1").list_agents()]
    with serving(site.runs) as served:
        page = open_page(f"{served.url}/#play/seed-1/{agents[-1]}")
        wait_for(page, f"{TITLE} === 'Ready?'")
        choice = page.locator(".chooser select")
        assert choice.evaluate("(select) => [...select.options].map((o) => o.value)") == agents
        choice.select_option(agents[1])
        page.wait_for_url(f"**/{agents[1]}")
        wait_for(page, f"{TITLE} === 'Ready?'")
        assert page.evaluate("document.activeElement.className") == "play-stage"
        heading = page.get_by_role("heading").inner_text()
        assert heading == f"Play against seed-1, update {agents[1]}"
        page.get_by_label("Speed").select_option("2")
        page.keyboard.press("Space")
        wait_for(page, f"['The agent wins', 'You win!'].includes({TITLE})")
        page.get_by_role("button", name="New game").first.click()
        wait_for(page, f"{TITLE} === 'Ready?'")
        page.may_fail = True
    wait_for(page, f"{TITLE}.includes('lost')")
    page.get_by_role("button", name="Try again").click()
    wait_for(page, f"{TITLE}.includes('lost')")
    with serving(site.runs, port=served.port):
        page.get_by_role("button", name="Try again").click()
        wait_for(page, f"{TITLE} === 'Ready?'")
        page.get_by_role("link", name="Watch the agent's own game").click()
        page.wait_for_selector(".viewer[data-part=whole]")
