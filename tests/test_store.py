"""Checkpoints: whole or not at all, and never silently wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import pixelpong
from pixelpong.errors import CheckpointError, RunError
from pixelpong.learners.start import Start
from pixelpong.run import checkpoint as checkpoint_module
from pixelpong.run import checkpoints as store_module
from pixelpong.run.checkpoints import KEEP_LAST, Checkpoint, CheckpointStore, fingerprint

FILES = ["params.safetensors", "state.safetensors", "state.json", "manifest.json"]


def make_checkpoint(update: int, score: float | None = None) -> Checkpoint:
    rng = np.random.default_rng(update)
    return Checkpoint(
        update=update,
        params={"W1": rng.standard_normal((6, 4)).astype(np.float32), "W2": rng.random(4)},
        optimizer={"W1": rng.random((6, 4)).astype(np.float32), "W2": rng.random(4)},
        counters={"progress": {"update": update, "steps": 17}, "wall_seconds": 1.5},
        score=score,
    )


@pytest.fixture
def store(tmp_path) -> CheckpointStore:
    made = CheckpointStore(tmp_path / "checkpoints", warn=lambda message: warnings.append(message))
    warnings: list[str] = []
    made.warnings = warnings
    return made


def assert_same(one: Checkpoint, two: Checkpoint) -> None:
    assert (one.update, one.counters, one.score) == (two.update, two.counters, two.score)
    for mine, theirs in ((one.params, two.params), (one.optimizer, two.optimizer)):
        assert fingerprint(mine) == fingerprint(theirs)


def test_what_is_saved_is_loaded(store):
    store.save(make_checkpoint(3, score=-20.5))
    assert_same(store.load(3), make_checkpoint(3, score=-20.5))
    assert sorted(path.name for path in store.path(3).iterdir()) == sorted(FILES)
    assert store.path(3).name == "000003"


def test_the_last_two_the_best_and_the_first_are_kept(store):
    for update, score in enumerate([None, -20.0, -15.0, -18.0, -19.0, -16.0, -17.0]):
        store.save(make_checkpoint(update, score))
    assert store.updates() == [0, 2, 5, 6]
    assert KEEP_LAST == 2
    assert store.load_best().update == 2
    assert store.load_latest().update == 6
    store.thin(keep_last=1)
    assert store.updates() == [0, 2, 6]


def test_an_evaluation_goes_before_a_training_mean(store):
    store.save(make_checkpoint(1, score=5.0))
    store.save(dataclasses.replace(make_checkpoint(2, score=-3.0), score_of="evaluation"))
    store.save(make_checkpoint(3, score=9.0))
    assert store.load_best().update == 2


def test_what_was_just_saved_outlives_damaged_ones_beyond_it(store):
    for update in (20, 40, 50):
        store.save(make_checkpoint(update, score=-float(update)))  # so that 20 is the best
    for update in (40, 50):
        (store.path(update) / "state.json").write_text("damaged")
    assert store.load_latest().update == 20
    store.save(make_checkpoint(23))
    assert store.updates() == [20, 23]
    assert store.load_latest().update == 23
    assert sorted(p.name for p in store.folder.iterdir() if p.name.startswith("damaged")) == [
        "damaged-000040", "damaged-000050",
    ]  # fmt: skip


def test_of_equal_scores_the_newest_is_best(store):
    for update in (1, 2):
        store.save(make_checkpoint(update, score=0.0))
    assert store.load_best().update == 2


def corruptions(content: bytes):
    """Flips in every region of a file, cuts, and additions."""
    for position in {*range(0, len(content), max(len(content) // 40, 1)), len(content) - 1}:
        for bit in (0, 7):
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            yield bytes(changed)
    yield content[: len(content) // 2]
    yield b""
    yield content + b"\0"


@pytest.mark.parametrize("name", FILES)
def test_damage_anywhere_is_noticed_and_the_one_before_is_taken(store, name):
    for update in (1, 2):
        store.save(make_checkpoint(update))
    path = store.path(2) / name
    content = path.read_bytes()
    for changed in corruptions(content):
        path.write_bytes(changed)
        with pytest.raises(CheckpointError, match="expected a sound checkpoint"):
            store.load(2)
        store.warnings.clear()
        assert_same(store.load_latest(), make_checkpoint(1))
        assert len(store.warnings) == 1
        assert "000002" in store.warnings[0]
    path.unlink()
    with pytest.raises(CheckpointError):
        store.load(2)
    path.write_bytes(content)
    assert_same(store.load_latest(), make_checkpoint(2))


@contextlib.contextmanager
def edited_manifest(folder: Path):
    """The manifest of a checkpoint, to be changed; its own hash is made to fit."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["manifest_sha256"]
    yield manifest
    manifest["manifest_sha256"] = checkpoint_module._hash_of_manifest(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("odd", [np.nan, np.inf, np.int32(3), True])
def test_parameters_that_are_no_finite_numbers_are_passed_over(store, odd):
    """Whatever their hashes say."""
    store.save(make_checkpoint(1))
    forged = make_checkpoint(2)
    forged.params["W2"] = np.full(4, odd)
    store.save(forged)
    with pytest.raises(CheckpointError, match="W2 of the parameters"):
        store.load(2)
    assert_same(store.load_latest(), make_checkpoint(1))


def test_a_checkpoint_of_another_version_says_so(store, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "FORMAT", 3)
    store.save(make_checkpoint(1))
    monkeypatch.undo()
    with pytest.raises(
        CheckpointError, match="checkpoint of format 1 or 2 .* got format 3; use the ver"
    ):
        store.load(1)


def draw(start: Start):
    """The arrays of a training's start: 40,000 rows, so that they are kept as what has changed."""
    params = {"W1": start.make_rng().standard_normal((40_000, 4)).astype(np.float32)}
    return params, {"W1": np.zeros((40_000, 4), np.float32)}


def make_sparse(update: int, start: Start) -> Checkpoint:
    """That of a training that has touched a row an update."""
    params, optimizer = draw(start)
    params["W1"][:update] += 1
    optimizer["W1"][:update] = 0.25
    return dataclasses.replace(
        make_checkpoint(update), params=params, optimizer=optimizer, start=start
    )


@pytest.fixture
def sparse_store(store) -> CheckpointStore:
    """One that knows the start, and so keeps what has changed."""
    made = CheckpointStore(store.folder, store.warnings.append, draw)
    made.warnings = store.warnings
    return made


@pytest.mark.parametrize("start", [Start(0), Start(7), Start(7, attempt=2)], ids=str)
def test_only_what_has_changed_since_the_start_is_kept(sparse_store, start):
    for update in (0, 100):
        sparse_store.save(make_sparse(update, start))
        assert_same(sparse_store.load(update), make_sparse(update, start))
        size = sum(path.stat().st_size for path in sparse_store.path(update).iterdir())
        assert size < 4_000 + 60 * update, "that of update 0 has no size"


def test_checkpoints_of_the_first_format_are_read(store, sparse_store, monkeypatch):
    """They hold whole arrays, and no start."""
    monkeypatch.setattr(checkpoint_module, "FORMAT", 1)
    whole = make_sparse(3, Start(0))
    store.save(whole)
    monkeypatch.undo()
    with edited_manifest(store.path(3)) as manifest:
        del manifest["start"]
    assert_same(sparse_store.load(3), whole)
    sparse_store.save(make_sparse(4, Start(0)))
    assert_same(sparse_store.load_latest(), make_sparse(4, Start(0)))


def test_a_library_that_draws_other_numbers_is_one_line(store, sparse_store):
    sparse_store.save(make_sparse(2, Start(0)))

    def draw_others(start: Start):
        return draw(Start(start.seed + 1))

    other = CheckpointStore(store.folder, store.warnings.append, draw_others)
    with pytest.raises(CheckpointError, match=r"by their SHA-256, got others; use the library ver"):
        other.load_latest()


def test_a_checkpoint_under_another_updates_name_is_refused(store):
    store.save(make_checkpoint(1))
    store.path(1).rename(store.path(7))
    with pytest.raises(CheckpointError):
        store.load(7)


def test_when_none_is_sound_it_does_not_start_over_silently(store):
    with pytest.raises(CheckpointError, match="none at all"):
        store.load_latest()
    for update in (1, 2):
        store.save(make_checkpoint(update))
        (store.path(update) / "state.json").write_text("{}")
    with pytest.raises(CheckpointError, match="got 2 damaged ones"):
        store.load_latest()


def test_a_pickle_in_place_of_arrays_is_never_loaded(store, tmp_path):
    import hashlib
    import pickle

    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self):
            return (Path.touch, (canary,))

    content = pickle.dumps(Bomb())
    store.save(make_checkpoint(1))
    for name in FILES[:3]:
        (store.path(1) / name).write_bytes(content)
    with edited_manifest(store.path(1)) as manifest:  # a forger can write fitting hashes
        for entry in manifest["files"].values():
            entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(CheckpointError, match="cannot be read"):
        store.load(1)
    assert not canary.exists()


def test_no_module_of_the_package_unpickles_a_file():
    root = Path(pixelpong.__file__).parent
    words = ("import pickle", "from pickle", "np.load(", "allow_pickle")
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(word in path.read_text("utf-8") for word in words)
    }
    others = {name for name in users if not name.startswith("engines/ray/")}
    what = "only what our own processes send each other is pickled"
    assert others <= {"engines/jobs.py", "pickling.py"}, what


def test_the_manifest_is_written_last_and_the_folder_named_after_it(store, monkeypatch):
    """The order that makes a checkpoint all or nothing: files, manifest, folder, name."""
    tape = []
    real_write, real_sync = checkpoint_module.write_file, store_module.sync_folder
    real_rename = Path.rename

    def write(path, content):
        real_write(path, content)
        tape.append(path.name)

    def sync(folder):
        real_sync(folder)
        tape.append("sync " + ("temporary" if folder.name.startswith(".tmp-") else folder.name))

    def rename(path, target):
        tape.append("rename")
        return real_rename(path, target)

    monkeypatch.setattr(checkpoint_module, "write_file", write)
    for module in (checkpoint_module, store_module):
        monkeypatch.setattr(module, "sync_folder", sync)
    monkeypatch.setattr(Path, "rename", rename)
    store.save(make_checkpoint(1))
    assert tape == [*FILES, "sync temporary", "rename", "sync checkpoints"]


def test_every_file_and_folder_is_flushed_to_the_disk(store, monkeypatch):
    synced = []
    real = os.fsync

    def noted(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    store.save(make_checkpoint(1))
    temporary = f".tmp-000001-{os.getpid()}"
    assert [Path(path).name for path in synced] == [*FILES, temporary, "checkpoints"]


@pytest.mark.parametrize("stop_at", range(7))
def test_a_save_that_is_killed_leaves_the_one_before(store, monkeypatch, stop_at):
    """Whatever call is the last: the folder that is found is the old one or the new one."""

    class Killed(BaseException):
        pass

    store.save(make_checkpoint(1))
    calls = []

    def counted(real):
        def call(*args):
            if len(calls) == stop_at:
                raise Killed
            calls.append(1)
            return real(*args)

        return call

    monkeypatch.setattr(checkpoint_module, "write_file", counted(checkpoint_module.write_file))
    for module in (checkpoint_module, store_module):
        monkeypatch.setattr(module, "sync_folder", counted(module.sync_folder))
    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    with pytest.raises(Killed):
        store.save(make_checkpoint(2))
    monkeypatch.undo()
    found = store.load_latest()
    assert_same(found, make_checkpoint(found.update))
    assert store.warnings == []
    store.sweep()
    assert not [path for path in store.folder.iterdir() if path.name.startswith(".tmp-")]
    store.save(make_checkpoint(2))
    assert_same(store.load_latest(), make_checkpoint(2))


def test_a_damaged_one_is_replaced_when_training_comes_by_again(store):
    store.save(make_checkpoint(1))
    store.save(make_checkpoint(2))
    (store.path(2) / "state.json").write_text("damaged")
    store.save(make_checkpoint(2))
    assert_same(store.load(2), make_checkpoint(2))


def test_a_full_disk_is_one_line_and_keeps_the_one_before(small_disk):
    store = CheckpointStore(small_disk("1m") / "checkpoints", warn=print)
    store.save(make_checkpoint(1))
    big = make_checkpoint(2)
    big.params["W1"] = np.zeros(300_000, np.float32)
    with pytest.raises(RunError, match=r"got No space left on device; .* of update 1 is kept"):
        store.save(big)
    assert store.updates() == [1]
    assert_same(store.load_latest(), make_checkpoint(1))
    assert len(list(store.folder.iterdir())) == 1
    store.save(make_checkpoint(2))


def test_a_file_size_limit_is_one_line_and_keeps_the_one_before(store):
    """The same without root: the system refuses files above a size."""
    import resource
    import signal

    store.save(make_checkpoint(1))
    big = make_checkpoint(2)
    big.params["W1"] = np.zeros(300_000, np.float32)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(RunError, match=r"got File too large; .* of update 1 is kept"):
            store.save(big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert store.updates() == [1]
    assert_same(store.load_latest(), make_checkpoint(1))


def test_fingerprint_tells_names_types_and_shapes_apart():
    zeros = np.zeros(4, np.float32)
    different = [
        {"a": zeros},
        {"b": zeros},
        {"a": zeros.reshape(2, 2)},
        {"a": zeros.astype(np.float64)},
        {"a": zeros, "b": zeros},
        {"a": zeros + np.float32(1e-30)},
    ]
    assert len({fingerprint(arrays) for arrays in different}) == len(different)
    assert fingerprint({"a": zeros, "b": zeros + 1}) == fingerprint({"b": zeros + 1, "a": zeros})


def test_other_things_in_the_folder_do_no_harm(store):
    store.save(make_checkpoint(1))
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / "²").mkdir()
    shutil.copytree(store.path(1), store.folder / "copy")
    assert store.updates() == [1]
    store.save(make_checkpoint(2))
    assert (store.folder / "notes.txt").exists()
