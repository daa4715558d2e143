"""Python's arguments, held to the same bounds as the command line's: those of the annotations.

@checked
def record(agent: str | Path, *, episode: Count = 0) -> Result: ...

record("club", episode=-1)      ConfigError: record: expected episode to be a whole number …
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

from pixelpong.config import Option
from pixelpong.errors import ConfigError, expected
from pixelpong.schema import Meta

Speed = Annotated[float, Meta(ge=0.1, le=60)]  # of a film; 1 is the game's own
Length = Annotated[float, Meta(ge=0.1, le=1_000_000)]  # of a film, in seconds

P = ParamSpec("P")
R = TypeVar("R")

# Names in annotations that only editors know, with a type that stands for each.
_OBJECTS = {name: type(name, (), {}) for name in ("Run", "Policy", "Evaluation", "Media")}
_WORDS: dict[type, str] = {int: "a whole number", str: "a word", Path: "a path", NoneType: "None"}
_WORDS |= {kind: f"a {name}" for name, kind in _OBJECTS.items()}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check each argument against the type and the bounds of its annotation, then call."""
    signature = inspect.signature(function)
    kinds = functools.cache(lambda: _read_kinds(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs)
        for name, kind in kinds().items():
            if name not in given.arguments:
                continue
            value, check = given.arguments[name], functools.partial(_check, function, name, kind)
            is_several = signature.parameters[name].kind == inspect.Parameter.VAR_POSITIONAL
            given.arguments[name] = tuple(map(check, value)) if is_several else check(value)
        return function(*given.args, **given.kwargs)

    return call


def _read_kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters that have one; not those of further options."""
    kinds = inspect.get_annotations(function, locals=_OBJECTS, eval_str=True)
    parameters = inspect.signature(function).parameters.values()
    named = [it.name for it in parameters if it.kind != it.VAR_KEYWORD]
    return {name: kind for name, kind in kinds.items() if name in named}


def _check(function: Callable[..., Any], name: str, kind: Any, value: Any) -> Any:
    """The value as the annotation has it, or a `ConfigError`."""
    members = get_args(kind) or (kind,)
    names = [member.__name__ for member in members if member in _OBJECTS.values()]
    if any(base.__name__ in names for base in type(value).__mro__):
        return value
    if not all(member in _WORDS for member in members):
        return Option(name, kind, None).check(value, function.__name__)
    value = value.item() if hasattr(value, "item") else value  # of NumPy
    if isinstance(value, str) and Path in members and str not in members:
        return Path(value)
    if isinstance(value, members) and not isinstance(value, bool):
        return value
    what = f"{name} to be {' or '.join(_WORDS[member] for member in members)}"
    raise ConfigError(f"{function.__name__}: {expected(what, repr(value))}")
