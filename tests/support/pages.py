"""What the tests of pages in a real Chromium share; the fixture `open_page` is in conftest."""

from __future__ import annotations

import base64
import contextlib
import io
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

LAPTOP, PHONE = (1280, 800), (360, 740)


@contextlib.contextmanager
def watched_pages(browser):
    """Open addresses as a person does: ``open_page(url, size, motion)``.

    At the end, no page has reported an error, opened a dialog or asked for anything beyond this
    machine. A test in which errors are expected sets ``page.may_fail = True``. Pages are used
    again by the next test: to make one costs a second of the processor.
    """

    def open_at(url, size=LAPTOP, motion="no-preference"):
        page = next((it for it in all_pages(browser) if it.is_phone == (size == PHONE)), None)
        page = page or make_page(browser, size == PHONE)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(media="screen", color_scheme="light", reduced_motion=motion)
        page.goto(url)
        return page

    yield open_at
    troubles = []
    for page in all_pages(browser):
        asked = [url for url in page.urls if not url.startswith("data:")]
        troubles += [url for url in asked if urlsplit(url).hostname != "127.0.0.1"]
        troubles += [] if page.may_fail else page.errors
        page.goto("about:blank")
        page.may_fail = False
        page.errors.clear()
        page.urls.clear()
    assert troubles == []


def all_pages(browser):
    """The pages that are there."""
    return [context.pages[0] for context in browser.contexts]


def make_page(browser, is_phone):
    """A page that writes down its errors, and what it asks for."""
    context = browser.new_context(is_mobile=is_phone, has_touch=is_phone)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.is_phone, page.may_fail, page.errors, page.urls = is_phone, False, [], []
    page.on("console", lambda m: m.type == "error" and page.errors.append(m.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("dialog", lambda dialog: (page.errors.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: page.urls.append(request.url))
    return page


def wait_for(page, expression: str) -> None:
    """Wait until it is true; playwright's own way needs `eval`, which the page's policy forbids."""
    while not page.evaluate(expression):
        page.wait_for_timeout(50)


def look_again(page) -> None:
    """Come back to the page from elsewhere: it asks the server at once."""
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")


def read_canvas(page, selector):
    """The colours of a canvas: [height, width, 3] uint8."""
    url = page.evaluate("(name) => document.querySelector(name).toDataURL()", selector)
    picture = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.array(picture.convert("RGB"))


def step_of(page) -> int:
    """The step that the replay viewer shows."""
    return int(page.locator(".viewer[data-step]").get_attribute("data-step"))


def require_fitting_and_accessible(page, axe) -> None:
    """Fail if the page scrolls sideways on a laptop or a phone, or axe finds a violation in it."""
    for (width, height), scheme, rules in (
        (PHONE, "dark", None), (LAPTOP, "light", {"runOnly": ["color-contrast"]}),
    ):  # fmt: skip
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "it scrolls sideways"
        results = axe.run(page, options=rules)
        assert results.violations_count == 0, results.generate_report()
