"""Schemas of files: types with bounds, and a function that reads JSON into them.

A dataclass declares a file's content. The types of its fields contain their bounds, and a
`__post_init__` may check what a type can't express. An error is a `ValueError` on one line:

    seed is str, not int
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, lt=2**53)]  # a count or an index; exact as a float
Return = Annotated[float, Meta(ge=-1000, le=1000)]  # an episode's return, or a mean of returns
Positive = Annotated[int, Meta(ge=1, lt=2**53)]
Number = Annotated[int, Meta(ge=1, le=4096)]  # a number of things that exist at the same time
Seconds = Annotated[float, Meta(ge=0, lt=1e12)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=10)]
# Any number that is displayed; no number of a run comes near the bounds.
Measure = Annotated[int, Meta(ge=-(10**12), le=10**12)] | Annotated[float, Meta(ge=-1e12, le=1e12)]

T = TypeVar("T")


def decode(content: bytes, type_: type[T]) -> T:
    """Read the JSON in `content` as a value of a type.

    >>> decode(b'{"steps": 3}', dict[str, Count])
    {'steps': 3}
    """
    try:
        return msgspec.json.decode(content, type=type_)
    except msgspec.MsgspecError as error:
        raise ValueError(_explain(error)) from error
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def convert(value: Any, type_: type[T]) -> T:
    """Convert a value that `decode` has read without a type to a type.

    >>> convert({"steps": -3}, dict[str, Count])
    Traceback (most recent call last):
        ...
    ValueError: [...] is not int >= 0
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.MsgspecError as error:
        raise ValueError(_explain(error)) from error


def encode(value: Any, *, indent: int | None = None) -> bytes:
    """Write JSON with the names in alphabetical order, so that its hash is stable.

    >>> encode({"steps": 3, "done": True})
    b'{"done": true, "steps": 3}'
    """
    return json.dumps(value, indent=indent, sort_keys=True, allow_nan=False).encode()


def _explain(error: Exception) -> str:
    """Rephrase the library's "Expected `int`, got `str` - at `$.seed`"."""
    text, _, path = str(error).replace("`", "").partition(" - at ")
    path = path.removeprefix("key in ").removeprefix("$").removeprefix(".")
    match = re.fullmatch("Expected (.+?)(?:, got (.+))?", text)
    if match is None:
        return f"{text} at {path}" if path else text
    wanted, got = match.groups()
    problem = f"is {got}, not {wanted}" if got else f"is not {wanted}"
    return f"{path or 'it'} {problem}"
