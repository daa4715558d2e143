"""What the tests of pages in a real Chromium share; the fixture `open_page` is in conftest."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from waiting import wait_until

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@contextlib.contextmanager
def watched_pages(browser):
    """Open addresses as a person does: ``open_page(url, motion)``.

    At the end, the page has reported no error, opened no dialog and asked for nothing beyond this
    machine. A test in which errors are expected sets ``page.may_fail = True``. There is one page
    for all tests of a file: to make one costs a second of the processor.
    """
    page = browser.contexts[0].pages[0] if browser.contexts else make_page(browser)
    page.may_fail = False
    page.errors.clear()
    page.urls.clear()

    def open_at(url, motion="no-preference"):
        page.set_viewport_size(LAPTOP)
        page.emulate_media(media="screen", color_scheme="light", reduced_motion=motion)
        page.goto(url)
        return page

    yield open_at
    page.goto("about:blank")
    asked = (url for url in page.urls if not url.startswith("data:"))
    assert [url for url in asked if urlsplit(url).hostname != "127.0.0.1"] == []
    assert ([] if page.may_fail else page.errors) == []


def make_page(browser):
    """A page on a screen that can be touched, which writes down its errors and what it asks for."""
    page = browser.new_context(has_touch=True).new_page()
    page.set_default_timeout(120_000)
    page.errors, page.urls = [], []
    page.on("console", lambda m: m.type == "error" and page.errors.append(m.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("dialog", functools.partial(answer_dialog, page))
    page.on("request", lambda request: page.urls.append(request.url))
    return page


def answer_dialog(page, dialog) -> None:
    """Write down what is asked and say no; but a page may be left while a game is under way."""
    if dialog.type == "beforeunload":
        dialog.accept()
    else:
        page.errors.append(dialog.message)
        dialog.dismiss()


def wait_for(page, expression: str) -> None:
    """Wait until it is true; playwright's own way needs `eval`, which the page's policy forbids."""
    wait_until(lambda: page.evaluate(expression), meanwhile=lambda: page.wait_for_timeout(50))


def read_canvas(page, selector):
    """The colours of a canvas: [height, width, 3] uint8."""
    url = page.evaluate("(name) => document.querySelector(name).toDataURL()", selector)
    picture = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.array(picture.convert("RGB"))


def require_fitting_and_accessible(page) -> None:
    """Fail if the page scrolls sideways on a laptop or a phone, or axe finds a violation in it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for size, scheme, rules in (
        (PHONE, "dark", None), (LAPTOP, "light", {"runOnly": ["color-contrast"]}),
    ):  # fmt: skip
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        results = axe.run(page, options=rules)
        assert results.violations_count == 0, results.generate_report()
