"""The page's own JavaScript, asked in a real Chromium: numbers, charts, and what asking costs."""

from __future__ import annotations

import itertools
import time

import pytest
from promises import promise
from toys import toy_config
from waiting import pause, wait_until
from web_client import serving

from pixelpong.faces.page.library import Library
from pixelpong.faces.page.threads import BusyError
from pixelpong.run.directory import RunDirectory
from pixelpong.run.words import signed

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]


@pytest.fixture
def served_page(tmp_path, open_page):
    """The page without a run."""
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#runs")
        yield page
        page.goto("about:blank")  # it asks again and again, until the server has gone


def test_numbers_are_written_as_in_the_terminal_and_any_number_of_them_is_drawn(served_page):
    values = [0.0, -0.0, 0.04, -0.04, -0.05, 0.05, 18.25, -18.25, 20.999, -21.0, 2.5, -0.5, None]
    written = served_page.evaluate(
        """async (values) => {
            const { formatSigned } = await import("/static/parts.js");
            return values.map((value) => [0, 1, 2].map((size) => formatSigned(value, size)));
        }""",
        values,
    )
    assert written == [[signed(value, size) for size in range(3)] for value in values]

    # As many values as one call of a function takes no more, of one run and of many seeds.
    drawn = served_page.evaluate(
        """async () => {
            const { mountCurves } = await import("/static/charts.js");
            const steps = Array.from({ length: 300_000 }, (_, each) => each);
            const many = [{ name: "run", members: [{ steps, kl: steps }] }];
            const short = steps.slice(0, 100), one = { steps: short, kl: short };
            const seeds = [{ name: "2000 seeds", members: Array(2000).fill(one) }];
            return [many, seeds].map((series) => {
                const place = document.createElement("div");
                mountCurves(place)(series);
                const { points } = place.querySelector("[data-curve=kl]").dataset;
                return [points, place.querySelector(".key-of-all").innerText];
            });
        }"""
    )
    assert drawn == [["300000", ""], ["100", "2000 seeds"]]


def test_a_server_that_is_busy_for_a_moment_has_lost_no_run(tmp_path, open_page, monkeypatch):
    RunDirectory.create(tmp_path / "run", toy_config("fast"))
    answers, tell = itertools.cycle([False, True]), Library.describe

    def be_busy(shelf, run_id):
        if next(answers):
            raise BusyError("The server is busy.")
        return tell(shelf, run_id)

    monkeypatch.setattr(Library, "describe", be_busy)
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#run/run")
        page.may_fail = True  # Chromium reports the status
        page.wait_for_selector(".problem:has-text('The server is busy.')")
        assert page.locator(".facts").is_visible(), "what was read before stays"
        page.wait_for_selector(".problem", state="hidden")


def test_asking_costs_little_of_the_time_even_if_each_answer_takes_long(
    tmp_path, open_page, monkeypatch
):
    spans = []

    def read_slowly(_):
        spans.append(begin := time.monotonic())
        pause(0.5)
        spans[-1] = begin, time.monotonic()
        return {"runs": []}

    monkeypatch.setattr(Library, "list_runs", read_slowly)
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#runs")
        wait_until(lambda: len(spans) > 3 and isinstance(spans[3], tuple))
        page.goto("about:blank")
    for (begin, end), (again, _) in itertools.pairwise(spans[:4]):
        assert again - end >= 4 * (end - begin)
