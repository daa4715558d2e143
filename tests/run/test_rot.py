"""Files may rot: no bit of what a training has kept changes without being noticed."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from checkpoint_files import describe, make_checkpoint
from disks import contents
from hostile import quick_and_soak
from promises import promise
from toys import same_training, with_updates

from pixelpong.agent.file import Agent
from pixelpong.errors import CheckpointError, PixelpongError
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint, CheckpointStore
from pixelpong.run.directory import RunDirectory

pytestmark = promise("rot")


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


def read(path) -> list:
    """All that a run keeps in its configuration, in an agent and in its last checkpoint."""
    run = RunDirectory(path)
    agent = Agent.read(run.agents.path(10))
    about = json.dumps(agent.about, sort_keys=True)
    found = [fingerprint(agent.params), agent.algorithm, agent.protocol, about]
    return [*found, run.config, run.versions, run.machine, describe(run.checkpoints.load(12))]


@pytest.mark.slow
@quick_and_soak(50)
@pytest.mark.parametrize("name", ["config.json", "agents/000010", "checkpoints/000012"])
def test_a_damaged_file_is_refused_in_one_line_or_gives_what_was_written(
    tmp_path, toy_runs, name, number
):
    folder = shutil.copytree(toy_runs["fast"], tmp_path / "run")
    (path,) = folder.glob(f"{name}*")
    content, sound, refused, count = path.read_bytes(), read(folder), 0, 0
    for changed in damages(content, max(len(content) // number, 1)):
        count += 1
        path.write_bytes(changed)
        try:
            assert read(folder) == sound, changed
        except PixelpongError as error:
            assert "\n" not in str(error)
            refused += 1
    print(f"{path.name}: {count} damages, {refused} refused, the others without effect")
    assert refused > 0.9 * count > 150


def test_in_place_of_a_damaged_checkpoint_the_one_before_is_taken_with_a_warning(tmp_path, capsys):
    store = CheckpointStore(tmp_path)
    for update in (1, 2):
        store.save(make_checkpoint(update))
    path = store.path(2)
    for replace, num_warnings in (
        (lambda: path.write_bytes(b""), 1),
        (path.unlink, 0),
        (path.mkdir, 1),
        (lambda: (path.rmdir(), path.symlink_to("nothing")), 1),
        (lambda: (path.unlink(), shutil.copy(store.path(1), path)), 1),
    ):
        replace()
        assert describe(store.load_latest()) == describe(make_checkpoint(1))
        said = capsys.readouterr().err.splitlines()
        assert ["000002" in line for line in said] == [True] * num_warnings


@promise("no silent start")
def test_a_run_of_which_anything_is_left_never_starts_over(tmp_path, toy_runs):
    for left in ("metrics", "episodes", "evaluations", "agents"):
        run = RunDirectory(shutil.copytree(toy_runs["fast"], tmp_path / left))
        shutil.rmtree(run.checkpoints.folder)
        for file in run.line_files:
            if file.path.stem != left:
                file.path.unlink()
        if left != "agents":
            shutil.rmtree(run.agents.folder)

        before = contents(run.path)
        assert len(before) > 1
        with pytest.raises(CheckpointError, match="There are no checkpoints in"):
            train(with_updates(run, 99))
        assert contents(run.path) == before


@promise("lines first")
@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl"])
def test_a_checkpoint_whose_line_was_cut_short_is_not_used(make_run, capsys, name):
    """As by a disk that lied: else the line would be missing for ever."""
    plain, run = make_run("plain", updates=4), make_run("run", updates=3)
    for each in (plain, run):
        train(each)
    content = (run.path / name).read_bytes()
    (run.path / name).write_bytes(content[:-9])
    train(with_updates(RunDirectory(run.path), 4))
    said = capsys.readouterr().err.splitlines()
    assert f"{name} ends before the checkpoint of update 3; trying another checkpoint" in said[0]
    assert same_training(run, plain) == []


def test_a_checkpoint_with_a_time_that_cannot_be_is_not_used(make_run, capsys):
    plain, run = make_run("plain", updates=4), make_run("run", updates=3)
    for each in (plain, run):
        train(each)
    newest = run.checkpoints.load(3)
    card = newest.card | {"wall_seconds": -3575.0}
    run.checkpoints.save(Checkpoint(newest.arrays, card))
    train(with_updates(RunDirectory(run.path), 4))
    said = capsys.readouterr().err.splitlines()
    assert "000003.safetensors: wall_seconds is not float >= 0.0; trying another" in said[0]
    assert same_training(run, plain) == []
