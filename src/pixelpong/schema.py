"""What a file may say: types with bounds, and one function that reads JSON into them.

A file's content is declared as a dataclass. Its fields carry their bounds in their types, and a
`__post_init__` may refuse what no type can say. What does not fit is one line:

    seed that is str, not int

Covered: JSON into declared types, the bounds that many files share. Not covered: arrays
(`pixelpong.run.arrays`), options (`pixelpong.config`).
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

__all__ = [
    "Count",
    "Figure",
    "Meta",
    "Return",
    "Reward",
    "Seconds",
    "convert",
    "decode",
    "encode",
    "restore",
]

Count = Annotated[int, Meta(ge=0, lt=2**53)]
"""How many, or the number of something: what a float holds exactly, too."""

Return = Annotated[float, Meta(ge=-1000, le=1000)]
"""Of an episode, or a mean of them."""

Reward = Annotated[int, Meta(ge=-1000, le=1000)]
"""Of a point."""

Seconds = Annotated[float, Meta(ge=0, lt=1e12)]

Figure = Annotated[int, Meta(ge=-(10**12), le=10**12)] | Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Any number that is shown: nothing that a run writes comes near the bounds."""

T = TypeVar("T")


def decode(content: bytes, kind: type[T]) -> T:
    """The JSON in `content`, as a `kind`.

    Raises:
        ValueError: it is no JSON, or something else than a `kind`; what is wrong, in one line.

    >>> decode(b'{"steps": 3}', dict[str, Count])
    {'steps': 3}
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(_explain(error)) from error
    except RecursionError as error:
        raise ValueError("JSON that is nested without end") from error


def convert(value: Any, kind: type[T]) -> T:
    """What `decode` has read without a type, as a `kind`.

    Raises:
        ValueError: it is something else; what is wrong, in one line.

    >>> convert({"steps": -3}, dict[str, Count])
    Traceback (most recent call last):
        ...
    ValueError: [...] that is not int >= 0
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.MsgspecError as error:
        raise ValueError(_explain(error)) from error


def restore(values: dict[str, Any], kind: type[T]) -> T:
    """What `dataclasses.asdict` made of a `kind`: no field may be missing, with a default or not.

    Raises:
        ValueError: it is something else; what is wrong, in one line.
    """
    found = convert(values, kind)
    assert dataclasses.is_dataclass(found)
    for each in dataclasses.fields(found):
        if each.name not in values:
            raise ValueError(f"no {each.name}")
    return found


def encode(value: Any, *, indent: int | None = None) -> bytes:
    """JSON with the names in alphabetical order, so that a hash can be taken of it.

    Raises:
        ValueError: a number in it is not finite, or it is nested without end.

    >>> encode({"steps": 3, "done": True})
    b'{"done": true, "steps": 3}'
    """
    try:
        return json.dumps(value, indent=indent, sort_keys=True, allow_nan=False).encode()
    except RecursionError as error:
        raise ValueError("JSON that is nested without end") from error


def _explain(error: Exception) -> str:
    """The library's "Expected `int`, got `str` - at `$.seed`", to be put after "got"."""
    text, _, place = str(error).replace("`", "").partition(" - at ")
    place = place.removeprefix("key in ").removeprefix("$").removeprefix(".")
    found = re.fullmatch("Expected (.+?)(?:, got (.+))?", text)
    if found is None:
        return f"{text} at {place}" if place else text
    wanted, got = found.groups()
    is_what = f"is {got}, not {wanted}" if got else f"is not {wanted}"
    return f"{place} that {is_what}" if place else f"what {is_what}"
