"""The page's server: what it tells of runs, alive and dead, and whom it tells it."""

from __future__ import annotations

import functools
import hmac
import itertools
import json
import multiprocessing
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest
from promises import promise
from toys import toy_config
from waiting import PATIENCE, join, wait_until
from web_client import OWN, ask_app, serving

from pixelpong.agent.choice import Agents, find_agents
from pixelpong.agent.file import SHIPPED, SHIPPED_FOLDER, read_about
from pixelpong.config.presets import load_preset
from pixelpong.faces.display import steps_left
from pixelpong.faces.look.reel import make_reel
from pixelpong.faces.page import library, reels
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import HEADERS, Guard, make_app
from pixelpong.run.directory import RunDirectory, is_live
from pixelpong.run.record import SWEEP_FILE, Record

PORT = 8080
ORIGIN = ("origin", f"http://{OWN}")


@pytest.fixture
def run(toy_runs):
    """A trained run, alone in the folder that is served."""
    return RunDirectory(toy_runs["fast"])


@pytest.fixture
def ask(run, monkeypatch):
    """Ask the page behind its guard, without a connection; its game greets and ends."""

    async def play_socket(websocket, load_agent):
        await websocket.accept()
        await websocket.close()

    monkeypatch.setattr("pixelpong.faces.page.server.play_socket", play_socket)
    guarded = Guard(make_app(Library(run.path.parent)), ("127.0.0.1", "localhost"), PORT)
    return lambda *asked, token=None, **how: ask_app(replace(guarded, token=token), *asked, **how)


def make_lines(path, updates):
    """A run of which there are lines of metrics alone."""
    run = RunDirectory.create(path, toy_config("fast"))
    run.metrics.append(*({"update": update, "steps": 100 * update} for update in updates))
    return run


def test_the_list_and_the_run_say_where_it_stands(run, ask):
    answer = ask("/api/runs/fast")
    assert "set-cookie" not in answer.headers, "there is no token here"
    told = answer.json()
    (listed,) = ask("/api/runs").json()["runs"]
    assert listed == {"id": "fast"} | json.loads(json.dumps(Record.read(run.path).to_dict()))
    assert listed.items() <= told.items()
    assert told["machine"] == run.machine
    assert [(each["which"], each["name"]) for each in told["agents"]] == [
        (str(update), f"update {update}") for update in run.list_agents()
    ]
    assert told["best"] == Agents.of_run(run).best
    assert told["health"][0].keys() == {"level", "title", "text", "advice"}
    # The number next to a name is the agent's own.
    games = {str(line["update"]): line["mean_return"] for line in run.evaluations.read()}
    shown = {it["which"]: it["return"] for it in told["agents"] if it["kind"] == "greedy"}
    assert shown
    assert shown.items() <= games.items()
    agents = ask("/api/runs/package").json()["agents"]
    last = agents[-1]
    assert [last[it] for it in ("which", "name", "return")] == ["champion", "champion", None]
    assert [each["rank"] for each in agents] == [0, 1, 2, 3]
    assert not told["config"].keys() & {"batch_size", "decay_rate"}, "of the other algorithm"
    assert told["config"].items() <= vars(run.config).items()
    assert {"num_envs", "learning_rate", "seed"} <= told["config"].keys()


def test_no_agent_has_the_name_of_an_agent_in_the_package_whatever_its_return(tmp_path):
    """A high return against the built-in opponent says little about play against people."""
    run = RunDirectory.create(tmp_path / "strong", toy_config("fast"))
    shutil.copy(SHIPPED_FOLDER / "champion.safetensors", tmp_path / "alice.safetensors")
    for update, name in enumerate(SHIPPED):
        run.agents.path(update).parent.mkdir(exist_ok=True)
        shutil.copy(SHIPPED_FOLDER / f"{name}.safetensors", run.agents.path(update))
    returns = (-20.0, -6.0, 7.0, 20.0)
    described = library._describe_agents(
        Agents.of_run(run), {str(update): value for update, value in enumerate(returns)}
    )["agents"]
    assert [each["name"] for each in described] == [f"update {update}" for update in range(4)]
    assert [each["return"] for each in described] == list(returns)
    ranks = [each["rank"] for each in described]
    assert ranks == sorted(set(ranks))
    champion = read_about(SHIPPED_FOLDER / "champion.safetensors")
    (file,) = library._describe_agents(find_agents(tmp_path / "alice.safetensors")[0], {})["agents"]
    assert (file["name"], file["return"]) == ("alice", champion.estimated_return)
    for agent in [*described, file]:
        assert not set(SHIPPED) & {value for value in agent.values() if isinstance(value, str)}


def test_a_live_run_like_the_recorded_ones_says_how_long_it_takes_to_the_win(tmp_path):
    """At its newest speed; here it was slow at first, and then plays 1,000 steps a second."""
    paths = []
    for name, config in (("like", load_preset("fast")), ("other", toy_config("fast"))):
        run = RunDirectory.create(tmp_path / name, config)
        for update in range(1, 61):
            seconds = {"training_seconds": 500.0 + update}
            row = {"update": update, "steps": 1000 * update, "estimated_return": 3.0}
            run.metrics.append(row | {"timing": seconds if update > 1 else {}})
        paths.append(run)
    shelf = Library(tmp_path)
    assert shelf.describe("like")["seconds_to_win"] is None, "nobody trains it"
    with paths[0].lock(), paths[1].lock():
        assert shelf.describe("like")["seconds_to_win"] == pytest.approx(steps_left(3.0) / 1000)
        assert shelf.describe("other")["seconds_to_win"] is None


def test_long_runs_are_thinned_keep_their_last_line_and_have_no_odd_numbers(tmp_path):
    run = make_lines(tmp_path / "run", range(1, 10_001))
    told = Library(tmp_path).describe("run")["columns"]["update"]
    assert told == list(range(10, 10_001, 10)), "a thousand rows"
    odd = {"entropy": None}, {"steps": 10**100}, {"loss": True}, {"x": "text"}
    run.metrics.append(*({"update": 10_001 + n} | more for n, more in enumerate(odd)))
    last = {
        name: column[-1] for name, column in Library(tmp_path).describe("run")["columns"].items()
    }
    assert (last["update"], last["entropy"]) == (10_001, None)


def test_of_many_runs_each_has_fewer_rows(tmp_path, monkeypatch):
    """So that the page of a large sweep stays of a size that can be sent, and drawn."""
    for name in "abcd":
        make_lines(tmp_path / name, range(1, 2001))
    for in_all, wanted in ((10_000, 250), (40, 20)):
        monkeypatch.setattr(library, "TOTAL_ROWS", in_all)
        monkeypatch.setattr(library, "MAX_ROWS", 1000 if wanted == 250 else 40)
        told = Library(tmp_path).compare("a,b,c,d")["runs"]
        assert {len(each["columns"]["update"]) for each in told} == {wanted}
        assert {each["columns"]["update"][-1] for each in told} == {2000}


def test_each_run_has_an_id_and_none_of_them_stops_the_list(tmp_path):
    """Names that are odd or taken are marked; runs may be damaged or lie elsewhere."""
    odd = ("package", "a b", "a?b", "<script>", "-x", ".hidden", "a%2fb", "a,b", "ends\udcff")
    sound = ("fast-001", "größe-1", "s/reels")
    folder, other = tmp_path / "runs", tmp_path / "elsewhere/fast-001"
    for name in ("", other, "no-sweep/run", *sound, *odd):
        make_lines(folder / name, [1])
    for name in ("half", "pipe"):
        (folder / name).mkdir()
    (folder / "half/config.json").write_text('{"format": 1, "con')
    os.mkfifo(folder / "pipe/config.json")
    (folder / "s" / SWEEP_FILE).write_text("")
    for name, target in (("loop", folder / "loop"), ("linked", folder / "s/reels"), ("far", other)):
        (folder / name).symlink_to(target)
    shelf = Library(folder, other)
    ask = functools.partial(ask_app, make_app(shelf))
    listed = {each["id"]: each["problem"] for each in ask("/api/runs").json()["runs"]}
    plain = {name for name in listed if "~" not in name}
    assert plain == {*sound, "linked", "far", "half"}
    assert [name for name in plain if listed[name]] == ["half"]
    assert len(listed) == len(plain) + len(odd) + 2, "the folder itself, and the one from elsewhere"
    for run_id, problem in listed.items():
        assert run_id in plain or re.fullmatch(r"[\w.-]*~[0-9a-f]{8}", run_id)
        answer = ask(f"/api/runs/{run_id}").json()
        assert (answer["id"], answer["problem"]) == (run_id, problem)
        assert ask(f"/api/runs/{run_id}/reels/7").status_code == 404
    assert ask("/api/runs/s%2Freels").json()["id"] == "s/reels"
    assert "no agent" in ask("/api/runs/s/reels/reels/7").json()["problem"]
    several = shelf.compare("fast-001,s,gone")
    assert [each["id"] for each in several["runs"]] == ["s/reels", "fast-001"], "a sweep's runs"
    assert len(several["settings"][0]["runs"]) == 1, "of copies one"


def test_the_list_begins_with_the_run_that_changed_last(tmp_path):
    runs = [make_lines(tmp_path / name, [1]) for name in "abc"]
    for age, run in zip((2, 1, 3), runs, strict=True):
        for file in run.path.iterdir():
            os.utime(file, (1e9 - age, 1e9 - age))
    listed = [each["id"] for each in Library(tmp_path).list_runs()["runs"]]
    assert listed == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("value", "rank"),
    [(None, 0), (-21.0, 0), (-19.0, 1), (-5.0, 2), (8.0, 3), (17.99, 3), (18.0, 4)],
)
def test_a_rank_begins_at_its_limit_and_an_agent_is_called_by_its_update(tmp_path, value, rank):
    evaluated = {} if value is None else {"7": value}
    told = library._describe_agents(Agents({"7": [tmp_path / "none"]}, "7"), evaluated)
    (agent,) = told["agents"]
    assert (agent["name"], agent["rank"], agent["return"]) == ("update 7", rank, value)


def test_looking_stops_no_training_from_beginning(tmp_path):
    run = RunDirectory.create(tmp_path / "toy", toy_config("fast"))
    looker = threading.Thread(target=lambda: [is_live(run.path) for _ in range(2000)])
    looker.start()
    while looker.is_alive():
        with run.lock():  # raises if another has it
            pass


@pytest.mark.slow
def test_a_reel_is_the_game_of_that_agent_also_after_its_process_has_died(run, ask):
    """And looking leaves everything as it was."""
    others = set(multiprocessing.active_children())
    before = {path: path.lstat().st_mtime_ns for path in run.path.rglob("*")}
    *_, third, newest = run.list_agents()
    for update in (newest, 0):
        game = make_reel(Agents.of_run(run).load(str(update)), run.config.seed)
        answer = ask(f"/api/runs/fast/reels/{update}", ("accept-encoding", "gzip"))
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json() == json.loads(json.dumps(game))
    (child,) = set(multiprocessing.active_children()) - others
    child.kill()
    join(child)
    answers = [ask(f"/api/runs/fast/reels/{third}") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [404, 200]
    assert answers[0].json()["problem"].endswith("crashed. Try again.")
    assert {path: path.lstat().st_mtime_ns for path in run.path.rglob("*")} == before


@pytest.mark.slow
def test_a_game_that_is_under_way_ends_with_the_server(tmp_path):
    others = set(multiprocessing.active_children())
    with ThreadPoolExecutor(1) as pool:
        with serving(tmp_path) as served:
            url = f"{served.url}/api/runs/package/reels/champion"
            asked = pool.submit(httpx.get, url, timeout=PATIENCE)
            assert wait_until(lambda: set(multiprocessing.active_children()) - others)
        assert asked.exception() or asked.result().status_code >= 400
    assert wait_until(lambda: set(multiprocessing.active_children()) <= others)


@pytest.mark.slow
def test_the_process_that_plays_games_can_start_before_the_first_is_asked_for(tmp_path):
    others = set(multiprocessing.active_children())
    with serving(tmp_path) as served:
        served.page.prepare()
        (child,) = set(multiprocessing.active_children()) - others
        url = f"{served.url}/api/runs/package/reels/beginner?part=beginning"
        reel = httpx.get(url, timeout=PATIENCE).json()
        assert (len(reel["actions"]), reel["is_cut"]) == (reels.BEGINNING, True)
        assert set(multiprocessing.active_children()) - others == {child}
    assert wait_until(lambda: set(multiprocessing.active_children()) <= others)


HOSTS = [
    "", " ", "null", "*", f"*:{PORT}", "evil.example", f"evil.example:{PORT}", f"0.0.0.0:{PORT}",
    f"localhost.evil.example:{PORT}", f"evil.example.127.0.0.1:{PORT}", f"{'a' * 5000}:{PORT}",
    f"127.0.0.2:{PORT}", f"2130706433:{PORT}", f"127.1:{PORT}", f"::1:{PORT}", f"[::]:{PORT}",
    f"localhost.:{PORT}", f"localhost:0{PORT}", f"localhost: {PORT}", "localhost:", "[::1",
    f"127.0.0.1x:{PORT}", f"127x0x0x1:{PORT}", f"localhost:{PORT}:{PORT}", "localhost:\u0661",
    f"localhost:{PORT}@evil.example", f"evil.example@localhost:{PORT}", f"localhost:{PORT}/",
    f"http://localhost:{PORT}", f"localhost:{PORT},evil.example", f"[::ffff:127.0.0.1]:{PORT}",
    f"l\u00f6calhost:{PORT}", f"%6cocalhost:{PORT}", f"localhost\t:{PORT}",
]  # fmt: skip
ORIGINS = [
    "", "null", "*", f"https://{OWN}", f"ws://{OWN}", "file://", f"http://{OWN}/", OWN,
    f"http://{OWN}.", *(f"http://{host}" for host in HOSTS if host.strip()),
]  # fmt: skip


@promise("the page")
def test_a_foreign_host_is_refused_whatever_it_asks_for(ask):
    asked = ("/", "http"), ("/api/runs", "http"), ("/game", "websocket")
    for host, (path, kind) in itertools.product(HOSTS, asked):
        for origin in ([], [ORIGIN], [("origin", f"http://{host}")]):
            check(ask(path, *origin, host=host, kind=kind), 403)
    check(ask("/", ("host", "evil.example")), 403)


@promise("the page")
def test_a_foreign_page_can_neither_ask_nor_play_but_its_own_can(ask):
    """A game needs an origin, and exactly one."""
    for origin in ORIGINS:
        check(ask("/api/runs", ("origin", origin)), 403)
        check(ask("/game", ("origin", origin), kind="websocket"), 403)
    for origins in ([], [ORIGIN, ("origin", "http://evil.example")]):
        check(ask("/game", *origins, kind="websocket"), 403)
    names = "127.0.0.1", "localhost", "LocalHost", "[::1]"
    ports = "", ":1", f":{PORT}", f":{PORT + 1}", ":65535"  # a tunnel has a port of its own
    hosts = [name + port for name, port in itertools.product(names, ports)]
    for host, other in itertools.pairwise([OWN, *hosts]):
        assert ask("/api/runs", host=host).status_code == 200
        origin = ("origin", f"http://{host}".lower())
        assert ask("/game", origin, host=host, kind="websocket").status_code == 101
        if host.lower() != other.lower():
            check(ask("/api/runs", origin, host=other), 403)
            check(ask("/game", origin, host=other, kind="websocket"), 403)


@promise("the page")
def test_each_path_has_its_answer_for_looking_and_none_for_anything_else(ask):
    found = (
        "/", "/static/style.css", "/static/app.js", "/api/notice", "/api/runs", "/api/runs/fast",
    )  # fmt: skip
    missing = (
        "/nothing", "/game", "/api/runs/x", "/api/runs/fast/reels/999", "/api/several/gone",
        f"/api/runs/fast/reels/0/{2**53}/0", f"/api/runs/fast/reels/0/0/{2**53}",
    )  # fmt: skip
    for path, status in {**dict.fromkeys(found, 200), **dict.fromkeys(missing, 404)}.items():
        check(ask(path), status)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X"):
            answer = ask(path, method=method)
            check(answer, 404 if status == 404 and answer.status_code == 404 else 405)


TARGETS = ["etc/passwd", "config.json", "run.lock", "__init__.py"]
STEPS = [
    "../", "..%2f", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5c", "....//", "..;/",
    "..%00/", "%c0%ae%c0%ae/", "%e0%80%ae%e0%80%ae/", "/", "//", "file:///", "/proc/self/cwd/",
    "~/", "%2f", "C:/",
]  # fmt: skip
ODD = ["", ".", "..", "%00", "0%00", "-1", "1.0", "9" * 400, "NaN", "*", "%", "%zz", "0" * 16]


@promise("the page")
@pytest.mark.slow
def test_no_path_leads_out_of_the_table(ask):
    """Nothing but the list's ids, and the names of saved agents, is answered."""
    every = [step * n + target for step, target, n in itertools.product(STEPS, TARGETS, (1, 4))]
    places = "/{}", "/static/{}", "/api/runs/{}", "/api/runs/{}/reels/1", "/api/runs/fast/reels/{}"
    targets = {place.format(payload) for place in places for payload in every + ODD} - {"/", "//"}
    for target in targets:
        answer = ask(target)
        assert answer.status_code in (400, 404), target
        assert b"root:" not in answer.content
    assert len(targets) > 700


def check(answer, status):
    """Every answer has the headers, and a refusal one line of JSON."""
    assert answer.status_code == status
    assert answer.headers.items() >= HEADERS.items()
    assert "default-src 'none'; script-src 'self'; " in HEADERS["content-security-policy"]
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    for policy in ("cross-origin-resource-policy", "cross-origin-opener-policy"):
        assert answer.headers[policy] == "same-origin"
    assert "cache-control" in answer.headers
    assert not answer.headers.keys() & {"server", "access-control-allow-origin"}
    if status >= 400:
        assert list(answer.json()) == ["problem"]
        assert "\n" not in answer.json()["problem"]


def check_refusal(answer, path):
    """A program gets a problem as JSON; a person, who opens the page, a field for the token."""
    if path == "/":
        assert answer.status_code == 401
        assert answer.headers["content-type"].startswith("text/html")
        assert '<input name="token"' in answer.text
        assert answer.headers["cache-control"] == "no-cache"
    else:
        check(answer, 401)


@promise("the page")
def test_nobody_is_served_without_the_token(ask, monkeypatch):
    token, compared, same = "correct-horse-battery", [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or same(a, b))
    ask, name = functools.partial(ask, token=token), f"pixelpong-{PORT}"
    wrong = ["", "wrong", token[:-1], token + "x", token.upper(), "%00", "caf%C3%A9", "%ff"]
    for path, words in itertools.product(("/", "/static/app.js", "/api/runs", "/nothing"), wrong):
        for answer in (
            ask(path),
            ask(f"{path}?token={words}"),
            ask(path, ("cookie", f"{name}={words}")),
        ):
            check_refusal(answer, path)
    assert compared, "the token was compared in another way"
    answer = ask(f"/api/runs?token={token}")
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert (answer.status_code, set(flags)) == (200, {"HttpOnly", "SameSite=Strict", "Path=/"})
    for cookie, status in ((value, 200), (f"{value}0", 401)):
        answer = ask("/api/runs", ("cookie", f"a=b; {cookie}"))
        assert (answer.status_code, "set-cookie" in answer.headers) == (status, False)
        game = ask("/game", ORIGIN, ("cookie", cookie), kind="websocket")
        assert game.status_code == (101 if status == 200 else 401)
    assert ask(f"/?token={token}", host="any.example").status_code == 200
    check_refusal(ask("/", host="evil.example"), "/")
