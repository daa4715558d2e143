"""Schemas of files: types with bounds, and a function that reads JSON into them.

`Setting` is a named value with such a type, which a user chooses. A dataclass declares a file's
content. The types of its fields contain their bounds, and a
`__post_init__` may check what a type can't express. An error is a `ValueError` on one line:

    seed is str, not int
"""

from __future__ import annotations

import json
import re
import reprlib
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta

from pixelpong.errors import ConfigError, did_you_mean, list_words, must_be

Count = Annotated[int, Meta(ge=0, lt=2**53)]  # a count or an index; exact as a float
# An episode's return, in the game's own points, or a mean of returns; scores go into the millions.
Return = Annotated[float, Meta(ge=-1e9, le=1e9)]
Positive = Annotated[int, Meta(ge=1, lt=2**53)]
Number = Annotated[int, Meta(ge=1, le=4096)]  # a number of things that exist at the same time
Seconds = Annotated[float, Meta(ge=0, lt=1e12)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=10)]
# Any number that is displayed; no number of a run comes near the bounds.
Measure = Annotated[int, Meta(ge=-(10**12), le=10**12)] | Annotated[float, Meta(ge=-1e12, le=1e12)]
MAX_FRAMES = 108_000  # the frame limit of an episode in ale-py: 30 minutes of play
FrameSkip = Annotated[int, Meta(ge=1, le=60)]
FrameLimit = Annotated[int, Meta(ge=1, le=MAX_FRAMES)]

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


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


@dataclass(frozen=True)
class Setting:
    """A value that a user chooses: its name, its type, and what is said of other values."""

    name: str
    type: Any

    @property
    def _values(self) -> Any:
        """The type without None."""
        members = get_args(self.type)
        return members[0] if type(None) in members else self.type

    @property
    def base_type(self) -> type:
        """The type of a value, without None and without bounds."""
        return str if self.choices else getattr(self._values, "__origin__", self._values)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it accepts; empty if it accepts any value of its type."""
        return get_args(self._values) if get_origin(self._values) is Literal else ()

    def describe_values(self, got: object = None) -> str:
        """Describe the values that it accepts.

        The bound `lt`, a limit of the machine, is mentioned only if `got` exceeds it.

        >>> Setting("x", Literal["left", "right"] | None).describe_values()
        'left or right'
        """
        if self.choices:
            return list_words(self.choices, "or")
        words = _TYPE_NAMES.get(self.base_type, "a path")
        for bound in getattr(self._values, "__metadata__", ()):
            if bound.le is None:
                words += f" of at least {bound.ge}"
            else:
                words += f" from {bound.ge} to {bound.le}"
            if bound.lt is not None and isinstance(got, int | float) and got >= bound.lt:
                words += f" and less than {bound.lt:,}"
        return words

    def check(self, value: Any, origin: str) -> Any:
        """Convert a value from `origin` to its type, or refuse it."""
        plain = _as_python(value)
        if self.base_type is int and isinstance(plain, float) and plain.is_integer():
            plain = int(plain)  # such as 1e6
        try:
            return convert(plain, self.type)
        except ValueError:
            raise ConfigError(self._describe_error(value, origin)) from None

    def spell(self, origin: str) -> str:
        """Return its name as the user writes it."""
        return f"{origin}: {self.name}"

    def _describe_error(self, value: Any, origin: str) -> str:
        try:
            got = reprlib.repr(value)
        except ValueError:
            got = "a number of more than 4,300 digits"
        advice = ""
        if isinstance(value, list):
            advice = "give one value, or use the list in a sweep"
        advice = did_you_mean(got.strip("'"), self.choices, advice)
        return must_be(self.spell(origin), self.describe_values(_as_python(value)), got, advice)


def _as_python(value: Any) -> Any:
    """Convert a NumPy number to a Python number; return any other value unchanged."""
    return value.item() if hasattr(value, "item") else value
