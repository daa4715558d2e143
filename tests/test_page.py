"""The offline page: one file that shows a run, whatever the run is called, and asks nobody."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import os
import re
import threading
from html.parser import HTMLParser

import pytest
from conftest import wait_until

from pixelpong.agent.choice import read_replays
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces.cli import main
from pixelpong.faces.page import offline
from pixelpong.faces.page.export import write_page
from pixelpong.loop import train
from pixelpong.play.replay import Replay
from pixelpong.run.checkpoints import fingerprint

HOSTILE_NAME = "<script>alert(1)<script> <img src=x onerror=alert(1)> \"'&"
HOSTILE_VALUE = "</script><script>alert(1)</script>\"'&<!--"


@pytest.fixture
def trained(make_run):
    run = make_run(updates=6, replay_every=1, evaluate_every=3, evaluate_episodes=2)
    train(run)
    return run


@pytest.fixture
def hostile(make_run):
    run = make_run(HOSTILE_NAME, updates=6, replay_every=1, ray_address=HOSTILE_VALUE)
    train(run)
    return run


class Parts(HTMLParser):
    """A page's elements, and the data and code in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, object] = {}
        self.text: list[str] = []
        self.codes: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self._inside: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._inside = (tag, dict(attrs))
        self.tags.append(self._inside)

    def handle_endtag(self, tag):
        self._inside = ("", {})

    def handle_data(self, data):
        tag, attributes = self._inside
        if attributes.get("type") == "application/json":
            self.data[attributes["id"]] = json.loads(data)
        elif tag in ("script", "style"):
            self.codes[tag] = self.codes.get(tag, "") + data
        else:
            self.text.append(data)
            if tag == "dd":
                self.facts[self.text[-2]] = data


def page_of(run, tmp_path, max_replays=3) -> Parts:
    write_page(run, tmp_path / "page.html", max_replays=max_replays)
    return Parts((tmp_path / "page.html").read_text("utf-8"))


def test_the_page_holds_the_curves_of_the_run(trained, tmp_path):
    columns = page_of(trained, tmp_path).data["curves-data"]["columns"]
    lines = list(trained.metrics.read())
    for name in ("update", "steps", "mean_return", "entropy"):
        assert columns[name] == pytest.approx([line[name] for line in lines], rel=1e-5)
    seconds = [line["timing"]["wall_seconds"] for line in lines]
    assert columns["wall_seconds"] == pytest.approx(seconds, rel=1e-5)


def test_the_first_replay_is_the_best_agents_own_then_come_those_of_the_training(trained, tmp_path):
    data = page_of(trained, tmp_path, max_replays=4).data
    reels = [data[f"reel-{place}"] for place in range(4)]
    assert "reel-4" not in data
    best = trained.checkpoints.load_best().update
    assert (reels[0]["is_own"], reels[0]["agent_update"]) == (True, best)
    episodes = [line["episode"] for line in read_replays(trained)]
    chosen = [reel["episode"] for reel in reels[1:]]
    assert len(episodes) > 4
    assert (chosen[0], chosen[-1]) == (episodes[0], episodes[-1])
    assert chosen == sorted(set(chosen))
    for reel in reels:
        assert reel["steps"] == len(reel["actions"]) > 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_page_holds_no_more_replays_than_asked_for(trained, tmp_path, number):
    report = write_page(trained, tmp_path / "page.html", max_replays=number)
    parts = Parts((tmp_path / "page.html").read_text("utf-8"))
    assert sum(name.startswith("reel-") for name in parts.data) == number
    assert len(report["replays"]) == number
    assert any(attributes.get("id") == "viewer" for _, attributes in parts.tags) == (number > 0)


def test_a_negative_number_of_replays_is_refused(trained, tmp_path):
    with pytest.raises(ConfigError, match="expected --replays of at least 0, got -1"):
        write_page(trained, tmp_path / "page.html", max_replays=-1)


def test_the_page_tells_configuration_hashes_and_evaluations(trained, tmp_path):
    parts = page_of(trained, tmp_path)
    for name, value in trained.config.to_flat().items():
        shown = "–" if value is None else value if isinstance(value, str) else json.dumps(value)
        assert parts.facts[name] == shown
    for name in ("config.json", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"):
        content = (trained.path / name).read_bytes()
        assert parts.facts[name] == hashlib.sha256(content).hexdigest()
    best = trained.checkpoints.load_best()
    assert parts.facts[f"params of best, update {best.update}"] == fingerprint(best.params)
    evaluated = parts.text[parts.text.index("Evaluations") :]
    cells = [text for text in evaluated if text.strip()][6:]
    for line in reversed(list(trained.evaluations.read())):
        update, mean, interval, _, episodes = (cells.pop(0) for _ in range(5))
        low, high = (f"{value:.1f}" for value in line["ci95"])
        wanted = (str(line["update"]), f"{line['mean_return']:.2f}", f"{low} … {high}", "2")
        assert (update, mean, interval, episodes) == tuple(w.replace("-", "−") for w in wanted)


def test_a_page_without_replays_is_small(trained, tmp_path):
    """With plotly in it, it would have 4.8 MB more."""
    report = write_page(trained, tmp_path / "page.html", max_replays=0)
    assert report["bytes"] == (tmp_path / "page.html").stat().st_size < 150_000


def test_the_page_refers_to_nothing_outside(trained, tmp_path):
    for tag, attributes in page_of(trained, tmp_path).tags:
        assert not {"src", "srcset", "action", "data", "poster", "style"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("href", "data:").startswith("data:"), tag
        assert tag not in ("iframe", "object", "embed", "base", "form")


def test_the_policy_allows_what_is_in_the_page_by_its_hash_and_no_connection(trained, tmp_path):
    import base64

    parts = page_of(trained, tmp_path)
    (policy,) = [a["content"] for _, a in parts.tags if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for kind in ("script", "style"):
        digest = hashlib.sha256(parts.codes[kind].encode()).digest()
        assert rules[f"{kind}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert "unsafe" not in policy


def test_everything_of_the_run_is_escaped(hostile, trained, tmp_path):
    plain, strange = page_of(trained, tmp_path), page_of(hostile, tmp_path)
    assert {tag for tag, _ in strange.tags} <= {tag for tag, _ in plain.tags}
    assert sum(tag == "script" for tag, _ in strange.tags) == 1 + 1 + 3
    assert strange.codes["script"] == plain.codes["script"]
    assert HOSTILE_NAME in "".join(strange.text)
    assert HOSTILE_VALUE in strange.text
    assert strange.data["curves-data"]["name"] == HOSTILE_NAME


def test_the_joined_script_is_no_module():
    script = offline.join_scripts()
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    for name in offline.SCRIPTS:
        text = offline._read_static(name)
        names = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.M)
        for each in names:
            assert len(re.findall(rf"^(?:async )?(?:function|const|class) {each}\b", script, re.M))
    declared = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.M)
    assert len(declared) == len(set(declared)) > 20


def test_a_run_that_has_not_begun_has_a_page(make_run, tmp_path):
    run = make_run()
    report = write_page(run, tmp_path / "page.html", max_replays=2)
    parts = Parts((tmp_path / "page.html").read_text("utf-8"))
    assert "curves-data" not in parts.data
    assert report["replays"] == []
    assert any("checkpoint" in line for line in report["left_out"])
    assert any("no update yet" in each for each in parts.text)


def test_what_cannot_be_replayed_is_left_out_with_a_word(trained, tmp_path):
    lines = trained.replays.path.read_text().splitlines()
    first = Replay.from_line(json.loads(lines[0]))
    broken = dataclasses.replace(first, episode_return=first.episode_return + 1).to_line()
    trained.replays.path.write_text("\n".join([json.dumps(broken), *lines[1:]]) + "\n")
    report = write_page(trained, tmp_path / "page.html", max_replays=3)
    assert any("to end with a return of" in line for line in report["left_out"])
    assert len(report["replays"]) == 2, "the best agent's own, and the newest"
    text = "".join(Parts((tmp_path / "page.html").read_text("utf-8")).text)
    assert "Left out: expected episode" in text


def test_a_long_run_is_thinned_out_to_its_last_update(trained, tmp_path):
    last = list(trained.metrics.read())[-1]
    trained.metrics.append(*(last | {"update": update} for update in range(7, 5001)))
    columns = page_of(trained, tmp_path, max_replays=0).data["curves-data"]["columns"]
    assert 500 <= len(columns["update"]) <= 1000
    assert columns["update"][-1] == 5000


def test_a_full_disk_leaves_the_page_before(trained, small_disk):
    disk = small_disk("64k")
    (disk / "page.html").write_text("before")
    with pytest.raises(RunError, match="expected to write .*page.html, got No space left"):
        write_page(trained, disk / "page.html", max_replays=0)
    assert (disk / "page.html").read_text() == "before"
    assert os.listdir(disk) == ["page.html"]


def test_the_command_writes_the_page(trained, tmp_path, capsys):
    target = tmp_path / "page.html"
    assert main(["export", str(trained.path), "--html", str(target), "--replays", "1"]) == 0
    assert "up to update 6, 1 replays" in capsys.readouterr().out
    assert main(["export", str(trained.path), "--html", str(tmp_path / "no" / "page.html")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


# ---- in a browser


@pytest.fixture
def open_page(browser):
    """Open a file as a person does; at the end, nothing was said, asked for or popped up."""
    contexts, said, asked = [], [], []

    def open_it(path, is_sound=True, **kwargs):
        context = browser.new_context(**kwargs)
        contexts.append(context)
        page = context.new_page()
        if is_sound:
            page.on("console", lambda message: said.append(message.text))
            page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert said == []
    assert len(asked) <= 1, asked
    assert all(url.startswith("file://") for url in asked)


def wait_in(page, expression: str) -> None:
    """Wait until something holds; playwright's own way needs eval, which the page refuses."""
    assert wait_until(lambda: page.evaluate(expression), 20), expression


@pytest.mark.browser
def test_the_page_opens_from_disk_and_its_replay_plays(trained, tmp_path, open_page):
    write_page(trained, tmp_path / "page.html", max_replays=3)
    page = open_page(tmp_path / "page.html")
    wait_in(page, "document.querySelector('.viewer')?.dataset.step > 3")
    shot = "document.querySelector('canvas.screen').toDataURL()"
    before = page.evaluate(shot)
    wait_in(page, f"({shot}) !== {json.dumps(before)}")
    titles = page.locator("#replay option").all_text_contents()
    assert len(titles) == 3
    page.select_option("#replay", index=2)
    page.wait_for_selector(f'.viewer[aria-label="{titles[2]}"]')
    page.keyboard.press("Tab")
    page.get_by_role("button", name="One step on").click()


@pytest.mark.browser
def test_the_page_draws_the_curves_with_their_last_value(trained, tmp_path, open_page):
    write_page(trained, tmp_path / "page.html", max_replays=0)
    page = open_page(tmp_path / "page.html")
    figure = page.locator('figure[data-curve="return"]')
    figure.locator(".drawing svg").wait_for()
    mean = list(trained.metrics.read())[-1]["mean_return_100"]
    wanted = f"{mean:+.1f}".replace("-", "−") if round(mean, 1) else "0.0"
    assert figure.locator(".newest").text_content() == wanted
    line = "[...document.querySelectorAll('figure[data-curve=return] .drawing path')].at(-3)"
    d = page.evaluate(f"{line}.getAttribute('d')")
    assert len(re.findall(r"[ML]", d)) == 6, "a place for each update"
    page.select_option("#axis", "update")
    figure.get_by_text("updates", exact=True).wait_for()
    box = figure.locator(".drawing").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 40)
    told = figure.locator(".drawing-words").inner_text().split("\n")
    assert told[0] == "6 updates"
    shown = float(told[told.index("mean of the last 100 episodes:") + 1].replace("−", "-"))
    assert shown == pytest.approx(mean, rel=1e-3)


@pytest.mark.browser
def test_a_hostile_name_and_value_are_text_in_the_browser(hostile, tmp_path, open_page):
    write_page(hostile, tmp_path / "page.html", max_replays=2)
    page = open_page(tmp_path / "page.html")
    wait_in(page, "document.querySelector('.viewer')?.dataset.step > 1")
    assert page.locator("h1").text_content() == HOSTILE_NAME
    assert page.title() == f"{HOSTILE_NAME} · pixelpong"
    page.locator("summary").click()
    assert HOSTILE_VALUE in page.locator(".config dd").all_text_contents()
    assert page.locator("img").count() == 0


@pytest.fixture
def heard():
    """The paths that a server on this machine was asked for, and its port."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield paths, server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.browser
@pytest.mark.parametrize("has_policy", [True, False])
def test_the_policy_stops_a_script_that_was_put_in_and_every_connection(
    trained, tmp_path, open_page, heard, has_policy
):
    """Without it both get through, so that the test can tell."""
    paths, port = heard
    write_page(trained, tmp_path / "page.html", max_replays=0)
    text = (tmp_path / "page.html").read_text("utf-8")
    more = f"<script>window.bad = 1</script><img src=http://127.0.0.1:{port}/img></body>"
    text = text.replace("</body>", more)
    if not has_policy:
        text = text.replace("Content-Security-Policy", "x")
    (tmp_path / "page.html").write_text(text, "utf-8")
    page = open_page(tmp_path / "page.html", is_sound=False)
    page.locator(".drawing svg").first.wait_for()
    answer = f"fetch('http://127.0.0.1:{port}/data').then(() => 'sent', () => 'not sent')"
    assert page.evaluate("window.bad ?? null") == (None if has_policy else 1)
    assert page.evaluate(answer) == ("not sent" if has_policy else "sent")
    assert sorted(paths) == ([] if has_policy else ["/data", "/img"])


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_is_accessible(trained, tmp_path, open_page, scheme, width):
    axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
    write_page(trained, tmp_path / "page.html", max_replays=2)
    page = open_page(
        tmp_path / "page.html", color_scheme=scheme, viewport={"width": width, "height": 800},
        bypass_csp=True,
    )  # fmt: skip
    page.locator(".viewer").wait_for()
    page.locator("#curves").scroll_into_view_if_needed()
    page.locator(".drawing svg").first.wait_for()
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe_module.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
