"""Checkpoints: whole or not at all, and never silently wrong. What goes wrong: `test_saves`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from checkpoint_files import make_checkpoint
from promises import promise
from safetensors.numpy import load, save

from pixelpong.errors import CheckpointError
from pixelpong.run.arrays import decode_arrays, encode_arrays, fingerprint, list_parts
from pixelpong.run.checkpoints import KEEP_LAST, CheckpointStore


@pytest.fixture
def store(tmp_path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "checkpoints")
    store.make_folder()
    return store


TRAINED, EVALUATED = "mean_return_100", "evaluation"
KEPT = [  # (update, score, of what) in the order of saving; the best; those that stay
    ([(k, s, TRAINED) for k, s in enumerate([None, -20, -15, -18, -19, -16, -17])], 2,
     [0, 2, 5, 6]),
    ([(1, 5.0, TRAINED), (2, -3.0, EVALUATED), (4, 9.0, TRAINED)], 2, [2, 4]),
    ([(1, -3.0, EVALUATED), (2, -3.0, EVALUATED), (3, 9.0, TRAINED)], 2, [2, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("saved", "best", "kept"), KEPT)
def test_the_first_the_best_and_the_last_two_are_kept(store, saved, best, kept):
    """An evaluation goes before a training mean, and of equals the newest is best."""
    for checkpoint in saved:
        store.save(make_checkpoint(*checkpoint))
    assert (store.find_best(), store.updates(), KEEP_LAST) == (best, kept, 2)
    assert store.load_latest().update == kept[-1]
    store.thin(kept[-1], keep_last=1)
    assert store.updates() == sorted({*kept} & {0, best, kept[-1]})


def test_what_was_just_saved_outlives_damaged_ones_beyond_it(store):
    for update in (20, 40, 50):
        store.save(make_checkpoint(update, score=-float(update)))  # so that 20 is the best
    for update in (40, 50):
        store.path(update).write_text("damaged")
    for update, left in ((23, [20, 23]), (24, [20, 23, 24])):
        store.save(make_checkpoint(update))
        assert (store.updates(), store.load_latest().update) == (left, update)


@promise("no silent start")
def test_when_none_is_sound_it_does_not_start_over_silently(store):
    with pytest.raises(CheckpointError, match="There are no checkpoints in"):
        store.load_latest()
    store.save(make_checkpoint(1))
    store.path(1).write_text("{}")
    with pytest.raises(CheckpointError, match="None of the checkpoints in .* can be used"):
        store.load_latest()


def test_a_file_is_the_librarys_and_nothing_large_is_copied_for_it():
    """Every type, an empty array, and one whose numbers are not in a row; each on its boundary."""
    types = np.typecodes["AllInteger"] + "efd?"
    arrays = {f"{kind}{length}": np.ones((length, 3), kind) for kind in types for length in (0, 5)}
    content = encode_arrays(arrays | {"apart": np.arange(9)[::2]}, {"update": 3})
    table_end = 8 + int.from_bytes(content[:8], "little")
    for name, array in load(content).items():
        if name in arrays:
            assert (array.dtype, array.tolist()) == (arrays[name].dtype, arrays[name].tolist())
        begin = json.loads(content[8:table_end])[name]["data_offsets"][0]
        assert (table_end + begin) % array.itemsize == 0, name
    _, *parts = list_parts(arrays, {})
    for array in arrays.values():
        assert array.size == 0 or any(np.shares_memory(array, part) for part in parts)


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
    store.save(make_checkpoint(2))
    assert (store.updates(), store.load_latest().update) == ([1, 2], 2)
    assert names < {path.name for path in store.folder.iterdir()}


def test_a_damaged_checkpoint_is_best_only_if_there_is_no_other(store):
    for update, score in ((1, -3.0), (2, -5.0), (3, -4.0)):
        store.save(make_checkpoint(update, score))
    assert (store.updates(), store.find_best()) == ([1, 2, 3], 1)
    for damaged, best in ((1, 3), (3, 2), (2, 3)):
        store.path(damaged).write_bytes(b"damaged")
        assert store.find_best() == best


@pytest.mark.parametrize("name", ["sha256", "card"])
def test_arrays_of_another_program_are_called_so(name):
    arrays = {"W1": np.zeros(3)}
    if name == "card":
        arrays["sha256"] = np.frombuffer(bytes.fromhex(fingerprint(arrays)), np.uint8)
    with pytest.raises(ValueError, match=f"it lacks '{name}', so pixelpong did not write it"):
        decode_arrays(save(arrays))
