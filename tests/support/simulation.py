"""A world of its own time, in which the Ray engine meets every accident, drawn from one seed.

Replaced are the clock and Ray itself, with its cluster: nodes come and go, a task is done wherever
a core is free, and if the process of one dies, or its node is lost, it is lost. The engine, its
book of items, its messages, the answers of the workers, the learner and the game are the real ones.
Nothing waits: a training of three updates takes some milliseconds. The same seed gives the same
accidents in the same order, so that a seed that fails can be looked at again; `World.story` tells
what happened.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from toys import toy_config
from world import ITEM_TIMEOUT, World

from pixelpong.engines import ray as engine
from pixelpong.engines.ray import actor, connection
from pixelpong.play.worker import make_worker

exceptions = engine.exceptions

CONFIGS = {
    "classic": toy_config("classic", hidden=1, batch_size=12),
    "fast": toy_config(
        "fast", hidden=1, num_envs=12, num_steps=8, num_minibatches=2, update_epochs=1
    ),
}
"""A small training of short games in each mode."""


class RecordedWorker:
    """The real worker of a mode; what it has played before is not played anew.

    A result is found by the item and by every bit of the parameters it was asked to play with.
    """

    def __init__(self, mode: str) -> None:
        self._worker = make_worker(CONFIGS[mode])
        self._results: dict[tuple[bytes, int], Any] = {}
        self.world: World | None = None

    def play(self, item: Any, params: Any) -> Any:
        seal = 0
        for name in sorted(params):
            seal = zlib.crc32(params[name], seal)
        key = pickle.dumps(item, protocol=5), seal
        if key not in self._results:  # without the wall times: the same whenever it was played
            result = self._worker.play(item, params)
            self._results[key] = dataclasses.replace(result, seconds=0.0)
        if self.world is not None:
            self.world.lapse()
        return self._results[key]


@functools.cache
def recorded_worker(mode: str) -> RecordedWorker:
    """The one recorded worker of a mode; a function of the module, so that it can be pickled."""
    return RecordedWorker(mode)


# --- Ray --------------------------------------------------------------------------------------


class Call:
    """A call, and what it will give: its first answer, and no later one."""

    def __init__(self, action: Callable[[Any], Any] | None = None) -> None:
        self.action = action
        self.is_begun = self.is_done = False
        self.value: Any = None

    def resolve(self, value: Any) -> None:
        if not self.is_done:
            self.is_done, self.value = True, value


@dataclass(eq=False)
class Node:
    """A machine with a few cores."""

    name: str
    cores: int
    free: int
    is_alive: bool = True


class Doer:
    """An actor, or a task with its one call; without a node while it waits for room."""

    def __init__(self, cluster: Cluster, options: dict[str, Any], make: Callable[[], Any]) -> None:
        self._cluster, self._world = cluster, cluster.world
        self._make, self.cores = make, options["num_cpus"]
        self.wanted = getattr(options["scheduling_strategy"], "node_id", None)  # of an actor
        self.node: Node | None = None
        self.is_gone = self._hangs = self._has_played = False
        self.pid, self._instance = 0, None
        self._call: Call | None = None  # the engine makes one at a time
        self._world.after(self._world.rng.uniform(0.01, 0.5), functools.partial(cluster.seat, self))

    def ask(self, action: Callable[[Any], Any]) -> Call:
        self._call = call = Call(action)
        if self.is_gone:
            self._fail(exceptions.ActorDiedError())
        self._world.after(1e-3, self.work)
        return call

    def begin(self, node: Node) -> None:
        self.node = node
        if self._world.start_seconds:
            self._world.after(self._world.start_seconds, self._start)
        else:
            self._start()

    def _start(self) -> None:
        if not self.is_gone:
            self.pid, self._instance = next(self._cluster.numbers), self._make()
            self.work()

    def work(self) -> None:
        call = self._call
        if self.pid and call and not call.is_begun and not self._hangs:
            call.is_begun = True
            self._do(call)

    def die(self) -> None:
        if self.wanted is None:
            self.end(exceptions.WorkerCrashedError())
        elif self._world.rng.random() < 0.5:
            self.end(exceptions.ActorDiedError())
        else:
            self.end(exceptions.ActorUnavailableError("it died", b"\0" * 16))

    def end(self, error: Exception) -> None:
        """It is ended for good; what hangs keeps its cores for some seconds."""
        self._fail(error)
        self._leave(5.0 if self._hangs else 0.1)

    def _do(self, call: Call) -> None:
        pid, before = self.pid, self._world.perf_counter()
        if self.wanted is None and self._world.rng.random() < 0.3:
            actor.actor_of_process.cache_clear()  # a process that has not played yet
        value = call.action(self._instance)
        seconds = self._world.perf_counter() - before
        if seconds > 0 and not self._has_played:
            self._has_played = True
            seconds += self._world.compile_seconds
        is_in_danger = seconds > 0 or self._world.happens(0.5)
        accident = self._world.draw_accident() if is_in_danger else "none"
        if accident in ("dies", "hangs"):
            moment = self._world.rng.random() * seconds
            self._world.after(moment, lambda: self._suffer(pid, accident))
        self._world.after(seconds, lambda: self._answer(pid, call, value, accident))

    def _suffer(self, pid: int, accident: str) -> None:
        if self.pid != pid:
            return
        self._world.tell(f"{pid} {accident}")
        if accident == "hangs":
            self._hangs = True
        else:
            self.die()

    def _answer(self, pid: int, call: Call, value: Any, accident: str) -> None:
        if self.pid != pid or self._hangs:
            return
        late = self._world.rng.random() * 2 * ITEM_TIMEOUT if accident == "delayed" else 1e-3
        if accident in ("dropped", "delayed"):
            self._world.tell(f"{pid} has an answer {accident}")
        if accident != "dropped":
            self._world.after(late, lambda: call.resolve(value))
        self._call = None
        if self.wanted is None:  # a task: it leaves its core
            self._leave(0.01)
        elif accident == "dies after it":
            self._suffer(pid, accident)

    def _fail(self, error: Exception) -> None:
        if self._call is not None:  # the driver hears of it a little later
            late = self._world.rng.random() * 0.1
            self._world.after(late, functools.partial(self._call.resolve, error))

    def _leave(self, after: float) -> None:
        self.is_gone, self.pid = True, 0
        if self.node is not None:
            node, self.node = self.node, None
            self._world.after(after, functools.partial(self._cluster.free, node, self.cores))


class Cluster:
    """The module `ray`, as the engine uses it, and its actor and its task."""

    def __init__(self, world: World, num_nodes: int) -> None:
        self.world, self.exceptions = world, exceptions
        self.numbers = itertools.count(1)
        self._nodes = [self._make_node() for _ in range(num_nodes)]
        self._waiting: list[Doer] = []
        self._doers: list[Doer] = []
        self._tasks: dict[Call, Doer] = {}
        world.after(world.rng.uniform(1, 10), self._change)

    # --- what the engine calls ---

    def options(self, **options: Any) -> Any:
        """Of an actor."""
        return SimpleNamespace(remote=functools.partial(self._make_actor, options))

    def remote(self, *args: Any) -> Call:
        """Call a task."""
        doer = Doer(self, {"num_cpus": 1, "scheduling_strategy": "SPREAD"}, lambda: None)
        ref = doer.ask(lambda _: actor.play_in_task(*_values(args)))
        self._tasks[ref] = doer
        return ref

    def put(self, value: Any) -> Call:
        ref = Call()
        ref.resolve(pickle.loads(pickle.dumps(value)))
        return ref

    def get(self, ref: Call) -> Any:
        assert ref.is_done
        if isinstance(ref.value, Exception):
            raise ref.value
        return ref.value

    def wait(self, refs: list[Call], timeout: float, num_returns: int = 1) -> tuple[list, list]:
        self.world.wait_for(lambda: sum(ref.is_done for ref in refs) >= num_returns, timeout)
        done = [ref for ref in refs if ref.is_done][:num_returns]
        return done, [ref for ref in refs if ref not in done]

    def nodes(self) -> list[engine.Node]:
        return [engine.Node(it.name, it.cores, it.free) for it in self._nodes if it.is_alive]

    def kill(self, actor: Doer) -> None:
        actor.end(exceptions.ActorDiedError())

    def cancel(self, ref: Call, *, force: bool) -> None:
        assert force
        self._tasks[ref].end(exceptions.TaskCancelledError())

    # --- what happens in it ---

    def seat(self, doer: Doer | None = None) -> None:
        """Give free cores to those who wait."""
        if doer is not None:
            self._waiting.append(doer)
            self._doers.append(doer)
        for each in list(self._waiting):
            fits = [
                node for node in self._nodes
                if node.is_alive and node.free >= each.cores and each.wanted in (None, node.name)
            ]  # fmt: skip
            if each.is_gone or fits:
                self._waiting.remove(each)
            if fits and not each.is_gone:
                fits[0].free -= each.cores
                each.begin(fits[0])

    def free(self, node: Node, cores: int) -> None:
        node.free += cores
        self.seat()

    def _make_actor(self, options: dict[str, Any], *args: Any) -> Doer:
        doer = Doer(self, options, functools.partial(actor.Actor, *args))

        def play(*args: Any) -> Call:
            return doer.ask(lambda instance: instance.play_chunk(*_values(args)))

        doer.play_chunk = SimpleNamespace(remote=play)
        return doer

    def _make_node(self) -> Node:
        name, cores = f"{next(self.numbers):056x}", self.world.rng.choice((1, 1, 2, 3))
        return Node(name, cores, cores)

    def _change(self) -> None:
        """A node is lost, or another one joins."""
        self.world.after(self.world.rng.uniform(1, 10), self._change)
        self._let_another_job_in()
        alive = [node for node in self._nodes if node.is_alive]
        if not self.world.happens(2.0):
            return
        if len(alive) > 1 and self.world.rng.random() < 0.5:
            lost = self.world.rng.choice(alive)
            lost.is_alive = False
            self.world.tell(f"node {lost.name[-6:]} is lost")
            for doer in [each for each in self._doers if each.node is lost]:
                doer.die()
        elif len(alive) < 5:
            self._nodes.append(self._make_node())
            self.world.tell(f"node {self._nodes[-1].name[-6:]} joins")
            self.seat()

    def add(self, cores: Sequence[int]) -> None:
        """Add nodes with so many cores."""
        self._nodes += [Node(f"{next(self.numbers):056x}", count, count) for count in cores]

    def occupy(self, cores: int, seconds: float = float("inf")) -> None:
        """Another job takes free cores of the first node, and gives them back later."""
        node = self._nodes[0]
        node.free -= cores
        self.world.after(seconds, lambda: self.free(node, cores))

    def _let_another_job_in(self) -> None:
        """It takes a core for a while."""
        node = self.world.rng.choice(self._nodes)
        if self.world.happens() and node.is_alive and node.free:
            node.free -= 1
            self.world.tell("another job takes a core")
            self.world.after(self.world.rng.uniform(0.1, 40), lambda: self.free(node, 1))


class View:
    """What the driver knows of the cluster: up to a second ago, as from Ray itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._seen, self._seen_at = cluster, cluster.nodes(), 0.0

    def check(self) -> None:
        """The head is never lost here."""

    wait_until_sure = check

    def nodes(self) -> list[engine.Node]:
        now = self._cluster.world.monotonic()
        if now - self._seen_at > 1.0:
            self._seen, self._seen_at = self._cluster.nodes(), now
        return self._seen


def _values(args: tuple[Any, ...]) -> list[Any]:
    return [arg.value if isinstance(arg, Call) else arg for arg in args]


def one_thread(make_worker: Callable[[], Any], num_workers: int) -> SimpleNamespace:
    """An actor's threads: one of them, for in a simulated world nothing waits."""
    play = make_worker().play
    return SimpleNamespace(run=lambda items, params: (play(item, params) for item in items))


_collect_versions = functools.cache(engine.collect_versions)


@contextmanager
def simulated_ray(world: World, cores: Sequence[int] | None = None) -> Iterator[Cluster]:
    """While inside, `RayEngine` lives in `world`, on nodes with some cores or with these."""
    cluster = Cluster(world, world.rng.randint(1, 4) if cores is None else 0)
    cluster.add(cores or ())
    actor.actor_of_process.cache_clear()
    with (
        patch.multiple(engine, ray=cluster, time=world),
        patch.object(engine, "connected", lambda *_: nullcontext(View(cluster))),
        patch.multiple(engine, _Actor=cluster, _task=cluster),
        patch.multiple(actor, threadpool_limits=lambda limits: None, ThreadEngine=one_thread),
        patch.object(engine, "collect_versions", _collect_versions),
        patch.object(connection, "collect_versions", _collect_versions),
    ):
        yield cluster
