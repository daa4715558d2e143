"""Whatever disturbs a training, it comes to the same bits: one table of disturbances."""

from __future__ import annotations

import copy
import ctypes
import functools
import itertools
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from accidents import planted
from drivers import Driver
from promises import promise
from toys import result_of, same_training, stop_after, toy_config, with_updates
from waiting import pause, wait_until

from pixelpong import verification
from pixelpong.atari.games.rules import open_cartridge
from pixelpong.atari.machine.compiled import Game
from pixelpong.config.presets import load_preset
from pixelpong.errors import Interrupted, PixelpongError, number_of
from pixelpong.loop import Updated, train
from pixelpong.pong.field import PONG_MACHINE
from pixelpong.pong.native import PONG
from pixelpong.run.arrays import encode_arrays
from pixelpong.run.directory import RunDirectory

UPDATES = 8
COMMON = {
    "max_frames": 300, "updates": UPDATES, "engine": "serial", "workers": 2, "save_every": 3,
    "save_agent_every": 1, "evaluate_every": 3, "evaluate_episodes": 4, "until_return": None,
}  # fmt: skip
MODES = {
    "classic": {"hidden": 20, "batch_size": 4, "learning_rate": 3e-3},
    "fast": {"hidden": 8, "num_envs": 4, "num_steps": 40, "num_minibatches": 2},
    "atari": {
        "game": "breakout", "hidden": 8, "num_envs": 4, "num_steps": 40, "num_minibatches": 2,
        "anneal_steps": 1000, "final_episodes": 0,
    },
}  # fmt: skip
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
    "a Ray that dies": ("raylet", RECORD, 5, "--engine ray", 1),
    "Ctrl-C on Ray": ("SIGINT", RECORD, 3, "--engine ray", 130),
}
RAY_IS_LOST = (
    "pixelpong: error: The Ray cluster is lost: Ray on this machine does not answer .*; "
    "continue with 'pixelpong resume run'"
)
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
        if accident == "raylet":  # at the next update, Ray itself would end the process
            assert re.fullmatch(RAY_IS_LOST, lines[0])
        assert accident in ("SIGKILL", "raylet") or driver.leaves() == []
        last, again = max((line["update"] for line in run.metrics.read()), default=0), saved(run)
        is_saved = code in (0, 130) or accident == "raylet"
        assert again == last if is_saved else last - 3 <= again <= last
        train(RunDirectory(run.path))
        if accident == "raylet":
            wait_until(lambda: not driver.processes())
            from pixelpong.engines.ray.connection import local_folder

            with local_folder():  # the next Ray removes what the agents of the dead one wrote
                pass
        assert driver.leaves() == []
    assert same_training(run, undisturbed(mode)) == []


# --- verify, which users ask for the same: one wrong thing each, and it has to say so -------------


def crooked(at: int, spoil: Callable[[Any], object]) -> Game:
    """Pong as the agents play it, but for what `spoil` does to the machine after a frame."""
    game, count = copy.copy(open_cartridge(PONG)), itertools.count(1)
    play_frames = game.play_frames

    def play(address: int, *given: object) -> None:
        play_frames(address, *given)
        if next(count) == at:
            memory = (ctypes.c_char * PONG_MACHINE.itemsize).from_address(address)
            spoil(np.frombuffer(memory, PONG_MACHINE))

    game.play_frames = play
    return game


def flip(field: str, place: int, bit: int) -> Callable[[Any], object]:
    """Change a bit in a field of the machine."""

    def spoil(machine: Any) -> None:
        machine[field].reshape(-1)[place] ^= bit

    return spoil


SPOILERS = {
    "one pixel": flip("picture", 160 * 30 + 70, 2),
    "one bit of memory": flip("ram", 100, 1),
    "a reward": flip("reward", 0, 1),
    "a life": flip("lives", 0, 1),
    "an end": flip("is_over", 0, 1),
}


@pytest.mark.parametrize("what", SPOILERS)
@pytest.mark.parametrize("frame", [1, 1235])
def test_verify_finds_the_one_frame_in_which_the_game_differs_from_ale(what, frame):
    found = verification.compare_with_ale(crooked(frame, SPOILERS[what]), 0, 1300)
    assert found.differs_at == frame
    assert f"frame {frame}" in (found.difference or found.picture_difference)


def test_verify_plays_on_after_the_end_of_a_game(monkeypatch):
    """With this seed the first one ends with frame 3,056."""
    monkeypatch.setattr(verification, "STYLES", ("random",))
    found = verification.compare_with_ale(crooked(3300, SPOILERS["one pixel"]), 0, 3400)
    assert (found.differs_at, found.ends, found.starts) == (3300, 1, 3)
    assert (found.frames, found.wrong_pictures) == (3400, 1)


def change_line(file):
    """Count one step more in the last line of a file."""
    *lines, last = file.path.read_bytes().splitlines(keepends=True)
    line = json.loads(last)
    line["steps"] += 1
    file.path.write_bytes(b"".join([*lines, json.dumps(line).encode() + b"\n"]))


def change_bit(run):
    """Change the lowest bit of a number in the optimizer's memory."""
    checkpoint = run.checkpoints.load_latest()
    arrays = {name: array.copy() for name, array in checkpoint.arrays.items()}
    moment = next(name for name in arrays if name.startswith("v."))
    arrays[moment].view(np.uint8).flat[0] ^= 1
    run.checkpoints.path(checkpoint.update).write_bytes(encode_arrays(arrays, checkpoint.card))


CHANGES = {
    "a line of the metrics": lambda run: change_line(run.metrics),
    "a line of the episodes": lambda run: change_line(run.episodes),
    "one bit of the optimizer": change_bit,
}
SHORT = {"updates": 2, "num_steps": 80}
"""Each update ends episodes, with a point each."""

WAYS = [
    ("serial", "1 worker"), ("serial", "stopped and resumed at every update"),
    *(("threads", number_of(count, "worker")) for count in (1, 2, 3)),
    ("threads", "stopped and resumed at every update"),
]  # fmt: skip


def verify_ways(mode, spoil):
    """What verify says of each way, where `spoil` trains the parts of each instead of `train`."""
    config = load_preset(mode).updated({**COMMON, **MODES[mode], **SHORT}, "test")
    ways = list(verification.compare_ways(config, ["serial", "threads"], train=spoil))
    assert [tuple(way["name"].split(", ")) for way in ways] == WAYS
    return [way["is_same"] for way in ways]


@pytest.mark.parametrize(
    ("mode", "what"),
    [*itertools.product(MODES, ["one bit of the optimizer"]), *zip(MODES, CHANGES, strict=False)],
)
def test_verify_finds_a_training_that_differs_in_one_thing(mode, what):
    def spoil(run, **how):
        is_new, ended = not run.has_begun, train(run, **how)
        if is_new and ended.progress.update == 2 and run.config.workers == 2:
            CHANGES[what](run)
        return ended

    assert verify_ways(mode, spoil) == [True, True, True, False, True, True]


def test_verify_finds_an_engine_that_gives_other_bits(mode):
    def spoil(run, **how):
        is_other = run.config.engine == "threads"
        config = run.config.updated({"gamma": 0.5} if is_other else {}, "test")
        return train(run.with_config(config), **how)

    assert verify_ways(mode, spoil) == [True, True, False, False, False, False]


def test_verify_stops_and_resumes_at_every_update_and_finds_a_stop_that_does_not_happen(mode):
    parts = []

    def follow(run, **how):
        begin, config = max(run.checkpoints.updates(), default=None), run.config
        parts.append((config.engine, config.workers, begin, config.updates))
        return train(run, **how)

    assert verify_ways(mode, follow) == [True] * 6
    assert parts == [
        ("serial", 1, None, 2), ("serial", 2, None, 1), ("serial", 2, 1, 2),
        *(("threads", count, None, 2) for count in (1, 2, 3)),
        ("threads", 2, None, 1), ("threads", 2, 1, 2),
    ]  # fmt: skip

    def run_through(run, **how):
        return train(with_updates(run, 2), **how)

    assert verify_ways(mode, run_through) == [True, False, True, True, True, False]


def test_verify_stops_where_it_is_told_to():
    config = toy_config("classic")
    with pytest.raises(Interrupted):
        next(verification.compare_ways(config, ["serial"], lambda: True))
