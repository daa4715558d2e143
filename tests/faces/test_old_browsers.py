"""The page in browsers that lack what newer ones have, and behind a prefix: it is never blank."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import make_page, wait_for
from promises import promise
from web_client import make_trained, serving

from pixelpong.faces.page import server
from pixelpong.faces.page import serving as pages_server

pytestmark = [pytest.mark.browser, promise("the page asks nobody")]

WORD = re.compile(r"\S+")
# What JavaScript and the browsers got since 2020; a name after a dot belongs to an object.
NEWER = WORD.findall("""
    globalThis BigInt WeakRef FinalizationRegistry Iterator structuredClone reportError
    DecompressionStream CompressionStream OffscreenCanvas ResizeObserver IntersectionObserver
    requestIdleCallback createImageBitmap EyeDropper URLPattern Float16Array AsyncDisposableStack
    .matchAll .allSettled .any .replaceAll .replaceChildren .at .hasOwn .findLast .findLastIndex
    .toSorted .toReversed .toSpliced .with .groupBy .withResolvers .isWellFormed .toWellFormed
    .fromAsync .transfer .union .intersection .difference .symmetricDifference .isSubsetOf
    .isSupersetOf .isDisjointFrom .try .escape .take .drop .toArray .timeout .throwIfAborted
    .randomUUID .canParse .showModal .showPicker .showPopover .togglePopover .checkVisibility
    .startViewTransition .moveBefore .setHTMLUnsafe .getHTML .requestSubmit .formatRange
    .formatToParts .roundRect .ariaLabel .inert .isInputPending .cause .groups .indices
""")
NEWER_STYLES = WORD.findall("""
    light-dark( color-mix( oklch( oklab( lch( lab( hwb( color( @container @layer @property @scope
    @starting-style :has( :user-invalid :popover-open cqw cqh cqi subgrid text-wrap anchor(
    field-sizing interpolate-size round( mod( rem( sin( cos( if(
""")
NEEDS = re.search(r'NEEDS = "It needs ([^"]+)\."', (server.STATIC / "failures.js").read_text())[1]

# The views, and what a person looks for in each of them.
VIEWS = {
    "#runs": "tbody tr", "#run/one": ".viewer[data-part=whole]", "#compare/one,two": ".plot text",
    "#play/one/best": ".play-title:has-text('Ready?')",
}  # fmt: skip

DELETE = """(name) => {
    if (!name.startsWith(".")) return void delete globalThis[name];
    for (const each of Object.getOwnPropertyNames(globalThis)) {
        const owner = Object.getOwnPropertyDescriptor(globalThis, each).value;
        if (typeof owner !== "function") continue;
        for (const place of [owner, owner.prototype]) {
            if (place && Object.hasOwn(place, name.slice(1))) delete place[name.slice(1)];
        }
    }
}"""


def sources(ending):
    return {path.name: path.read_text("utf-8") for path in server.STATIC.glob(f"*.{ending}")}


def names_in_use() -> list[str]:
    """The newer functions that the page's scripts use."""
    text = "\n".join(sources("js").values())
    return [
        name
        for name in NEWER
        if re.search(rf"(?<![\w.]){re.escape(name)}\b", text)
        or (name[0] == "." and re.search(rf"{re.escape(name)}\b", text))
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two runs, served."""
    folder = tmp_path_factory.mktemp("runs")
    for seed, name in enumerate(("one", "two")):
        make_trained(folder / name, updates=3, seed=seed)
    with serving(folder) as served:
        yield served


def test_without_any_newer_function_each_view_is_there_or_says_which_browsers_it_needs(
    site, browser
):
    names, failed = names_in_use(), set()
    assert {".at", ".findLast", ".hasOwn", "DecompressionStream"} <= set(names)
    assert ".groupBy" not in names
    for name in ["", *names, ".map"]:
        page = make_page(browser)
        try:
            page.add_init_script(f"({DELETE})('{name}')")
            for view, wanted in VIEWS.items():
                page.goto(f"{site.url}/{view}")
                page.wait_for_selector(f"#failure:not(:empty), {wanted}")
                told = page.locator("#failure").inner_text()
                assert (NEEDS in told) == bool(told)
                failed |= {(name, view)} if told else set()
        finally:
            page.context.close()
    assert {view for name, view in failed if name == ".map"} == set(VIEWS), "nothing works"
    assert ("DecompressionStream", "#run/one") in failed
    assert not {view for name, view in failed if name == ""}


def test_the_pages_of_the_docs_name_the_same_browsers_and_no_style_needs_newer_ones():
    page = Path(__file__).parents[2] / "docs/howto/look.md"
    assert NEEDS.removesuffix(" or newer") in " ".join(page.read_text("utf-8").split())
    (style,) = sources("css").values()
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    assert [
        word for word in NEWER_STYLES if re.search(rf"(?<![\w-]){re.escape(word)}", style)
    ] == []
    scripts = sources("js")["failures.js"]
    assert (
        re.findall(r"=>|`|\b(?:const|let|class|async|import|export)\b", strip_comments(scripts))
        == []
    )


def strip_comments(script):
    return re.sub(r"//.*", "", script)


def test_a_view_that_fails_once_says_so_and_is_shown_again(site, open_page):
    page = open_page(f"{site.url}/#play/one/best")  # it asks only once
    page.may_fail = True
    seen = page.evaluate(
        """() => new Promise(async (resolve) => {
            const { follow } = await import("/static/parts.js");
            const line = document.getElementById("failure"), seen = [];
            const leave = new AbortController();
            follow("api/runs", leave.signal, () => {
                seen.push(line.textContent);
                if (seen.length < 3) throw new Error("odd");
                setTimeout(() => { leave.abort(); resolve([...seen, line.textContent]); });
            });
        })"""
    )
    assert seen[0] == seen[3] == ""
    assert seen[1] == seen[2] == f"The page failed (Error: odd). It needs {NEEDS}."


def test_a_file_that_cannot_be_loaded_and_an_error_of_a_button_are_told(site, browser):
    page = make_page(browser)
    try:
        page.route("**/charts.js", lambda route: route.abort())
        page.goto(f"{site.url}/#runs")
        page.wait_for_selector("#failure:has-text('cannot load')")
        page.unroute("**/charts.js")
        page.goto(f"{site.url}/?#play/one/best")
        page.wait_for_selector(VIEWS["#play/one/best"])
        assert page.locator("#failure").inner_text() == ""
        page.evaluate("() => { WebSocket = null; }")
        page.get_by_role("button", name="New game").first.click()
        page.wait_for_selector("#failure:has-text('not a constructor')")
        page.goto(f"{site.url}/?#runs")
        page.wait_for_selector(VIEWS["#runs"])
        assert page.locator("#failure").inner_text() == ""
    finally:
        page.context.close()


# --- behind a prefix ----------------------------------------------------------------------------


def test_behind_a_proxy_that_strips_a_prefix_each_view_works(
    tmp_path, site, open_page, monkeypatch
):
    prefix, refused = "/user/me/proxy/8080", []

    class Proxy(pages_server.Connections):
        async def __call__(self, scope, receive, send):
            inner = scope["path"].removeprefix(prefix)
            if inner == scope["path"]:
                refused.append(inner)
            await super().__call__({**scope, "path": inner, "raw_path": b""}, receive, send)

    monkeypatch.setattr(pages_server, "Connections", Proxy)
    with serving(site.runs) as served:
        page = open_page(f"{served.url}{prefix}/")
        for view, wanted in VIEWS.items():
            page.goto(f"{served.url}{prefix}/{view}")
            page.wait_for_selector(wanted)
        page.keyboard.press("Space")
        wait_for(page, "document.querySelector('.play-message.unseen, .play-message.low') !== null")
        page.goto("about:blank")
    assert refused == [], "asked for beside the prefix"
