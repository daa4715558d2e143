"""Ray and its cluster, made of nothing, for `pixelpong.engines.ray`.

Nodes of one core each come and go. An actor does its calls in their order; a task is done wherever
a core is free. Ray gives an answer once or never, so here none comes twice.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ray import exceptions
from simulation import ITEM_TIMEOUT, World

from pixelpong.engines import answers
from pixelpong.engines import ray as engine
from pixelpong.engines.ray import seats


class Ref:
    """What a call will give."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.is_done = False
        self.value: Any = None

    def hex(self) -> str:
        """Its name."""
        return f"{self._number:x}"

    def resolve(self, value: Any) -> None:
        """The answer has come; a later one is none."""
        if not self.is_done:
            self.is_done, self.value = True, value


class Core:
    """Room for one actor or one task at a time, on a node of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.user: Any = None


class Doer:
    """A process that does calls: an actor, or a task with its one call."""

    def __init__(self, cluster: Cluster, what: str) -> None:
        self._cluster, self._world = cluster, cluster.world
        self.what = what
        self.core: Core | None = None
        self.is_dead = self._hangs = self._is_busy = False
        self._calls: deque[tuple[Ref, Callable[[], Any]]] = deque()
        self._missed: list[Callable[[], None]] = []

    def ask(self, ref: Ref, call: Callable[[], Any]) -> None:
        """Do a call when it is its turn."""
        if self.is_dead:
            ref.resolve(exceptions.RayActorError())
        self._calls.append((ref, call))
        self._world.after(1e-3, self.do_next)

    def do_next(self) -> None:
        """Do the first call, where there is room and nothing else to do."""
        if self.core and self._calls and not self._is_busy and self._is_well(self.do_next):
            self._is_busy = True
            ref, call = self._calls[0]
            before = self._world.perf_counter()
            with self._cluster.seen_from(self.core):
                value = call()
            seconds = self._world.perf_counter() - before
            is_in_danger = seconds > 0 or self._world.happens(0.5)
            accident = self._world.draw_accident() if is_in_danger else "none"
            if accident in ("dies", "hangs", "pauses"):
                moment = self._world.rng.random() * seconds
                self._world.after(moment, lambda: self.suffer(accident, "in a call"))
            self._world.after(seconds, lambda: self._answer(ref, value, accident))

    def suffer(self, accident: str, when: str) -> None:
        """Die, or hang."""
        if self.is_dead:
            return
        self._world.tell(f"{self.what} {accident} {when}")
        if accident == "dies":
            self.die()
            return
        self._hangs = True
        if accident == "pauses":
            self._world.after(self._world.rng.random() * 2 * ITEM_TIMEOUT, self._wake)

    def die(self) -> None:
        """End, and with it all its calls."""
        self.is_dead = True
        self._cluster.leave(self)
        for ref, _ in self._calls:  # the driver hears of it a little later
            late = self._world.rng.random() * 0.1
            self._world.after(late, functools.partial(ref.resolve, exceptions.RayActorError()))

    def _answer(self, ref: Ref, value: Any, accident: str) -> None:
        if not self._is_well(lambda: self._answer(ref, value, accident)):
            return
        if accident == "half":
            self.suffer("dies", "in the middle of an answer")
            return
        self._calls.popleft()
        late = self._world.rng.random() * 2 * ITEM_TIMEOUT if accident == "delayed" else 1e-3
        if accident in ("dropped", "delayed"):
            self._world.tell(f"{self.what} has an answer {accident}")
        if accident != "dropped":
            self._world.after(late, lambda: ref.resolve(value))
        self._is_busy = False
        if accident == "dies after it":
            self.suffer("dies", "after an answer")
        self.do_next()

    def _is_well(self, action: Callable[[], None]) -> bool:
        if not self.is_dead and self._hangs:
            self._missed.append(action)
        return not self.is_dead and not self._hangs

    def _wake(self) -> None:
        self._hangs, missed, self._missed = False, self._missed, []
        for action in missed:
            action()


class Task(Doer):
    """Leaves its core when its call is done."""

    def _answer(self, ref: Ref, value: Any, accident: str) -> None:
        super()._answer(ref, value, accident)
        if not self._calls:
            self.is_dead = True
            self._cluster.leave(self)


class Crew:
    """A node's thread engine: one thread of it, for in a simulated world nothing waits."""

    num_restarts = 0

    def __init__(self, make_worker: Callable[[], Any], num_workers: int, item_timeout: float):
        self._worker = make_worker()

    def run(self, items: list[Any], params: Any) -> Iterator[Any]:
        return (self._worker.play(item, params) for item in items)


class Cluster:
    """The module `ray`, as the engine and its seats use it."""

    exceptions = exceptions

    def __init__(self, world: World, num_nodes: int) -> None:
        self.world = world
        self._numbers = itertools.count(1)
        self._cores = [Core(f"node {next(self._numbers)}") for _ in range(num_nodes)]
        self._queue: deque[Doer] = deque()
        self._tasks: dict[Ref, Doer] = {}
        self._here = ""
        world.after(world.rng.uniform(1, 10), self._change)

    # --- what the engine calls ---

    def put(self, value: Any) -> Ref:
        ref = Ref(next(self._numbers))
        ref.resolve(pickle.loads(pickle.dumps(value)))
        return ref

    def get(self, ref: Ref) -> Any:
        assert ref.is_done
        if isinstance(ref.value, Exception):
            raise ref.value
        return ref.value

    def wait(self, refs: list[Ref], num_returns: int, timeout: float) -> tuple[list, list]:
        self.world.wait_for(lambda: sum(ref.is_done for ref in refs) >= num_returns, timeout)
        done = [ref for ref in refs if ref.is_done][:num_returns]
        return done, [ref for ref in refs if ref not in done]

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}} for _ in self._cores]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(len(self._cores))}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": float(sum(core.user is None for core in self._cores))}

    def kill(self, actor: Any) -> None:
        if not actor.doer.is_dead:
            actor.doer.die()

    def cancel(self, ref: Ref, *, force: bool) -> None:
        assert force
        if not self._tasks[ref].is_dead:
            self._tasks[ref].die()

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: self._here)

    def as_remote(self, what: Any) -> Any:
        """`ray.remote`: a class makes actors, a function tasks."""
        make = self._make_actor if isinstance(what, type) else self._make_task
        remote = SimpleNamespace(remote=functools.partial(make, what))
        return SimpleNamespace(options=lambda **_: remote)

    # --- what happens in it ---

    def leave(self, doer: Doer) -> None:
        """Its core is free for others."""
        if doer.core is not None:
            doer.core.user = None
            self.world.after(0.01, self._seat)

    @contextmanager
    def seen_from(self, core: Core) -> Iterator[None]:
        """While inside, code runs on the node of this core."""
        self._here = core.name
        yield

    def _make_actor(self, what: type) -> Any:
        instance, doer = what(), Doer(self, f"actor {next(self._numbers)}")
        self._enter(doer)

        def method(name: str) -> Any:
            def remote(*args: Any) -> Ref:
                ref = Ref(next(self._numbers))
                values = [arg.value if isinstance(arg, Ref) else arg for arg in args]
                doer.ask(ref, lambda: getattr(instance, name)(*values))
                return ref

            return SimpleNamespace(remote=remote)

        names = ("place", "start", "play")
        return SimpleNamespace(doer=doer, **{name: method(name) for name in names})

    def _make_task(self, what: Callable[..., Any], *args: Any) -> Ref:
        ref = Ref(next(self._numbers))
        values = [arg.value if isinstance(arg, Ref) else arg for arg in args]
        doer = Task(self, f"task {ref.hex()}")
        self._tasks[ref] = doer
        doer.ask(ref, lambda: what(*values))
        self._enter(doer)
        return ref

    def _enter(self, doer: Doer) -> None:
        self._queue.append(doer)
        self.world.after(self.world.rng.uniform(0.01, 0.5), self._seat)

    def _seat(self) -> None:
        """Give free cores to those who wait."""
        for core in self._cores:
            while core.user is None and self._queue:
                doer = self._queue.popleft()
                if not doer.is_dead:
                    core.user, doer.core = doer, core
                    doer.do_next()

    def _change(self) -> None:
        """A node is lost, or another one joins."""
        self.world.after(self.world.rng.uniform(1, 10), self._change)
        if not self.world.happens(2.0):
            return
        if len(self._cores) > 1 and self.world.rng.random() < 0.5:
            core = self._cores.pop(self.world.rng.randrange(len(self._cores)))
            self.world.tell(f"{core.name} is lost")
            if core.user is not None:
                core.user.die()
        elif len(self._cores) < 5:
            self._cores.append(Core(f"node {next(self._numbers)}"))
            self.world.tell(f"{self._cores[-1].name} joins")
            self._seat()


_describe_machine = functools.cache(engine.describe_machine)
_collect_versions = functools.cache(engine.collect_versions)


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """While inside, `RayEngine` lives in `world`."""
    cluster = Cluster(world, world.rng.randint(1, 4))
    seats._made.clear()
    with (
        patch.object(engine, "ray", cluster),
        patch.object(engine, "connected", lambda *_: nullcontext()),
        patch.object(engine, "time", world),
        patch.object(engine, "describe_machine", _describe_machine),
        patch.object(engine, "collect_versions", _collect_versions),
        patch.object(seats, "ray", cluster),
        patch.object(seats, "_as_remote", cluster.as_remote),
        patch.object(seats, "_settle", lambda: None),
        patch.object(seats, "ThreadEngine", Crew),
        patch.object(seats, "time", world),
        patch.object(seats, "describe_machine", _describe_machine),
        patch.object(seats, "collect_versions", _collect_versions),
        patch.object(answers, "time", world),
    ):
        yield
