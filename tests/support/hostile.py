"""What is fed to readers that must refuse it in one line, and what that may cost.

An input is a file of ours with something wrong in it: bytes replaced, cut, doubled; or, if it is
JSON, one of its values replaced by each of `ODD_VALUES`, removed, or joined by another.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import operator
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pixelpong.errors import MAX_GOT, PixelpongError

MAX_SECONDS = 1.0  # of processor time, for one input: others may use the same cores
MAX_BYTES = 256 << 20  # by which the memory in use may grow for one input
MAX_LINE = MAX_GOT + 4096  # characters of an error: what was got is cut, and a path may be long
REFUSED = object()  # what `refuse_or_read` gives for an input that was refused


def _memory(name: str) -> int:
    """``VmRSS``, what is in use, or ``VmHWM``, the most since it was last asked to forget."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no {name}: this measurement needs Linux")


@contextlib.contextmanager
def within_limits(what: object, max_seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Fail if what is inside costs more processor time or memory than an input may."""
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = _memory("VmRSS"), time.process_time()
    yield
    seconds, grown = time.process_time() - begin, _memory("VmHWM") - before
    assert seconds <= max_seconds, (seconds, what)
    assert grown <= MAX_BYTES, (grown, what)


def refuse_or_read(read: Callable[[], Any], what: object) -> Any:
    """What `read` gives; `REFUSED` if it refuses with a declared error of one line."""
    with within_limits(what):
        try:
            return read()
        except PixelpongError as error:
            line = str(error)
    assert line.isprintable(), line
    assert len(line) <= MAX_LINE, len(line)
    return REFUSED


def for_examples(number: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]):
    """Run `check` on `number` examples: the same ones every time, new ones in the soak."""

    @settings(max_examples=number, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def run(example):
        check(example)

    run()


def quick_and_soak(quick: int, soak: int = 10_000):
    """Parametrize a test with how many examples it tries."""
    return pytest.mark.parametrize(
        "number", [quick, pytest.param(soak, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
    )


# --- bytes ------------------------------------------------------------------------------------

PIECES = (
    b"", b"\0", b"\n", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3000, b'{"a":' * 3000, b"9" * 5000,
    b"1e999", b"-0", b"NaN", b'"', b"\\u0000", b"\x80\x02c", b"x" * 70_000, b"0x" + b"f" * 5000,
)  # fmt: skip


@st.composite
def broken(draw: st.DrawFn, valid: bytes) -> bytes:
    """`valid` with one to three pieces cut out, put in, replaced or doubled."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 64, len(content)]))
        doubled = bytes(content[begin:end]) * 2
        piece = st.sampled_from(PIECES) | st.binary(max_size=40) | st.just(doubled)
        content[begin:end] = draw(piece)
    return bytes(content)


# --- JSON -------------------------------------------------------------------------------------

_RAW = {
    "@huge": b"9" * 5000, "@inf": b"1e999", "@nan": b"NaN", "@deep": b"[" * 3000 + b"]" * 3000,
    "@deepest": b'{"a":' * 30_000, "@bytes": b'"\xff\xfe"', "@surrogate": b'"\\ud800"',
    "@wide": b"[" + b"0," * 50_000 + b"0]",
}  # fmt: skip
"""Values that stand in the text as they are here."""

ODD_VALUES = (
    None, True, 0, 1, -1, 2.5, 61, 10**12, 2**53, 2**64, -(2**63), 1e300, "", "x\n\x1b[2J",
    "../../x", "x" * 100_000, [], {}, [1, 2], [60, 1], {"a": [None]}, *_RAW,
)  # fmt: skip
REMOVED = object()


def changes_of(valid: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`valid` with each value in it replaced by each odd one, or removed; and with one more."""
    for *owners, name in _places(valid):
        for odd in (*ODD_VALUES, REMOVED):
            value = copy.deepcopy(valid)
            owner = functools.reduce(operator.getitem, owners, value)
            owner[name] = odd
            if odd is REMOVED:
                del owner[name]
            yield value
    for odd in ("@deep", 1):
        yield valid | {"added": odd}


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a JSON value, of the first two of long lists."""
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value[:2]) if isinstance(value, list) else inner
    found = [place] if place else []
    return found + [each for key, below in inner for each in _places(below, (*place, key))]


def as_text(value: Any) -> bytes:
    """As JSON, with the raw values put in."""
    text = json.dumps(value).encode()
    for name, raw in _RAW.items():
        text = text.replace(b'"' + name.encode() + b'"', raw)
    return text
