"""What strangers send: an agent's file and messages are read as they say, or refused in one line.

Each input is given one second of processor time and 256 MB, and both are measured.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import (
    REFUSED,
    Worst,
    as_text,
    broken,
    changed,
    changes_of,
    for_examples,
    is_same,
    quick_and_soak,
    refuse_or_read,
    within_limits,
)
from hypothesis import strategies as st
from safetensors.numpy import load
from toys import toy_config

from pixelpong.agent import file as agent_file
from pixelpong.agent.file import MAX_WEIGHTS, Agent, load_shipped
from pixelpong.config import Config
from pixelpong.config.presets import read_toml
from pixelpong.errors import (
    MAX_GOT,
    CheckpointError,
    ConfigError,
    NumericsError,
    expected,
)
from pixelpong.faces.page.game import Game, Message
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.run.arrays import TABLE_LIMIT, decode_arrays, encode_arrays
from pixelpong.run.directory import RunDirectory
from pixelpong.schema import decode
from pixelpong.seeding import make_rng


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, RunDirectory]:
    """A run of each mode, of a moment."""
    folder, runs = tmp_path_factory.mktemp("trained"), {}
    changes = {"hidden": 2, "batch_size": 2, "num_envs": 2, "num_steps": 40, "updates": 2}
    for preset in ("classic", "fast"):
        config = toy_config(preset, **changes, save_agent_every=1, evaluate_every=2)
        runs[preset] = RunDirectory.create(folder / preset, config)
        train(runs[preset])
    return runs


# --- an agent's file, field by field ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class File:
    """An agent's file: its bytes, its arrays and its card."""

    content: bytes
    arrays: dict[str, np.ndarray]
    card: dict[str, Any]

    def with_card(self, card: Any) -> bytes:
        """The same with another card, and a hash that fits."""
        return sealed(self.arrays | {"card": np.frombuffer(as_text(card), np.uint8)})


def sealed(arrays: dict[str, np.ndarray]) -> bytes:
    """A file of these arrays with the hash that fits them, as a stranger can write it."""
    card = arrays.get("card", np.zeros(0, np.uint8)).tobytes()
    rest = {name: np.ascontiguousarray(w) for name, w in arrays.items() if name != "card"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pixelpong.run.arrays.encode", lambda it: it)
        return encode_arrays(rest, card)


@pytest.fixture(params=["classic", "fast"])
def file(request, trained) -> File:
    content = trained[request.param].agents.path(2).read_bytes()
    arrays, card = decode_arrays(content)
    return File(content, arrays, card)


def understand(content: bytes) -> Any:
    """What is read of a file, through to a game that the agent plays."""
    agent = Agent.decode(content, "a test")
    game = Game(agent, make_rng(0, "play"))
    for _ in range(5):
        game.tick()
    known = {"update", "steps", "episodes", "estimated_return"}
    return {
        "algorithm": agent.algorithm,
        "environment": agent.protocol.environment,
        "frame_skips": list(agent.protocol.frame_skips),
        "sticky": agent.protocol.sticky,
        "about": {name: agent.about[name] for name in known & agent.about.keys()},
    }


def agrees(found: Any, given: Any) -> bool:
    """Whether what was understood is what the file says."""
    if isinstance(found, dict):
        return isinstance(given, dict) and all(
            name in given and agrees(value, given[name]) for name, value in found.items()
        )
    if isinstance(found, list):
        return isinstance(given, list) and [*map(agrees, found, given)] == [True] * len(given)
    return is_same(found, given)


@pytest.mark.slow
@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_each_field_with_anything_in_it_is_read_as_it_says_or_refused(file, every):
    """Every name and value in turn: replaced by what does not belong there, or taken out."""
    worst = Worst()
    assert agrees(understand(file.with_card(file.card)), file.card)
    for change in changes_of(file.card)[::every]:
        given = changed(file.card, change)
        read = functools.partial(understand, file.with_card(given))
        found = refuse_or_read(read, worst, change)
        assert found is REFUSED or agrees(found, given), (change, found)
    assert worst.refused > 0.3 * worst.count, worst


@st.composite
def tensors(draw: st.DrawFn, valid: bytes) -> bytes:
    """Arrays of other types, shapes and numbers than the valid ones, or an odd table length."""
    if draw(st.integers(0, 9)) == 0:
        length = draw(st.sampled_from([0, 2**63, 2**31, 1]))
        return length.to_bytes(8, "little") + valid[8:]
    arrays = load(valid)
    del arrays["sha256"]
    name = draw(st.sampled_from(sorted(arrays)))
    how = draw(st.sampled_from(["type", "shape", "number", "drop", "add", "empty"]))
    w = arrays[name]
    if how == "type":
        kind = draw(st.sampled_from(["f2", "f8", "i1", "i8", "u2", "?", "u8"]))
        with np.errstate(all="ignore"):
            arrays[name] = w.astype(kind)
    elif how == "shape":
        arrays[name] = w.reshape(-1)[: draw(st.integers(0, w.size))]
    elif how == "number" and w.size:
        arrays[name] = w.copy() if w.dtype.kind == "f" else w + w.dtype.type(1)
        if w.dtype.kind == "f":
            odd = draw(st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38]))
            with np.errstate(over="ignore"):
                arrays[name].reshape(-1)[draw(st.integers(0, w.size - 1))] = odd
    elif how == "drop":
        del arrays[name]
    elif how == "empty":
        arrays[name] = w.reshape(-1)[:0]
    else:
        arrays[draw(st.text(max_size=5))] = np.zeros(draw(st.integers(0, 3)), np.float32)
    return sealed(arrays)


@pytest.mark.slow
@quick_and_soak(60, 2000)
def test_any_bytes_are_read_or_refused_in_one_line(file, number):
    worst = Worst()

    def check(content: bytes) -> None:
        refuse_or_read(lambda: understand(content), worst, content[:2000])

    inputs = st.binary(max_size=200) | broken(file.content) | tensors(file.content)
    for_examples(number, inputs, check)
    assert worst.refused > 0.3 * worst.count, worst


@pytest.mark.slow
@quick_and_soak(100, 2000)
def test_what_a_browser_says_to_the_game_is_understood_or_refused(number):
    message = as_text({"aim": 0.5})

    def check(content: bytes) -> None:
        try:
            found = decode(content, Message)
        except ValueError as error:
            assert "\n" not in str(error)
        else:
            given = json.loads(content)
            assert agrees({name: getattr(found, name) for name in given}, given)

    for_examples(number, st.binary(max_size=200) | broken(message), check)
    for change in changes_of(json.loads(message)):
        check(as_text(changed(json.loads(message), change)))


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
        assert refuse_or_read(lambda path=path: Agent.read(path), worst, how) is REFUSED
        assert not canary.exists(), how


def test_a_file_that_is_too_large_for_an_agent_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "agent"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with within_limits(Worst(), path), pytest.raises(CheckpointError, match="more than 58720256 b"):
        Agent.read(path)
    monkeypatch.setattr(agent_file, "FILE_LIMIT", 3)
    path.write_bytes(bytes(4))
    with pytest.raises(CheckpointError, match="more than 3 bytes"):
        Agent.read(path)


# --- agents -----------------------------------------------------------------------------------


@functools.cache
def kept_agent() -> bytes:
    """An agent of the package in a file of four rows."""
    return load_shipped().encode(np.arange(4))


def forged_agent(card: dict | None = None, **arrays: np.ndarray) -> bytes:
    """An agent of the package with some of its arrays, or of its card, replaced."""
    kept, facts = decode_arrays(kept_agent())
    return encode_arrays(kept | arrays, facts | (card or {}))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"frame_skips": [4, 1]}, "the wrong order"),
        ({"frame_skips": [1, 10**12]}, "not int <= 60"),
        ({"environment": "Breakout"}, "Invalid enum value 'Breakout'"),
        ({"shape": [32358, 20_000, 2]}, "a first layer of shape"),
        ({"about": {"update": 1, "estimated_return": 1e9}}, "not float <= 1000"),
        ({"algorithm": "other"}, "algorithm"),
        ({"more": "x" * (1 << 20)}, "a card of more than 1048576 bytes"),
    ],
    ids=lambda it: str(it)[:40],
)
def test_a_card_of_what_cannot_be_is_refused(content, why):
    """Frame skips of a trillion took all memory at the first step that was played."""
    assert Agent.decode(forged_agent(), "a test").algorithm == "ppo"
    with within_limits(Worst(), content), pytest.raises(CheckpointError, match=why):
        Agent.decode(forged_agent(content), "a test")


@pytest.mark.parametrize("rows", [np.array([0, 1, 2, -1], np.int16), np.uint16([0, 1, 2, 65535])])
def test_rows_outside_the_first_layer_are_refused(rows):
    """NumPy takes row −1 for the last one."""
    with pytest.raises(CheckpointError, match="invalid rows"):
        Agent.decode(forged_agent(rows=rows), "a test")


@pytest.mark.parametrize("size", [0, 4 * 128 - 1, 4 * 128 + 1, 1 << 27])
def test_compressed_rows_of_another_length_are_refused(size):
    """A hundred kilobytes may become a hundred megabytes."""
    squeezed = zlib.compress(bytes(size)) if size else b"no stream"
    forged = forged_agent(W1=np.frombuffer(squeezed, np.uint8), scale=np.ones(4, np.float16))
    with within_limits(Worst(), size), pytest.raises(CheckpointError, match="invalid rows"):
        Agent.decode(forged, "a test")


def test_numbers_too_large_for_a_small_agent_leave_it_out_with_a_warning(
    tmp_path, monkeypatch, capsys
):
    """Half precision ends at 65,504: a row's step would be infinite in the file."""
    agent = load_shipped()
    for name, value in (("W1", 1e10), ("W1", np.nan), ("W2", np.inf)):
        params = {each: w.copy() for each, w in agent.params.items()}
        params[name].reshape(-1)[0] = value
        with pytest.raises(NumericsError, match="Numbers this large have no small file"):
            dataclasses.replace(agent, params=params).encode(np.arange(3))
    many = {"W1": np.zeros((6400, MAX_WEIGHTS // 6400 + 1), np.float32)}
    with pytest.raises(NumericsError, match="network this large has no small file"):
        dataclasses.replace(agent, params=many).encode(np.arange(3))
    real = ReinforceLearner.__init__

    def init(self, config):
        real(self, config)
        self.params["W1"][:] *= 1e9

    monkeypatch.setattr(ReinforceLearner, "__init__", init)
    config = toy_config("classic", updates=2, save_agent_every=1)
    run = RunDirectory.create(tmp_path / "run", config)
    train(run)
    assert run.agents.updates() == [0], "of which no row is large, since none is kept"
    assert "Numbers this large have no small file" in capsys.readouterr().err
    assert run.checkpoints.load_latest().update == 2


# --- runs, options, errors --------------------------------------------------------------------


def refused(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        make()


def test_what_is_nested_without_end_is_refused(tmp_path):
    """Python gives up on it with an error of its own."""
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    refused(lambda: Config().updated({"updates": nested}, "test"), r"got \[\[\[")
    while nested:  # taking it apart at once would overflow the stack
        nested = nested.pop()
    (tmp_path / "deep.toml").write_bytes(b"hidden = " + b"[" * 20_000 + b"]" * 20_000)
    refused(lambda: read_toml(tmp_path / "deep.toml"), "expected a TOML file at")


@pytest.mark.parametrize("value", [2**63, 10**400, -(10**400), float("inf"), 1 << 20_000],
                         ids=["2^63", "10^400", "-10^400", "inf", "2^20000"])  # fmt: skip
def test_numbers_that_nothing_holds_are_no_options(value):
    """A whole number beyond all floats, and one that Python refuses to write."""
    for name in ("total_timesteps", "learning_rate", "worker_timeout", "seed"):
        refused(lambda name=name: Config().updated({name: value}, "test"), f"expected {name} to be")


def test_of_what_a_stranger_wrote_an_error_repeats_some_letters_on_one_line():
    """A terminal obeys what is no letter."""
    line = expected("a name", "two\nlines\x1b[2J", "look")
    assert line == "expected a name, got two lines?[2J; look"
    assert len(expected("a name", "x" * 10**6, "look")) < MAX_GOT + 100


def test_an_agent_of_another_algorithm_is_refused_before_it_plays(tmp_path):
    """The kernels would read beyond the ends of its arrays."""
    kept, facts = decode_arrays(kept_agent())
    card = facts | {"algorithm": "reinforce"}
    path = tmp_path / "agent.safetensors"
    path.write_bytes(encode_arrays(kept, card))
    with pytest.raises(CheckpointError, match="invalid rows"):
        Agent.read(path)
