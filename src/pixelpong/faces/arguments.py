"""Arguments of commands; one annotation serves the command line, the checks and the documentation.

    @command
    def record(
        agent: Annotated[str | Path, Argument("A run or an agent's file.")],
        *,
        episode: Annotated[Count, Help("Index of the game, from 0.")] = 0,
    ) -> Result: ...

    record("club", episode=-1)      ConfigError: record: episode must be a whole number …

A parameter with an `Argument` is the command's positional argument, one with a `Help` is an option.
Any other parameter is only for Python or is an option of `pixelpong.config.Config`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pixelpong.config.option import Option
from pixelpong.errors import ConfigError, list_words, must_be
from pixelpong.schema import Meta

Speed = Annotated[float, Meta(ge=0.1, le=60)]  # speed of a film; 1 is the game's own speed
Length = Annotated[float, Meta(ge=0.1, le=1_000_000)]  # length of a film in seconds

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Help:
    """The help of a parameter, which marks it as an option of the command."""

    text: str
    short: str = ""  # its short form: a hyphen and a letter, or another name
    is_advanced: bool = False  # whether only ``--help-all`` lists it


@dataclass(frozen=True)
class Argument(Help):
    """The help of a parameter, which marks it as the command's positional argument."""

    metavar: str = ""  # by default the parameter's name in capitals
    usage: str = ""  # its form in the first line of the help, if it is not the metavar


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command that is available on the command line."""

    name: str
    type: Any
    default: Any  # `inspect.Parameter.empty` if it is required
    is_variadic: bool  # whether it takes any number of values, like ``*runs``
    help: Help


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a command, with checked arguments that its docstring describes."""
    call = checked(function)
    helps = {it.name: it.help.text for it in parameters_of(function)}
    call.__doc__ = _insert_arguments(inspect.getdoc(function) or "", helps)
    signature = _plain_signature(function)
    vars(call)["__signature__"] = signature
    call.__annotations__ = {it.name: it.annotation for it in signature.parameters.values()}
    return call


def _plain_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature without bounds and helps, for `help` and the documentation."""
    signature, types = inspect.signature(function), get_type_hints(function, localns=_STAND_INS)
    parameters = [
        it if it.kind == it.VAR_KEYWORD else it.replace(annotation=types[it.name])
        for it in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=types["return"])


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a command that have a `Help`, in order."""
    function = inspect.unwrap(function)
    types = _evaluate_annotations(function)
    parameters = []
    for it in inspect.signature(function).parameters.values():
        type_, help_ = _split(types.get(it.name))
        if help_ is not None:
            is_variadic = it.kind == it.VAR_POSITIONAL
            parameters.append(Parameter(it.name, type_, it.default, is_variadic, help_))
    return parameters


def _insert_arguments(docstring: str, helps: dict[str, str]) -> str:
    """Return the docstring with a section on arguments after its first paragraph."""
    if not helps:
        return docstring
    first, _, rest = docstring.partition("\n\n")
    lines = [f"    {name}: {text}" for name, text in helps.items()]
    return "\n\n".join(filter(None, [first, "\n".join(["Args:", *lines]), rest]))


# Arguments that several commands share.
AGENT = Argument(
    "A run (a directory, a name in runs, or latest), an agent's file, or package, beginner, club, "
    "strong, champion."
)
CHECKPOINT = Help(
    "Which agent of a run: best, latest or an update. If no agent was saved at that update, the "
    "closest one is used."
)
EPISODE = Help("Index of the game, from 0, as in a greedy evaluation with this seed.")
EVERY = Help("Seconds between lines of output if there is no live screen.", is_advanced=True)
HOST = Help("Address to listen on. If other machines can reach it, the page's URL has a token.")
NO_OPEN = Help("Do not open a browser.")
PORT = Help("Port to listen on; if it is taken, any free one.")
QUIET = Help("Show nothing while it trains.", short="-q")
GREEDY = Help("Take the most probable actions. This is the default in Pong, not in other games.")
SAMPLED = Help("Sample the actions, as in training, instead of taking the most probable ones.")
SEED = Help(
    "Seed of the games. Greedy and sampled play with the same seed get the same sticky frames.",
    short="-s",
)


# --- annotations ------------------------------------------------------------------------------

# Classes that annotations name but that need not be loaded, each with a type to replace it.
_STAND_INS = {
    name: type(name, (), {"__module__": "pixelpong"})
    for name in ("Config", "Run", "Record", "Policy", "Evaluation", "Event", "Media", "ServedPage")
}
_WORDS: dict[type, str] = {int: "a whole number", str: "text", Path: "a path", NoneType: "None"}
_WORDS |= {type_: f"a {name}" for name, type_ in _STAND_INS.items()}
_WORDS[_STAND_INS["Record"]] = "a Run"  # the public kind of record


def _evaluate_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    return inspect.get_annotations(function, locals=_STAND_INS, eval_str=True)


def _split(annotation: Any) -> tuple[Any, Help | None]:
    """Split an annotation into the part before its `Help`, which comes last, and the help."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    *others, last = get_args(annotation)
    if not isinstance(last, Help):
        return annotation, None
    return others[0] if len(others) == 1 else Annotated[tuple(others)], last


# --- checks -----------------------------------------------------------------------------------


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check each argument against the type and the bounds of its annotation, then call."""
    signature = inspect.signature(function)
    read_types = functools.cache(lambda: _read_types(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs)
        for name, type_ in read_types().items():
            if name not in given.arguments:
                continue
            check = functools.partial(_check, function.__qualname__, name, type_)
            value = given.arguments[name]
            is_variadic = signature.parameters[name].kind == inspect.Parameter.VAR_POSITIONAL
            given.arguments[name] = tuple(map(check, value)) if is_variadic else check(value)
        return function(*given.args, **given.kwargs)

    return call


def _read_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the annotated parameters; other options are not checked here."""
    parameters = inspect.signature(function).parameters.values()
    names = [it.name for it in parameters if it.kind != it.VAR_KEYWORD]
    types = _evaluate_annotations(function)
    return {name: _split(types[name])[0] for name in names if name in types}


def _check(origin: str, name: str, type_: Any, value: Any) -> Any:
    """Convert a value to the annotated type, or raise a `ConfigError`."""
    members = get_args(type_) or (type_,)
    class_names = [member.__name__ for member in members if member in _STAND_INS.values()]
    if any(base.__name__ in class_names for base in type(value).__mro__):
        return value
    if not all(member in _WORDS for member in members):
        return Option(name, type_, None).check(value, origin)
    value = value.item() if hasattr(value, "item") else value  # a NumPy number
    if isinstance(value, str) and Path in members and str not in members:
        return Path(value)
    if isinstance(value, members) and not isinstance(value, bool):
        return value
    allowed = list_words([_WORDS[member] for member in members], "or")
    raise ConfigError(f"{origin}: {must_be(name, allowed, repr(value))}")
