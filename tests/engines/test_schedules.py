"""Any schedule gives the same result: the engines among accidents of every kind, by the thousand.

A seed that fails is named; for Ray, whose world is simulated, `simulate("ray", seed)` lives through
it again, and its story is shown. Threads are real: of each seed, the system makes a schedule anew.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import threading
from collections.abc import Sequence
from contextlib import closing, nullcontext
from typing import NamedTuple

import pytest
from promises import promise
from simulation import CONFIGS, recorded_worker, simulated_ray
from waiting import pause
from world import ACCIDENTS, ITEM_TIMEOUT, World

from pixelpong.config import Config
from pixelpong.engines import Engine
from pixelpong.engines.ray import RayEngine, _Run
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import Interrupted, WorkerError
from pixelpong.items import Item
from pixelpong.learners import make_learner
from pixelpong.play.worker import combine
from pixelpong.run.arrays import fingerprint

pytestmark = promise("any engine")


class Training:
    """A training without a disk: what is learned and what would be written down."""

    def __init__(self, mode: str) -> None:
        self.learner = make_learner(CONFIGS[mode])
        self._lines: list[str] = []

    def update(self, engine) -> None:
        asked = self.learner.items(), self.learner.params
        stats = self.learner.apply(engine.run(*asked))
        line = self.learner.progress.line() | stats.metrics
        episodes = [episode.line() for episode in stats.episodes]
        self._lines.append(json.dumps([line, episodes]))

    def is_done(self) -> bool:
        return self.learner.progress.update == self.learner.config.updates

    def hash(self) -> str:
        arrays, counters = self.learner.get_state()
        parts = [fingerprint(arrays), json.dumps(counters), *self._lines]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def undisturbed(mode: str) -> str:
    """The hash of a training in one process, in which nothing happens."""
    training = Training(mode)
    with closing(Engine(functools.partial(recorded_worker, mode))) as engine:
        while not training.is_done():
            training.update(engine)
    return training.hash()


def go_through(mode: str, world: World, make_engine) -> str:
    """Train in a world of accidents; after a stop or a failure, go on with another engine."""
    training, worker = Training(mode), recorded_worker(mode)
    worker.world = world
    try:
        while not training.is_done():
            with closing(make_engine()) as engine:
                try:
                    while not training.is_done():
                        if world.happens():
                            give_up_a_run(engine, training, world)
                        training.update(engine)
                except (WorkerError, Interrupted) as error:
                    world.tell(f"the engine ends: {error}")
    finally:
        worker.world = None
    return training.hash()


def give_up_a_run(engine, training: Training, world: World) -> None:
    """Begin an evaluation with other params, and leave it in the middle."""
    items = [Item("evaluate", 0, 0, index) for index in range(world.rng.randrange(2, 9))]
    params = {name: w + 1 for name, w in training.learner.params.items()}
    run = engine.run(items, params)
    for _ in itertools.islice(run, world.rng.randrange(1, len(items))):
        pass
    run.close()
    world.tell("a run is given up")


def make_rays(mode: str, world: World):
    """Makes Ray engines of one kind; some have as many workers as there are cores."""
    workers = world.rng.choice((None, 1, 2, 3))
    kind = world.rng.choice(("actors", "tasks"))
    make = functools.partial(recorded_worker, mode)
    config = Config(workers=workers, worker_timeout=ITEM_TIMEOUT, ray_mode=kind)
    return lambda: RayEngine(make, config, lambda: world.happens(0.01), combine)


class NervousWorker:
    """Plays as the recorded one, with pauses, and now and then raises."""

    def __init__(self, mode: str, world: World, lock: threading.Lock) -> None:
        self._worker, self._world, self._lock = recorded_worker(mode), world, lock

    def play(self, item, params):
        pause(1e-3 * self._world.rng.random() ** 4)
        with self._lock:  # there is but one
            result = self._worker.play(item, params)
        pause(1e-3 * self._world.rng.random() ** 4)
        if self._world.happens(0.05):
            raise ValueError("nerves")
        return result


def make_threads(mode: str, world: World):
    """Makes thread engines of one number of workers."""
    workers = world.rng.randint(1, 4)
    make = functools.partial(NervousWorker, mode, world, threading.Lock())
    return lambda: ThreadEngine(make, workers, lambda: world.happens(0.01))


def simulate(engine: str, seed: int) -> list[str]:
    """Live through the schedule of a seed, to the same hash; its story."""
    world, mode = World(seed), [*CONFIGS][seed % 2]
    with simulated_ray(world) if engine == "ray" else nullcontext():
        maker = make_rays(mode, world) if engine == "ray" else make_threads(mode, world)
        got = go_through(mode, world, maker)
    assert got == undisturbed(mode), f"{engine}, seed {seed}:\n" + "\n".join(world.story)
    return world.story


KINDS = {
    "threads": {"nerves", "given up", "the engine ends"},
    "ray": {
        " dies\n", *ACCIDENTS, "is lost", "joins", "another job", "given up", "the engine ends",
        "failed 3 times",
    },
}  # fmt: skip
SOAK = pytest.param(5000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [100, SOAK])
@pytest.mark.parametrize("engine", KINDS)
def test_any_schedule_gives_the_same_result(engine, seeds):
    """And every kind of accident happens: else a schedule would be no test of it."""
    stories = [simulate(engine, seed) for seed in range(seeds)]
    text = "\n".join(itertools.chain(*stories))
    assert {kind for kind in KINDS[engine] if kind not in text} == set()
    for seed in range(20 if engine == "ray" else 0):
        assert simulate(engine, seed) == stories[seed], "to the letter"


def test_a_chunk_has_consecutive_items_and_not_more_than_a_slot_plays():
    """After a loss, items that another slot plays lie between those that wait."""
    run = _Run([], None, waiting=[0, 1, 2, 6, 7, 8, 9])
    assert [run.take_chunk(3), run.take_chunk(2)] == [range(3), range(6, 8)]
    assert (run.take_chunk(5), run.waiting) == (range(8, 10), [])
    run.waiting = [0, 2, 3]
    assert [run.take_chunk(3), run.take_chunk(3)] == [range(1), range(2, 4)]


# --- no accident, but a cluster that is slow or that others use too ----------------------------


class Trained(NamedTuple):
    """A training on a simulated cluster."""

    hash: str
    workers: int  # at the end
    actors: int
    seconds: float  # of the simulated world


def train_on(
    cores: Sequence[int],
    *,
    kind: str = "actors",
    start_seconds: float = 0.0,
    compile_seconds: float = 0.0,
    occupied: int = 0,
    taken_late: int = 0,
    is_left_soon: bool = False,
) -> Trained:
    """Train in a quiet world."""
    world, training, worker = World(0, is_quiet=True), Training("fast"), recorded_worker("fast")
    world.start_seconds, world.compile_seconds = start_seconds, compile_seconds
    worker.world = world
    make = functools.partial(recorded_worker, "fast")
    try:
        with simulated_ray(world, cores) as cluster:
            cluster.occupy(occupied, 0.1 if is_left_soon else math.inf)
            with closing(RayEngine(make, Config(ray_mode=kind), combine=combine)) as engine:
                cluster.occupy(taken_late)  # what the driver knows is a second old
                while not training.is_done():
                    training.update(engine)
                actors = len(engine.worker_pids)
                return Trained(training.hash(), engine.stats.workers, actors, world.monotonic())
    finally:
        worker.world = None


def test_actors_that_take_a_minute_to_start_are_waited_for():
    trained = train_on([2, 2], start_seconds=60.0)
    assert trained[:3] == (undisturbed("fast"), 4, 2)
    assert 60 < trained.seconds < 90


def test_actors_that_compile_for_minutes_before_they_play_are_waited_for():
    """Much longer than an item may take."""
    seconds = 2.5 * Config().worker_timeout
    trained = train_on([2, 2], compile_seconds=seconds)
    assert trained[:3] == (undisturbed("fast"), 4, 2)
    assert seconds < trained.seconds < seconds + 30, "once, and at the same time"


@pytest.mark.parametrize("kind", ["actors", "tasks"])
def test_workers_that_never_start_are_one_true_line(kind):
    what = r"within 180 s: processes for 4 CPUs were requested and are still starting;"
    with pytest.raises(WorkerError, match=what):
        train_on([2, 2], kind=kind, start_seconds=1e6)


@pytest.mark.parametrize("kind", ["actors", "tasks"])
def test_the_rest_of_a_cluster_that_others_use_is_used(kind):
    trained = train_on([3], kind=kind, occupied=1)
    assert trained.hash == undisturbed("fast")
    assert trained.workers == 2 or kind == "tasks"  # more tasks than cores wait for their turn
    assert trained.seconds < 25


def test_a_node_that_another_engine_has_just_left_is_used_whole():
    """Ray says for a second more that some of it is in use."""
    trained = train_on([3], occupied=1, is_left_soon=True)
    assert trained[:3] == (undisturbed("fast"), 3, 1)


def test_an_actor_for_which_another_job_left_no_room_is_given_up():
    trained = train_on([3], taken_late=1)
    assert trained[:3] == (undisturbed("fast"), 2, 1)
    assert 5 < trained.seconds < 25, "until Ray must know"


@pytest.mark.parametrize("kind", ["actors", "tasks"])
def test_a_cluster_that_others_use_is_one_true_line(kind):
    with pytest.raises(WorkerError, match=r"within 25 s: 0 of 2 CPUs in the cluster are free;"):
        train_on([2], kind=kind, occupied=2)
