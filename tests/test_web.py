"""The page's server: what it tells of runs, alive and dead, over a real connection."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
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
from toys import toy_config
from web_client import Events, api, ask, get, head, make_lines, metrics_line, read_answer, serving

from pixelpong.agent.choice import find_game, load_agent
from pixelpong.agent.file import Agent
from pixelpong.config.protocols import find_protocol
from pixelpong.env import features
from pixelpong.errors import ConfigError, PixelpongError, RunError
from pixelpong.faces.page import background, library, live
from pixelpong.faces.page.address import find_own_addresses
from pixelpong.faces.page.jobs import carry_out, picture_units
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.reel import make_reel
from pixelpong.faces.page.view import View, id_of
from pixelpong.items import ACTIONS, DOWN, UP
from pixelpong.learn import gated
from pixelpong.learn.network import init_params
from pixelpong.run.alive import is_live
from pixelpong.run.directory import RunDirectory, RunLock
from pixelpong.run.tail import Table, Tail


@pytest.fixture(autouse=True)
def quick_end(monkeypatch):
    """A reader notices that it is to end when the next comment comes."""
    monkeypatch.setattr(live, "ALIVE_SECONDS", 0.5)


@pytest.fixture(scope="module")
def run(toy_runs, tmp_path_factory):
    """A trained run, in the folder that is served."""
    path = tmp_path_factory.mktemp("runs") / "toy"
    return RunDirectory.open(shutil.copytree(toy_runs["fast"], path), [].append)


@pytest.fixture(scope="module")
def client(run):
    with serving(run.path.parent) as served, httpx.Client(base_url=served.url, timeout=60) as made:
        yield made


@pytest.fixture
def watched(client, run, request):
    """A run of three updates, and a viewer of it."""
    made = make_lines(run.path.with_name(request.node.name), updates=3)
    with Events(f"{client.base_url}{api(made)}/events") as viewer:
        yield made, viewer
    shutil.rmtree(made.path)


@pytest.mark.slow
def test_the_list_says_where_each_run_stands(client, run):
    listed = {each["id"]: each for each in client.get("/api/runs").json()["runs"]}
    only = listed[id_of(run.path)]
    last = list(run.metrics.read())[-1]
    assert (only["name"], only["preset"], only["environment"]) == ("toy", "fast", "ALE/Pong-v5")
    for name in ("update", "steps", "episodes"):
        assert only[name] == last[name]
    assert only["mean_return_100"] == pytest.approx(last["mean_return_100"], rel=1e-5)
    assert (only["is_live"], only["problem"]) == (False, None)
    assert abs(only["modified"] - run.metrics.path.stat().st_mtime) < 1


def test_a_run_is_told_with_all_that_the_page_shows(client, run):
    told = client.get(api(run)).json()
    assert told["config"] == run.config.to_flat()
    assert (told["versions"], told["machine"]) == (run.versions, run.machine)
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
    for after, updates in ((8, [9, 10, 11, 12]), (99, [])):
        later = client.get(api(run, f"/metrics?after={after}")).json()["columns"]
        assert later["update"] == updates


def test_long_runs_are_thinned_keep_their_last_line_and_have_no_odd_numbers():
    table = Table()
    for update in range(1, 10_001):
        table.add(metrics_line(update))
    told = table.columns()["update"]
    assert len(told) <= 2000
    assert told[-1] == 10_000
    assert set(np.diff(told)) == {5}
    table.add(metrics_line(10_001, entropy=None, steps=10**100, loss=True, x="text"))
    last = {name: column[-1] for name, column in table.columns().items()}
    assert (last["update"], last["steps"], last["entropy"]) == (10_001, None, None)
    assert not last.keys() & {"x"}


@pytest.mark.slow
def test_reels_and_weights_are_those_of_the_agent(client, run):
    newest = run.checkpoints.updates()[-1]
    for rest, wanted in (
        (f"/reels/agent/{newest}", make_reel(find_game(run, str(newest)))),
        (f"/weights/{newest}", picture_units(load_agent(run, str(newest)))),
    ):
        answer = client.get(api(run, rest))
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json() == json.loads(json.dumps(wanted))
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


@pytest.mark.slow
def test_what_is_not_there_is_said_in_one_line(client, run, monkeypatch):
    missing = [api(run, f"/{rest}/999999") for rest in ("reels/agent", "weights")]
    missing += ["/api/runs/0123456789abcdef", "/api/runs/package/reels/agent/1"]
    for path in missing:
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("expected ")

    def no_agent(name):
        raise FileNotFoundError(f"{name}.safetensors")

    assert client.get("/api/runs/package").json()["agents"][0]["update"] == 0
    library.load_package.cache_clear()
    monkeypatch.setattr(library, "load_shipped", no_agent)
    for rest in ("", "/reels/agent/0", "/weights/0"):
        answer = client.get(f"/api/runs/package{rest}")
        assert answer.status_code == 404
        assert "expected an agent in the package" in answer.json()["error"]


def test_all_games_share_the_agent_of_the_package(tmp_path):
    """Loaded for each, in whichever thread, it filled a heap a thread: a gigabyte in minutes."""
    shelf = Library(tmp_path)
    assert shelf.load_agent("package") is shelf.load_agent("package")


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_weights_are_the_pictures_of_the_units_with_the_largest_say(algorithm):
    rng = np.random.default_rng(0)
    if algorithm == "ppo":
        params = gated.init_params(rng, features.NUM_INPUTS, 50)
        params["W2"] = rng.normal(size=params["W2"].shape)
        leaning = params["W2"][ACTIONS.index(UP)] - params["W2"][ACTIONS.index(DOWN)]
        say, weights = np.linalg.norm(leaning, axis=1), leaning[:, 0]
        stayed, appeared, _ = features.spread_cells(params["W1"][..., 0])
        layer = ((stayed + appeared) / 2).reshape(6400, 50)
    else:
        params = init_params(rng, 50)
        layer, weights = params["W1"], params["W2"]
        say = np.abs(weights)
    told = picture_units(Agent(params, algorithm, find_protocol("ALE/Pong-v5", max_frames=300), {}))
    wanted = np.argsort(-say, kind="stable")[:40]
    assert [each["unit"] for each in told["units"]] == wanted.tolist()
    for each in told["units"][::13]:
        column = layer[:, each["unit"]]
        picture = np.frombuffer(base64.b64decode(each["picture"]), np.int8)
        np.testing.assert_allclose(picture / 127, column / np.abs(column).max(), atol=0.005)
        assert each["weight"] == pytest.approx(float(weights[each["unit"]]))
    assert told["note"]


@pytest.mark.slow
def test_all_news_arrive_at_every_viewer_whoever_else_asks(client, watched):
    run, _ = watched
    url = f"{client.base_url}{api(run)}/events?after=1"
    with contextlib.ExitStack() as stack:
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
        for update in range(5, 30):
            run.metrics.append(metrics_line(update))
            assert client.get(api(run)).json()["update"] == update
        assert wait_until(lambda: all(each.updates() == [*range(2, 30)] for each in viewers))


@pytest.mark.slow
def test_a_quiet_stream_is_kept_alive(watched):
    _, viewer = watched
    assert wait_until(lambda: viewer.num_comments >= 3)
    assert viewer.type.startswith("text/event-stream")


@pytest.mark.slow
def test_a_resume_that_cuts_back_voids_what_came_after(client, watched):
    run, viewer = watched
    run.metrics.append(*(metrics_line(update, steps=10_000 + update) for update in range(4, 9)))
    assert wait_until(lambda: viewer.updates() == [*range(1, 9)])
    run.metrics.cut_back(5)
    assert wait_until(lambda: viewer.updates() == [1, 2, 3, 4, 5])
    # Cut back and grown beyond where it was, between two looks.
    run.metrics.cut_back(3)
    run.metrics.append(*(metrics_line(update, steps=20_000 + update) for update in range(4, 15)))
    assert wait_until(lambda: viewer.updates() == [*range(1, 15)])
    assert viewer.of("metrics")[-1]["after"] <= 3
    wanted = [*range(20_004, 20_015)]
    assert viewer.of("metrics")[-1]["columns"]["steps"][-11:] == wanted
    told = client.get(api(run, "/metrics?after=3")).json()["columns"]
    assert told["steps"] == wanted


@pytest.mark.slow
def test_a_run_that_is_deleted_while_watched_is_said_to_be_gone(client, watched):
    run, viewer = watched
    shutil.rmtree(run.path)
    assert wait_until(lambda: viewer.is_over)
    assert viewer.of("summary")[-1]["problem"]
    assert client.get(api(run)).status_code == 404
    assert id_of(run.path) not in client.get("/api/runs").text
    make_lines(run.path, updates=4)
    assert client.get(api(run)).json()["update"] == 4


@pytest.mark.slow
def test_runs_that_begin_or_are_damaged_or_foreign_do_not_stop_the_list(tmp_path):
    make_lines(tmp_path / "sound", updates=2)
    RunDirectory.create(tmp_path / "begins", toy_config("fast"), [].append)
    foreign = RunDirectory.create(tmp_path / "foreign", toy_config("fast"), [].append)
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
    for name in ("metrics", "evaluations"):
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
            for rest in ("", "/metrics", "/reels/agent/1", "/weights/1"):
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
    with Events(f"{client.base_url}{api(run)}/events"):
        for rest in ("", "/metrics", f"/reels/agent/{newest}"):
            assert client.get(api(run, rest)).status_code == 200
    assert snapshot(run.path.parent) == before


def test_a_run_is_live_while_its_lock_is_held_and_looking_never_takes_it(tmp_path):
    run = RunDirectory.create(tmp_path / "toy", toy_config("fast"), [].append)
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
        run = RunDirectory.create(tmp_path / name, toy_config("fast", **budget), [].append)
        run.metrics.append(*(metrics_line(update) for update in range(1, 41)))
        views[name] = view = View(run.path)
        view.refresh()
        assert view.tell_light()["seconds_left"] is None, "nobody is at work"
        with run.lock():
            told = view.tell_light()
        assert told["steps_per_second"] == pytest.approx(100 / 1.5)
        wanted = pytest.approx(60 * 1.5) if name == "updates" else None
        assert told["seconds_left"] == wanted


def test_dead_units_are_counted_over_a_game(run):
    newest = run.checkpoints.updates()[-1]
    counts = json.loads(carry_out(run.path, "dead", newest))
    assert counts["of"] == 8
    assert 0 <= counts["dead"] < 8
    for path, job in ((run.path, "agent"), (run.path / "nowhere", "dead")):
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
            process.ask(run.path, "agent", 10**9)
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
        return is_anew, [line["update"] for line in lines if "update" in line]

    assert tail.read() == (False, [])
    path.write_text('{"update": 1}\n{"update": 2}\n{"upd')
    assert updates()[1] == [1, 2]
    for piece, new in (
        (b'ate": 3}\n', [3]), (b"", []), (b"{nonsense\n", []), (b"[" * 100_000 + b"\n", []),
        (b"\xff\xfe\n{}\n", []), (b'{"update": 4}\n', [4]), (b'{"update": 5, "x": NaN}\n', []),
        (b'{"update": 6, "x": Infinity}\n', []),
    ):  # fmt: skip
        with path.open("ab") as file:
            file.write(piece)
        assert updates() == (False, new), piece
    path.write_text('{"update": 1}\n{"update": 7}\n' + '{"update": 8}\n' * 9999)
    is_anew, seen = updates()
    assert (is_anew, seen[:3]) == (True, [1, 7, 8])
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


def test_an_address_for_other_machines_is_told_if_they_are_let_in(tmp_path, monkeypatch):
    monkeypatch.setattr("pixelpong.faces.page.find_own_addresses", lambda: ["192.0.2.7"])
    with serving(tmp_path, host="0.0.0.0", token="long enough") as served:
        words = f"from another machine: http://192.0.2.7:{served.port}/?token=long%20enough"
        assert words in served.told
    with serving(tmp_path) as served:
        assert not any("192.0.2.7" in line for line in served.told)


def test_the_addresses_of_this_machine_are_others_names_for_it():
    for address in find_own_addresses():
        assert not ipaddress.ip_address(address).is_loopback


def test_another_address_is_served_with_a_token(tmp_path):
    with serving(tmp_path, host="0.0.0.0", token="long enough") as served:
        assert any("?token=long%20enough" in line for line in served.told)
        for host in ("127.0.0.1", "localhost", socket.gethostname().lower()):
            request = head("GET", "/api/runs?token=long+enough", f"{host}:{served.port}")
            assert ask(served.port, request).status == 200, host
        assert get(served.port, "/api/runs").status == 401
        if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
            request = head("GET", "/api/runs?token=long+enough", f"127.0.0.2:{served.port}")
            with socket.create_connection(("127.0.0.2", served.port), 10) as made:
                made.sendall(request)
                assert read_answer(made).status == 200, "the address it came in by is a name too"
            assert ask(served.port, request).status == 403


def test_the_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[web\]'"), serving(tmp_path):
        pass


@pytest.mark.alone
def test_it_ends_within_a_second_with_streams_open_and_a_job_under_way(run):
    newest = run.checkpoints.updates()[-1]

    def ask():
        with contextlib.suppress(OSError):
            get(served.port, api(run, f"/reels/agent/{newest}"))

    with contextlib.ExitStack() as stack:
        with serving(run.path.parent) as served:
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
def test_the_browser_is_opened_at_the_page_and_silently(run, tmp_path, monkeypatch, capfd):
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
