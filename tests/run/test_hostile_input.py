"""What strangers send: an agent's file is read as it says, or refused in one line.

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
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import (
    REFUSED,
    as_text,
    broken,
    changes_of,
    for_examples,
    quick_and_soak,
    refuse_or_read,
    within_limits,
)
from hypothesis import strategies as st
from promises import promise

from pixelpong.agent.file import MAX_WEIGHTS, Agent, load_shipped
from pixelpong.errors import CheckpointError, NumericsError
from pixelpong.faces.page.game import BrowserGame
from pixelpong.run.arrays import TABLE_LIMIT, decode_arrays, encode_arrays
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng

# --- an agent's file, field by field ----------------------------------------------------------


@pytest.fixture(params=["classic", "fast"])
def content(request, toy_runs) -> bytes:
    """An agent's file, which has been read once, so that no input is charged with compiling."""
    content = RunDirectory(toy_runs[request.param]).agents.path(10).read_bytes()
    understand(content)
    return content


def sealed(arrays: dict[str, np.ndarray], card: Any) -> bytes:
    """A file of these with the hash that fits them, as a stranger can write it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pixelpong.run.arrays.encode", as_text)
        return encode_arrays(arrays, card)


def understand(content: bytes) -> Any:
    """What is read of a file, through to a game that the agent plays."""
    agent = Agent.decode(content, "a test")
    game = BrowserGame(agent, make_rng(0, "play"))
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
    """Whether what was understood is what the file says; a whole number may stand for a float."""
    if isinstance(found, dict):
        return all(agrees(value, given[name]) for name, value in found.items())
    if isinstance(found, float) and type(given) is int:
        return found == given
    return repr(found) == repr(given)  # True is no 1


@promise("any input")
@pytest.mark.slow
@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_each_field_with_anything_in_it_is_read_as_it_says_or_refused(content, every):
    """Every name and value in turn: replaced by what does not belong there, or taken out."""
    arrays, card = decode_arrays(content)
    assert agrees(understand(sealed(arrays, card)), card)
    changes, refused = list(changes_of(card))[::every], 0
    for given in changes:
        what = as_text(given)[:2000]
        found = refuse_or_read(functools.partial(understand, sealed(arrays, given)), what)
        assert found is REFUSED or agrees(found, given), (what, found)
        refused += found is REFUSED
    assert refused > 0.3 * len(changes) > 15


def damaged(arrays: dict[str, np.ndarray]):
    """Each array with other types, shapes or numbers, and left out; and one more."""
    for name, w in arrays.items():
        flat = w.reshape(-1)
        others = [flat, flat[:0], flat[:-1], np.append(flat, flat[:1])]
        with np.errstate(all="ignore"):
            others += [w.astype(kind) for kind in ("f2", "f8", "i1", "i8", "u2", "?", "u8")]
            for odd in (np.nan, np.inf, -3e38, -1):
                others.append(np.append(flat[:-1], np.array(odd).astype(w.dtype)).reshape(w.shape))
        yield from (arrays | {name: other} for other in others)
        yield {each: arrays[each] for each in arrays.keys() - {name}}
    yield arrays | {"more": np.zeros(3, np.float32)}


@pytest.mark.slow
def test_arrays_of_another_kind_are_read_or_refused_in_one_line(content):
    arrays, card = decode_arrays(content)
    files = [sealed(each, card) for each in damaged(arrays)]
    files += [length.to_bytes(8, "little") + content[8:] for length in (0, 1, 2**31, 2**63)]
    found = [refuse_or_read(functools.partial(understand, each), each[:2000]) for each in files]
    assert found.count(REFUSED) > 0.6 * len(files) > 40


@pytest.mark.slow
@quick_and_soak(60, 2000)
def test_any_bytes_are_read_or_refused_in_one_line(content, number):
    found = []

    def check(given: bytes) -> None:
        found.append(refuse_or_read(functools.partial(understand, given), given[:2000]))

    for_examples(number, st.binary(max_size=200) | broken(content), check)
    assert found.count(REFUSED) > 0.3 * number


# --- files that are something else, or cost more than they are --------------------------------


class Bomb:
    """Unpickled, it makes a file."""

    def __reduce__(self):
        return (Path.touch, (Path("canary"),))


def table_of(table: object, data: bytes = bytes(16)) -> bytes:
    """Safetensors with any table."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str = "F32", shape: object = (4,), end: int = 16) -> dict:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": (0, end)}}


def strange_files() -> dict[str, bytes]:
    """Other formats, those that run what they hold among them, and tables that cannot be."""
    packed, objects = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
        archive.writestr("zeros", bytes(64 << 20))
    np.save(objects, np.array([Bomb()], object), allow_pickle=True)
    tiny = b'"%06x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return {
        "a pickle": pickle.dumps(Bomb()),
        "a zip with a pickle and a bomb": packed.getvalue(),
        "a gzip bomb": gzip.compress(bytes(64 << 20)),
        "an npy of objects": objects.getvalue(),
        "nothing": b"",
        "deep": table_of(b"[" * 100_000),
        "far too many entries": table_of(b"{" + b",".join(tiny % n for n in range(400_000)) + b"}"),
        "a table of spaces": table_of(b"{" + b" " * TABLE_LIMIT + b"}"),
        "overlapping": table_of(entry() | {"b": entry()["a"]}),
        "beyond its end": table_of(entry(shape=(1 << 40,), end=1 << 42)),
        "of a shape that overflows": table_of(entry(shape=(1 << 62, 4), end=0)),
        "of a type that NumPy does not have": table_of(entry("F8_E4M3", (16,))),
        **{f"a table of {n} bytes": struct.pack("<Q", n) + b"{}" for n in (1 << 32, (1 << 64) - 1)},
    }


@promise("agents of strangers")
@pytest.mark.slow
def test_what_is_no_arrays_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for how, content in strange_files().items():
        with within_limits(how), pytest.raises(ValueError, match=r"^\S.*$"):
            decode_arrays(content)
        Path("agent").write_bytes(content)
        assert refuse_or_read(lambda: Agent.read(Path("agent")), how) is REFUSED
        assert not Path("canary").exists(), how


@promise("agents of strangers")
def test_a_file_that_is_too_large_for_an_agent_is_not_read(tmp_path):
    path = tmp_path / "agent"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with within_limits(path), pytest.raises(CheckpointError, match="more than 58,720,256 b"):
        Agent.read(path)


# --- agents -----------------------------------------------------------------------------------


def squeezed(content: bytes) -> dict[str, np.ndarray]:
    """The first layer's rows as compressed bytes."""
    return {"W1": np.frombuffer(content, np.uint8), "scale": np.ones(4, np.float16)}


LIST, SIZE = "its list of rows is not valid", "its rows have the wrong size"
FORGED = [  # what its card says, what its arrays are, why it is refused
    ({"shape": [32358, 20_000, 2]}, {}, "its first layer is too large"),
    ({"algorithm": "reinforce"}, {}, SIZE),  # the kernels would read beyond its arrays' ends
    ({"more": "x" * (1 << 20)}, {}, "its metadata has more than 1,048,576 bytes"),
    ({}, {"rows": np.array([0, 1, 2, -1], np.int16)}, LIST),  # NumPy takes -1 for the last one
    ({}, {"rows": np.uint16([0, 1, 2, 59958])}, LIST),  # one more than the last
    ({}, squeezed(b"no stream"), "its rows cannot be decompressed"),
    *(({}, squeezed(zlib.compress(bytes(4 * 128 + more))), SIZE) for more in (-1, 1, 1 << 27)),
]


@promise("agents of strangers")
@pytest.mark.slow
def test_an_agent_that_cannot_be_is_refused():
    kept, facts = decode_arrays(load_shipped().encode(np.arange(4)))

    def read(card: dict[str, Any], arrays: dict[str, np.ndarray]) -> Agent:
        return Agent.decode(encode_arrays(kept | arrays, facts | card), "a test")

    assert read({}, {}).algorithm == "ppo"
    for card, arrays, why in FORGED:
        what = str(card)[:40]
        with within_limits(what), pytest.raises(CheckpointError, match=why):
            read(card, arrays)


def test_numbers_too_large_for_a_small_agent_are_refused():
    """Half precision ends at 65,504: a row's step would be infinite in the file."""
    agent = load_shipped()
    for name, value in (("W1", 1e10), ("W1", np.nan), ("W2", np.inf)):
        params = {each: w.copy() for each, w in agent.params.items()}
        params[name].reshape(-1)[0] = value
        with pytest.raises(NumericsError, match="numbers are too large for a file"):
            dataclasses.replace(agent, params=params).encode(np.arange(3))
    many = {"W1": np.zeros((6400, MAX_WEIGHTS // 6400 + 1), np.float32)}
    with pytest.raises(NumericsError, match="too large for an agent's file"):
        dataclasses.replace(agent, params=many).encode(np.arange(3))
