"""What the tests of pages in a real Chromium share; the fixture `open_page` is in conftest."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from toys import toy_config

from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

LAPTOP, PHONE = (1280, 800), (360, 740)

LOOKS = pytest.mark.parametrize(
    ("size", "scheme"),
    [(size, scheme) for size in (LAPTOP, PHONE) for scheme in ("light", "dark")],
    ids=["laptop-light", "laptop-dark", "phone-light", "phone-dark"],
)


@contextlib.contextmanager
def watched_pages(browser):
    """Open addresses as a person does: ``open_page(url, size, scheme)``.

    At the end, no page has reported an error, opened a dialog or asked for anything beyond this
    machine; a page from disk has said and asked for nothing. A test in which errors are expected
    sets ``page.may_fail = True``.
    """
    pages = []

    def open_at(url, size=LAPTOP, scheme="light", motion="no-preference", **more):
        is_phone = size[0] < 500
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme,
            reduced_motion=motion, is_mobile=is_phone, has_touch=is_phone, **more,
        )  # fmt: skip
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.may_fail, page.errors, page.urls, is_file = False, [], [], url.startswith("file:")
        page.on("console", lambda m: (is_file or m.type == "error") and page.errors.append(m.text))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("dialog", lambda dialog: (page.errors.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.urls.append(request.url))
        pages.append(page)
        page.goto(url)
        return page

    yield open_at
    for page in pages:
        if page.urls[0].startswith("file:"):
            assert page.may_fail or len(page.urls) == 1
        else:
            asked = [url for url in page.urls if not url.startswith("data:")]
            assert {urlsplit(url).hostname for url in asked} == {"127.0.0.1"}
        assert page.may_fail or page.errors == []
        page.context.close()


def make_toy(path, preset, **changes):
    """A run of short games, not yet trained."""
    return RunDirectory.create(path, toy_config(preset, **changes), [].append)


def make_trained(path, preset, **changes):
    """A run of short games, trained for a second."""
    run = make_toy(path, preset, **changes)
    train(run)
    return run


def wait_for(page, expression: str) -> None:
    """Wait until it is true; playwright's own way needs `eval`, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def address(site, name: str, view: str = "run") -> str:
    """The address of a view of a run."""
    with urllib.request.urlopen(f"{site.url}/api/runs") as answer:
        runs = json.load(answer)["runs"]
    return f"{site.url}/#{view}/{next(run['id'] for run in runs if run['name'] == name)}"


def read_canvas(page, selector):
    """The colours of a canvas: [height, width, 3] uint8."""
    url = page.evaluate("(name) => document.querySelector(name).toDataURL()", selector)
    picture = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.array(picture.convert("RGB"))


def step_of(page) -> int:
    """The step that the replay viewer shows."""
    return int(page.locator(".viewer[data-step]").get_attribute("data-step"))


def pause_at_start(page) -> None:
    """Stop the replay viewer at its first step; a page that is still filled may show another."""
    for _ in range(50):
        page.wait_for_selector(".viewer[data-step]")
        if page.locator(".viewer").get_attribute("data-playing") == "true":
            page.get_by_role("button", name="Pause").click()
        page.locator(".timeline input").fill("0")
        page.wait_for_timeout(100)
        if page.locator(".viewer[data-step='0']:not([data-playing=true])").count():
            return
    raise AssertionError("the replay viewer does not stop")


def require_fitting_and_accessible(page, axe, size) -> None:
    """Fail if the page scrolls sideways, or axe finds a violation."""
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0], "it scrolls sideways"
    results = axe.run(page)
    assert results.violations_count == 0, results.generate_report()
