"""The page's server: what it tells of runs, alive and dead."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import socket
import stat
import threading

import httpx
import numpy as np
import pytest
from conftest import wait_until
from toys import toy_config, toy_evaluation
from web_client import api, get, head, make_lines, metrics_line, serving
from web_client import ask as ask_bytes

from pixelpong.agent.choice import Agents
from pixelpong.errors import ConfigError, PixelpongError, RunError
from pixelpong.faces.look.reel import make_reel
from pixelpong.faces.page import library
from pixelpong.faces.page.library import Library
from pixelpong.run.directory import RunDirectory, is_live
from pixelpong.run.record import SWEEP_FILE


@pytest.fixture(scope="module")
def run(toy_runs, tmp_path_factory):
    """A trained run, in the folder that is served."""
    path = tmp_path_factory.mktemp("runs") / "toy"
    return RunDirectory(shutil.copytree(toy_runs["fast"], path))


@pytest.fixture(scope="module")
def client(run):
    with serving(run.path.parent) as served, httpx.Client(base_url=served.url, timeout=60) as made:
        yield made


# ---- what is told


def test_the_list_and_the_run_say_where_it_stands(client, run):
    told = client.get(api(run)).json()
    (listed,) = (each for each in client.get("/api/runs").json()["runs"] if each["name"] == "toy")
    assert listed.items() <= told.items()
    last = list(run.metrics.read())[-1]
    assert {name: listed[name] for name in ("update", "steps", "episodes")}.items() <= last.items()
    assert (listed["preset"], listed["is_live"], listed["problem"]) == ("fast", False, "")
    assert (listed["id"], told["config"]) == ("toy", vars(run.config))
    assert (told["versions"], told["machine"]) == (run.versions, run.machine)
    steps = {line["update"]: line["steps"] for line in run.metrics.read()}
    assert [(each["which"], each["steps"]) for each in told["agents"]] == [
        (str(update), steps.get(update, 0)) for update in run.list_agents()
    ]
    assert told["best"] == str(run.checkpoints.find_best())
    assert told["health"][0].keys() == {"level", "title", "text", "advice"}


def test_an_agents_word_comes_from_its_evaluation_if_it_has_one(tmp_path):
    run = make_lines(tmp_path / "run", updates=2)
    run.evaluations.append(toy_evaluation(0, 18.5))
    run.checkpoints.path(0).mkdir(parents=True)
    (agent,) = Library(tmp_path).tell("run")["agents"]
    assert agent["strength"] == "champion"


def test_long_runs_are_thinned_keep_their_last_line_and_have_no_odd_numbers(tmp_path):
    run = make_lines(tmp_path / "run", updates=10_000)
    told = Library(tmp_path).tell("run")["columns"]["update"]
    assert len(told) <= library.MAX_ROWS
    assert told[-1] == 10_000
    assert set(np.diff(told)) == {10}
    run.metrics.append(metrics_line(10_001, entropy=None), metrics_line(10_002, steps=10**100))
    run.metrics.append(metrics_line(10_003, loss=True), metrics_line(10_004, x="text"))
    last = {name: column[-1] for name, column in Library(tmp_path).tell("run")["columns"].items()}
    assert (last["update"], last["entropy"]) == (10_001, None)


def test_the_runs_of_a_sweep_are_listed_by_its_name_and_theirs_and_one_from_elsewhere(
    tmp_path, run
):
    make_lines(tmp_path / "sweep-001" / "seed-0", updates=2)
    make_lines(tmp_path / "folder" / "seed-0", updates=2)
    make_lines(tmp_path / "single", updates=1)
    (tmp_path / "sweep-001" / SWEEP_FILE).write_text("{}")
    shelf = Library(tmp_path, run.path)
    ids = {each["name"]: each["id"] for each in shelf.list()["runs"]}
    assert ids == {each: each for each in ids} | {"toy": shelf.id_of(run.path)}
    assert ids.keys() == {"single", "sweep-001/seed-0", "toy"}
    several = shelf.compare("single,sweep-001,gone")
    assert [each["id"] for each in several["runs"]] == ["single", "sweep-001/seed-0"]
    assert several["settings"][0]["runs"] == ["sweep-001/seed-0"], "of copies the further one"
    for ask in (lambda: shelf.reel(ids["toy"], "99"), lambda: shelf.compare("gone")):
        with pytest.raises(PixelpongError):
            ask()
    agent = shelf.load_agent(ids["toy"], "latest")
    assert agent.about["update"] == run.checkpoints.updates()[-1]
    for run_id, which in (("0" * 16, "best"), (ids["toy"], "77"), ("../toy", "best")):
        with pytest.raises(PixelpongError):
            shelf.load_agent(run_id, which)


def test_ids_are_names_and_those_that_are_odd_or_taken_are_marked(tmp_path):
    odd = ("package", "a b", "a?b", "<script>", "-x", ".hidden", "a%2fb", "a,b", "ends\udcff")
    for name in ("runs", "elsewhere/fast-001", "runs/fast-001", "runs/größe-1", "runs/s/reels"):
        make_lines(tmp_path / name, updates=1)
    for name in odd:
        make_lines(tmp_path / "runs" / name, updates=1)
    (tmp_path / "runs/s" / SWEEP_FILE).write_text("")
    (tmp_path / "runs/linked").symlink_to(tmp_path / "runs/fast-001")
    (tmp_path / "runs/far").symlink_to(tmp_path / "elsewhere/fast-001")
    shelf = Library(tmp_path / "runs", tmp_path / "elsewhere/fast-001")
    ids = {each["id"]: each["name"] for each in shelf.list()["runs"]}
    plain = {name for name in ids if "~" not in name}
    assert plain == {"fast-001", "größe-1", "s/reels", "linked", "far"}
    assert len(ids) == len(plain) + len(odd) + 2, "the folder itself, and the one from elsewhere"
    for run_id in ids.keys() - plain:
        assert re.fullmatch(r"[\w.-]*~[0-9a-f]{8}", run_id)
    for run_id in ids:
        assert shelf.tell(run_id)["id"] == run_id
    with serving(tmp_path / "runs") as served:
        for path in ("fast-001", "s/reels", "s%2Freels"):
            assert get(served.port, f"/api/runs/{path}").json()["id"] in plain
        assert "no agent" in get(served.port, "/api/runs/s/reels/reels/7").json()["problem"]


def test_an_agents_file_is_watched_and_played_against(tmp_path, run):
    file = tmp_path / "mine.safetensors"
    Agents.of_run(run).load("latest").write(file)
    with serving(tmp_path / "runs", view="play", agent=(file, "best")) as served:
        run_id = Library(tmp_path / "runs").id_of(file)
        assert re.fullmatch("mine.safetensors~[0-9a-f]{8}", run_id)
        assert any(f"/#play/{run_id}/best" in line for line in served.told)
        told = get(served.port, f"/api/runs/{run_id}").json()
        assert [(each["which"], told["name"]) for each in told["agents"]] == [("best", file.name)]
        reel = get(served.port, f"/api/runs/{run_id}/reels/best").json()
        assert reel["steps"] == len(reel["actions"]) > 1
        assert get(served.port, f"/api/runs/{run_id}/reels/1").status == 404
        assert get(served.port, "/api/runs").json() == {"runs": []}


def test_what_is_not_there_is_said_in_one_line(client, run):
    agents = client.get("/api/runs/package").json()["agents"]
    assert (agents[-1]["which"], agents[-1]["strength"]) == ("champion", "champion")
    for path in (
        api(run, "/reels/999999"), "/api/runs/0123456789abcdef", "/api/runs/package/reels/1",
    ):  # fmt: skip
        answer = client.get(path)
        assert (answer.status_code, len(answer.json()["problem"].splitlines())) == (404, 1)


@pytest.mark.slow
def test_runs_that_begin_or_are_damaged_or_foreign_do_not_stop_the_list(tmp_path):
    make_lines(tmp_path / "sound", updates=2)
    RunDirectory.create(tmp_path / "begins", toy_config("fast"))
    foreign = RunDirectory.create(tmp_path / "foreign", toy_config("fast"))
    config = foreign.path / "config.json"
    config.write_text(config.read_text().replace('"format": 1', '"format": 99'))
    for name, content in (("half", '{"format": 1, "con'), ("odd", '{"format": 1, "config": 3}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no run")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "config.json")
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=60) as client:
        told = {each["name"]: each for each in client.get("/api/runs").json()["runs"]}
        assert told.keys() == {"sound", "begins", "foreign", "half", "odd"}
        assert {name for name in told if told[name]["problem"]} == {"foreign", "half", "odd"}
        for each in told.values():
            answer = client.get(f"/api/runs/{each['id']}")
            assert (answer.status_code, answer.json()["problem"]) == (200, each["problem"])
            assert client.get(f"/api/runs/{each['id']}/reels/1").status_code == 404
        shutil.rmtree(tmp_path / "sound")
        assert client.get(f"/api/runs/{told['sound']['id']}").status_code == 404
        assert "sound" not in client.get("/api/runs").text
        make_lines(tmp_path / "sound", updates=4)
        assert client.get(f"/api/runs/{told['sound']['id']}").json()["update"] == 4


@pytest.mark.slow
def test_nothing_is_written_where_runs_are(client, run):
    def snapshot():
        states = {path: path.lstat() for path in sorted(run.path.parent.rglob("*"))}
        return {p: (stat.S_IFMT(s.st_mode), s.st_size, s.st_mtime_ns) for p, s in states.items()}

    before = snapshot()
    for path in ("/api/runs", api(run), api(run, f"/reels/{run.checkpoints.updates()[-1]}")):
        assert client.get(path).status_code == 200
    assert snapshot() == before


def test_a_run_is_live_while_its_lock_is_held_and_looking_stops_no_training(tmp_path):
    run = RunDirectory.create(tmp_path / "toy", toy_config("fast"))
    assert not is_live(run.path)
    looks = iter(range(5000))
    looker = threading.Thread(target=lambda: [is_live(run.path) for _ in looks])
    looker.start()
    while looker.is_alive():
        with run.lock():  # raises if another has it
            pass
    with run.lock():
        assert is_live(run.path)
        with pytest.raises(RunError):
            run.lock()
    assert not is_live(run.path), "this process lives, but it trains no more"


# ---- the process that plays, the address, start and end


@pytest.mark.slow
def test_a_reel_is_the_game_of_that_agent_also_after_its_process_has_died(run):
    """A reel that is under way when the server ends, ends too."""
    newest, others = run.checkpoints.updates()[-1], set(multiprocessing.active_children())
    with serving(run.path.parent) as served:
        for update in (newest, 0):
            wanted = json.loads(
                json.dumps(make_reel(Agents.of_run(run).load(str(update)), run.config.seed))
            )
            answer = httpx.get(f"{served.url}{api(run, f'/reels/{update}')}", timeout=60)
            assert (answer.headers["content-encoding"], answer.json()) == ("gzip", wanted)
        (child,) = set(multiprocessing.active_children()) - others
        child.kill()
        child.join()
        answers = [get(served.port, api(run, "/reels/0")).status for _ in range(2)]
        assert answers in ([404, 200], [200, 200])
        target = api(run, f"/reels/{run.checkpoints.updates()[0]}")
        asked = threading.Thread(target=get, args=(served.port, target))
        asked.start()
    asked.join(30)
    assert not asked.is_alive()
    assert wait_until(lambda: set(multiprocessing.active_children()) <= others)


def test_a_port_that_is_taken_is_passed_over_with_a_line(tmp_path):
    with serving(tmp_path) as one, serving(tmp_path, port=one.port) as two:
        assert two.port != one.port
        assert two.told[0] == f"port {one.port} is taken; using {two.port}"
        assert any("Ctrl-C" in line for line in two.told)
        assert get(one.port, "/api/runs").status == get(two.port, "/api/runs").status == 200


def test_what_cannot_be_served_is_refused_in_one_line(tmp_path):
    for options, words in (
        ({"host": "192.0.2.1"}, "expected to listen on 192.0.2.1:0, got Cannot assign"),
        ({"host": 300 * "x"}, "expected to listen on x{60}:0, got .*; choose another --host"),
    ):
        with pytest.raises(ConfigError, match=words) as caught, serving(tmp_path, **options):
            pass
        assert "\n" not in str(caught.value)


def test_an_address_that_others_reach_needs_a_token_that_is_new_each_time(tmp_path):
    tokens, name = [], socket.gethostname().lower()
    for _ in range(2):
        with serving(tmp_path, host="0.0.0.0") as served:
            (mine,) = (line for line in served.told if "pixelpong is at" in line)
            (theirs,) = (line for line in served.told if "from another machine" in line)
            tokens.append(mine.split("?token=")[1])
            assert (name in theirs, theirs.endswith(tokens[-1])) == (True, True)
            assert len(tokens[-1]) >= 20
            assert get(served.port, "/api/runs").status == 401
            for host in ("127.0.0.1", "localhost", name):
                target, address = f"/api/runs?token={tokens[-1]}", f"{host}:{served.port}"
                request = head("GET", target, address, "Connection: close")
                assert ask_bytes(served.port, request).status == 200, host
    assert tokens[0] != tokens[1]
    with serving(tmp_path) as served:
        assert not any("token" in line for line in served.told)


@pytest.mark.slow
def test_the_browser_is_opened_at_the_page_and_silently(run, tmp_path, monkeypatch, capfd):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise; echo noise >&2; echo "$1" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with serving(tmp_path, opens_browser=True, view="watch", agent=(run.path, "latest")) as s:
        assert wait_until(lambda: seen.exists() and seen.read_text().endswith("\n"))
        wanted = f"{s.url}/#watch/{Library(tmp_path).id_of(run.path)}/latest"
        assert seen.read_text().strip() == wanted
        assert any(wanted in line for line in s.told)
    monkeypatch.setenv("BROWSER", "/no/such/browser")
    with serving(tmp_path, opens_browser=True, view="play") as served:
        assert any("/#play/package/best" in line for line in served.told)
    assert capfd.readouterr() == ("", "")
