"""Files may rot: no bit of what a training has kept changes without being noticed."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from test_full_disks import FEW, toy
from test_store import assert_same, make_checkpoint
from toys import result_of, with_updates

from pixelpong.agent.file import Agent
from pixelpong.errors import CheckpointError, PixelpongError
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory


@pytest.fixture(scope="module", params=FEW)
def trained(request, tmp_path_factory) -> RunDirectory:
    """A run of eight updates, to be damaged and mended again."""
    run = RunDirectory.create(tmp_path_factory.mktemp("trained") / "run", toy(request.param))
    train(run)
    return run


def damages(content: bytes, every: int):
    """What may become of a file: single bits turned, pieces cut out, zeros, ends cut off."""
    places = sorted({*range(0, len(content), every), len(content) - 1})
    for number, place in enumerate(places):
        for bit in range(8) if every == 1 else (number % 8,):
            yield content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
    for begin, end in itertools.pairwise(places):
        yield content[:begin] + content[end:]
        yield content[:begin] + bytes(end - begin) + content[end:]
    for place in places:
        yield content[:place]
    yield content + b"\0"
    yield content + content


# --- checkpoints ------------------------------------------------------------------------------


@pytest.fixture
def two_checkpoints(tmp_path) -> CheckpointStore:
    """Of updates 1 and 2."""
    store = CheckpointStore(tmp_path / "checkpoints")
    for update in (1, 2):
        store.save(make_checkpoint(update))
    return store


@pytest.mark.parametrize(
    ("every", "fewest"), [(17, 100), pytest.param(1, 5000, marks=pytest.mark.soak)]
)
def test_a_damaged_checkpoint_is_noticed(two_checkpoints, every, fewest, capsys):
    """Whatever is damaged: the one before is taken, with a warning; or nothing has changed."""
    store, count = two_checkpoints, 0
    path = store.path(2)
    for changed in damages(path.read_bytes(), every):
        path.write_bytes(changed)
        with contextlib.suppress(CheckpointError):
            assert_same(store.load(2), make_checkpoint(2))
            continue  # a space of the table
        count += 1
        assert_same(store.load_latest(), make_checkpoint(1))
        said = capsys.readouterr().err.splitlines()
        assert ["000002" in line for line in said] == [True], changed
    print(f"{count} damages, 0 silent loads")
    assert count > fewest


def test_a_file_that_is_missing_or_something_else_is_noticed(two_checkpoints):
    path = two_checkpoints.path(2)
    for replace in (
        path.unlink,
        path.mkdir,
        lambda: (path.rmdir(), path.symlink_to("nothing")),
        lambda: (path.unlink(), shutil.copy(two_checkpoints.path(1), path)),
    ):
        replace()
        assert_same(two_checkpoints.load_latest(), make_checkpoint(1))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["missing", "a bit", "cut", "empty"])
def test_a_training_goes_on_from_the_checkpoint_before_to_the_same_bits(
    tmp_path, trained, how, capsys
):
    run = RunDirectory(shutil.copytree(trained.path, tmp_path / "run"))
    path = run.checkpoints.path(8)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    damaged = {"a bit": content, "cut": content[:-9], "empty": b""}
    path.unlink() if how == "missing" else path.write_bytes(damaged[how])
    train(run)
    *refused, again = capsys.readouterr().err.splitlines()
    assert result_of(run) == result_of(trained)
    assert len(refused) == (how != "missing")
    assert all("000008" in line and "taking another" in line for line in refused)
    assert again.endswith("checkpoint is of update 6; 2 updates will be played again")


@pytest.mark.parametrize("left", ["metrics", "episodes", "evaluations", "agents"])
def test_a_run_of_which_anything_is_left_never_starts_over(tmp_path, trained, left):
    run = RunDirectory(shutil.copytree(trained.path, tmp_path / "run"))
    shutil.rmtree(run.checkpoints.folder)
    for file in run.line_files:
        if file.path.stem != left:
            file.path.unlink()
    if left != "agents":
        shutil.rmtree(run.agents.folder)

    def contents():
        own = ("run.lock", "failure.json")
        files = [each for each in run.path.rglob("*") if each.is_file() and each.name not in own]
        return {path: path.read_bytes() for path in files}

    before = contents()
    with pytest.raises(CheckpointError, match="got none at all"):
        train(with_updates(run, 9))
    assert contents() == before


# --- the configuration, agents -------------------------------------------------------


def check_reading(path: Path, every: int, read) -> None:
    """Whatever is damaged: reading it is refused, or gives exactly what was written."""
    content = path.read_bytes()
    sound, refused, count = read(), 0, 0
    try:
        for changed in damages(content, every):
            count += 1
            path.write_bytes(changed)
            try:
                assert read() == sound, changed
            except PixelpongError as error:
                assert "\n" not in str(error)
                refused += 1
    finally:
        path.write_bytes(content)
    print(f"{path.name}: {count} damages, {refused} refused, the others without effect")
    assert refused > 0.9 * count


def read_run(run: RunDirectory):
    again = RunDirectory(run.path)
    return again.config, again.versions, again.machine


def read_saved(run: RunDirectory):
    agent = Agent.read(run.agents.path(2))
    about = json.dumps(agent.about, sort_keys=True)
    return fingerprint(agent.params), agent.algorithm, agent.protocol, about


@pytest.mark.parametrize(
    "every",
    [(37, 1000), pytest.param((1, 61), marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
)
def test_a_damaged_configuration_or_agent_is_refused(trained, every):
    check_reading(trained.path / "config.json", every[0], lambda: read_run(trained))
    check_reading(trained.agents.path(2), every[1], lambda: read_saved(trained))


def test_the_agent_in_the_package_has_a_hash_and_a_damaged_one_is_refused():
    file = resources.files("pixelpong") / "agent/shipped/beginner.safetensors"
    content = bytearray(file.read_bytes())
    for place in np.linspace(len(content) // 20, len(content) - 1, 25).astype(int):
        content[place] ^= 16
        with pytest.raises(CheckpointError, match="a usable agent in a test"):
            Agent.decode(bytes(content), "a test")
        content[place] ^= 16
    assert Agent.decode(bytes(content), "a test").about["update"] > 0
