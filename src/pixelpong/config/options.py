"""Options: a default, a help and the values allowed, written once as a field of a dataclass."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pixelpong.errors import ConfigError, expected

COMMAND_LINE = "command line"
"""The origin of options that stand on the command line: errors spell them as flags."""

LARGEST_INT = 2**63 - 1
"""Of every whole number: what a file, an array and a deadline can hold."""


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    source: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Iterable[str] = (),
    is_free: bool = False,
) -> Any:
    """One option: its default, its help and the values it takes.

    Args:
        default: the value where nobody says otherwise.
        help: one line for ``--help``.
        unit: what the number counts.
        source: where the default comes from.
        minimum: smallest value allowed.
        maximum: largest value allowed.
        choices: the only values allowed, where they can be listed.
        is_free: the option does not change the parameters that a given number of updates leads
            to, so that a resumed run may have another value.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "source": source,
        "minimum": minimum,
        "maximum": maximum,
        "choices": tuple(choices),
        "is_free": is_free,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Option:
    """One option as the command line, the documentation and the check see it."""

    name: str
    type: Any
    default: Any
    metadata: Mapping[str, Any]
    section: str


def check_value(each: Option, value: Any, origin: str) -> Any:
    """`value` in the option's own type.

    Args:
        each: the option.
        value: what was given.
        origin: where it was given, for the error message.

    Raises:
        ConfigError: it is of the wrong type or out of range.
    """
    allowed = typing.get_args(each.type) or (each.type,)
    wanted = next(kind for kind in allowed if kind is not type(None))
    if value is None and type(None) in allowed:
        return None
    if wanted is float and type(value) is int and abs(value) <= LARGEST_INT:
        value = float(value)
    if type(value) is not wanted or not _is_in_range(value, each.metadata):
        spelled = "--" + each.name.replace("_", "-") if origin == COMMAND_LINE else each.name
        what = f"{spelled} to be {describe_values(each)}"
        raise ConfigError(f"{origin}: " + expected(what, _spell(value), "change it"))
    return value


def _spell(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return f"a {type(value).__name__} of very many digits"
    except RecursionError:
        return f"a {type(value).__name__} nested without end"


def _is_in_range(value: Any, metadata: Mapping[str, Any]) -> bool:
    if isinstance(value, int) and abs(value) > LARGEST_INT:
        return False
    if metadata["choices"] and value not in metadata["choices"]:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    low, high = metadata["minimum"], metadata["maximum"]
    return (low is None or value >= low) and (high is None or value <= high)


def describe_values(each: Option) -> str:
    """The values an option takes, in words.

    >>> describe_values(Option("x", float, 0.5, {"choices": (), "minimum": 0, "maximum": 1}, ""))
    'a number from 0 to 1'
    """
    if each.metadata["choices"]:
        return "one of " + ", ".join(each.metadata["choices"])
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    wanted = next(t for t in typing.get_args(each.type) or (each.type,) if t is not type(None))
    low, high = each.metadata["minimum"], each.metadata["maximum"]
    low, high = (f"{end:g}" if isinstance(end, float) else end for end in (low, high))
    bounds = f" from {low} to {high}" if high is not None else ""
    if high is None and low is not None:
        bounds = f" of at least {low}"
    return names[wanted] + bounds
