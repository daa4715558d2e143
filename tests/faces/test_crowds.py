"""Crowds at the page: any number of games that are requested or played leave it responsive."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import ClassVar

import httpx
import pytest
from promises import promise
from waiting import PATIENCE, join, wait_until
from web_client import serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from pixelpong.agent.choice import Agents
from pixelpong.agent.file import Agent
from pixelpong.errors import RunError
from pixelpong.faces.page import game, library, reels, threads
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.reels import ReelKey, Reels
from pixelpong.faces.page.server import make_app
from pixelpong.run.directory import RunDirectory

pytestmark = promise("the page")

# --- games are waited for in no thread ----------------------------------------------------------


class FakeProcesses:
    """A pool whose games end when the test says so."""

    made: ClassVar[list[FakeProcesses]] = []

    def __init__(self, workers, *, hears):
        self.calls, self.games = [], []
        FakeProcesses.made.append(self)

    def submit(self, function, path, which, seed, episode, moments):
        self.calls.append(seed)
        self.games.append(Future())
        self.games[-1].set_running_or_notify_cancel()
        return self.games[-1]

    def read_notice(self):
        return ""

    def kill(self):
        for each in self.games:
            if not each.done():
                each.set_exception(BrokenProcessPool())


@pytest.fixture
def pools(monkeypatch):
    monkeypatch.setattr(FakeProcesses, "made", [])
    monkeypatch.setattr(reels, "Processes", FakeProcesses)
    return FakeProcesses.made


def key(seed) -> ReelKey:
    return ReelKey(None, "club", seed, 0, ())


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def ask_for(made, seed, viewer):
    task = asyncio.create_task(made.get(key(seed), viewer))
    await settle()
    return task


async def finish(pool, reel=b"{}"):
    pool.games[-1].set_result(reel)
    await settle()


def test_of_a_viewers_waiting_games_the_newest_is_played_and_the_others_say_so(pools):
    async def visit():
        made = Reels()
        (pool,) = pools
        first = await ask_for(made, 0, "me")
        mine = [await ask_for(made, seed, "me") for seed in (1, 2, 3)]
        other = await ask_for(made, 9, "other")
        for task in mine[:2]:
            with pytest.raises(threads.BusyError, match="newer request"):
                await task
        assert not first.done(), "it is being played already"
        for expected in ([0], [0, 3], [0, 3, 9]):
            assert pool.calls == expected, "one after another"
            await finish(pool, b"%d" % expected[-1])
        assert [await task for task in (first, mine[2], other)] == [b"0", b"3", b"9"]
        again = await ask_for(made, 3, "me")
        assert (await again, pool.calls) == (b"3", [0, 3, 9]), "kept"

    asyncio.run(visit())


def test_a_game_whose_client_has_gone_is_never_played(pools):
    async def visit():
        made = Reels()
        (pool,) = pools
        first, gone, last = [await ask_for(made, seed, f"viewer {seed}") for seed in (0, 1, 2)]
        gone.cancel()
        first.cancel()  # while it is played
        await settle()
        assert pool.calls == [0], "the process plays one game at a time"
        await finish(pool, b"0")
        await finish(pool, b"2")
        assert (await last, pool.calls) == (b"2", [0, 2])
        assert await (await ask_for(made, 0, "another")) == b"0", "kept, though its client had gone"

    asyncio.run(visit())


def test_each_viewer_is_told_how_many_games_come_first(pools, tmp_path):
    async def visit():
        shelf = Library(tmp_path)
        made, told = shelf._reels, lambda viewer: shelf.find_notice(viewer)["notice"]
        (pool,) = pools
        tasks = [await ask_for(made, seed, f"viewer {seed}") for seed in range(3)]
        assert [told(f"viewer {seed}") for seed in range(4)] == [
            "", "1 other game is prepared first, then yours …",
            "2 other games are prepared first, then yours …", "",
        ]  # fmt: skip
        await finish(pool)
        assert told("viewer 2") == "1 other game is prepared first, then yours …"
        for _ in range(2):
            await finish(pool)
        assert [await task for task in tasks] == [b"{}"] * 3
        assert told("viewer 2") == ""

    asyncio.run(visit())


def test_two_who_wait_for_the_same_game_cause_one(pools):
    async def visit():
        made = Reels()
        (pool,) = pools
        tasks = [await ask_for(made, 5, viewer) for viewer in "ab"]
        await finish(pool)
        assert [await task for task in tasks] == [b"{}"] * 2
        assert pool.calls == [5]

    asyncio.run(visit())


def test_no_more_than_so_many_viewers_wait_and_so_many_games_are_kept(pools, monkeypatch):
    monkeypatch.setattr(reels, "MAX_WAITING", 3)
    monkeypatch.setattr(reels, "REELS_KEPT", 2)

    async def visit():
        made = Reels()
        (pool,) = pools
        tasks = [await ask_for(made, seed, f"viewer {seed}") for seed in range(4)]
        with pytest.raises(threads.BusyError, match="3 others are waiting"):
            await (await ask_for(made, 9, "late"))
        newer = await ask_for(made, 7, "viewer 3")  # instead of the older one
        for _ in range(4):
            await finish(pool)
        assert [task.done() for task in (*tasks, newer)] == [True] * 5
        assert pool.calls == [0, 1, 2, 7]
        for seed, is_kept in ((2, True), (1, False)):
            asked = await ask_for(made, seed, "me")
            assert asked.done() == is_kept
        await finish(pool)
        assert (await ask_for(made, 2, "me")).done(), "it was looked at after 7"

    asyncio.run(visit())


def test_a_crash_is_told_to_the_one_whose_game_it_was_and_the_next_is_played(pools):
    async def visit():
        made = Reels()
        first, second = [await ask_for(made, seed, f"viewer {seed}") for seed in (0, 1)]
        pools[0].games[0].set_exception(BrokenProcessPool())
        await settle()
        with pytest.raises(RunError, match="crashed"):
            await first
        await finish(pools[1])
        assert (await second, pools[1].calls) == (b"{}", [1])
        third = await ask_for(made, 2, "viewer")
        made.close()
        await settle()
        with pytest.raises(RunError):
            await third
        assert len(pools) == 2, "no new process after the end"

    asyncio.run(visit())


def test_a_request_is_given_up_when_its_client_leaves(tmp_path, monkeypatch):
    """Here it leaves as soon as it has asked."""
    ends = []

    async def reel(self, **parameters):
        try:
            await asyncio.Future()
        finally:
            ends.append(parameters)

    monkeypatch.setattr(Library, "reel", reel)
    app = make_app(Library(tmp_path))

    async def visit(query, client):
        asked = iter([{"type": "http.request"}, {"type": "http.disconnect"}])
        path = "/api/runs/package/reels/club/3/4"
        scope = {
            "type": "http", "method": "GET", "path": path, "query_string": query, "headers": [],
            "client": client, "root_path": "",
        }  # fmt: skip

        async def receive():
            return next(asked)

        async def send(message):
            pass

        await app(scope, receive, send)

    asyncio.run(visit(b"", ("10.1.2.3", 1)))
    asyncio.run(visit(b"viewer=" + b"x" * 5000, ("10.1.2.3", 2)))
    parameters = {"run_id": "package", "which": "club", "seed": 3, "episode": 4, "is_brief": False}
    assert ends == [parameters | {"viewer": viewer} for viewer in ("10.1.2.3", "x" * 100)]


def test_any_number_of_requested_games_leaves_the_page_responsive(tmp_path, pools, monkeypatch):
    """With two threads, which none of the waiting requests keeps."""
    monkeypatch.setattr(threads, "_free_threads", threading.BoundedSemaphore(2))
    monkeypatch.setattr(reels, "MAX_WAITING", 60)
    answers = []
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=PATIENCE) as client:

        def ask_for_a_game(number):
            address = f"{served.url}/api/runs/package/reels/club/{number}/0?viewer={number}"
            while (answer := httpx.get(address, timeout=PATIENCE)).json().get("problem"):
                pass  # for that moment the threads read which agents there are
            answers.append(answer)

        crowd = [threading.Thread(target=ask_for_a_game, args=(each,)) for each in range(12)]
        for each in crowd:
            each.start()
        (pool,) = pools
        for number in range(12):
            wait_until(lambda number=number: len(pool.games) > number)
            if number == 0:
                wait_until(lambda: client.get("/api/runs").status_code == 200)
            pool.games[number].set_result(b'{"seed": 1}')
        join(*crowd)
        assert client.get("/api/runs").json() == {"runs": []}
    assert [answer.json() for answer in answers] == [{"seed": 1}] * 12


def test_games_whose_agents_are_looked_for_leave_threads_for_the_page(tmp_path, monkeypatch):
    goes_on, begun = threading.Event(), []

    def find(shelf, *_, **__):
        begun.append(1)
        goes_on.wait(PATIENCE)
        raise RunError("There is none.")

    monkeypatch.setattr(Library, "find_reel", find)
    free = threading.BoundedSemaphore(library.MAX_FINDING + 1)
    monkeypatch.setattr(threads, "_free_threads", free)
    answers = []
    with serving(tmp_path) as served:
        address = f"{served.url}/api/runs/package/reels/club"
        ask = lambda: answers.append(httpx.get(address, timeout=PATIENCE).status_code)  # noqa: E731
        crowd = [threading.Thread(target=ask) for _ in range(8)]
        for each in crowd:
            each.start()
        wait_until(lambda: len(begun) == library.MAX_FINDING)
        assert httpx.get(f"{served.url}/api/runs", timeout=PATIENCE).json() == {"runs": []}
        goes_on.set()
        join(*crowd)
    assert answers == [404] * 8


# --- games against a person ---------------------------------------------------------------------


def address_of(served, which="club"):
    return f"{served.url.replace('http', 'ws')}/game?run=package&agent={which}"


def test_more_games_than_the_server_bears_are_refused_with_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(game, "MAX_GAMES", 2)
    with serving(tmp_path) as served, contextlib.ExitStack() as stack:

        def begin():
            how = {"origin": served.url, "ping_interval": None}
            socket = stack.enter_context(connect(address_of(served), **how))
            return socket, json.loads(socket.recv())

        (first, _), (_, told) = begin(), begin()
        assert list(told) == ["palette"]
        late, told = begin()
        assert told["problem"].startswith("2 games are being played already")
        with pytest.raises(ConnectionClosed):
            late.recv()
        first.close()
        wait_until(lambda: "palette" in begin()[1])


def test_games_that_are_being_loaded_leave_threads_for_the_page(tmp_path, monkeypatch):
    goes_on, load = threading.Event(), Library.load_agent
    loading = []

    def load_slowly(shelf, run_id, which):
        loading.append(which)
        goes_on.wait(PATIENCE)
        return load(shelf, run_id, which)

    monkeypatch.setattr(Library, "load_agent", load_slowly)
    free = threading.BoundedSemaphore(game.MAX_LOADING + 1)
    monkeypatch.setattr(threads, "_free_threads", free)
    with serving(tmp_path) as served, contextlib.ExitStack() as stack:
        how = {"origin": served.url, "ping_interval": None}
        crowd = [stack.enter_context(connect(address_of(served), **how)) for _ in range(10)]
        wait_until(lambda: len(loading) == game.MAX_LOADING)
        assert httpx.get(f"{served.url}/api/runs", timeout=PATIENCE).json() == {"runs": []}
        assert len(loading) == game.MAX_LOADING
        goes_on.set()
        assert all("palette" in json.loads(socket.recv()) for socket in crowd)


def test_games_share_their_agent_while_its_files_are_the_same(toy_runs, tmp_path, monkeypatch):
    """The parameters of an agent may take 30 MB."""
    reads, read = [], Agent.read.__func__
    count = lambda cls, *words, **how: reads.append(words) or read(cls, *words, **how)  # noqa: E731
    monkeypatch.setattr(Agent, "read", classmethod(count))
    run = RunDirectory(toy_runs["fast"])
    file = tmp_path / "mine.safetensors"
    Agents.of_run(run).load("latest").write(file)
    shelf = Library(run.path.parent, file)
    for run_id, which in (("fast", "best"), ("fast", "0"), (shelf.id_of(file), "best")):
        agent = shelf.load_agent(run_id, which)
        reads.clear()
        assert shelf.load_agent(run_id, which) is agent
        assert reads == []
    Agents.of_run(run).load("0").write(tmp_path / "other")
    os.replace(tmp_path / "other", file)
    other = shelf.load_agent(shelf.id_of(file))
    assert other is not agent
    assert other.about["update"] != agent.about["update"]
    del other
    reads.clear()
    shelf.load_agent(shelf.id_of(file))
    assert len(reads) == 1, "without a game nothing is kept"
    shelf.close()


class NotingLock:
    """A lock that notes who tries to take it."""

    def __init__(self, attempts):
        self.attempts, self.lock = attempts, threading.Lock()

    def __enter__(self):
        self.attempts.append(1)
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_of_two_who_load_the_same_agent_at_once_one_waits_and_finds_it(tmp_path, monkeypatch):
    shelf, attempts, reads = Library(tmp_path), [], []
    read = Agent.read.__func__

    def read_late(cls, *words, **how):
        reads.append(1)
        wait_until(lambda: len(attempts) == 2 or len(reads) == 2)
        return read(cls, *words, **how)

    monkeypatch.setattr(Agent, "read", classmethod(read_late))
    monkeypatch.setattr(shelf, "_loading", {None: NotingLock(attempts)})
    agents = []
    crowd = [
        threading.Thread(target=lambda: agents.append(shelf.load_agent("package", "club")))
        for _ in range(2)
    ]
    for each in crowd:
        each.start()
    join(*crowd)
    assert agents[0] is agents[1]
    shelf.close()
