"""Checkpoints: whole or not at all, and never silently wrong."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import pixelpong
from pixelpong.errors import CheckpointError
from pixelpong.run.arrays import encode_arrays, fingerprint
from pixelpong.run.checkpoints import KEEP_LAST, Checkpoint, CheckpointStore


def make_checkpoint(update: int, score: float | None = None, of: str = "") -> Checkpoint:
    rng = np.random.default_rng(update)
    arrays = {"W1": rng.standard_normal((6, 4)).astype(np.float32), "W2": rng.random(4)}
    own = {"update": update, "score": score, "score_of": of or "mean_return_100"}
    return Checkpoint(arrays, own | {"progress": {"steps": 17}, "wall_seconds": 1.5})


@pytest.fixture
def store(tmp_path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints")


def assert_same(one: Checkpoint, two: Checkpoint) -> None:
    assert one.card == two.card
    assert fingerprint(one.arrays) == fingerprint(two.arrays)


def test_what_is_saved_is_loaded(store):
    store.save(make_checkpoint(3, score=-20.5))
    assert_same(store.load(3), make_checkpoint(3, score=-20.5))
    assert [path.name for path in store.folder.iterdir()] == ["000003.safetensors"]


def test_the_last_two_the_best_and_the_first_are_kept(store):
    for update, score in enumerate([None, -20.0, -15.0, -18.0, -19.0, -16.0, -17.0]):
        store.save(make_checkpoint(update, score))
    assert store.updates() == [0, 2, 5, 6]
    assert KEEP_LAST == 2
    assert (store.find_best(), store.load_latest().update) == (2, 6)
    store.thin(6, keep_last=1)
    assert store.updates() == [0, 2, 6]


def test_an_evaluation_goes_before_a_training_mean_and_of_equals_the_newest_is_best(store):
    store.save(make_checkpoint(1, score=5.0))
    for update in (2, 3):
        store.save(make_checkpoint(update, -3.0, "evaluation"))
        store.save(make_checkpoint(4, score=9.0))
        assert store.find_best() == update


def test_what_was_just_saved_outlives_damaged_ones_beyond_it(store):
    for update in (20, 40, 50):
        store.save(make_checkpoint(update, score=-float(update)))  # so that 20 is the best
    for update in (40, 50):
        store.path(update).write_text("damaged")
    assert store.load_latest().update == 20
    store.save(make_checkpoint(23))
    assert store.updates() == [20, 23]
    assert store.load_latest().update == 23


def test_when_none_is_sound_it_does_not_start_over_silently(store):
    with pytest.raises(CheckpointError, match="none at all"):
        store.load_latest()
    for update in (1, 2):
        store.save(make_checkpoint(update))
        store.path(update).write_text("{}")
    with pytest.raises(CheckpointError, match="got 2 damaged ones"):
        store.load_latest()


def test_a_checkpoint_of_another_update_is_refused(store):
    store.save(make_checkpoint(1))
    store.path(1).rename(store.path(7))
    with pytest.raises(CheckpointError, match="got that of update 1"):
        store.load(7)


# --- nothing is unpickled ---------------------------------------------------------------------


def test_a_pickle_in_place_of_arrays_is_never_loaded(store, tmp_path):
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self):
            return (Path.touch, (canary,))

    store.save(make_checkpoint(1))
    inside = encode_arrays({"W1": np.frombuffer(pickle.dumps(Bomb()), np.uint8)}, {"format": 1})
    for content in (pickle.dumps(Bomb()), inside):
        store.path(1).write_bytes(content)
        with pytest.raises(CheckpointError, match="expected a sound checkpoint"):
            store.load(1)
    assert not canary.exists()


def test_no_module_of_the_package_unpickles_a_file():
    """Only what our own processes send each other is pickled."""
    root = Path(pixelpong.__file__).parent
    words = ("import pickle", "from pickle", "np.load(", "allow_pickle")
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(word in path.read_text("utf-8") for word in words)
    }
    assert all(name.startswith("engines/ray/") for name in users), users


# --- saving: faults/test_saves.py has what goes wrong ------------------------------------------


def test_the_file_is_flushed_then_named_then_its_folder_is_flushed(store, monkeypatch):
    tape, real_replace = [], Path.replace

    def replace(path, target):
        tape.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", lambda fd: tape.append(os.readlink(f"/proc/self/fd/{fd}")))
    monkeypatch.setattr(Path, "replace", replace)
    store.save(make_checkpoint(1))
    names = [Path(each).name for each in tape]
    assert names == [f".000001.safetensors-{os.getpid()}", "rename", "checkpoints"]


def test_fingerprint_tells_names_types_and_shapes_apart():
    zeros = np.zeros(4, np.float32)
    different = [
        {"a": zeros}, {"b": zeros}, {"a": zeros.reshape(2, 2)}, {"a": zeros.astype(np.float64)},
        {"a": zeros, "b": zeros}, {"a": zeros + np.float32(1e-30)},
    ]  # fmt: skip
    assert len({fingerprint(arrays) for arrays in different}) == len(different)
    assert fingerprint({"a": zeros, "b": zeros + 1}) == fingerprint({"b": zeros + 1, "a": zeros})


def test_other_things_in_the_folder_do_no_harm(store):
    names = {"²", "-1", "7", "000001 ", "x.safetensors", "notes.txt"}
    store.save(make_checkpoint(1))
    for name in names:
        (store.folder / name).mkdir()
    assert store.updates() == [1]
    store.save(make_checkpoint(2))
    assert store.load_latest().update == 2
    assert names < {path.name for path in store.folder.iterdir()}
