"""The offline page: one file that shows a run, whatever the run is called, and asks nobody."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
import shutil
from html.parser import HTMLParser

import pytest
from pages import LOOKS, make_toy, make_trained, require_fitting_and_accessible, wait_for

from pixelpong.agent import legend
from pixelpong.agent.choice import read_replays
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces.cli import main
from pixelpong.faces.page import export
from pixelpong.faces.page.export import write_page
from pixelpong.play.replay import Replay
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory

HOSTILE_NAME = "<script>alert(1)<script> <img src=x onerror=alert(1)> \"'&"
HOSTILE_VALUE = "</script><script>alert(1)</script>\"'&<!--"
BASE = "/api/runs/offline"
TOY = {"updates": 6, "replay_every": 1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that no test changes."""
    changes = TOY | {"evaluate_every": 3, "evaluate_episodes": 2}
    return make_trained(tmp_path_factory.mktemp("trained") / "run", "classic", **changes)


@pytest.fixture
def own(trained, tmp_path):
    """A copy of it, to be changed."""
    shutil.copytree(trained.path, tmp_path / "own")
    return RunDirectory.open(tmp_path / "own")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run with hostile words in its name and its configuration."""
    folder = tmp_path_factory.mktemp("hostile")
    return make_trained(folder / HOSTILE_NAME, "classic", **TOY, ray_address=HOSTILE_VALUE)


@pytest.fixture
def write(tmp_path):
    """Write the page of a run: ``write(run, max_replays)`` is its file."""

    def write_it(run, max_replays=3):
        write_page(run, tmp_path / "page.html", max_replays=max_replays)
        return tmp_path / "page.html"

    return write_it


class Parts(HTMLParser):
    """A page's elements, and the data and code in it."""

    def __init__(self, file) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = [("", {})]
        self.data: dict[str, object] = {}
        self.codes: dict[str, str] = {}
        self.feed(file.read_text("utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag, attributes = self.tags[-1]
        if attributes.get("type") == "application/json" and data.strip():
            self.data[attributes["id"]] = json.loads(data)
        elif tag in ("script", "style") and data.strip():
            self.codes[tag] = data


def test_the_page_holds_the_runs_curves_configuration_hashes_and_evaluations(trained, write):
    data = Parts(write(trained)).data
    columns, about = data[f"{BASE}/metrics?after=0"]["columns"], data[BASE]
    lines = list(trained.metrics.read())
    for name in ("update", "steps", "mean_return", "entropy"):
        assert columns[name] == pytest.approx([line[name] for line in lines], rel=1e-5)
    seconds = [line["timing"]["wall_seconds"] for line in lines]
    assert columns["timing.wall_seconds"] == pytest.approx(seconds, rel=1e-5)
    assert about["config"] == trained.config.to_flat()
    best = trained.checkpoints.load_best()
    assert about["hashes"][f"params of best, update {best.update}"] == fingerprint(best.params)
    for name in ("config.json", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"):
        content = (trained.path / name).read_bytes()
        assert about["hashes"][name] == hashlib.sha256(content).hexdigest()
    for told, line in zip(about["evaluations"], trained.evaluations.read(), strict=True):
        names = ("update", "mean_return", "std", "ci95", "returns")
        assert {name: told[name] for name in names} == {name: line[name] for name in names}


@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_the_first_replay_is_the_best_agents_own_then_come_those_of_the_training(
    trained, write, number
):
    data = Parts(write(trained, number)).data
    reels = [content for path, content in data.items() if "/reels/" in path]
    assert len(reels) == number
    assert all(reel["steps"] == len(reel["actions"]) > 1 for reel in reels)
    best = trained.checkpoints.load_best().update
    assert [agent["update"] for agent in data[BASE]["agents"]] == [best][:number]
    if number:
        assert data[f"{BASE}/reels/agent/{best}"] == reels[0]
        assert reels[0]["is_own"]
    episodes = [line["episode"] for line in read_replays(trained)]
    chosen = [reel["episode"] for reel in reels[1:]]
    assert [replay["episode"] for replay in data[BASE]["replays"]] == chosen == sorted(set(chosen))
    if number == 4:
        assert len(episodes) > 4
        assert (chosen[0], chosen[-1]) == (episodes[0], episodes[-1])


def test_a_negative_number_of_replays_is_refused(trained, write):
    with pytest.raises(ConfigError, match="expected --replays of at least 0, got -1"):
        write(trained, -1)


def test_the_page_refers_to_nothing_outside_and_is_small_without_replays(trained, write):
    page = write(trained, 0)
    assert page.stat().st_size < 150_000
    for tag, attributes in Parts(page).tags:
        assert not {"src", "srcset", "action", "data", "poster", "style"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("href", "data:").startswith("data:"), tag
        assert tag not in ("iframe", "object", "embed", "base", "form")


def test_the_policy_allows_what_is_in_the_page_by_its_hash_and_no_connection(trained, write):
    parts = Parts(write(trained))
    (policy,) = [a["content"] for _, a in parts.tags if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for kind in ("script", "style"):
        digest = hashlib.sha256(parts.codes[kind].encode()).digest()
        assert rules[f"{kind}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert "unsafe" not in policy


def test_everything_of_the_run_is_escaped(hostile, trained, write):
    plain, strange = Parts(write(trained)), Parts(write(hostile))
    assert [tag for tag, _ in strange.tags] == [tag for tag, _ in plain.tags]
    assert strange.codes == plain.codes
    assert strange.data[BASE]["name"] == HOSTILE_NAME
    assert strange.data[BASE]["config"]["ray_address"] == HOSTILE_VALUE


def test_no_two_of_the_joined_scripts_declare_the_same_name():
    script = export.join_scripts()
    declared = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.M)
    assert len(declared) == len(set(declared)) > 40


def test_a_run_that_has_not_begun_has_a_page(tmp_path, write):
    data = Parts(write(make_toy(tmp_path / "begun", "classic"), 2)).data
    assert any("checkpoint" in line for line in data[BASE]["left_out"])
    assert data[BASE]["agents"] == data[BASE]["replays"] == []


def test_what_cannot_be_replayed_is_left_out_and_told(own, write):
    lines = own.replays.path.read_text().splitlines()
    first = Replay.from_line(json.loads(lines[0]))
    broken = dataclasses.replace(first, episode_return=first.episode_return + 1).to_line()
    own.replays.path.write_text("\n".join([json.dumps(broken), *lines[1:]]) + "\n")
    data = Parts(write(own)).data
    assert any("to end with a return of" in line for line in data[BASE]["left_out"])
    assert sum("/reels/" in path for path in data) == 2, "the best agent's own, and the newest"


def test_a_long_run_is_thinned_out_to_its_last_update(own, write):
    last = list(own.metrics.read())[-1]
    own.metrics.append(*(last | {"update": update} for update in range(7, 5001)))
    columns = Parts(write(own, 0)).data[f"{BASE}/metrics?after=0"]["columns"]
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
    assert "up to update 6, 1 replay;" in capsys.readouterr().out
    assert main(["export", str(trained.path), "--html", str(tmp_path / "no" / "page.html")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_pages_colours_are_those_of_the_legend(trained, write):
    sheet = Parts(write(trained, 0)).codes["style"]
    names = {**legend.ACTION_NAMES, **{k + 10: v for k, v in legend.PIXEL_NAMES.items()}}
    colours = {**legend.ACTION_COLOURS, **{k + 10: v for k, v in legend.PIXEL_COLOURS.items()}}
    for key, name in names.items():
        assert re.findall(rf"--{name}: ([^;]+);", sheet) == [colours[key]], name


# ---- in a browser


@pytest.mark.browser
def test_the_page_opens_from_disk_and_its_replays_play(hostile, write, open_page):
    page = open_page(write(hostile).as_uri())
    wait_for(page, "document.querySelector('.viewer')?.dataset.step > 3")
    shot = "document.querySelector('canvas.screen').toDataURL()"
    before = page.evaluate(shot)
    wait_for(page, f"({shot}) !== {json.dumps(before)}")
    assert page.locator("h1").text_content() == HOSTILE_NAME
    assert page.title() == f"{HOSTILE_NAME} · pixelpong"
    page.locator("summary").last.click()
    assert HOSTILE_VALUE in page.locator(".config dd").all_text_contents()
    assert page.locator("img").count() == 0
    page.get_by_label("Replays of the training").check()
    page.locator(".chooser-part select").select_option(index=2)
    first = read_replays(hostile)[0]["episode"]
    page.wait_for_selector(f".outcome:has-text('Episode {first} of the training')")
    page.get_by_role("button", name="One step on").click()


@pytest.mark.browser
def test_the_curves_tell_their_values_and_can_be_taken_out(trained, write, open_page):
    page = open_page(write(trained, 0).as_uri())
    figure = page.locator('figure[data-curve="return"]')
    figure.locator(".plot svg").wait_for()
    mean = list(trained.metrics.read())[-1]["mean_return_100"]
    wanted = f"{mean:+.1f}".replace("-", "−") if round(mean, 1) else "0.0"
    assert figure.locator(".newest").text_content() == wanted
    curve = figure.locator("path[stroke='var(--series-2)'][fill=none]")
    in_plot = figure.locator(".plot path[stroke='var(--series-2)']")
    assert len(re.findall(r"[ML]", in_plot.get_attribute("d"))) == 6, "a place for each update"
    page.get_by_label("Over").select_option("update")
    figure.get_by_text("updates", exact=True).wait_for()
    box = figure.locator(".plot").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 40)
    told = figure.locator(".chart-words").inner_text().split("\n")
    assert told[0] == "6 updates"
    assert f"mean of the last 100: {wanted}" in told
    assert curve.count() == 2, "in the plot and in the legend"
    figure.get_by_role("button", name="mean of the last 100", exact=True).click()
    assert curve.count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("has_policy", [True, False])
def test_the_policy_stops_a_script_that_was_put_in_and_every_connection(
    trained, write, open_page, has_policy
):
    """Without it both get through, so that the test can tell."""
    page = open_page("about:blank")
    page.may_fail, asked, outside = True, [], "http://127.0.0.1:9"
    page.route(f"{outside}/*", lambda route: (asked.append(route.request.url), route.abort()))
    file = write(trained, 0)
    more = f"<script>window.bad = 1</script><img src={outside}/img></body>"
    text = file.read_text("utf-8").replace("</body>", more)
    file.write_text(text if has_policy else text.replace("Content-Security-Policy", "x"), "utf-8")
    page.goto(file.as_uri())
    page.locator(".plot svg").first.wait_for()
    assert page.evaluate("window.bad ?? null") == (None if has_policy else 1)
    page.evaluate(f"fetch('{outside}/data').catch(() => null)")
    assert asked == ([] if has_policy else [f"{outside}/img", f"{outside}/data"])


@pytest.mark.browser
@LOOKS
def test_the_page_fits_and_is_accessible(trained, write, open_page, axe, scheme, size):
    page = open_page(write(trained, 2).as_uri(), size, scheme, bypass_csp=True)
    page.locator(".viewer").wait_for()
    page.locator(".curves").scroll_into_view_if_needed()
    page.locator(".plot svg").first.wait_for()
    page.locator("summary").click()
    require_fitting_and_accessible(page, axe, size)
