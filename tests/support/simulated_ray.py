"""Ray and its cluster, made of nothing, for `pixelpong.engines.ray`.

Nodes come and go. A task is done wherever a core is free. If the
process of one dies, or its node is lost, it is lost.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from simulation import ITEM_TIMEOUT, World

from pixelpong.engines import ray as engine
from pixelpong.engines.ray import connection

exceptions = engine.exceptions


class Ref:
    """What a call will give: its first answer, and no later one."""

    is_done, value = False, None

    def resolve(self, value: Any) -> None:
        if not self.is_done:
            self.is_done, self.value = True, value


@dataclass(eq=False)
class Call:
    """A call under way: what is to be done."""

    action: Callable[[Any], Any]
    ref: Ref = field(default_factory=Ref)
    is_begun: bool = False


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
        self._width = options.get("max_concurrency", 1)
        self.wanted = getattr(options["scheduling_strategy"], "node_id", None)  # of an actor
        self.node: Node | None = None
        self.is_gone = self._hangs = False
        self.pid, self._instance = 0, None
        self._calls: list[Call] = []
        self._missed: list[Callable[[], None]] = []
        self._world.after(self._world.rng.uniform(0.01, 0.5), functools.partial(cluster.seat, self))

    def ask(self, action: Callable[[Any], Any]) -> Ref:
        call = Call(action)
        self._calls.append(call)
        if self.is_gone:
            self._fail([call], exceptions.ActorDiedError())
        self._world.after(1e-3, self.work)
        return call.ref

    def begin(self, node: Node) -> None:
        self.node, self.pid, self._instance = node, next(self._cluster.numbers), self._make()
        self.work()

    def work(self) -> None:
        """Begin with as many calls as go at a time."""
        for call in self._calls[: self._width]:
            if self.pid and not call.is_begun and self._is_well(self.work):
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
        self._fail(self._calls, error)
        self._leave(5.0 if self._hangs else 0.1)

    def _do(self, call: Call) -> None:
        pid, before = self.pid, self._world.perf_counter()
        with self._cluster.seen_from(self):
            value = call.action(self._instance)
        seconds = self._world.perf_counter() - before
        is_in_danger = seconds > 0 or self._world.happens(0.5)
        accident = self._world.draw_accident() if is_in_danger else "none"
        if accident in ("dies", "hangs", "pauses"):
            moment = self._world.rng.random() * seconds
            self._world.after(moment, lambda: self._suffer(pid, accident, "in a call"))
        self._world.after(seconds, lambda: self._answer(pid, call, value, accident))

    def _suffer(self, pid: int, accident: str, when: str) -> None:
        if self.pid != pid:
            return
        self._world.tell(f"{pid} {accident} {when}")
        if accident == "dies":
            self.die()
            return
        self._hangs = True
        if accident == "pauses":
            self._world.after(self._world.rng.random() * 2 * ITEM_TIMEOUT, self._wake)

    def _answer(self, pid: int, call: Call, value: Any, accident: str) -> None:
        if self.pid != pid or not self._is_well(lambda: self._answer(pid, call, value, accident)):
            return
        if accident == "half":
            self._suffer(pid, "dies", "in the middle of an answer")
            return
        late = self._world.rng.random() * 2 * ITEM_TIMEOUT if accident == "delayed" else 1e-3
        if accident in ("dropped", "delayed"):
            self._world.tell(f"{pid} has an answer {accident}")
        if accident != "dropped":
            self._world.after(late, lambda: call.ref.resolve(value))
        self._calls.remove(call)
        if self.wanted is None:  # a task: it leaves its core
            self._leave(0.01)
        elif accident == "dies after it":
            self._suffer(pid, "dies", "after an answer")
        self.work()

    def _fail(self, calls: list[Call], error: Exception) -> None:
        late = self._world.rng.random() * 0.1  # the driver hears of all at once, a little later
        for call in calls:
            self._world.after(late, functools.partial(call.ref.resolve, error))

    def _leave(self, after: float) -> None:
        self.is_gone, self.pid = True, 0
        if self.node is not None:
            node, self.node = self.node, None
            self._world.after(after, functools.partial(self._cluster.free, node, self.cores))

    def _is_well(self, action: Callable[[], None]) -> bool:
        if self._hangs:
            self._missed.append(action)
        return not self._hangs

    def _wake(self) -> None:
        self._hangs, missed, self._missed = False, self._missed, []
        for action in missed:
            action()


class Cluster:
    """The module `ray`, as the engine uses it, and its actor and its task."""

    def __init__(self, world: World, num_nodes: int) -> None:
        self.world, self.exceptions = world, exceptions
        self.numbers = itertools.count(1)
        self._nodes = [self._make_node() for _ in range(num_nodes)]
        self._waiting: list[Doer] = []
        self._doers: list[Doer] = []
        self._tasks: dict[Ref, Doer] = {}
        world.after(world.rng.uniform(1, 10), self._change)

    # --- what the engine calls ---

    def options(self, **options: Any) -> Any:
        """Of an actor."""
        return SimpleNamespace(remote=functools.partial(self._make_actor, options))

    def remote(self, *args: Any) -> Ref:
        """Call a task."""
        doer = Doer(self, {"num_cpus": 1, "scheduling_strategy": "SPREAD"}, lambda: None)
        ref = doer.ask(lambda _: engine.play_in_task(*_values(args)))
        self._tasks[ref] = doer
        return ref

    def put(self, value: Any) -> Ref:
        ref = Ref()
        ref.resolve(pickle.loads(pickle.dumps(value)))
        return ref

    def get(self, ref: Ref) -> Any:
        assert ref.is_done
        if isinstance(ref.value, Exception):
            raise ref.value
        return ref.value

    def wait(self, refs: list[Ref], timeout: float, num_returns: int = 1) -> tuple[list, list]:
        self.world.wait_for(lambda: sum(ref.is_done for ref in refs) >= num_returns, timeout)
        done = [ref for ref in refs if ref.is_done][:num_returns]
        return done, [ref for ref in refs if ref not in done]

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": node.name, "Alive": node.is_alive, "Resources": {"CPU": float(node.cores)}}
            for node in self._nodes
        ]

    def cluster_resources(self, count: str = "cores") -> dict[str, float]:
        return {"CPU": float(sum(getattr(it, count) for it in self._nodes if it.is_alive))}

    def available_resources(self) -> dict[str, float]:
        return self.cluster_resources("free")

    def kill(self, actor: Any) -> None:
        actor.doer.end(exceptions.ActorDiedError())

    def cancel(self, ref: Ref, *, force: bool) -> None:
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

    @contextmanager
    def seen_from(self, doer: Doer) -> Iterator[None]:
        """While inside, code runs in the process of `doer`."""
        if doer.wanted is None and self.world.rng.random() < 0.3:
            engine._own_actor.cache_clear()  # a process that has not played yet
        yield

    def _make_actor(self, options: dict[str, Any], *args: Any) -> Any:
        doer = Doer(self, options, functools.partial(engine.Actor, *args))

        def play(*args: Any) -> Ref:
            return doer.ask(lambda instance: instance.play(*_values(args)))

        return SimpleNamespace(doer=doer, play=SimpleNamespace(remote=play))

    def _make_node(self) -> Node:
        name, cores = f"{next(self.numbers):056x}", self.world.rng.choice((1, 1, 2, 3))
        return Node(name, cores, cores)

    def _change(self) -> None:
        """A node is lost, or another one joins."""
        self.world.after(self.world.rng.uniform(1, 10), self._change)
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


def _values(args: tuple[Any, ...]) -> list[Any]:
    return [arg.value if isinstance(arg, Ref) else arg for arg in args]


def one_thread(make_worker: Callable[[], Any], num_workers: int) -> SimpleNamespace:
    """An actor's threads: one of them, for in a simulated world nothing waits."""
    play = make_worker().play
    return SimpleNamespace(run=lambda items, params: (play(item, params) for item in items))


_describe_machine = functools.cache(engine.describe_machine)
_collect_versions = functools.cache(engine.collect_versions)


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """While inside, `RayEngine` lives in `world`."""
    cluster = Cluster(world, world.rng.randint(1, 4))
    engine._own_actor.cache_clear()
    with (
        patch.multiple(engine, ray=cluster, time=world, connected=lambda *_: nullcontext()),
        patch.multiple(engine, _Actor=cluster, _task=cluster, describe_machine=_describe_machine),
        patch.multiple(engine, threadpool_limits=lambda limits: None, ThreadEngine=one_thread),
        patch.object(engine, "collect_versions", _collect_versions),
        patch.object(connection, "collect_versions", _collect_versions),
    ):
        yield
