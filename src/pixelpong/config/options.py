"""Options: a type with its bounds, a default and a help, each written once.

Options of a training are fields of the dataclasses in `pixelpong.config`; those of a single command
are arguments of its function in `pixelpong.faces.api`. A type holds the bounds, as in
`pixelpong.schema` for files: ``Share | None``, ``Annotated[int, Meta(ge=1, le=4096)]``,
``Literal["serial", "threads"]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from pixelpong.errors import ConfigError, did_you_mean, expected
from pixelpong.schema import convert

COMMAND_LINE = "command line"  # errors spell options of this origin as flags

_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Option:
    """One option, for the command line, the documentation and the check."""

    name: str
    type: Any
    default: Any
    help: str = ""
    source: str = ""  # of the default
    section: str = ""  # of `pixelpong.config.Config`; "" for `Config` itself
    short: str = ""  # a letter with a hyphen

    @property
    def flag(self) -> str:
        """Its spelling on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_free(self) -> bool:
        """It does not change the parameters after N updates: a resumed run may change its value."""
        return self.name == "preset" or self.section in ("budget", "schedule", "engine")

    @property
    def _values(self) -> Any:
        """The type without None."""
        kinds = get_args(self.type)
        return kinds[0] if type(None) in kinds else self.type

    @property
    def kind(self) -> type:
        """The type of a value, without None and without its bounds."""
        return str if self.choices else getattr(self._values, "__origin__", self._values)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, if they are a few."""
        return get_args(self._values) if get_origin(self._values) is Literal else ()

    def describe_values(self) -> str:
        """The values that it takes, in words.

        A bound that is a limit of the machine, `lt`, is not told.

        >>> Option("x", Literal["left", "right"] | None, None).describe_values()
        'one of left, right'
        """
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = _KINDS.get(self.kind, "a path")
        for it in getattr(self._values, "__metadata__", ()):
            words += f" of at least {it.ge}" if it.le is None else f" from {it.ge} to {it.le}"
        return words

    def read(self, text: str) -> Any:
        """Read a value from the command line."""
        try:
            return self.check(self.kind(text), COMMAND_LINE)
        except ValueError:
            return self.check(text, COMMAND_LINE)  # refuses it in the same words

    def check(self, value: Any, origin: str) -> Any:
        """Return `value`, which comes from `origin`, in the option's own type, or refuse it."""
        try:  # NumPy's numbers have `item`
            return convert(value.item() if hasattr(value, "item") else value, self.type)
        except ValueError:
            spelled = self.flag if origin == COMMAND_LINE else self.name
            otherwise = "change it"
            if isinstance(value, list):
                otherwise = "give one value, or the list to `pixelpong sweep`"
            advice = did_you_mean(value, self.choices, otherwise)
            what = expected(f"{spelled} to be {self.describe_values()}", repr(value), advice)
            raise ConfigError(f"{origin}: {what}") from None


def option(default: Any, help: str, **facts: Any) -> Any:
    """One option as a field of a dataclass; `facts` are other fields of `Option`."""
    return field(default=default, metadata={"help": help, **facts})
