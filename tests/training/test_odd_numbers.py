"""Numbers that ought not to be: the update ends, and nothing of them reaches the disk.

Each case is a training of three short updates. One odd number is planted into what was played,
into the parameters or into the optimizer's memory.
"""

from __future__ import annotations

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
    ("classic", "state.v.W2"), ("fast", "steps.value"),
    ("fast", "steps.log_probability"), ("fast", "steps.entropy"), ("fast", "params.W1"),
    ("fast", "params.b2"), ("fast", "state.m.W2"), ("fast", "state.v.W1"),
]  # fmt: skip
ODD = [np.nan, np.inf, -np.inf, 1e300, -1e300, 3e38, 1e25, -1e20, 1e6]
UPDATES = 3


def plant(learner, results, place: str, value: float) -> None:
    """Write the number into an array of what was played, or of the learner.

    In the first layer, into a row that these results are played with.
    """
    (owner, _, name), first = place.partition("."), results[0]
    if owner == "grads":
        array = getattr(first.grads, name)
    elif owner == "steps":
        array = first.sides[0].steps[name]
    else:
        array = getattr(learner, owner)[name]
        if name.endswith("W1"):
            row = int(first.sides[0].indices[0] if first.sides else first.grads.rows[0])
            array = array[row:]
    array.flat[0] = value


def train_with(run: RunDirectory, place: str, value: float, update: int) -> bool:
    """Train with the number planted at an update; whether the training refused it."""
    owner = LEARNERS[run.config.preset]
    real = owner.apply

    def apply(self, results):
        results = list(results)
        if self.progress.update + 1 == update:
            with np.errstate(over="ignore"):
                plant(self, results, place, value)
        return real(self, results)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "apply", apply)
        try:
            train(run)
        except NumericsError as error:
            assert re.fullmatch(r"\w\S* is not finite after update [123]; [^\n]*", str(error))
            return True
    return False


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


@promise("finite numbers")
@pytest.mark.slow
@quick_and_soak(4, 100)
@pytest.mark.parametrize(("preset", "place"), PLACES)
def test_an_odd_number_anywhere_never_reaches_the_disk(preset, place, number, tmp_path):
    """The training goes on from what was saved before it, to the bits of one without it.

    Numbers that squares, sums or powers of cannot hold, too, in parameters of either type.
    """
    whole, refused = {}, []
    for dtype in ("float32", "float64"):
        config = toy_config(preset, updates=UPDATES, save_agent_every=1, hidden=2, dtype=dtype)
        whole[dtype] = RunDirectory.create(tmp_path / dtype, config)
        train(whole[dtype])

    def check(case):
        value, update, dtype = case
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        run = RunDirectory.create(tmp_path / "run", whole[dtype].config)
        is_refused = train_with(run, place, value, update)
        assert_all_finite(run.path)
        if run.checkpoints.load_latest().update >= update:
            assert np.isfinite(value)
            return
        assert is_refused
        train(RunDirectory(run.path))
        assert same_training(run, whole[dtype]) == []
        refused.append(value)

    updates = st.integers(1, UPDATES - 1)
    cases = st.tuples(st.sampled_from(ODD), updates, st.sampled_from([*whole]))
    for_examples(number, cases, check)
    assert refused
