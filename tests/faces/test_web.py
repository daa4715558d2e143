"""The page's server: what it tells of runs, alive and dead."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import re
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from toys import toy_config, toy_evaluation
from waiting import wait_until
from web_client import ask_app, make_lines, metrics_line, serving

from pixelpong.agent.choice import Agents
from pixelpong.errors import ConfigError, PixelpongError, RunError
from pixelpong.faces.look.reel import make_reel
from pixelpong.faces.page import library
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import make_app
from pixelpong.run.directory import RunDirectory, is_live
from pixelpong.run.record import SWEEP_FILE


@pytest.fixture(scope="module")
def run(toy_runs, tmp_path_factory):
    """A trained run, in the folder that is served."""
    path = tmp_path_factory.mktemp("runs") / "toy"
    return RunDirectory(shutil.copytree(toy_runs["fast"], path))


def asking(folder):
    """Ask the page of a folder, without a server."""
    return functools.partial(ask_app, make_app(Library(folder)))


# ---- what is told


def test_the_list_and_the_run_say_where_it_stands(run):
    ask = asking(run.path.parent)
    told = ask("/api/runs/toy").json()
    (listed,) = ask("/api/runs").json()["runs"]
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
    agents = ask("/api/runs/package").json()["agents"]
    assert (agents[-1]["which"], agents[-1]["strength"]) == ("champion", "champion")


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


def test_a_sweep_stands_for_its_runs_and_what_is_not_listed_is_refused(tmp_path, run):
    for name in ("sweep-001/seed-0", "folder/seed-0", "single"):
        make_lines(tmp_path / name, updates=2)
    (tmp_path / "sweep-001" / SWEEP_FILE).write_text("{}")
    shelf = Library(tmp_path, run.path)
    toy = shelf.id_of(run.path)
    assert {each["id"] for each in shelf.list()["runs"]} == {"single", "sweep-001/seed-0", toy}
    several = shelf.compare("single,sweep-001,gone")
    assert [each["id"] for each in several["runs"]] == ["single", "sweep-001/seed-0"]
    assert len(several["settings"][0]["runs"]) == 1, "of copies one"
    assert shelf.load_agent(toy, "latest").about["update"] == run.checkpoints.updates()[-1]
    for ask, *words in (
        (shelf.reel, toy, "99"), (shelf.compare, "gone"), (shelf.load_agent, "0" * 16, "best"),
        (shelf.load_agent, toy, "77"), (shelf.load_agent, "../toy", "best"),
    ):  # fmt: skip
        with pytest.raises(PixelpongError):
            ask(*words)


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
    for run_id in ids:
        assert run_id in plain or re.fullmatch(r"[\w.-]*~[0-9a-f]{8}", run_id)
        assert shelf.tell(run_id)["id"] == run_id
    ask = asking(tmp_path / "runs")
    for path in ("fast-001", "s/reels", "s%2Freels"):
        assert ask(f"/api/runs/{path}").json()["id"] in plain
    assert "no agent" in ask("/api/runs/s/reels/reels/7").json()["problem"]


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
    ask = asking(tmp_path)
    told = {each["name"]: each for each in ask("/api/runs").json()["runs"]}
    assert told.keys() == {"sound", "begins", "foreign", "half", "odd"}
    assert {name for name in told if told[name]["problem"]} == {"foreign", "half", "odd"}
    for each in told.values():
        answer = ask(f"/api/runs/{each['id']}")
        assert (answer.status_code, answer.json()["problem"]) == (200, each["problem"])
        assert ask(f"/api/runs/{each['id']}/reels/1").status_code == 404
    shutil.rmtree(tmp_path / "sound")
    assert ask("/api/runs/sound").status_code == 404
    assert b"sound" not in ask("/api/runs").content
    make_lines(tmp_path / "sound", updates=4)
    assert ask("/api/runs/sound").json()["update"] == 4


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


# ---- the process that plays


@pytest.mark.slow
def test_a_reel_is_the_game_of_that_agent_also_after_its_process_has_died(run):
    """And looking leaves everything as it was."""
    others, before = set(multiprocessing.active_children()), files_of(run.path)
    ask, (*_, third, newest) = asking(run.path.parent), run.list_agents()
    for update in (newest, 0):
        game = make_reel(Agents.of_run(run).load(str(update)), run.config.seed)
        answer = ask(f"/api/runs/toy/reels/{update}", ("accept-encoding", "gzip"))
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json() == json.loads(json.dumps(game))
    (child,) = set(multiprocessing.active_children()) - others
    child.kill()
    child.join()
    answers = [ask(f"/api/runs/toy/reels/{third}") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [404, 200]
    assert answers[0].json()["problem"].endswith("has ended; try again.")
    assert files_of(run.path) == before


def files_of(folder):
    return {path: (s := path.lstat()).st_mtime_ns + s.st_size for path in folder.rglob("*")}


@pytest.mark.slow
def test_a_game_that_is_under_way_ends_with_the_server(tmp_path):
    others = set(multiprocessing.active_children())
    with ThreadPoolExecutor(1) as pool:
        with serving(tmp_path) as served:
            url = f"{served.url}/api/runs/package/reels/champion"
            asked = pool.submit(httpx.get, url, timeout=None)
            assert wait_until(lambda: set(multiprocessing.active_children()) - others)
        assert asked.exception() or asked.result().status_code == 404
    assert wait_until(lambda: set(multiprocessing.active_children()) <= others)


# ---- the address, start and end


def test_a_port_that_is_taken_is_passed_over_with_a_line(tmp_path):
    with serving(tmp_path) as one, serving(tmp_path, port=one.port) as two:
        assert two.told[0] == f"port {one.port} is taken; using {two.port}"
        assert one.url != two.url
        for served in (one, two):
            assert httpx.get(f"{served.url}/api/runs").json() == {"runs": []}


def test_what_cannot_be_served_is_refused_in_one_line(tmp_path):
    for options, words in (
        ({"host": "192.0.2.1"}, "cannot listen on 192.0.2.1:0: Cannot assign"),
        ({"host": 300 * "x"}, "cannot listen on x{60}:0: .*; choose another --host"),
    ):
        with pytest.raises(ConfigError, match=words) as caught, serving(tmp_path, **options):
            pass
        assert "\n" not in str(caught.value)


def test_an_address_that_others_reach_needs_a_token_that_is_new_each_time(tmp_path):
    tokens, name = set(), socket.gethostname().lower()
    for _ in range(2):
        with serving(tmp_path, host="0.0.0.0") as served:
            (mine,) = (line for line in served.told if "pixelpong is at" in line)
            (theirs,) = (line for line in served.told if "from another machine" in line)
            token = mine.split("?token=")[1]
            assert (name in theirs, theirs.endswith(token), len(token) >= 20) == (True,) * 3
            url = f"{served.url}/api/runs"
            assert httpx.get(url).status_code == 401
            for host in ("127.0.0.1", "localhost", name):
                headers = {"host": f"{host}:{served.port}"}
                assert httpx.get(f"{url}?token={token}", headers=headers).status_code == 200, host
            tokens.add(token)
    assert len(tokens) == 2
    with serving(tmp_path) as served:
        assert not any("token" in line for line in served.told)


@pytest.mark.slow
def test_the_browser_is_opened_silently_at_an_agents_file(run, tmp_path, monkeypatch, capfd):
    seen, file = tmp_path / "seen", tmp_path / "mine.safetensors"
    Agents.of_run(run).load("latest").write(file)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise; echo noise >&2; echo "$1" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    how = {"opens_browser": True, "view": "play", "agent": (file, "best")}
    with serving(tmp_path / "runs", **how) as served:
        assert wait_until(lambda: seen.exists() and seen.read_text().endswith("\n"))
        page, _, path = seen.read_text().strip().partition("#play/")
        assert any(seen.read_text().strip() in line for line in served.told)
        assert (page, path) == (f"{served.url}/", f"{Library(tmp_path / 'runs').id_of(file)}/best")
        assert re.fullmatch("mine.safetensors~[0-9a-f]{8}/best", path)
        url = f"{served.url}/api/runs/{path.removesuffix('/best')}"
        told = httpx.get(url).json()
        assert [(each["which"], told["name"]) for each in told["agents"]] == [("best", file.name)]
        reel = httpx.get(f"{url}/reels/best", timeout=None).json()
        assert reel["steps"] == len(reel["actions"]) > 1
        assert httpx.get(f"{url}/reels/1").status_code == 404
        assert httpx.get(f"{served.url}/api/runs").json() == {"runs": []}
    monkeypatch.setenv("BROWSER", "/no/such/browser")
    with serving(tmp_path, opens_browser=True, view="play") as served:
        assert any("/#play/package/best" in line for line in served.told)
    assert capfd.readouterr() == ("", "")
