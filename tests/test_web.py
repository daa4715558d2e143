"""The page's server: what it tells of runs, alive and dead, over a real connection."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
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
from web_client import connect, get, head, make_trained, metrics_line, serving, toy_config

from pixelpong.agent.choice import choose_replay
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces import page as web
from pixelpong.faces.page import library, live, serve
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.live import Viewer
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


def path_of(run, rest=""):
    return f"/api/runs/{id_of(run.path)}{rest}"


class Events:
    """A viewer: what comes, as it comes."""

    def __init__(self, url, headers=None):
        self.received, self.times = [], []
        self.is_over = False
        self._client = httpx.Client(timeout=30)
        self._thread = threading.Thread(target=self._read, args=(url, headers or {}), daemon=True)
        self._thread.start()

    def _read(self, url, headers):
        name = ""
        with (
            contextlib.suppress(httpx.HTTPError),
            self._client.stream("GET", url, headers=headers) as r,
        ):
            for line in r.iter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                if line.startswith("data: "):
                    self.received.append((name, json.loads(line[6:])))
                    self.times.append(time.monotonic())
        self.is_over = True

    def of(self, name):
        return [content for kind, content in self.received if kind == name]

    def updates(self):
        """What a page holds that follows what it is told."""
        held = []
        for content in self.of("metrics"):
            held = [u for u in held if u <= content["after"]] + content["columns"].get("update", [])
        return held

    def __enter__(self):
        assert wait_until(lambda: self.of("summary"))
        return self

    def __exit__(self, *exc):
        self._client.close()
        self._thread.join(5)


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
    told = client.get(path_of(run)).json()
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
    assert told["health"]
    assert told["health"][0].keys() == {"level", "title", "text", "advice"}


def test_metrics_come_as_columns_after_an_update(client, run):
    lines = list(run.metrics.read())
    whole = client.get(path_of(run, "/metrics")).json()["columns"]
    assert whole["update"] == [line["update"] for line in lines]
    assert whole["timing.wall_seconds"] == pytest.approx(
        [line["timing"]["wall_seconds"] for line in lines], rel=1e-5
    )
    assert whole["estimated_return"] == [line["estimated_return"] for line in lines]
    later = client.get(path_of(run, "/metrics?after=20")).json()["columns"]
    assert later["update"] == [21, 22, 23, 24]
    assert client.get(path_of(run, "/metrics?after=99")).json()["columns"]["update"] == []


def test_long_runs_are_thinned_and_keep_their_last_line():
    table = Table()
    for update in range(1, 10_001):
        table.add(metrics_line(update))
    told = table.columns()["update"]
    assert len(told) <= 2000
    assert told[-1] == 10_000
    assert set(np.diff(told)) == {5}


def test_a_reel_is_that_of_the_replay(client, run):
    episode = next(iter(run.replays.read()))["episode"]
    wanted = make_reel(choose_replay(run, episode=episode))
    answer = client.get(path_of(run, f"/reels/replay/{episode}"))
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json() == json.loads(json.dumps(wanted))
    plain = client.get(answer.url.path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == answer.content


def test_a_reel_of_an_agent_is_that_of_its_greedy_episode(client, run):
    newest = run.checkpoints.updates()[-1]
    wanted = make_reel(choose_replay(run, which=str(newest)))
    assert client.get(path_of(run, f"/reels/agent/{newest}")).json() == json.loads(
        json.dumps(wanted)
    )


def test_what_is_not_there_is_said_in_one_line(client, run):
    for rest in ("/reels/replay/999999", "/reels/agent/999999", "/weights/999999"):
        answer = client.get(path_of(run, rest))
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("expected ")
    assert client.get("/api/runs/0123456789abcdef").status_code == 404
    assert client.get("/api/runs/package/reels/agent/1").status_code == 404


def test_the_agent_in_the_package_is_told_of_or_said_to_be_missing(client, monkeypatch, tmp_path):
    def missing(name):
        raise FileNotFoundError(f"{name}.safetensors")

    with monkeypatch.context() as patch:
        library.load_package.cache_clear()
        patch.setattr(library, "load_shipped", missing)
        for rest in ("", "/reels/agent/0", "/weights/0"):
            answer = client.get(f"/api/runs/package{rest}")
            assert answer.status_code == 404
            assert "expected an agent in the package" in answer.json()["error"]


def test_all_games_share_the_agent_of_the_package(tmp_path):
    """Loaded for each, in whichever thread, it filled a heap a thread: a gigabyte in minutes."""
    shelf = Library(tmp_path)
    assert shelf.load_agent("package") is shelf.load_agent("package")


@pytest.mark.slow
def test_weights_are_the_pictures_of_the_units_with_the_largest_say(tmp_path):
    run = make_trained(tmp_path / "toy", "classic", hidden=50)
    params = run.checkpoints.load_latest().params
    newest = run.checkpoints.updates()[-1]
    with serving(tmp_path) as served:
        told = httpx.get(served.url + path_of(run, f"/weights/{newest}"), timeout=60).json()
    says = np.abs(params["W2"])
    assert len(told["units"]) == 40
    assert [each["unit"] for each in told["units"]] == np.argsort(-says, kind="stable")[
        :40
    ].tolist()
    for each in told["units"][::13]:
        picture = np.frombuffer(base64.b64decode(each["picture"]), np.int8)
        column = params["W1"][:, each["unit"]]
        np.testing.assert_allclose(picture / 127 * np.abs(column).max(), column, atol=0.005)
        assert each["weight"] == pytest.approx(float(params["W2"][each["unit"]]))
    assert told["note"]


def test_weights_of_the_gated_network_are_spread_over_the_pixels_of_small_cells(client, run):
    from pixelpong.env import features

    newest = run.checkpoints.updates()[-1]
    told = client.get(path_of(run, f"/weights/{newest}")).json()
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
        picture = np.frombuffer(base64.b64decode(each["picture"]), np.int8).reshape(80, 80)
        places = np.nonzero(wanted)
        ratio = picture[places] / wanted[places]
        scale = np.median(ratio)
        np.testing.assert_allclose(picture[places], wanted[places] * scale, atol=1.5)


@pytest.mark.slow
def test_news_arrive_at_every_viewer(tmp_path):
    run = make_trained(tmp_path / "toy", updates=3)
    with serving(tmp_path) as served, contextlib.ExitStack() as stack:
        url = served.url + path_of(run, "/events?after=1")
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
    run = make_trained(tmp_path / "toy", updates=3)
    with serving(tmp_path) as served, Events(served.url + path_of(run, "/events")) as viewer:
        for update in range(4, 30):
            run.metrics.append(metrics_line(update))
            assert httpx.get(served.url + path_of(run)).json()["update"] == update
        assert wait_until(lambda: viewer.updates() == [*range(1, 30)]), viewer.updates()


@pytest.mark.slow
def test_a_quiet_stream_is_kept_alive(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "ALIVE_SECONDS", 0.3)
    run = make_trained(tmp_path / "toy", updates=2)
    with serving(tmp_path) as served, connect(served.port) as made:
        made.sendall(head("GET", path_of(run, "/events"), f"127.0.0.1:{served.port}"))
        data = b""
        while data.count(b": alive") < 3:
            data += made.recv(65536)
        assert b"text/event-stream" in data


@pytest.mark.slow
def test_a_resume_that_cuts_back_voids_what_came_after(tmp_path):
    run = make_trained(tmp_path / "toy", updates=3)
    run.metrics.append(*(metrics_line(update, steps=10_000 + update) for update in range(4, 9)))
    with serving(tmp_path) as served, Events(served.url + path_of(run, "/events")) as viewer:
        assert viewer.updates() == [*range(1, 9)]
        run.metrics.cut_back(5)
        assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4, 5])
        # Cut back and grown beyond where it was, between two looks.
        run.metrics.cut_back(3)
        run.metrics.append(
            *(metrics_line(update, steps=20_000 + update) for update in range(4, 15))
        )
        assert wait_until(lambda: viewer.updates() == [*range(1, 15)])
        assert viewer.of("metrics")[-1]["after"] == 3
        told = httpx.get(served.url + path_of(run, "/metrics?after=3")).json()["columns"]
        assert told["steps"] == [20_000 + update for update in range(4, 15)]


@pytest.mark.slow
def test_a_half_line_waits_for_its_end_and_a_damaged_one_is_left_out(tmp_path):
    run = make_trained(tmp_path / "toy", updates=2)
    line = json.dumps(metrics_line(3)).encode() + b"\n"
    with serving(tmp_path) as served, Events(served.url + path_of(run, "/events")) as viewer:
        for piece in (
            line[:40],
            line[40:],
            b"{nonsense\n",
            b"[" * 100_000 + b"\n",
            b"\xff\xfe\n",
            b"{}\n",
        ):
            with run.metrics.path.open("ab") as file:
                file.write(piece)
            time.sleep(0.1)
        run.metrics.append(metrics_line(4, entropy=None, steps=10**400, loss=True))
        assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4])
        assert viewer.of("metrics")[-1]["columns"]["steps"][-1] is None
        with run.metrics.path.open("ab") as file:
            file.write(b'{"update": 5, "entropy": NaN, "steps": Infinity, "x": "text"}\n')
        assert wait_until(lambda: viewer.updates()[-1] == 5)


@pytest.mark.slow
def test_a_run_that_is_deleted_while_watched_is_said_to_be_gone(tmp_path):
    run = make_trained(tmp_path / "toy", updates=2)
    with serving(tmp_path) as served, Events(served.url + path_of(run, "/events")) as viewer:
        shutil.rmtree(run.path)
        assert wait_until(lambda: viewer.is_over)
        assert viewer.of("summary")[-1]["problem"]
        assert httpx.get(served.url + path_of(run)).status_code == 404
        assert httpx.get(served.url + "/api/runs").json() == {"runs": []}
        again = make_trained(tmp_path / "toy", updates=4)
        assert httpx.get(served.url + path_of(again)).json()["update"] == 4


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
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    os.mkfifo(pipe / "config.json")
    for name in ("metrics", "replays", "evaluations"):
        os.mkfifo(tmp_path / "begins" / f"{name}.jsonl")
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=5) as client:
        told = {each["name"]: each for each in client.get("/api/runs").json()["runs"]}
        assert told.keys() == {"sound", "begins", "foreign", "half", "odd"}
        assert [name for name, each in told.items() if each["problem"]] == pytest.approx(
            [name for name in told if name in ("foreign", "half", "odd")]
        )
        assert "format 99" in told["foreign"]["problem"]
        for each in told.values():
            for rest in ("", "/metrics", "/reels/agent/1", "/reels/replay/1", "/weights/1"):
                answer = client.get(f"/api/runs/{each['id']}{rest}")
                assert answer.status_code in (200, 404), (each["name"], rest)
            with Events(f"{served.url}/api/runs/{each['id']}/events") as viewer:
                assert viewer.of("metrics")


def snapshot(folder):
    return {
        path: (stat.S_IFMT(path.lstat().st_mode), path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.slow
def test_nothing_is_written_where_runs_are(tmp_path):
    run = make_trained(tmp_path / "toy", updates=3)
    before = snapshot(tmp_path)
    newest = run.checkpoints.updates()[-1]
    episode = next(iter(run.replays.read()))["episode"]
    with serving(tmp_path) as served, Events(served.url + path_of(run, "/events")):
        for rest in ("", "/metrics", f"/reels/agent/{newest}", f"/reels/replay/{episode}"):
            assert httpx.get(served.url + path_of(run, rest), timeout=60).status_code == 200
    assert snapshot(tmp_path) == before


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
            with run.lock():  # raises where somebody else has it
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
    run = RunDirectory.create(tmp_path / "toy", toy_config(updates=100), [].append)
    run.metrics.append(*(metrics_line(update) for update in range(1, 41)))
    view = View(run.path)
    view.refresh()
    assert view.tell_light()["seconds_left"] is None, "nobody is at work"
    with run.lock():
        told = view.tell_light()
        assert told["seconds_left"] == pytest.approx(60 * 1.5)
        assert told["steps_per_second"] == pytest.approx(100 / 1.5)
    by_return = RunDirectory.create(
        tmp_path / "other", toy_config(until_return=18.0, updates=None), [].append
    )
    by_return.metrics.append(*(metrics_line(update) for update in range(1, 41)))
    view = View(by_return.path)
    view.refresh()
    with by_return.lock():
        assert view.tell_light()["seconds_left"] is None


def test_dead_units_are_counted_over_the_newest_replay(run):
    from pixelpong.faces.page.jobs import carry_out

    newest = run.checkpoints.updates()[-1]
    request = {"path": str(run.path), "job": "dead", "number": newest}
    is_good, packed = carry_out(request)
    counts = json.loads(gzip.decompress(packed))
    assert is_good
    assert counts["of"] == 8
    assert 0 <= counts["dead"] < 8
    view = View(run.path)
    view.refresh()
    assert carry_out(request | {"job": "replay", "number": 10**9})[0] is False
    assert carry_out(request | {"path": "/nowhere"})[0] is False


@pytest.mark.slow
def test_a_job_whose_process_is_killed_is_said_to_have_failed_and_the_next_goes_on(run):
    from pixelpong.faces.page.reels import JobProcess

    from pixelpong.faces.page.guard import Refusal

    process = JobProcess()
    newest = run.checkpoints.updates()[-1]
    try:
        assert process.ask(run.path, "weights", newest)[0]
        threading.Timer(0.05, process._process.kill).start()
        with contextlib.suppress(Refusal):  # it may have been quicker than the signal
            for _ in range(100):
                process.ask(run.path, "agent", newest)
            raise AssertionError("a killed process answered")
        assert process.ask(run.path, "weights", newest)[0]
    finally:
        process.close()
    with pytest.raises(Refusal):
        process.ask(run.path, "weights", newest)


def test_a_viewer_is_dropped_by_what_lies_in_its_tray(monkeypatch):
    async def fill():
        for sizes, is_dropped in (
            ([1000] * 65, False), ([1000] * 66, True), ([300_000], False), ([300_000, 100], False),
            ([300_000, 65_000, 1000], True), ([100, 300_000], True),
        ):  # fmt: skip
            viewer = Viewer()
            for size in sizes:
                viewer.push(b"x" * size)
            assert viewer.is_dropped == is_dropped, sizes
        viewer = Viewer()
        viewer.push(b"x")
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 9.5)
        viewer.check()
        assert not viewer.is_dropped
        monkeypatch.setattr(time, "monotonic", lambda: now + 10.5)
        viewer.check()
        assert viewer.is_dropped

    import asyncio

    asyncio.run(fill())


def test_a_tail_begins_anew_where_the_file_is_another(tmp_path):
    path = tmp_path / "lines"
    tail = Tail(path)
    assert tail.read() == (False, [])
    path.write_text('{"update": 1}\n{"update": 2}\n{"upd')
    assert [line["update"] for line in tail.read()[1]] == [1, 2]
    with path.open("a") as file:
        file.write('ate": 3}\n')
    assert tail.read() == (False, [{"update": 3}])
    assert tail.read() == (False, [])
    path.write_text('{"update": 1}\n{"update": 7}\n{"update": 8}\n{"update": 9}\n')
    is_anew, lines = tail.read()
    assert is_anew
    assert [line["update"] for line in lines] == [1, 7, 8, 9]
    path.unlink()
    assert tail.read() == (True, [])
    assert tail.read() == (False, [])
    path.write_text('{"update": 1, "x": "' + "x" * (3 << 20) + '"}\n{"update": 2}\n')
    assert [line["update"] for line in tail.read()[1]] == [2]


def test_a_port_that_is_taken_is_passed_over_with_a_word(tmp_path):
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
    settings = {
        "host": "127.0.0.1", "port": 0, "token": None, "opens_browser": False, "page": "/",
        "tell": print, "should_stop": lambda: True,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=words) as caught:
        serve(tmp_path, **settings | options)
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
    find = web.importlib.util.find_spec
    monkeypatch.setattr(
        web.importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[web\]'"):
        with serving(tmp_path):
            pass


@pytest.mark.alone
def test_it_ends_within_a_second_with_streams_open_and_a_job_under_way(tmp_path):
    run = make_trained(tmp_path / "toy")
    target = f"/reels/agent/{run.checkpoints.updates()[-1]}"
    with contextlib.ExitStack() as stack:
        with serving(tmp_path) as served:
            url = served.url + path_of(run, "/events")
            viewers = [stack.enter_context(Events(url)) for _ in range(20)]
            job = threading.Thread(
                target=lambda: (
                    contextlib.suppress(Exception).__enter__()
                    or get(served.port, path_of(run, target))
                )
            )
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


def test_a_run_from_elsewhere_is_in_the_table_too(tmp_path):
    run = make_trained(tmp_path / "there" / "toy", updates=2)
    library = Library(tmp_path / "none", run.path)
    assert [each["name"] for each in library.list()] == ["toy"]
    agent = library.load_agent(id_of(run.path), "latest")
    assert agent.about["update"] == 2
    for run_id, which in (("0" * 16, "best"), (id_of(run.path), "77"), ("../toy", "best")):
        from pixelpong.errors import PixelpongError

        with pytest.raises(PixelpongError):
            library.load_agent(run_id, which)


def test_serving_does_not_need_what_it_serves_with_to_be_imported():
    script = (
        "import sys; import pixelpong.faces.page\n"
        "print(*({'starlette', 'uvicorn', 'plotly', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
