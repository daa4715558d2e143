"""Numbers that ought not to be: nothing of them reaches the disk, and the error names the place.

Each case is a training of two or three updates of the toy game into which one odd number is
planted: into what was played, into gradient or loss, into parameters or the optimizer's memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import shutil
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hostile import for_examples, quick_and_soak
from hypothesis import strategies as st
from safetensors.numpy import load

from pixelpong import kernels
from pixelpong.agent.file import decode_agent
from pixelpong.config.presets import load_preset
from pixelpong.env import fake, pong
from pixelpong.env.features import NUM_INPUTS
from pixelpong.errors import NumericsError
from pixelpong.learners import refuse_overflow
from pixelpong.learners.passes import Passes
from pixelpong.learners.ppo import PPOLearner
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.play.worker import EpisodeWorker, SegmentWorker
from pixelpong.run import directory as runs
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory

UPDATES = 3
TOY = {
    "environment": "Catch-v0", "hidden": 1, "batch_size": 2, "streams": 2, "horizon": 30,
    "minibatches": 2, "epochs": 1, "updates": UPDATES, "engine": "serial", "milestone_every": 1,
    "learning_rate": 1e-3,
}  # fmt: skip

PLACES = {
    "classic": (
        "gradient.W1", "gradient.W2", "parameters.W1", "parameters.W2", "memory.W1", "memory.W2",
    ),
    "fast": (
        "rollouts.rewards", "rollouts.values", "rollouts.log_probabilities", "rollouts.entropy",
        "loss.loss", "loss.kl", "loss.gradient", "gradient.W1", "gradient.W2",
        "parameters.W1", "parameters.W2", "parameters.b2", "memory.m.W1", "memory.v.W1",
        "memory.m.W2", "memory.v.W2", "memory.m.b2", "memory.v.b2",
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """One training with one odd number in it.

    Attributes:
        preset: ``"classic"`` or ``"fast"``.
        place: of `PLACES`.
        value: the odd number.
        update: at which it is planted.
        at: where in the array, as a share of its length.
        dtype: of the parameters.
        save_every: updates between checkpoints.
    """

    preset: str
    place: str
    value: float
    update: int
    at: float
    dtype: str
    save_every: int

    @property
    def config(self):
        changes = {"dtype": self.dtype, "save_every": self.save_every}
        return load_preset(self.preset).updated(TOY | changes, "test")


ODD = st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e38, 3e38, 1e25, -1e20, 1e6, 7e4])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    preset = draw(st.sampled_from(sorted(PLACES)))
    return Case(
        preset, draw(st.sampled_from(PLACES[preset])), draw(ODD), draw(st.integers(1, UPDATES)),
        draw(st.floats(0, 1, exclude_max=True)), draw(st.sampled_from(["float32", "float64"])),
        draw(st.sampled_from([1, 2, 100])),
    )  # fmt: skip


def plant(array: np.ndarray, case: Case) -> np.ndarray:
    """A copy with the odd number in it."""
    changed = array.copy()
    with np.errstate(over="ignore"):
        changed.reshape(-1)[int(case.at * changed.size)] = case.value
    return changed


def put(array: np.ndarray, case: Case) -> None:
    """The same in place."""
    array[...] = plant(array, case)


@contextlib.contextmanager
def planted(case: Case):
    """While inside, the number is planted once, when its update comes."""
    kind, _, name = case.place.partition(".")
    with pytest.MonkeyPatch.context() as patch:
        if kind == "rollouts" or (kind == "gradient" and case.preset == "classic"):
            _plant_in_results(patch, case, kind, name)
        elif kind in ("loss", "gradient"):
            _plant_in_step(patch, case, kind, name)
        else:
            _plant_in_learner(patch, case, kind, name)
        yield


def _plant_in_results(patch, case, kind, name):
    owner = SegmentWorker if case.preset == "fast" else EpisodeWorker
    real = owner.play

    def play(self, item, params):
        result = real(self, item, params)
        if item.update != case.update or getattr(item, "index", 0) or getattr(item, "stream", 0):
            return result
        if kind == "gradient":
            grads = dataclasses.replace(
                result.grads, **{name: plant(getattr(result.grads, name), case)}
            )
            return dataclasses.replace(result, grads=grads)
        if name == "entropy":
            return dataclasses.replace(result, entropy=case.value)
        changed = plant(getattr(result.segments[0], name), case)
        segment = dataclasses.replace(result.segments[0], **{name: changed})
        return dataclasses.replace(result, segments=(segment,))

    patch.setattr(owner, "play", play)


def _plant_in_step(patch, case, kind, name):
    """Into what a step of Adam works with; the last step of the update is the worst."""
    count, target = Counter(), case.update * TOY["minibatches"]
    if kind == "loss":
        real = Passes.differentiate

        def differentiate(self, *args):
            stats = real(self, *args)
            count["losses"] += 1
            if count["losses"] != target:
                return stats
            if name == "gradient":
                put(self._z, case)
                return stats
            return dataclasses.replace(stats, **{name: case.value})

        patch.setattr(Passes, "differentiate", differentiate)
        return
    real_step = kernels.adam_rows

    def adam_rows(w, g, *args):
        of = "W1" if len(w) == NUM_INPUTS else "W2" if w.shape[1] > 1 else "b2"
        if count["b2"] == target - 1 and of == name and len(g):
            put(g, case)
        real_step(w, g, *args)
        count[of] += 1  # b2 is the last of each step

    patch.setattr(kernels, "adam_rows", adam_rows)


def _plant_in_learner(patch, case, kind, name):
    owner = PPOLearner if case.preset == "fast" else ReinforceLearner
    real = owner.apply

    def apply(self, results):
        results = list(results)
        if self.progress.update + 1 == case.update:
            if kind == "parameters":
                put(self.params[name], case)
            elif case.preset == "classic":
                put(self.cache[name], case)
            else:
                put((self._means if name.startswith("m") else self._squares)[name], case)
        return real(self, results)

    patch.setattr(owner, "apply", apply)


def assert_all_finite(folder: Path) -> int:
    """Look at every number in every file of a run; how many files there were."""
    count = 0
    for path in folder.rglob("*.safetensors"):
        count += 1
        for name, array in load(path.read_bytes()).items():
            assert np.isfinite(array).all(), (path, name)
        if path.parent.name == "milestones":
            agent = decode_agent(path.read_bytes(), str(path))
            assert all(np.isfinite(w).all() for w in agent.params.values())
    for path in folder.rglob("*.json*"):
        text = path.read_text()
        assert not re.search(r"\b(NaN|Infinity)\b", text), path
    return count


NAMED = re.compile(
    r"expected finite numbers in (the )?(?P<name>[\w.-]+) of (the )?[\w' ]+ "
    r"(of|in|after|before) update (?P<update>\d+)|of (the )?(\w+) of update \d+"
)


def carry_out(case: Case, folder: Path, *, goes_on: bool = True) -> str:
    """Train with the number planted, then resume without it; what the training said."""
    run = RunDirectory.create(folder, case.config, _ignore)
    said = ""
    try:
        with planted(case):
            train(run)
    except NumericsError as error:
        said = str(error)
        assert "\n" not in said
        assert NAMED.search(said), said
    assert assert_all_finite(folder) > 0
    kept = run.checkpoints.load_latest()
    if said:
        assert kept.update >= (case.update - 1) // case.save_every * case.save_every
    if said and goes_on:
        resumed = RunDirectory.open(folder, _ignore)
        if kept.update < case.update:
            assert train(resumed).progress.update == UPDATES
            kept = run.checkpoints.load_latest()
            assert fingerprint(kept.params) == reference(case.config, folder)
        else:  # finite, so it was saved; what it leads to later may be refused again
            with contextlib.suppress(NumericsError):
                train(resumed)
        assert_all_finite(folder)
    return said


def reference(config, folder: Path) -> str:
    """What comes of the training with nothing planted."""
    beside = folder.with_name("reference")
    return _reference(config, beside)


@functools.lru_cache(maxsize=64)
def _reference(config, folder: Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    run = RunDirectory.create(folder, config, _ignore)
    train(run)
    return fingerprint(run.checkpoints.load_latest().params)


def _ignore(message: str) -> None:
    assert "\n" not in message


@pytest.fixture
def no_sync(monkeypatch):
    """Thousands of trainings need not wait for the disk: what is written is the same."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    versions = runs.collect_versions()
    monkeypatch.setattr(runs, "collect_versions", lambda: versions)


@pytest.mark.slow
@quick_and_soak(40)
def test_an_odd_number_anywhere_never_reaches_the_disk(number, tmp_path, no_sync):
    """Every case is looked at on the disk; of the many, one in ten is gone on with to the end."""
    outcomes = Counter()
    every = 1 if number < 1000 else 10

    def check(case):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        goes_on = zlib.crc32(repr(case).encode()) % every == 0
        said = carry_out(case, tmp_path / "run", goes_on=goes_on)
        outcomes["refused" if said else "harmless"] += 1

    for_examples(number, cases(), check)
    print(f"odd numbers: {dict(outcomes)}")
    assert outcomes["refused"] > number / 4


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("preset", "place"), [(preset, place) for preset in PLACES for place in PLACES[preset]]
)
def test_the_error_names_the_array_and_the_update(preset, place, value, tmp_path, no_sync):
    """At every place: planted in update 2, noticed there or when that update is to be saved."""
    case = Case(preset, place, value, 2, 0.0, "float32", 1)
    said = carry_out(case, tmp_path / "run")
    assert re.search(r"update [23]\b", said), said
    kind, _, name = place.partition(".")
    expected = {
        "rollouts": rf"in the {name.replace('_', '-')} of the rollouts of update 2",
        "loss": rf"in {name} of the losses of update 2",
        "gradient": rf"in {name} of the gradient of update 2",
        "parameters": rf"in {name} of the parameters",
        "memory": rf"in {name} of the optimizer's memory",
    }[kind]
    if place == "loss.gradient":
        expected = r"in \w+ of the gradient of update 2"
    assert re.search(expected, said), said


# --- odd, but no mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_whose_squares_no_memory_holds_is_refused(dtype):
    """It is finite itself; in the optimizer's memory it would be infinite, for ever."""
    largest = float(np.finfo(dtype).max)
    grads = {name: [np.zeros(1, dtype)] for name in ("W1", "W2")}
    refuse_overflow({"W1": 0.4 * largest, "W2": 1.0}, grads, 3)
    with pytest.raises(NumericsError, match="in W1 of the gradient of update 3, got numbers whose"):
        refuse_overflow({"W1": 0.6 * largest, "W2": 1.0}, grads, 3)


@pytest.mark.slow
@quick_and_soak(25, 1000)
def test_games_of_equal_rewards_or_of_one_step_are_learned_from(number, tmp_path, no_sync):
    """An episode of one point, or of one step, and every reward the same."""

    @st.composite
    def odd_games(draw: st.DrawFn):
        changes = {
            "frame_skip": draw(st.integers(1, 60)), "sticky": draw(st.floats(0, 1)),
            "discount": draw(st.sampled_from([0.0, 0.5, 1.0])), "hidden": draw(st.integers(1, 9)),
            "horizon": draw(st.integers(1, 9)), "minibatches": draw(st.integers(1, 9)),
            "streams": draw(st.integers(1, 3)), "batch_size": draw(st.integers(1, 3)),
            "learning_rate": draw(st.sampled_from([0.0, 1e-4, 10.0])), "seed": draw(SEEDS),
            "dtype": draw(st.sampled_from(["float32", "float64"])),
            "decay_rate": draw(st.sampled_from([0.0, 0.99, 1.0])),
            "clip_ratio": draw(st.sampled_from([0.0, 0.2, 10.0])),
            "gae_lambda": draw(st.sampled_from([0.0, 0.95, 1.0])),
        }  # fmt: skip
        preset, points = draw(st.sampled_from(sorted(PLACES))), draw(st.integers(1, 2))
        return preset, changes, points, draw(st.sampled_from([None, -1.0, 0.0, 1.0]))

    def check(example):
        preset, changes, points, reward = example
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        config = load_preset(preset).updated(TOY | changes | {"save_every": 1}, "test")
        run = RunDirectory.create(tmp_path / "run", config, _ignore)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fake, "POINTS", points)
            if reward is not None:
                real = pong.Emulator.step
                patch.setattr(
                    pong.Emulator, "step",
                    lambda self, *args: reward if real(self, *args) else 0.0,
                )  # fmt: skip
            try:
                assert train(run).progress.update == UPDATES
            except NumericsError as error:
                assert changes["learning_rate"] == 10.0, error
        assert_all_finite(tmp_path / "run")

    for_examples(number, odd_games(), check)


SEEDS = st.integers(0, 2**63 - 1)


@pytest.mark.slow
@quick_and_soak(25, 1000)
def test_huge_logits_are_played_and_learned_from_or_refused(number, tmp_path, no_sync):
    """Parameters as large as a float can be, in one layer or in all."""

    def check(example):
        preset, dtype, name, exponent = example
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        config = load_preset(preset).updated(TOY | {"dtype": dtype, "save_every": 1}, "test")
        owner = PPOLearner if preset == "fast" else ReinforceLearner
        real = owner.__init__

        def init(self, config):
            real(self, config)
            for each, w in self.params.items():
                if name in (each, "all"):
                    w[...] = np.clip(w * 10.0**exponent, -1e38, 1e38) + (each == "b2") * exponent

        run = RunDirectory.create(tmp_path / "run", config, _ignore)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, "__init__", init)
            try:
                train(run)
            except NumericsError as error:
                assert NAMED.search(str(error)), error
        assert assert_all_finite(tmp_path / "run") > 0

    options = st.tuples(
        st.sampled_from(sorted(PLACES)), st.sampled_from(["float32", "float64"]),
        st.sampled_from(["W1", "W2", "b2", "all"]), st.integers(0, 38),
    )  # fmt: skip
    for_examples(number, options, check)
