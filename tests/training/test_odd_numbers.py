"""Numbers that ought not to be: the update ends, and nothing of them reaches the disk.

Each case is a training of three short updates. One odd number is planted into what was played,
into the parameters or into the optimizer's memory.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hostile import for_examples, quick_and_soak
from hypothesis import strategies as st
from promises import promise
from safetensors.numpy import load
from toys import same_training, toy_config

from pixelpong.agent.file import Agent
from pixelpong.errors import NumericsError
from pixelpong.learners.ppo import PPOLearner
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

LEARNERS = {"classic": ReinforceLearner, "fast": PPOLearner}
PLACES = [
    ("classic", "grads.W1"), ("classic", "grads.W2"), ("classic", "params.W1"),
    ("classic", "own.v.W2"), ("fast", "steps.value"),
    ("fast", "steps.log_probability"), ("fast", "steps.entropy"), ("fast", "params.W1"),
    ("fast", "params.b2"), ("fast", "own.m.W2"), ("fast", "own.v.W1"),
]  # fmt: skip
ODD = [np.nan, np.inf, -np.inf, 1e300, -1e300, 3e38, 1e25, -1e20, 1e6]
UPDATES = 3


def plant(array: np.ndarray, value: float) -> np.ndarray:
    """A copy with the odd number as its first."""
    changed = array.copy()
    with np.errstate(over="ignore"):
        changed.reshape(-1)[0] = value
    return changed


def plant_in_results(results, place: str, value: float):
    """The results of a round, with the number in the first of them."""
    first, (owner, _, name) = results[0], place.partition(".")
    if owner == "grads":
        grads = dataclasses.replace(first.grads, **{name: plant(getattr(first.grads, name), value)})
        return [dataclasses.replace(first, grads=grads), *results[1:]]
    steps = first.sides[0].steps.copy()
    steps[name] = plant(steps[name], value)
    sides = (dataclasses.replace(first.sides[0], steps=steps),)
    return [dataclasses.replace(first, sides=sides), *results[1:]]


def plant_in_learner(learner, results, place: str, value: float) -> None:
    """Into a row of the first layer that these results are played with."""
    owner, _, name = place.partition(".")
    array = getattr(learner, owner)[name]
    row = 0
    if name.endswith("W1"):
        first = results[0]
        row = int(first.sides[0].indices[0] if first.sides else first.grads.rows[0])
    array[row : row + 1] = plant(array[row : row + 1], value)


def train_with(run: RunDirectory, preset: str, place: str, value: float, update: int) -> str:
    """Train with the number planted at an update; what the training said, "" if nothing."""
    owner = LEARNERS[preset]
    real = owner.apply

    def apply(self, results):
        results = list(results)
        if self.progress.update + 1 == update:
            if place.split(".")[0] in ("grads", "steps"):
                results = plant_in_results(results, place, value)
            else:
                plant_in_learner(self, results, place, value)
        return real(self, results)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "apply", apply)
        try:
            train(run)
        except NumericsError as error:
            assert re.match(r"\w\S* is not finite after update \d; ", str(error))
            assert "\n" not in str(error)
            return str(error)
    return ""


def make(preset: str, folder: Path, **changes) -> RunDirectory:
    config = toy_config(preset, updates=UPDATES, save_agent_every=1, hidden=2, **changes)
    return RunDirectory.create(folder, config)


def assert_all_finite(folder: Path) -> None:
    """Look at every number in every file of a run."""
    paths = list(folder.rglob("*.safetensors"))
    assert paths
    for path in paths:
        arrays = load(path.read_bytes())
        if path.parent.name == "agents":
            arrays = Agent.decode(path.read_bytes(), str(path)).params
        for name, array in arrays.items():
            assert np.isfinite(array).all(), (path, name)
    for path in folder.rglob("*.json*"):
        assert not re.search(r"\b(NaN|Infinity)\b", path.read_text()), path


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "place"), PLACES)
def test_a_number_that_is_not_finite_stops_the_update_before_it_is_saved(preset, place, tmp_path):
    """In update 2; what was saved before it is what the training goes on from."""
    run = make(preset, tmp_path / "run")
    value = ODD[PLACES.index((preset, place)) % 3]
    assert "after update 2" in train_with(run, preset, place, value, 2)
    assert_all_finite(run.path)
    undisturbed = make(preset, tmp_path / "undisturbed")
    train(undisturbed)
    assert run.checkpoints.load_latest().update == 1
    train(RunDirectory(run.path))
    assert same_training(run, undisturbed) == []


@promise("finite numbers")
@pytest.mark.slow
@quick_and_soak(20)
def test_an_odd_number_anywhere_never_reaches_the_disk(number, tmp_path):
    """Numbers that squares, sums or powers of cannot hold, too, in parameters of either type."""
    said = []

    def check(case):
        (preset, place), value, update, dtype = case
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        run = make(preset, tmp_path / "run", dtype=dtype)
        said.append(train_with(run, preset, place, value, update))
        assert_all_finite(run.path)

    cases = st.tuples(
        st.sampled_from(PLACES), st.sampled_from(ODD), st.integers(2, UPDATES),
        st.sampled_from(["float32", "float64"]),
    )  # fmt: skip
    for_examples(number, cases, check)
    assert sum(map(bool, said)) > number / 4


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [4, 19, 38])
@pytest.mark.parametrize("preset", LEARNERS)
def test_huge_logits_are_played_and_learned_from_or_refused(preset, exponent, dtype, tmp_path):
    """Parameters as large as a float can be: nothing but their numbers goes wrong."""
    owner = LEARNERS[preset]
    real = owner.__init__

    def init(self, *args):
        real(self, *args)
        for w in self.params.values():
            w[...] = np.clip(w * 10.0**exponent, -1e38, 1e38)

    run = make(preset, tmp_path / "run", dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "__init__", init)
        train_with(run, preset, "none", 0.0, 0)
    assert_all_finite(run.path)
