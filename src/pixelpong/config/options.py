"""Options: a default, a help and the values allowed, each written once.

Options of a training are fields of the dataclasses in `pixelpong.config`; those of a single command
are in `pixelpong.faces.cli.options`.
"""

from __future__ import annotations

import math
import numbers
import typing
from dataclasses import dataclass, field
from typing import Any

from pixelpong.errors import ConfigError, did_you_mean, expected

COMMAND_LINE = "command line"  # errors spell options of this origin as flags
LARGEST_INT = 2**63 - 1  # a file, an array and a deadline can hold it

_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Option:
    """One option, for the command line, the documentation and the check.

    If `is_free`, it does not change the parameters after a given number of updates, so a resumed
    run may have another value.
    """

    name: str
    type: Any
    default: Any
    help: str = ""
    unit: str = ""
    source: str = ""  # of the default
    bounds: tuple[float | None, float | None] = (None, None)
    choices: tuple[str, ...] = ()
    is_free: bool = False
    section: str = ""  # of `pixelpong.config.Config`; "" for `Config` itself
    metavar: str = ""
    short: str = ""  # a letter with a hyphen

    @property
    def flag(self) -> str:
        """Its spelling on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def kind(self) -> type:
        """The type of a value, without None."""
        kinds = typing.get_args(self.type) or (self.type,)
        return next(kind for kind in kinds if kind is not type(None))

    def read(self, text: str) -> Any:
        """Read a value from the command line."""
        try:
            return self.check(self.kind(text), COMMAND_LINE)
        except ValueError:
            return self.check(text, COMMAND_LINE)  # refuses it in the same words

    def check(self, value: Any, origin: str) -> Any:
        """Return `value`, which comes from `origin`, in the option's own type, or refuse it."""
        if value is None and type(None) in typing.get_args(self.type):
            return None
        if isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's are Real too
            value = int(value) if isinstance(value, numbers.Integral) else value
            if self.kind is float and -LARGEST_INT <= value <= LARGEST_INT:
                value = float(value)
        if not self._allows(value):
            spelled = self.flag if origin == COMMAND_LINE else self.name
            what = f"{spelled} to be {self.describe_values()}"
            otherwise = "change it"
            if isinstance(value, list):
                otherwise = "give one value, or the list to `pixelpong sweep`"
            advice = did_you_mean(_spell(value), self.choices, otherwise)
            raise ConfigError(f"{origin}: " + expected(what, _spell(value), advice))
        return value

    def _allows(self, value: Any) -> bool:
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            return False
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(value, int) and abs(value) > LARGEST_INT:
            return False
        low, high = self.bounds
        return (low is None or value >= low) and (high is None or value <= high)

    def describe_values(self) -> str:
        """The values it takes, in words.

        >>> Option("x", float, 0.5, bounds=(0, 1)).describe_values()
        'a number from 0 to 1'
        """
        if self.choices:
            return "one of " + ", ".join(self.choices)
        low, high = (f"{x:g}" if isinstance(x, float) else x for x in self.bounds)
        bounds = "" if low is None else f" of at least {low}"
        if high is not None:
            bounds = f" from {low} to {high}"
        return _KINDS.get(self.kind, "a path") + bounds


def option(default: Any, help: str, **facts: Any) -> Any:
    """One option as a field of a dataclass; `facts` are other fields of `Option`."""
    return field(default=default, metadata={"help": help, **facts})


def _spell(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return f"a {type(value).__name__} of very many digits"
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply"
