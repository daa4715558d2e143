"""One option: its name, type, help and default, and what is said of other values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pixelpong.schema import Setting

COMMAND_LINE = "command line"  # an origin; errors spell its options as flags
NONE = "none"  # stands for None in a file and on the command line


@dataclass(frozen=True)
class Option(Setting):
    """One option, for the command line, the documentation and the checks."""

    default: Any
    help: str = ""
    source: str = ""  # the source of the default
    section: str = ""  # its section of `Config`; "" for the first fields and for commands' options
    short: str = ""  # its short form, a hyphen and a letter
    is_advanced: bool = False  # whether only ``--help-all`` lists it
    games: Literal["", "pong", "others"] = ""  # the games that it is for; "" for all

    @property
    def flag(self) -> str:
        """The option's spelling on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_free(self) -> bool:
        """Whether a resumed run may change it, because the result stays the same."""
        return self.name == "preset" or self.section in ("budget", "schedule", "engine")

    @property
    def can_be_none(self) -> bool:
        """Whether the word `NONE` unsets it."""
        return self.section == "budget"

    def describe_values(self, got: object = None) -> str:
        """Describe the values that it accepts, see `Setting`."""
        words = super().describe_values(got)
        return f"{words} or {NONE}" if self.can_be_none and not self.choices else words

    def read(self, text: str) -> Any:
        """Read a value from the command line; a whole number may be written as 1e6.

        >>> from pixelpong.config import OPTIONS
        >>> OPTIONS["total_timesteps"].read("2.5e6")
        2500000
        """
        parsers: list[Callable[[str], Any]] = [self.base_type]
        if self.base_type is int:
            parsers.append(float)
        for parse in parsers:
            with contextlib.suppress(ValueError):
                return self.check(parse(text), COMMAND_LINE)
        return self.check(text, COMMAND_LINE)

    def check(self, value: Any, origin: str) -> Any:
        """Convert a value from `origin` to the option's type, or refuse it."""
        if self.can_be_none and isinstance(value, str) and value.lower() == NONE:
            return None
        return super().check(value, origin)

    def spell(self, origin: str) -> str:
        """Return its flag for the command line, otherwise the origin and its name."""
        return self.flag if origin == COMMAND_LINE else super().spell(origin)


def option(default: Any, text: str, **facts: Any) -> Any:
    """Make an option as a dataclass field; `text` is its help, `facts` are fields of `Option`."""
    return field(default=default, metadata={"help": text, **facts})
