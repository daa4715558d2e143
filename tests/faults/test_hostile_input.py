"""Whatever is in a file: it is read as it says, or refused with a declared error of one line.

Each input is given one second of processor time and 256 MB, and both are measured.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import json
import pickle
import shutil
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hostile import (
    REFUSED,
    Worst,
    broken,
    changed,
    changes_of,
    for_examples,
    quick_and_soak,
    refuse_or_read,
    within_limits,
)
from hypothesis import strategies as st
from readers import look_at_page, make_readers, make_trained
from toys import toy_config, with_updates

from pixelpong.agent import file as agent_file
from pixelpong.agent.file import (
    MAX_WEIGHTS,
    decode_agent,
    encode_agent,
    load_shipped,
    read_agent,
)
from pixelpong.config import Config
from pixelpong.config.options import Option
from pixelpong.config.presets import read_toml
from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.env.pong import pack_snapshot, unpack_snapshot
from pixelpong.errors import (
    MAX_GOT,
    CheckpointError,
    ConfigError,
    EmulatorError,
    NumericsError,
    RunError,
    expected,
)
from pixelpong.faces.cli import main
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.run.arrays import TABLE_LIMIT, decode_arrays, encode_arrays
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LINE_LIMIT, LineFile
from pixelpong.run.tail import MAX_COLUMNS, Table

DOCUMENTS = (
    "config.json", "manifest.json", "card classic",
    "card fast", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl", "toml",
    "message",
)  # fmt: skip
OTHERS = (
    "snapshot ALE/Pong-v5",
)  # fmt: skip


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    made = make_readers(tmp_path_factory.mktemp("readers"))
    assert set(made) == {*DOCUMENTS, *OTHERS}
    return made


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> RunDirectory:
    return make_trained(tmp_path_factory.mktemp("trained") / "run", "classic")


# --- any file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DOCUMENTS, *OTHERS])
def test_what_the_package_writes_is_read(readers, name):
    reader = readers[name]
    reader.read(reader.valid)
    if name in DOCUMENTS:
        assert reader.agrees(reader.read(reader.seal(reader.document)), reader.document)


@pytest.mark.slow
@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_field_with_anything_in_it_is_read_as_it_says_or_refused(readers, name, every):
    """Every name and value in turn: replaced by what does not belong there, or taken out."""
    reader, worst = readers[name], Worst()
    for change in changes_of(reader.document)[::every]:
        given = changed(reader.document, change)
        found = refuse_or_read(functools.partial(reader.read, reader.seal(given)), worst, change)
        assert found in (None, REFUSED) or reader.agrees(found, given), (change, found)
    print(f"{name}: {worst}")


@pytest.mark.slow
@quick_and_soak(30, 2000)
@pytest.mark.parametrize("name", [*DOCUMENTS, *OTHERS])
def test_any_bytes_are_read_or_refused_in_one_line(readers, name, number):
    reader, worst = readers[name], Worst()

    def check(content: bytes) -> None:
        refuse_or_read(lambda: reader.read(content), worst, content[:2000])

    for_examples(number, st.binary(max_size=200) | broken(reader.valid) | reader.inputs, check)
    print(f"{name}: {worst}")


# --- files that are something else, or cost more than they are --------------------------------


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self):
        return (Path.touch, (self._canary,))


def table_of(table: object, data: bytes = bytes(16)) -> bytes:
    """Safetensors with any table."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str = "F32", shape: object = (4,), at: tuple[int, int] = (0, 16)) -> dict:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": at}}


def strange_files(canary: Path) -> dict[str, bytes]:
    """Other formats, those that run what they hold among them, and tables that cannot be."""
    packed, objects = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb(canary)))
        archive.writestr("zeros", bytes(64 << 20))
    np.save(objects, np.array([Bomb(canary)], object), allow_pickle=True)
    tiny = b'"%06x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return {
        **{f"a pickle of protocol {n}": pickle.dumps(Bomb(canary), n) for n in (0, 2, 5)},
        "a zip with a pickle and a bomb": packed.getvalue(),
        "a gzip bomb": gzip.compress(bytes(64 << 20)),
        "an npy of objects": objects.getvalue(),
        "nothing": b"",
        "zeros": bytes(1000),
        "deep": table_of(b"[" * 100_000),
        "far too many entries": table_of(b"{" + b",".join(tiny % n for n in range(400_000)) + b"}"),
        "a table of spaces": table_of(b"{" + b" " * TABLE_LIMIT + b"}"),
        "metadata that is a list": table_of({"__metadata__": {"a": [1]}}),
        "a list": table_of([]),
        "no UTF-8": table_of(b'{"\xff\xfe":1}'),
        "overlapping": table_of(entry() | {"b": entry()["a"]}),
        "with a gap": table_of(entry(at=(4, 20))),
        "backwards": table_of(entry(at=(16, 0))),
        "beyond its end": table_of(entry(shape=(1 << 40,), at=(0, 1 << 42))),
        "of a shape that overflows": table_of(entry(shape=(1 << 62, 4), at=(0, 0))),
        "of no such type": table_of(entry("F31")),
        "of a type that NumPy does not have": table_of(entry("F8_E4M3", (16,))),
        **{f"a table of {n} bytes": struct.pack("<Q", n) + b"{}" for n in (1 << 32, (1 << 64) - 1)},
    }


@pytest.mark.slow
def test_what_is_no_arrays_is_refused_and_never_run(tmp_path):
    canary, worst = tmp_path / "canary", Worst()
    for how, content in strange_files(canary).items():
        with within_limits(worst, how), pytest.raises(ValueError, match=r"^\S.*$"):
            decode_arrays(content)
        path = tmp_path / "agent"
        path.write_bytes(content)
        assert refuse_or_read(lambda path=path: read_agent(path), worst, how) is REFUSED
        assert not canary.exists(), how


def test_a_file_that_is_too_large_for_an_agent_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "agent"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with within_limits(Worst(), path), pytest.raises(CheckpointError, match="more than 58720256 b"):
        read_agent(path)
    monkeypatch.setattr(agent_file, "FILE_LIMIT", 3)
    path.write_bytes(bytes(4))
    with pytest.raises(CheckpointError, match="more than 3 bytes"):
        read_agent(path)


def test_a_line_without_an_end_is_not_held_in_memory(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.append({"update": 1})
    with file.path.open("r+b") as hole:
        hole.truncate(64 * LINE_LIMIT)
    worst = Worst()
    with within_limits(worst, "a hole"):
        assert list(file.read()) == [{"update": 1}]
    assert worst.megabytes < 16


# --- agents -----------------------------------------------------------------------------------


@functools.cache
def kept_agent() -> bytes:
    """An agent of the package in a file of four rows."""
    return encode_agent(load_shipped(), np.arange(4))


def forged_agent(card: dict | None = None, **arrays: np.ndarray) -> bytes:
    """An agent of the package with some of its arrays, or of its card, replaced."""
    kept = decode_arrays(kept_agent())
    del kept["sha256"]
    text = json.dumps(json.loads(kept["card"].tobytes()) | (card or {})).encode()
    return encode_arrays(kept | arrays | {"card": np.frombuffer(text, np.uint8)})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"frame_skips": [4, 1]}, "the wrong order"),
        ({"frame_skips": [1, 10**12]}, "not int <= 60"),
        ({"environment": "Breakout"}, "an unknown environment 'Breakout'"),
        ({"shape": [32358, 20_000, 2]}, "a first layer of shape"),
        ({"about": {"update": 1, "estimated_return": 1e9}}, "not float <= 1000"),
        ({"algorithm": "other"}, "algorithm"),
        ({"more": "x" * (1 << 20)}, "a card of more than 1048576 bytes"),
    ],
    ids=lambda it: str(it)[:40],
)
def test_a_card_of_what_cannot_be_is_refused(content, why):
    """Frame skips of a trillion took all memory at the first step that was played."""
    assert decode_agent(forged_agent(), "a test").algorithm == "ppo"
    with within_limits(Worst(), content), pytest.raises(CheckpointError, match=why):
        decode_agent(forged_agent(content), "a test")


def test_rows_that_are_counted_from_the_end_are_refused():
    """NumPy takes row −1 for the last one."""
    rows = np.array([0, 1, 2, -1], np.int16)
    with pytest.raises(CheckpointError, match="rows outside the first layer"):
        decode_agent(forged_agent(rows=rows), "a test")


@pytest.mark.parametrize("size", [0, 4 * 128 - 1, 4 * 128 + 1, 1 << 29])
@pytest.mark.slow
def test_compressed_rows_of_another_length_are_refused(size):
    """Half a megabyte may become half a gigabyte."""
    squeezed = squeeze_zeros(size) if size else b"no stream"
    arrays = {"W1": np.frombuffer(squeezed, np.uint8), "scale": np.ones(4, np.float16)}
    forged = forged_agent(**arrays)
    with within_limits(Worst(), size), pytest.raises(CheckpointError, match="invalid rows"):
        decode_agent(forged, "a test")


def squeeze_zeros(size: int) -> bytes:
    """So many zeros, compressed."""
    stream, block = zlib.compressobj(), bytes(1 << 20)
    blocks = [stream.compress(block) for _ in range(size >> 20)]
    return b"".join([*blocks, stream.compress(bytes(size % (1 << 20))), stream.flush()])


def test_numbers_too_large_for_a_milestone_leave_it_out_with_a_warning(tmp_path, monkeypatch):
    """Half precision ends at 65,504: they would be infinite in the file."""
    agent = load_shipped()
    for name, value in (("W1", 1e10), ("W1", np.nan), ("W2", np.inf)):
        params = {each: w.copy() for each, w in agent.params.items()}
        params[name].reshape(-1)[0] = value
        with pytest.raises(NumericsError, match=f"in {name} of a small agent, got 1 others"):
            encode_agent(dataclasses.replace(agent, params=params), np.arange(3), bits=4)
    many = {"W1": np.zeros((6400, MAX_WEIGHTS // 6400 + 1), np.float32)}
    with pytest.raises(NumericsError, match="a first layer of at most"):
        encode_agent(dataclasses.replace(agent, params=many), np.arange(3))
    real = ReinforceLearner.__init__

    def init(self, config):
        real(self, config)
        self.params["W1"][:] *= 1e8

    monkeypatch.setattr(ReinforceLearner, "__init__", init)
    warnings: list[str] = []
    config = toy_config("classic", updates=2, milestone_every=1)
    run = RunDirectory.create(tmp_path / "run", config, warnings.append)
    train(run)
    assert run.milestones.updates() == []
    assert any("numbers of at most 6.55e+04 in W1 of a small agent" in word for word in warnings)
    assert run.checkpoints.load_latest().update == 2


@pytest.mark.parametrize("command", ["evaluate", "record", "watch", "export"])
def test_an_agent_of_another_algorithm_is_refused_before_it_plays(
    trained, tmp_path, command, capsys
):
    """The kernels would read beyond the ends of its arrays."""
    run = copied(trained, tmp_path)
    edit_config(run, config=run.config.to_flat() | {"algorithm": "ppo"})
    more = {
        "evaluate": ["--engine", "serial"],
        "record": ["--out", str(tmp_path / "a.gif")],
        "watch": [],
        "export": ["--agent", str(tmp_path / "agent")],
    }
    assert main([command, str(run.path), *more[command]]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected parameters of the algorithm ppo, got {'W1': (6400, 2)" in line


# --- runs -------------------------------------------------------------------------------------


def copied(run: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A copy of a run, to be damaged."""
    shutil.copytree(run.path, tmp_path / "copy")
    return RunDirectory.open(tmp_path / "copy", [].append)


def edit_config(run: RunDirectory, **changes) -> None:
    """Change what ``config.json`` says, as a forger would."""
    path = run.path / "config.json"
    content = json.loads(path.read_text()) | changes
    del content["sha256"]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "changes", [{"versions": {"numpy": 2}}, {"machine": {"cores": [2]}}, {"changes": 5}], ids=str
)
def test_a_configuration_with_other_things_in_it_is_refused(trained, tmp_path, changes):
    run = copied(trained, tmp_path)
    edit_config(run, **changes)
    with pytest.raises(RunError, match=r"a run's config.* got (versions|machine|change)"):
        RunDirectory.open(run.path)


@pytest.mark.parametrize("name", ["٣", "²", "-1", "1e3", "7", "+1", "000001 ", "9" * 200, "..."])
def test_strange_names_among_the_checkpoints_do_no_harm(trained, tmp_path, name):
    run = copied(trained, tmp_path)
    (run.checkpoints.folder / name).mkdir()
    (run.checkpoints.folder / "000009").write_text("a file")
    assert run.checkpoints.load_latest().update == 2
    assert train(with_updates(run, 3)).progress.update == 3


ODD_EVALUATIONS = [
    {"ci95": 5}, {"ci95": [1]}, {"ci95": ["a", "b"]}, {"ci95": [float("nan"), 1.0]},
    {"ci95": [1e300, 1e300]}, {"returns": 3}, {"mean_return": "high"}, {"returns": ["x"]},
]  # fmt: skip


@pytest.mark.parametrize("line", ODD_EVALUATIONS, ids=str)
def test_an_odd_evaluation_stops_neither_the_page_nor_the_training(trained, tmp_path, line):
    """Nor is it a score, as when a training was killed between an evaluation and its checkpoint."""
    run = copied(trained, tmp_path)
    valid = list(run.evaluations.read())[-1]
    run.evaluations.path.write_text(json.dumps(valid | line) + "\n")
    look_at_page(run)
    longer = run.with_config(run.config.updated({"updates": 3, "evaluate_every": 0}, "test"))
    assert train(longer).progress.update == 3
    is_score = not {"ci95", "mean_return"} & line.keys()
    assert list(run.checkpoints.load_latest().counters)
    assert is_score or run.checkpoints.load(3).score_of == "mean_return_100"


def test_metrics_with_names_without_end_make_a_page_of_a_few():
    table = Table()
    for update in range(1, 20):
        more = {f"name {update} {number}": 1.0 for number in range(100)}
        table.add({"update": update, "x" * 10_000: 1.0, **more})
    columns = table.columns()
    assert len(columns) <= MAX_COLUMNS
    assert max(map(len, columns)) < 64
    assert {len(values) for values in columns.values()} == {19}


# --- options, errors, the game ----------------------------------------------------------------


def test_what_is_nested_without_end_is_refused(tmp_path):
    """Python gives up on it with an error of its own."""
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ConfigError, match="a list nested too deeply"):
        Config().updated({"steps": nested}, "test")
    while nested:  # taking it apart at once would overflow the stack
        nested = nested.pop()
    (tmp_path / "deep.toml").write_bytes(b"hidden = " + b"[" * 20_000 + b"]" * 20_000)
    with pytest.raises(ConfigError, match="expected TOML in"):
        read_toml(tmp_path / "deep.toml")


def test_an_option_without_bounds_is_finite_all_the_same():
    free = Option("x", float, 0.5)
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ConfigError, match="expected x to be a number"):
            free.check(value, "test")


@pytest.mark.parametrize("value", [2**63, 10**400, -(10**400), float("inf"), 1 << 20_000],
                         ids=["2^63", "10^400", "-10^400", "inf", "2^20000"])  # fmt: skip
@pytest.mark.parametrize("name", ["steps", "learning_rate", "worker_timeout", "seed"])
def test_numbers_that_nothing_holds_are_no_options(name, value):
    """A whole number beyond all floats, and one that Python refuses to write."""
    with pytest.raises(ConfigError, match=f"expected {name} to be"):
        Config().updated({name: value}, "test")


def test_of_what_a_stranger_wrote_an_error_repeats_some_letters_on_one_line():
    """A terminal obeys what is no letter."""
    line = expected("a name", "two\nlines\x1b[2J", "look")
    assert line == "expected a name, got two lines?[2J; look"
    assert len(expected("a name", "x" * 10**6, "look")) < MAX_GOT + 100


def test_a_snapshot_that_holds_an_unknown_action_is_refused():
    emulator = make_emulator(find_protocol("ALE/Pong-v5"))
    _, num_frames, state = unpack_snapshot(emulator.get_state())
    with pytest.raises(EmulatorError, match="an action 6 held"):
        emulator.set_state(pack_snapshot(6, num_frames, state))
    emulator.step(2, [0.5] * 6)
