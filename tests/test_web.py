"""The page's server: what it tells of runs, alive and dead, over a real connection."""

from __future__ import annotations

import base64
import contextlib
import json
import multiprocessing
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest
from conftest import patience, wait_until
from starlette.exceptions import HTTPException
from web_client import (
    Events,
    api,
    connect,
    get,
    head,
    make_trained,
    metrics_line,
    serving,
    toy_config,
)

from pixelpong.agent.choice import choose_replay
from pixelpong.env import features
from pixelpong.errors import ConfigError, PixelpongError, RunError
from pixelpong.faces import page
from pixelpong.faces.page import background, library, live
from pixelpong.faces.page.jobs import carry_out
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.reel import make_reel
from pixelpong.faces.page.view import View, id_of
from pixelpong.run.alive import is_live
from pixelpong.run.directory import RunDirectory, RunLock
from pixelpong.run.tail import Table, Tail


@pytest.fixture(autouse=True)
def quick_end(monkeypatch):
    """A reader notices that it is to end when the next comment comes."""
    monkeypatch.setattr(live, "ALIVE_SECONDS", 0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_trained(tmp_path_factory.mktemp("runs") / "toy")


@pytest.fixture(scope="module")
def client(run):
    with serving(run.path.parent) as served, httpx.Client(base_url=served.url, timeout=60) as made:
        yield made


@contextlib.contextmanager
def watched(folder, updates=2, after=0):
    """A run, a client of its server, and a viewer of it."""
    run = make_trained(folder / "toy", updates=updates)
    with (
        serving(folder) as served,
        httpx.Client(base_url=served.url, timeout=60) as client,
        Events(f"{served.url}{api(run)}/events?after={after}") as viewer,
    ):
        yield run, client, viewer


@pytest.mark.slow
def test_the_list_says_where_each_run_stands(client, run):
    (only,) = client.get("/api/runs").json()["runs"]
    last = list(run.metrics.read())[-1]
    assert only["id"] == id_of(run.path)
    assert (only["name"], only["preset"], only["environment"]) == ("toy", "fast", "Catch-v0")
    for name in ("update", "steps", "episodes"):
        assert only[name] == last[name]
    assert only["mean_return_100"] == pytest.approx(last["mean_return_100"], rel=1e-5)
    assert (only["is_live"], only["problem"]) == (False, None)
    assert abs(only["modified"] - run.metrics.path.stat().st_mtime) < 1


def test_a_run_is_told_with_all_that_the_page_shows(client, run):
    told = client.get(api(run)).json()
    assert told["config"] == run.config.to_flat()
    assert (told["versions"], told["machine"]) == (run.versions, run.machine)
    replays = list(run.replays.read())
    assert [each["episode"] for each in told["replays"]] == [line["episode"] for line in replays]
    assert {each["update"] for each in told["agents"]} >= set(run.checkpoints.updates())
    steps = {line["update"]: line["steps"] for line in run.metrics.read()}
    for agent in told["agents"]:
        assert agent["steps"] == steps.get(agent["update"], 0)
        assert agent["is_rounded"] == (agent["update"] not in run.checkpoints.updates())
    assert told["steps_per_second"] > 0
    assert told["seconds_left"] is None
    assert told["health"][0].keys() == {"level", "title", "text", "advice"}


def test_metrics_come_as_columns_after_an_update(client, run):
    lines = list(run.metrics.read())
    whole = client.get(api(run, "/metrics")).json()["columns"]
    assert whole["update"] == [line["update"] for line in lines]
    assert whole["timing.wall_seconds"] == pytest.approx(
        [line["timing"]["wall_seconds"] for line in lines], rel=1e-5
    )
    assert whole["estimated_return"] == [line["estimated_return"] for line in lines]
    for after, updates in ((20, [21, 22, 23, 24]), (99, [])):
        later = client.get(api(run, f"/metrics?after={after}")).json()["columns"]
        assert later["update"] == updates


def test_long_runs_are_thinned_and_keep_their_last_line():
    table = Table()
    for update in range(1, 10_001):
        table.add(metrics_line(update))
    told = table.columns()["update"]
    assert len(told) <= 2000
    assert told[-1] == 10_000
    assert set(np.diff(told)) == {5}


def test_reels_are_of_the_replay_and_of_the_agents_greedy_episode(client, run):
    episode, newest = next(iter(run.replays.read()))["episode"], run.checkpoints.updates()[-1]
    for rest, wanted in (
        (f"/reels/replay/{episode}", choose_replay(run, episode=episode)),
        (f"/reels/agent/{newest}", choose_replay(run, which=str(newest))),
    ):
        answer = client.get(api(run, rest))
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json() == json.loads(json.dumps(make_reel(wanted)))
        plain = client.get(answer.url.path, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.content == answer.content


def test_files_of_the_page_are_asked_for_again_only_if_they_changed(client):
    for path in ("/", "/static/style.css", "/static/app.js"):
        first = client.get(path)
        again = client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
        assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"
        assert first.headers["content-encoding"] == "gzip"
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")


def test_what_is_not_there_is_said_in_one_line(client, run):
    missing = [api(run, f"/{rest}/999999") for rest in ("reels/replay", "reels/agent", "weights")]
    for path in (*missing, "/api/runs/0123456789abcdef", "/api/runs/package/reels/agent/1"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("expected ")


def test_the_agent_in_the_package_is_told_of_or_said_to_be_missing(client, monkeypatch):
    def missing(name):
        raise FileNotFoundError(f"{name}.safetensors")

    assert client.get("/api/runs/package").json()["agents"][0]["update"] == 0
    library.load_package.cache_clear()
    monkeypatch.setattr(library, "load_shipped", missing)
    for rest in ("", "/reels/agent/0", "/weights/0"):
        answer = client.get(f"/api/runs/package{rest}")
        assert answer.status_code == 404
        assert "expected an agent in the package" in answer.json()["error"]


def test_all_games_share_the_agent_of_the_package(tmp_path):
    """Loaded for each, in whichever thread, it filled a heap a thread: a gigabyte in minutes."""
    shelf = Library(tmp_path)
    assert shelf.load_agent("package") is shelf.load_agent("package")


def picture_of(unit):
    return np.frombuffer(base64.b64decode(unit["picture"]), np.int8)


@pytest.mark.slow
def test_weights_are_the_pictures_of_the_units_with_the_largest_say(tmp_path):
    run = make_trained(tmp_path / "toy", "classic", hidden=50)
    newest = run.checkpoints.updates()[-1]
    params, told = (
        run.checkpoints.load(newest).params,
        json.loads(carry_out(run.path, "weights", newest)),
    )
    largest = np.argsort(-np.abs(params["W2"]), kind="stable")[:40]
    assert [each["unit"] for each in told["units"]] == largest.tolist()
    for each in told["units"][::13]:
        column = params["W1"][:, each["unit"]]
        picture = picture_of(each) / 127 * np.abs(column).max()
        np.testing.assert_allclose(picture, column, atol=0.005)
        assert each["weight"] == pytest.approx(float(params["W2"][each["unit"]]))
    assert told["note"]


def test_weights_of_the_gated_network_are_spread_over_the_pixels_of_small_cells(client, run):
    newest = run.checkpoints.updates()[-1]
    told = client.get(api(run, f"/weights/{newest}")).json()
    W1 = run.checkpoints.load(newest).params["W1"].astype(np.float64)
    for each in told["units"][:2]:
        wanted = np.zeros((80, 80))
        for row, column in [(0, 0), (33, 5), (79, 79), (40, 47)]:
            field = np.zeros((80, 80))
            field[row, column] = 1
            cells = np.flatnonzero(features.find_cells(field))
            stayed, appeared = (
                W1[kind * features.NUM_FEATURES + cells, each["unit"], 0] for kind in (0, 1)
            )
            wanted[row, column] = (stayed.sum() + appeared.sum()) / 2
        places = np.nonzero(wanted)
        picture = picture_of(each).reshape(80, 80)[places]
        scale = np.median(picture / wanted[places])
        np.testing.assert_allclose(picture, wanted[places] * scale, atol=1.5)


@pytest.mark.slow
def test_news_arrive_at_every_viewer(tmp_path):
    run = make_trained(tmp_path / "toy", updates=3)
    with serving(tmp_path) as served, contextlib.ExitStack() as stack:
        url = served.url + api(run, "/events?after=1")
        viewers = [stack.enter_context(Events(url)) for _ in range(5)]
        assert all(each.updates() == [2, 3] for each in viewers)
        begin = time.monotonic()
        run.metrics.append(metrics_line(4, entropy=0.25))
        assert wait_until(lambda: all(each.updates() == [2, 3, 4] for each in viewers))
        assert time.monotonic() - begin < 3 * patience()
        news = viewers[0].of("metrics")[-1]
        assert (news["after"], news["columns"]["entropy"]) == (3, [0.25])
        with Events(url, {"Last-Event-ID": "3"}) as back:
            assert back.updates() == [4]


@pytest.mark.slow
def test_another_who_asks_takes_no_news_away(tmp_path):
    with watched(tmp_path, updates=3) as (run, client, viewer):
        for update in range(4, 30):
            run.metrics.append(metrics_line(update))
            assert client.get(api(run)).json()["update"] == update
        assert wait_until(lambda: viewer.updates() == [*range(1, 30)]), viewer.updates()


@pytest.mark.slow
def test_a_quiet_stream_is_kept_alive(run):
    with serving(run.path.parent) as served, connect(served.port) as made:
        made.sendall(head("GET", api(run, "/events"), f"127.0.0.1:{served.port}"))
        data = b""
        while data.count(b": alive") < 3:
            data += made.recv(65536)
        assert b"text/event-stream" in data


@pytest.mark.slow
def test_a_resume_that_cuts_back_voids_what_came_after(tmp_path):
    with watched(tmp_path, updates=3) as (run, client, viewer):
        run.metrics.append(*(metrics_line(update, steps=10_000 + update) for update in range(4, 9)))
        assert wait_until(lambda: viewer.updates() == [*range(1, 9)])
        run.metrics.cut_back(5)
        assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4, 5])
        # Cut back and grown beyond where it was, between two looks.
        run.metrics.cut_back(3)
        run.metrics.append(
            *(metrics_line(update, steps=20_000 + update) for update in range(4, 15))
        )
        assert wait_until(lambda: viewer.updates() == [*range(1, 15)])
        assert viewer.of("metrics")[-1]["after"] <= 3
        assert viewer.of("metrics")[-1]["columns"]["steps"][-11:] == [*range(20_004, 20_015)]
        told = client.get(api(run, "/metrics?after=3")).json()["columns"]
        assert told["steps"] == [20_000 + update for update in range(4, 15)]


@pytest.mark.slow
def test_a_half_line_waits_for_its_end_and_a_damaged_one_is_left_out(tmp_path):
    line = json.dumps(metrics_line(3)).encode() + b"\n"
    damaged = (b"{nonsense\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n", b"{}\n")
    with watched(tmp_path) as (run, _, viewer):
        for piece in (line[:40], line[40:], *damaged):
            with run.metrics.path.open("ab") as file:
                file.write(piece)
            time.sleep(0.1)
        run.metrics.append(metrics_line(4, entropy=None, steps=10**100, loss=True, x="text"))
        assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4])
        assert viewer.of("metrics")[-1]["columns"]["steps"][-1] is None
        with run.metrics.path.open("ab") as file:
            file.write(b'{"update": 5, "entropy": NaN, "steps": Infinity}\n')
        run.metrics.append(metrics_line(6))
        assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4, 6])


@pytest.mark.slow
def test_a_run_that_is_deleted_while_watched_is_said_to_be_gone(tmp_path):
    with watched(tmp_path) as (run, client, viewer):
        shutil.rmtree(run.path)
        assert wait_until(lambda: viewer.is_over)
        assert viewer.of("summary")[-1]["problem"]
        assert client.get(api(run)).status_code == 404
        assert client.get("/api/runs").json() == {"runs": []}
        again = make_trained(tmp_path / "toy", updates=4)
        assert client.get(api(again)).json()["update"] == 4


@pytest.mark.slow
def test_runs_that_begin_or_are_damaged_or_foreign_do_not_stop_the_list(tmp_path):
    make_trained(tmp_path / "sound", updates=2)
    RunDirectory.create(tmp_path / "begins", toy_config(), [].append)
    foreign = RunDirectory.create(tmp_path / "foreign", toy_config(), [].append)
    config = foreign.path / "config.json"
    config.write_text(config.read_text().replace('"format": 1', '"format": 99'))
    for name, content in (
        ("half", '{"format": 1, "con'),
        ("odd", '{"format": 1, "config": {"x": 1}}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no run")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "config.json")
    for name in ("metrics", "replays", "evaluations"):
        os.mkfifo(tmp_path / "begins" / f"{name}.jsonl")
    with (
        serving(tmp_path) as served,
        httpx.Client(base_url=served.url, timeout=5 * patience()) as client,
    ):
        told = {each["name"]: each for each in client.get("/api/runs").json()["runs"]}
        assert told.keys() == {"sound", "begins", "foreign", "half", "odd"}
        assert {name for name in told if told[name]["problem"]} == {"foreign", "half", "odd"}
        assert "format 99" in told["foreign"]["problem"]
        for each in told.values():
            for rest in ("", "/metrics", "/reels/agent/1", "/reels/replay/1", "/weights/1"):
                answer = client.get(f"/api/runs/{each['id']}{rest}")
                assert answer.status_code in (200, 404), (each["name"], rest)
            with Events(f"{served.url}/api/runs/{each['id']}/events") as viewer:
                assert viewer.of("metrics")


def snapshot(folder):
    states = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    return {p: (stat.S_IFMT(s.st_mode), s.st_size, s.st_mtime_ns) for p, s in states.items()}


@pytest.mark.slow
def test_nothing_is_written_where_runs_are(client, run):
    before = snapshot(run.path.parent)
    newest = run.checkpoints.updates()[-1]
    episode = next(iter(run.replays.read()))["episode"]
    with Events(f"{client.base_url}{api(run)}/events"):
        for rest in ("", "/metrics", f"/reels/agent/{newest}", f"/reels/replay/{episode}"):
            assert client.get(api(run, rest)).status_code == 200
    assert snapshot(run.path.parent) == before


def test_a_run_is_live_while_its_lock_is_held_and_looking_never_takes_it(tmp_path):
    run = RunDirectory.create(tmp_path / "toy", toy_config(), [].append)
    assert not is_live(run.path)
    stop = threading.Event()

    def look():
        while not stop.is_set():
            is_live(run.path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for each in lookers:
        each.start()
    try:
        for _ in range(300):
            with run.lock():  # raises if another has it
                pass
    finally:
        stop.set()
        for each in lookers:
            each.join()
    with run.lock():
        assert is_live(run.path)
        with pytest.raises(RunError):
            RunLock(run.path)
    assert not is_live(run.path), "this process lives, but it trains no more"
    for content in ("", "x", "-1", "0", "9" * 30, "999999999", "\xff"):
        (run.path / "run.lock").write_text(content, "latin-1")
        assert not is_live(run.path)


def test_time_left_follows_from_the_budget_and_the_pace(tmp_path):
    views = {}
    for name, budget in (
        ("updates", {"updates": 100}),
        ("return", {"until_return": 18.0, "updates": None}),
    ):
        run = RunDirectory.create(tmp_path / name, toy_config(**budget), [].append)
        run.metrics.append(*(metrics_line(update) for update in range(1, 41)))
        views[name] = view = View(run.path)
        view.refresh()
        assert view.tell_light()["seconds_left"] is None, "nobody is at work"
        with run.lock():
            told = view.tell_light()
        assert told["steps_per_second"] == pytest.approx(100 / 1.5)
        wanted = pytest.approx(60 * 1.5) if name == "updates" else None
        assert told["seconds_left"] == wanted


def test_dead_units_are_counted_over_the_newest_replay(run):
    newest = run.checkpoints.updates()[-1]
    counts = json.loads(carry_out(run.path, "dead", newest))
    assert counts["of"] == 8
    assert 0 <= counts["dead"] < 8
    for path, job in ((run.path, "replay"), (run.path / "nowhere", "dead")):
        with pytest.raises(PixelpongError):
            carry_out(path, job, 10**9)


@pytest.mark.slow
def test_a_job_that_dies_or_takes_too_long_fails_and_the_next_goes_on(run, monkeypatch):
    process = background.JobProcess()
    newest = run.checkpoints.updates()[-1]
    others = set(multiprocessing.active_children())
    try:
        wanted = process.ask(run.path, "weights", newest)
        assert json.loads(wanted)["units"]
        with pytest.raises(HTTPException) as caught:
            process.ask(run.path, "replay", 10**9)
        assert caught.value.status_code == 422
        (child,) = set(multiprocessing.active_children()) - others
        threading.Timer(0.05, child.kill).start()
        with pytest.raises(HTTPException) as caught:
            for _ in range(100):  # it may be quicker than the signal
                process.ask(run.path, "agent", newest)
        assert caught.value.status_code == 503
        assert process.ask(run.path, "weights", newest) == wanted
        with monkeypatch.context() as patch:
            patch.setattr(background, "JOB_SECONDS", 0.001)
            with pytest.raises(HTTPException):
                process.ask(run.path, "agent", newest)
        assert process.ask(run.path, "weights", newest) == wanted
    finally:
        process.close()
    with pytest.raises(HTTPException):
        process.ask(run.path, "weights", newest)
    assert set(multiprocessing.active_children()) <= others


def test_a_tail_begins_anew_where_the_file_is_another(tmp_path):
    path = tmp_path / "lines"
    tail = Tail(path)

    def updates():
        is_anew, lines = tail.read()
        return is_anew, [line["update"] for line in lines]

    assert tail.read() == (False, [])
    path.write_text('{"update": 1}\n{"update": 2}\n{"upd')
    assert updates()[1] == [1, 2]
    with path.open("a") as file:
        file.write('ate": 3}\n')
    assert updates() == (False, [3])
    assert updates() == (False, [])
    path.write_text('{"update": 1}\n{"update": 7}\n{"update": 8}\n{"update": 9}\n')
    assert updates() == (True, [1, 7, 8, 9])
    path.unlink()
    assert updates() == (True, [])
    assert updates() == (False, [])
    path.write_text('{"update": 1, "x": "' + "x" * (3 << 20) + '"}\n{"update": 2}\n')
    assert updates()[1] == [2]


def test_a_port_that_is_taken_is_passed_over_with_a_line(tmp_path):
    with serving(tmp_path) as one, serving(tmp_path, port=one.port) as two:
        assert two.port != one.port
        assert two.told[0] == f"port {one.port} is taken; using {two.port}"
        assert any("Ctrl-C" in line for line in two.told)
        assert get(one.port, "/api/runs").status == get(two.port, "/api/runs").status == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "expected a token"),
        ({"host": "::"}, "expected a token"),
        ({"host": "0.0.0.0", "token": "short"}, "expected a --token of at least 8"),
        ({"host": "192.0.2.1", "token": "long enough"}, "expected to listen on 192.0.2.1"),
        ({"host": 300 * "x"}, "expected a --host"),
        ({"host": ""}, "expected a"),
        ({"port": -1}, "expected a --port"),
        ({"port": 65536}, "expected a --port"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_in_one_line(tmp_path, options, words):
    with pytest.raises(ConfigError, match=words) as caught, serving(tmp_path, **options):
        pass
    assert "\n" not in str(caught.value)


def test_another_address_is_served_with_a_token(tmp_path):
    with serving(tmp_path, host="0.0.0.0", token="long enough") as served:
        assert any("?token=long%20enough" in line for line in served.told)
        for host in ("127.0.0.1", "localhost", socket.gethostname().lower()):
            with connect(served.port) as made:
                target = "/api/runs?token=long+enough"
                made.sendall(head("GET", target, f"{host}:{served.port}", "Connection: close"))
                assert made.recv(100).startswith(b"HTTP/1.1 200"), host
        assert get(served.port, "/api/runs").status == 401


def test_the_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    find = page.importlib.util.find_spec
    monkeypatch.setattr(
        page.importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[web\]'"), serving(tmp_path):
        pass


@pytest.mark.alone
def test_it_ends_within_a_second_with_streams_open_and_a_job_under_way(tmp_path):
    run = make_trained(tmp_path / "toy")
    newest = run.checkpoints.updates()[-1]

    def ask():
        with contextlib.suppress(OSError):
            get(served.port, api(run, f"/reels/agent/{newest}"))

    with contextlib.ExitStack() as stack:
        with serving(tmp_path) as served:
            url = served.url + api(run, "/events")
            viewers = [stack.enter_context(Events(url)) for _ in range(20)]
            job = threading.Thread(target=ask)
            job.start()
            time.sleep(0.3)
            begin = time.monotonic()
        assert time.monotonic() - begin < patience()
        assert wait_until(lambda: all(each.is_over for each in viewers))
        job.join(5)


@pytest.mark.slow
def test_the_browser_is_opened_at_the_page_and_silently(tmp_path, monkeypatch, capfd):
    run = make_trained(tmp_path / "toy", updates=2)
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise; echo noise >&2; echo "$1" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with serving(
        tmp_path, opens_browser=True, page="/#watch", run=run.path, checkpoint="latest"
    ) as s:
        assert wait_until(lambda: seen.exists() and seen.read_text().endswith("\n"))
        wanted = f"{s.url}/#watch/{id_of(run.path)}/latest"
        assert seen.read_text().strip() == wanted
        assert any(wanted in line for line in s.told)
    monkeypatch.setenv("BROWSER", "/no/such/browser")
    with serving(tmp_path, opens_browser=True, page="/#play") as served:
        assert any("/#play/package/best" in line for line in served.told)
    assert capfd.readouterr() == ("", "")


def test_a_run_from_elsewhere_is_in_the_table_too(run, tmp_path):
    library = Library(tmp_path / "none", run.path)
    assert [each["name"] for each in library.list()] == ["toy"]
    agent = library.load_agent(id_of(run.path), "latest")
    assert agent.about["update"] == run.checkpoints.updates()[-1]
    for run_id, which in (("0" * 16, "best"), (id_of(run.path), "77"), ("../toy", "best")):
        with pytest.raises(PixelpongError):
            library.load_agent(run_id, which)


def test_serving_does_not_need_what_it_serves_with_to_be_imported():
    script = (
        "import sys; import pixelpong.faces.page\n"
        "print(*({'starlette', 'uvicorn', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
