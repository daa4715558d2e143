"""What the tests of pages in a real Chromium share; the fixture `open_page` is in conftest."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import urllib.request
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

LAPTOP, PHONE = (1280, 800), (360, 740)


@contextlib.contextmanager
def watched_pages(browser):
    """Open addresses as a person does: ``open_page(url, size, scheme)``.

    At the end, no page has reported an error, opened a dialog or asked for anything beyond this
    machine. A test in which errors are expected sets ``page.may_fail = True``.
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
        page.may_fail, page.errors, page.urls = False, [], []
        page.on("console", lambda m: m.type == "error" and page.errors.append(m.text))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("dialog", lambda dialog: (page.errors.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.urls.append(request.url))
        pages.append(page)
        page.goto(url)
        return page

    yield open_at
    for page in pages:
        asked = [url for url in page.urls if not url.startswith("data:")]
        assert {urlsplit(url).hostname for url in asked} == {"127.0.0.1"}
        assert page.may_fail or page.errors == []
        page.context.close()


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


def require_fitting_and_accessible(page, axe) -> None:
    """Fail if the page scrolls sideways on a laptop or a phone, or axe finds a violation in it."""
    for (width, height), scheme in ((LAPTOP, "light"), (PHONE, "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "it scrolls sideways"
        results = axe.run(page)
        assert results.violations_count == 0, results.generate_report()
    page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    page.emulate_media(color_scheme="light")
