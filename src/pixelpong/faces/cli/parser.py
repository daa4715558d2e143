"""Words on the command line → a command and its options; errors as one line."""

from __future__ import annotations

import argparse
import difflib
import re
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pixelpong.config import DEFAULT_PRESET, OPTIONS, Config
from pixelpong.config.options import Option
from pixelpong.config.presets import load_preset, resolve_config
from pixelpong.errors import MAX_GOT, ConfigError, PixelpongError, expected, on_one_line
from pixelpong.faces.cli.options import PROGRAM, REQUIRED, Command, Group, Place

_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT"}


def parse(words: list[str]) -> tuple[Callable[[Any], int], argparse.Namespace]:
    """The command that `words` ask for, and its options; prints help and exits if asked to.

    Raises:
        ConfigError: the words are no command line of ours.
    """
    command, prog, rest = _find_command(words)
    # A flag may be spelled as the key in a file is.
    rest = [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in rest]
    parser = _make_parser(prog, command, {})
    found, unknown = parser.parse_known_args(rest)
    texts = vars(found)
    if texts.pop("help"):
        _make_parser(prog, command, _find_defaults(texts)).print_help()
        parser.exit()
    if unknown:
        raise ConfigError(_describe_unknown(unknown, command, prog))
    own = {each.name: each for each in command.options}
    values: dict[str, Any] = {name: each.default for name, each in own.items()}
    given: dict[str, Any] = {}
    for name, text in texts.items():
        (values if name in own else given)[name] = _read(own.get(name) or OPTIONS[name], text)
    for name, each in own.items():
        if values[name] is REQUIRED:
            raise ConfigError(expected(each.metavar, "none", f"see `{prog} --help`"))
    return command.run, argparse.Namespace(**values, given=given)


def list_commands(group: Group = PROGRAM) -> dict[str, Command]:
    """Every command, by the words after ``pixelpong``."""
    found: dict[str, Command] = {}
    for name, each in group.commands.items():
        inner = list_commands(each) if isinstance(each, Group) else {"": each}
        found |= {f"{name} {words}".strip(): command for words, command in inner.items()}
    return found


def _find_command(
    words: list[str], group: Group = PROGRAM, prog: str = "pixelpong"
) -> tuple[Command, str, list[str]]:
    """The command, how it is called, and the words after it."""
    word = words[0] if words else ""
    match group.commands.get(word):
        case Command() as command:
            return command, f"{prog} {word}", words[1:]
        case Group() as inner:
            return _find_command(words[1:], inner, f"{prog} {word}")
    if word in ("-h", "--help"):
        parser = argparse.ArgumentParser(prog, f"{prog} COMMAND [options]", group.help)
        listed = parser.add_subparsers(title="commands", metavar="COMMAND")
        for name, each in group.commands.items():
            listed.add_parser(name, help=each.help)
        parser.print_help()
        parser.exit()
    near = difflib.get_close_matches(word, group.commands, n=1)
    advice = f"did you mean {near[0]}?" if near else f"use one of {', '.join(group.commands)}"
    raise ConfigError(expected("a command", repr(word) if words else "none", advice))


class _Parser(argparse.ArgumentParser):
    """Argparse's own, with our errors."""

    def error(self, message: str) -> NoReturn:
        """Refuse words that it cannot split."""
        text = on_one_line(message.removeprefix("argument "))[:MAX_GOT]
        raise ConfigError(f"{text}; see `{self.prog} --help`")


def _make_parser(prog: str, command: Command, shown: Mapping[str, Any]) -> _Parser:
    """What splits words into texts by option; an option that is not there is left out.

    Args:
        prog: how the command is called.
        command: it.
        shown: defaults of the options of a training that the help names.
    """
    places = [each for each in command.options if isinstance(each, Place)]
    usage = [each.metavar if each.default is REQUIRED else f"[{each.metavar}]" for each in places]
    parser = _Parser(
        prog,
        " ".join([prog, "[options]", *usage]),
        command.help,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", default=False, help="Print this text.")
    for each in command.options:
        _add(parser, each, each.default)
    sections: dict[str, Any] = {"": parser}
    for each in map(OPTIONS.__getitem__, command.training):
        if each.section not in sections:
            about = getattr(Config, each.section).__doc__
            sections[each.section] = parser.add_argument_group(f"{each.section} options", about)
        _add(sections[each.section], each, command.shown or shown.get(each.name))
    return parser


def _add(group: Any, option: Option, default: Any) -> None:
    """One option, with the default that its help names."""
    help = _describe(option, default)
    metavar = option.metavar or _METAVARS.get(option.kind)
    if isinstance(option, Place):
        nargs = "*" if typing.get_origin(option.type) is tuple else "?"
        group.add_argument(option.name, nargs=nargs, metavar=metavar, help=help)
    elif option.kind is not bool:
        group.add_argument(option.flag, metavar=metavar, help=help)
    else:  # that of a preset or a file can be taken back
        action = argparse.BooleanOptionalAction if option.section else "store_true"
        group.add_argument(option.flag, action=action, help=help)


def _describe(option: Option, default: Any) -> str:
    parts = [option.help]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if option.unit:
        parts.append(f"In {option.unit}.")
    if option.source:
        parts.append(f"Source: {option.source}.")
    if default not in (None, REQUIRED):
        parts.append(f"(default: {default})")
    return " ".join(parts).replace("%", "%%")


def _find_defaults(texts: Mapping[str, str]) -> dict[str, Any]:
    """The defaults that ``--help`` names: those of the preset and the file on the line."""
    try:
        file = texts.get("config")
        return resolve_config(texts.get("preset"), Path(file) if file else None, {}).to_flat()
    except PixelpongError:  # what is wrong with them is said when they are used
        return load_preset(DEFAULT_PRESET).to_flat()


def _read(option: Option, text: Any) -> Any:
    if isinstance(text, list):
        return tuple(map(option.read, text))
    return text if isinstance(text, bool) else option.read(text)


def _describe_unknown(unknown: list[str], command: Command, prog: str) -> str:
    advice = f"see `{prog} --help`"
    flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
    if flag is None:
        return expected("an option", repr(unknown[0]), advice)
    known = [each.flag for each in (*command.options, *map(OPTIONS.get, command.training)) if each]
    near = difflib.get_close_matches(flag, known, n=1, cutoff=0.7)
    return expected(
        "an option of this command", flag, f"did you mean {near[0]}?" if near else advice
    )
