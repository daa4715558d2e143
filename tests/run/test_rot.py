"""Files may rot: no bit of what a training has kept changes without being noticed."""

from __future__ import annotations

import itertools
import json
import shutil
from importlib import resources

import pytest
from checkpoint_files import assert_same, make_checkpoint
from promises import promise
from toys import FEW, disk_toy, result_of, with_updates

from pixelpong.agent.file import Agent
from pixelpong.errors import CheckpointError, PixelpongError
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory

pytestmark = promise("rot")


@pytest.fixture(scope="module", params=FEW)
def trained(request, tmp_path_factory) -> RunDirectory:
    """A run of eight updates, to be damaged and mended again."""
    run = RunDirectory.create(tmp_path_factory.mktemp("trained") / "run", disk_toy(request.param))
    train(run)
    return run


# --- every damage to one file -----------------------------------------------------------------


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


def of_config(folder):
    RunDirectory.create(folder / "run", disk_toy("fast"))

    def read():
        run = RunDirectory(folder / "run")
        return run.config, run.versions, run.machine

    return folder / "run" / "config.json", read


def of_agent(folder):
    path = folder / "agent.safetensors"
    shutil.copy(str(resources.files("pixelpong") / "agent/shipped/beginner.safetensors"), path)

    def read():
        agent = Agent.read(path)
        about = json.dumps(agent.about, sort_keys=True)
        return fingerprint(agent.params), agent.algorithm, agent.protocol, about

    return path, read


def of_checkpoint(folder):
    store = CheckpointStore(folder)
    for update in (1, 2):
        store.save(make_checkpoint(update))

    def read():
        checkpoint = store.load(2)
        return checkpoint.card, fingerprint(checkpoint.arrays)

    return store.path(2), read


FILES = [  # every so manyth byte, quick and in the soak
    (of_config, 37, 1), (of_agent, 4000, 61), (of_checkpoint, 17, 1),
]  # fmt: skip
SOAK = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "every"),
    [
        *(pytest.param(make, every, id=make.__name__) for make, every, _ in FILES),
        *(pytest.param(make, e, marks=SOAK, id=f"{make.__name__} soak") for make, _, e in FILES),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_or_gives_what_was_written(tmp_path, make, every):
    path, read = make(tmp_path)
    content, sound, refused, count = path.read_bytes(), read(), 0, 0
    for changed in damages(content, every):
        count += 1
        path.write_bytes(changed)
        try:
            assert read() == sound, changed
        except PixelpongError as error:
            assert "\n" not in str(error)
            refused += 1
    print(f"{path.name}: {count} damages, {refused} refused, the others without effect")
    assert refused > 0.9 * count > 45


# --- every file of a run ----------------------------------------------------------------------


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
        assert_same(store.load_latest(), make_checkpoint(1))
        said = capsys.readouterr().err.splitlines()
        assert ["000002" in line for line in said] == [True] * num_warnings


@pytest.mark.slow
@pytest.mark.parametrize("how", ["missing", "a bit"])
def test_a_training_goes_on_from_the_checkpoint_before_to_the_same_bits(
    tmp_path, trained, how, capsys
):
    run = RunDirectory(shutil.copytree(trained.path, tmp_path / "run"))
    path = run.checkpoints.path(8)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.unlink() if how == "missing" else path.write_bytes(content)
    train(run)
    *refused, again = capsys.readouterr().err.splitlines()
    assert result_of(run) == result_of(trained)
    assert len(refused) == (how != "missing")
    assert all("000008" in line and "trying another" in line for line in refused)
    assert again.endswith("checkpoint is that of update 6; 2 updates will be played again")


@promise("no silent start")
def test_a_run_of_which_anything_is_left_never_starts_over(tmp_path, trained):
    for left in ("metrics", "episodes", "evaluations", "agents"):
        run = RunDirectory(shutil.copytree(trained.path, tmp_path / left))
        shutil.rmtree(run.checkpoints.folder)
        for file in run.line_files:
            if file.path.stem != left:
                file.path.unlink()
        if left != "agents":
            shutil.rmtree(run.agents.folder)

        def contents(run=run):
            files = {each for each in run.path.rglob("*") if each.is_file()}
            own = {run.path / "run.lock", run.path / "failure.json"}
            return {path: path.read_bytes() for path in files - own}

        before = contents()
        with pytest.raises(CheckpointError, match="none at all"):
            train(with_updates(run, 9))
        assert contents() == before
