"""Hostile run directories: what a stranger sends costs little, runs nothing, reaches nothing else.

Each is read in a process that may grow by 256 MB, where the processor time is measured. Beside the
run lies a folder of others, whose files must be what they were; a pickle that were loaded would
make one more.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from strange_files import (
    THINGS,
    altered_arrays,
    broken_arrays,
    canary_of,
    disguises,
    odd_texts,
    table_of,
)
from test_full_disks import toy
from toys import result_of

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import encode_agent
from pixelpong.loop import train
from pixelpong.run import checkpoints as store_module
from pixelpong.run.arrays import TABLE_LIMIT, decode_arrays
from pixelpong.run.directory import RunDirectory

MAX_SECONDS = 1.0
"""Of processor time, for one reading."""

FILES = ("params.safetensors", "state.safetensors", "state.json")


class Reader:
    """The helper program; what it has cost at most."""

    def __init__(self) -> None:
        helper = Path(__file__).with_name("read_within_limits.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(helper)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.count, self.seconds = 0, 0.0

    def ask(self, way: str, path: Path) -> dict:
        """What came of reading `path`, within the limits."""
        self._process.stdin.write(json.dumps([way, str(path)]) + "\n")
        self._process.stdin.flush()
        outcome = json.loads(self._process.stdout.readline())
        self.count += 1
        self.seconds = max(self.seconds, outcome["seconds"])
        assert "bug" not in outcome, outcome
        assert outcome["seconds"] <= MAX_SECONDS, outcome
        assert "\n" not in outcome.get("refused", "")
        return outcome

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
        print(f"{self.count} readings, at most {self.seconds:.2f} s of processor time")


@pytest.fixture(scope="module")
def reader():
    it = Reader()
    yield it
    it.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a run of two updates, and the folder of others beside it."""
    folder = tmp_path_factory.mktemp("made")
    config = toy("classic").updated(
        {"updates": 2, "save_every": 1, "hidden": 4, "evaluate_every": 0}, "test"
    )
    train(RunDirectory.create(folder / "run", config))
    (folder / "others" / "2019").mkdir(parents=True)
    (folder / "others" / "2019" / "photo").write_text("of a cat")
    (folder / "others" / "letters.txt").write_text("dear friend\n")
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A copy of it; what is not in the run's own folder must be as it was in the end."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    yield RunDirectory.open(tmp_path / "run", [].append)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """Of all that is not the run's."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for top in folder.iterdir()
        if top.name != "run"
        for path in [top, *top.rglob("*")]
    }


def forge(run: RunDirectory, put: dict[str, bytes], **changes) -> None:
    """Put files into the newest checkpoint, with a manifest whose hashes fit."""
    folder = run.checkpoints.path(2)
    manifest = json.loads((folder / "manifest.json").read_text())
    for name, content in put.items():
        (folder / name).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        manifest["files"][name] = {"bytes": len(content), "sha256": sha256}
    del manifest["manifest_sha256"]
    manifest |= changes
    manifest["manifest_sha256"] = store_module._hash_of_manifest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace(path: Path, make) -> None:
    """Put something else in a file's place."""
    path.unlink(missing_ok=True)
    make(path)


def require_passed_over(reader: Reader, run: RunDirectory) -> None:
    """The newest is refused; the one before it is taken, in one way or the other."""
    assert "refused" in reader.ask("checkpoint", run.path)
    assert reader.ask("latest", run.path)["read"] == "Checkpoint"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("thing", THINGS)
def test_things_that_are_no_files_are_passed_over(reader, run, name, thing):
    path = run.checkpoints.path(2) / name
    replace(path, THINGS[thing])
    require_passed_over(reader, run)
    assert reader.ask("resume", run.path)["read"] == "Outcome"


@pytest.mark.parametrize("name", FILES[:2])
def test_a_hole_of_terabytes_with_a_fitting_manifest_is_never_read(reader, run, name):
    path = run.checkpoints.path(2) / name
    forge(run, {})
    manifest = json.loads((path.parent / "manifest.json").read_text())
    replace(path, THINGS["a hole of terabytes"])
    for size in (path.stat().st_size, 1 << 30, 1 << 62, 10**400, -2):
        entry = manifest["files"][name] | {"bytes": size}
        forge(run, {}, files=manifest["files"] | {name: entry})
        require_passed_over(reader, run)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES[:2])
def test_disguised_and_broken_arrays_are_passed_over(reader, run, tmp_path, name):
    canary = tmp_path / "others" / "canary"
    for how, content in (disguises(canary) | broken_arrays()).items():
        forge(run, {name: content})
        outcome = reader.ask("checkpoint", run.path)
        if "refused" not in outcome:  # arrays they are, but none of ours
            assert "refused" in reader.ask("resume", run.path), (how, outcome)
        assert not canary.exists(), how


def test_a_table_that_is_too_long_is_not_looked_at():
    """Safetensors would read one of a hundred megabytes."""
    with pytest.raises(ValueError, match="a table of"):
        decode_arrays(table_of(b"{" + b" " * TABLE_LIMIT + b"}"))


def test_counters_that_are_too_long_are_not_looked_at(reader, run):
    content = (run.checkpoints.path(2) / "state.json").read_bytes()
    forge(run, {"state.json": content + b" " * (5 << 20)})
    assert "where 3145728 can be" in reader.ask("checkpoint", run.path)["refused"]


@pytest.mark.slow
def test_odd_counters_are_passed_over(reader, run):
    for content in odd_texts().values():
        forge(run, {"state.json": content})
        outcome = reader.ask("checkpoint", run.path)
        assert "refused" in outcome or b"megabytes" in content or b"[]," in content


def test_parameters_that_are_not_finite_or_of_other_types_are_never_played_with(reader, run):
    path = run.checkpoints.path(2) / FILES[0]
    for how, content in altered_arrays(path.read_bytes()).items():
        forge(run, {FILES[0]: content})
        if any(word in how for word in ("not a number", "infinite", "whole", "bytes")):
            require_passed_over(reader, run)
        assert "refused" in reader.ask("checkpoint", run.path) or (
            "refused" in reader.ask("resume", run.path)
        ), how


def each(entry):
    """The same entry for every file."""
    return {name: entry for name in FILES}  # noqa: C420


MANIFESTS = {
    "names that climb": {"files": {"../../others/letters.txt": {"bytes": 1, "sha256": ""}}},
    "an absolute name": {"files": {"/etc/passwd": {"bytes": 1, "sha256": ""}}},
    "files that are a list": {"files": [1, 2, 3]},
    "files that are a number": {"files": 7},
    "files that are texts": {"files": each("x")},
    "files without a size": {"files": each({})},
    "sizes that are texts": {"files": each({"bytes": "9", "sha256": ""})},
    "sizes that are true": {"files": each({"bytes": True, "sha256": ""})},
    "sizes with a fraction": {"files": each({"bytes": 1e9, "sha256": ""})},
    "hashes that are lists": {"files": each({"bytes": 9, "sha256": []})},
    "a score that is a text": {"score": "x"},
    "a score that is a list": {"score": [1]},
    "a score beyond all": {"score": 10**300},
    "a score of a number": {"score_of": 3},
    "an update that is true": {"update": True},
    "an update that is a text": {"update": "2"},
    "an update that is another": {"update": 1},
    "a format that is a table": {"format": {"a": 1}},
    "a format of the future": {"format": 99},
    "a format that is a book": {"format": "x" * 50_000},
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_odd_manifests_are_passed_over(reader, run, what):
    forge(run, {}, **MANIFESTS[what])
    assert "refused" in reader.ask("checkpoint", run.path)
    for way in ("latest", "best"):
        outcome = reader.ask(way, run.path)
        # Another format is no damage: it is said, and nothing else is taken.
        assert "use the version" in outcome.get("refused", "") or outcome.get("read"), what
        assert len(outcome.get("refused", "")) < 1000


def test_manifests_that_are_no_json_of_ours_are_passed_over(reader, run):
    path = run.checkpoints.path(2) / "manifest.json"
    for content in odd_texts().values():
        path.write_bytes(content)
        require_passed_over(reader, run)


# --- folders ----------------------------------------------------------------------------------


def test_strange_names_among_the_checkpoints_do_no_harm(reader, run, tmp_path):
    folder, others = run.checkpoints.folder, tmp_path / "others"
    for name in ("٣", "²", "-1", "1e3", "0x1", "7", "+1", " 1", "000001 ", "9" * 200, "..."):
        (folder / name).mkdir()
    for name in ("000009", "000008", ".tmp-000001", "000005.before", "damaged-000009", "1" * 9):
        (folder / name).symlink_to(others if name.startswith((".", "0")) else others / "2019")
    (folder / "000007").write_text("a file")
    (folder / "damaged-000007").write_text("a file")
    assert reader.ask("latest", run.path)["read"] == "Checkpoint"
    assert reader.ask("resume", run.path)["read"] == "Outcome"


def test_checkpoints_that_are_somebody_elses_folder_are_left_alone(reader, run, tmp_path):
    shutil.rmtree(run.checkpoints.folder)
    run.checkpoints.folder.symlink_to(tmp_path / "others")
    assert "refused" in reader.ask("resume", run.path)
    run.checkpoints.folder.unlink()
    run.checkpoints.folder.write_text("a file")
    assert "got none at all" in reader.ask("resume", run.path)["refused"]


LINES = ("metrics.jsonl", "episodes.jsonl", "evaluations.jsonl", "replays.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LINES, "config.json", "run.lock"])
@pytest.mark.parametrize("thing", THINGS)
def test_nothing_is_written_through_a_link_and_nothing_waited_for(reader, run, name, thing):
    replace(run.path / name, THINGS[thing])
    outcome = reader.ask("resume", run.path)
    is_followed = thing == "a link to a canary" or name == "config.json"
    assert "refused" in outcome or not is_followed
    if name in LINES:
        reader.ask("lines", run.path)


def test_a_resume_that_goes_on_writes_through_no_link(reader, run, tmp_path):
    """With an update still to come, so that it would."""
    config = run.config.updated({"updates": 3}, "test")
    run.with_config(config).write_config(2)
    for name in LINES:
        replace(run.path / name, THINGS["a link to a canary"])
        assert "a symbolic link" in reader.ask("resume", run.path)["refused"]
        (run.path / name).unlink()
    assert Path("/" + canary_of(run.metrics.path)).read_text() == "dear friend\n"
    assert reader.ask("resume", run.path)["read"] == "Outcome"
    assert result_of(run)[0] == 3


# --- small agents -----------------------------------------------------------------------------


def cards(content: bytes) -> dict[str, bytes]:
    """The very agent with another card."""
    import numpy as np
    from safetensors.numpy import load, save

    arrays = {name: w for name, w in load(content).items() if name != "sha256"}
    card = json.loads(arrays["card"].tobytes())
    texts = {f"a card that is {how}": text for how, text in odd_texts().items()}
    changes = {
        "shape": [[], [1 << 40] * 3, [6400, -4], [6400.0, 4], "x", [6400, 4, 1, 1], [1 << 25, 4]],
        "algorithm": ["sarsa", "ppo", None, []],
        "environment": ["Breakout", None, [], {}],
        "frame_skips": [[4], [4, 10**9], [0, 0], ["4", "4"], None, [4, 2]],
        "sticky": [2.0, float("nan"), "x", None],
        "about": [7, None, "x"],
    }
    for key, values in changes.items():
        for value in values:
            texts[f"a card with {key} {value}"] = json.dumps(card | {key: value}).encode()
        fewer = {name: value for name, value in card.items() if name != key}
        texts[f"a card without {key}"] = json.dumps(fewer).encode()
    return {
        how: save(arrays | {"card": np.frombuffer(text, np.uint8)}) for how, text in texts.items()
    }


@pytest.mark.parametrize("thing", THINGS)
def test_things_in_a_milestones_place_are_refused(reader, run, thing):
    replace(run.milestones.path(2), THINGS[thing])
    assert "refused" in reader.ask("milestone", run.path)
    assert reader.ask("resume", run.path)["read"] == "Outcome"


@pytest.mark.slow
def test_strange_agents_are_refused(reader, run, tmp_path):
    path, canary = tmp_path / "run" / "agent", tmp_path / "others" / "canary"
    content = run.milestones.path(2).read_bytes()
    strange = disguises(canary) | broken_arrays() | altered_arrays(content) | cards(content)
    for how, content in strange.items():
        path.write_bytes(content)
        outcome = reader.ask("agent", path)
        is_ours = how.endswith(("is whole", "is turned", "is flat"))  # as many numbers in W1
        assert is_ours or "refused" in outcome, how
        assert not canary.exists(), how
    # What is in W1 may be of any size that its rows have.
    path.write_bytes(encode_agent(load_agent(run, "latest"), run_rows(run), bits=4))
    assert reader.ask("agent", path)["read"] == "Agent"
    path.write_bytes(table_of({}))
    assert "refused" in reader.ask("agent", path)


def run_rows(run: RunDirectory):
    import numpy as np

    return np.arange(len(run.checkpoints.load(2).params["W1"]))
