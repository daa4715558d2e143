"""Whatever disturbs a training, it comes to the same bits: one table of disturbances."""

from __future__ import annotations

import functools
import itertools
import signal
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from accidents import planted
from drivers import Driver
from promises import promise
from toys import result_of, same_training, stop_after, toy_config
from waiting import pause, wait_until

from pixelpong import verification
from pixelpong.config.presets import load_preset
from pixelpong.errors import PixelpongError
from pixelpong.loop import Updated, train
from pixelpong.run.directory import RunDirectory

UPDATES = 8
COMMON = {
    "max_frames": 300, "updates": UPDATES, "engine": "serial", "workers": 2, "save_every": 3,
    "save_agent_every": 1, "evaluate_every": 3, "evaluate_episodes": 4, "until_return": None,
}  # fmt: skip
MODES = {
    "classic": {"hidden": 20, "batch_size": 4, "learning_rate": 3e-3},
    "fast": {"hidden": 8, "num_envs": 4, "num_steps": 40, "num_minibatches": 2},
}
"""Each plays four items for an update, and four for an evaluation."""

PLAY = "pixelpong.play.worker:Worker.play"
Disturbance = Callable[[RunDirectory], object]


def make(path: Path, mode: str, **changes: object) -> RunDirectory:
    config = load_preset(mode).updated(COMMON | MODES[mode] | changes, "test")
    return RunDirectory.create(path, config)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Callable[[str], RunDirectory]:
    """A training to which nothing happens, by its mode."""

    @functools.cache
    def trained(mode: str) -> RunDirectory:
        run = make(tmp_path_factory.mktemp("undisturbed") / "run", mode)
        train(run)
        result = result_of(run)
        updates = [line["update"] for line in result["metrics.jsonl"]]
        assert updates == list(range(1, UPDATES + 1))
        assert [line["update"] for line in result["evaluations.jsonl"]] == [3, 6]
        assert len(run.agents.updates()) >= 4
        return run

    return trained


def saved(run: RunDirectory) -> int:
    """The update of the last checkpoint."""
    return RunDirectory(run.path).checkpoints.load_latest().update


# --- in this process --------------------------------------------------------------------------


def on_threads(workers: int) -> Disturbance:
    options = {"engine": "threads", "workers": workers}
    return lambda run: train(run.with_config(run.config.updated(options, "test")))


def stopped_at_every_update(run: RunDirectory) -> None:
    for update in range(UPDATES):
        stop_after(RunDirectory(run.path), update)
        assert saved(run) == update


def stopped(question: int, update: int) -> Disturbance:
    """A stop that is asked for before an item; the last update that is complete."""

    def disturb(run: RunDirectory) -> None:
        asked = itertools.count(1)
        outcome = train(run, should_stop=lambda: next(asked) >= question)
        assert (outcome.reason, saved(run)) == ("interrupted", update)
        assert list(run.evaluations.read()) == []

    return disturb


def broken(place: str, number: int, error: BaseException, update: int) -> Disturbance:
    """Something raises, as Ctrl-C does in a notebook; the last update that is saved."""

    def disturb(run: RunDirectory) -> None:
        with planted(place, number, Mock(side_effect=error)):
            with pytest.raises((type(error), PixelpongError)):
                train(run)
        assert saved(run) == update

    return disturb


def shown_rudely(run: RunDirectory) -> None:
    """A display that fails, as when the terminal goes away, costs no update."""

    def show(event: object) -> None:
        if isinstance(event, Updated) and event.progress.update == 2:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        train(run, show)
    assert saved(run) == 2


def without_its_newest(damage: Callable[[Path], object]) -> Disturbance:
    """The newest checkpoint is damaged."""

    def disturb(run: RunDirectory) -> None:
        train(run)
        damage(run.checkpoints.path(UPDATES))
        assert saved(run) == 6

    return disturb


DISTURBANCES: dict[str, Disturbance] = {
    "one thread": on_threads(1),
    "two threads": on_threads(2),
    "three threads": on_threads(3),
    "stopped at every update": stopped_at_every_update,
    "stopped in the middle of an update": stopped(11, update=2),
    "stopped in an evaluation": stopped(15, update=3),
    "a terminal that goes away": shown_rudely,
    "a worker that raises": broken(PLAY, 11, RuntimeError("planted"), update=2),
    "Ctrl-C between learning and counting": broken(
        "pixelpong.learners.progress:Progress.count", 3, KeyboardInterrupt(), update=0
    ),
    "Ctrl-C between two lines of an update": broken(
        "pixelpong.run.lines:LineFile.append", 6, KeyboardInterrupt(), update=0
    ),
    "the newest checkpoint is missing": without_its_newest(Path.unlink),
    "the newest checkpoint is damaged": without_its_newest(lambda path: path.write_bytes(b"{}")),
}


@promise("any engine")
@promise("stop and resume")
@promise("a worker raises")
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", DISTURBANCES)
def test_a_disturbed_training_comes_to_the_same_bits(what, mode, undisturbed, tmp_path):
    run = make(tmp_path / "run", mode)
    DISTURBANCES[what](run)
    train(RunDirectory(run.path))
    assert same_training(run, undisturbed(mode)) == []


def test_another_seed_gives_other_bits(undisturbed, tmp_path):
    run = make(tmp_path / "run", "classic", seed=1)
    train(run)
    assert {"arrays", "metrics.jsonl"} <= {*same_training(run, undisturbed("classic"))}


# --- as a command, which an accident befalls ---------------------------------------------------

# Where: as it begins, plays, evaluates, writes lines, names a file.
LOCK = "pixelpong.run.directory:RunDirectory.lock"
EVALUATE = "pixelpong.session:Session.evaluate"
RECORD = "pixelpong.session:Session.record"
RENAME = "pathlib:Path.replace"

SETTINGS = {"OPENBLAS_NUM_THREADS": "3", "OPENBLAS_CORETYPE": "Prescott", "NUMBA_NUM_THREADS": "1"}
KILLED = -signal.SIGKILL

# The accident, and the call before which it happens; options, the exit code.
ACCIDENTS = {
    "other settings of BLAS and numba": ("none", PLAY, 1, "", 0),
    "killed while it plays": ("SIGKILL", PLAY, 19, "", KILLED),
    "killed before its lines": ("SIGKILL", RECORD, 5, "", KILLED),
    "killed in a save": ("SIGKILL", RENAME, "checkpoints/.000003", "", KILLED),
    "Ctrl-C as it begins": ("SIGINT", LOCK, 1, "", 130),
    "Ctrl-C twice while it plays": ("SIGINT twice", PLAY, 19, "", 130),
    "Ctrl-C in a single thread": ("SIGINT", PLAY, 19, "--engine serial", 130),
    "SIGTERM in an evaluation": ("SIGTERM", EVALUATE, 1, "", 130),
    "SIGTERM in a save": ("SIGTERM", RENAME, "checkpoints/.000003", "", 130),
    "Ctrl-Z and fg": ("SIGSTOP", PLAY, 19, "--worker-timeout 0.1", 0),
    "no memory is left": ("memory", RECORD, 2, "", 1),
    "a Ray that dies": ("raylet", RECORD, 3, "--engine ray", 1),
    "Ctrl-C on Ray": ("SIGINT", RECORD, 3, "--engine ray", 130),
}
MARKS = {"a Ray that dies": [pytest.mark.ray], "Ctrl-C on Ray": [pytest.mark.ray, pytest.mark.soak]}


@promise("any engine")
@promise("kill")
@promise("signals")
@promise("a long stop")
@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=MARKS.get(what, [])) for what in ACCIDENTS]
)
def test_a_disturbed_command_leaves_nothing_behind_and_resumes_to_the_same_bits(
    what, undisturbed, tmp_path
):
    accident, place, number, options, code = ACCIDENTS[what]
    mode = "fast" if accident == "none" else "classic"
    run = make(tmp_path / "run", mode, engine="threads")
    words, planned = ["resume", "run", *options.split()], [accident, place, number]
    with Driver(tmp_path, *words, accident=planned, **SETTINGS) as driver:
        if accident == "SIGSTOP":
            wait_until(driver.is_stopped)
            pause(0.2)  # longer than the deadline of any worker
            driver.send(signal.SIGCONT)
        assert driver.wait() == code, driver.said()
        lines = driver.said().splitlines()
        if accident == "memory":  # a library's native code says more before ours
            assert lines.pop().startswith("pixelpong: error: The system reported an error: ")
        assert accident == "memory" or len(lines) <= 1
        assert accident in ("SIGKILL", "raylet") or driver.leaves() == []
        last, again = max((line["update"] for line in run.metrics.read()), default=0), saved(run)
        assert again == last if code in (0, 130) else last - 3 <= again <= last
        train(RunDirectory(run.path))
        if accident == "raylet":
            wait_until(lambda: not driver.processes())
            from pixelpong.engines.ray.connection import local_folder

            with local_folder():  # the next Ray removes what the agents of the dead one wrote
                pass
        assert driver.leaves() == []
    assert same_training(run, undisturbed(mode)) == []


def test_verify_names_each_way_whose_bits_are_other_ones(monkeypatch):
    """The first way is what the others are held to."""
    found = iter([{"params_sha256": each} for each in "aabaa"])
    monkeypatch.setattr(verification, "_train_in_parts", lambda *given: next(found))
    ways = verification.compare_ways(toy_config("classic"), ["serial", "threads"])
    told = {way["name"]: way["is_same"] for way in itertools.islice(ways, 5)}
    assert list(told.values()) == [True, True, False, True, True]
    assert [name for name, is_same in told.items() if not is_same] == ["threads, 1 worker"]
