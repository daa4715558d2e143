"""Words on the command line → a command and its options; errors as one line."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import textwrap
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from pixelpong import __version__
from pixelpong.config import DEFAULT_PRESET, OPTIONS, Config
from pixelpong.config.options import Option
from pixelpong.config.presets import load_preset, preset_names, resolve_config
from pixelpong.config.suggestions import suggest
from pixelpong.errors import MAX_GOT, ConfigError, PixelpongError, expected, on_one_line
from pixelpong.faces.cli.command import REQUIRED, Command, Group, Place
from pixelpong.faces.cli.options import PROGRAM
from pixelpong.machine import collect_versions, count_cores, describe_machine

_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT"}

_EDGE = 2
"""Columns that a line of help leaves free, as argparse does."""


def parse(words: list[str]) -> tuple[Callable[[Any], int], argparse.Namespace]:
    """The command in `words`, and its options; prints help and exits if requested.

    Raises:
        ConfigError: the words are not a valid command line.
    """
    command, prog, rest = _find_command(words)
    # A flag may be spelled like the key in a file.
    rest = [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in rest]
    parser = make_parser(prog, command)
    found, unknown = parser.parse_known_args(rest)
    texts = vars(found)
    if texts.pop("help"):
        make_parser(prog, command, _find_defaults(texts)).print_help()
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
            advice = f"try `pixelpong {command.examples[0]}`, or see `{prog} --help`"
            raise ConfigError(expected(each.metavar, "none", advice))
    return command.run, argparse.Namespace(**values, given=given)


def list_commands(group: Group = PROGRAM) -> dict[str, Command]:
    """Every command, by the words after ``pixelpong``."""
    found: dict[str, Command] = {}
    if group.own is not None:
        found[""] = group.own
    for name, each in group.commands.items():
        inner = list_commands(each) if isinstance(each, Group) else {"": each}
        found |= {f"{name} {words}".strip(): command for words, command in inner.items()}
    return found


def _find_command(
    words: list[str], group: Group = PROGRAM, prog: str = "pixelpong"
) -> tuple[Command, str, list[str]]:
    """The command, its full name, and the words after it."""
    word = words[0] if words else ""
    if group is PROGRAM and word in ("-V", "--version", "version"):
        _print_versions("--json" in words)
        raise SystemExit(0)
    if group is PROGRAM and word == "help":
        words = [*words[1:], "--help"]
        word = words[0]
    if not words and group.welcome:
        print(group.welcome)
        raise SystemExit(0)
    match group.commands.get(word):
        case Command() as command:
            return command, f"{prog} {word}", words[1:]
        case Group() as inner:
            return _find_command(words[1:], inner, f"{prog} {word}")
    if group.own is not None:
        return group.own, prog, words
    has_default = word[:1] in ("", "-") or Path(word).is_dir()
    match group.commands.get(group.default):
        case Command() as command if has_default and word not in ("-h", "--help"):
            return command, prog, words
    if word in ("-h", "--help"):
        parser = argparse.ArgumentParser(prog, f"{prog} COMMAND [options]", group.help)
        listed = parser.add_subparsers(title="commands", metavar="COMMAND")
        for name, each in group.commands.items():
            listed.add_parser(name, help=each.help)
        parser.print_help()
        parser.exit()
    known = {name.split()[-1]: name for name in list_commands(group)}
    near = suggest(word, ["--version", "--help"] if word[:1] == "-" else [*group.commands, *known])
    advice = f"use one of {', '.join(group.commands)}"
    if near:
        advice = f"did you mean {near if near in group.commands else known.get(near, near)}?"
    raise ConfigError(expected("a command", repr(word) if words else "none", advice))


def _print_versions(as_json: bool) -> None:
    """What a bug report needs: versions, cores and the machine."""
    about = {
        "pixelpong": __version__,
        "versions": collect_versions(),
        "cores": count_cores(),
        "machine": describe_machine(),
    }
    if as_json:
        print(json.dumps(about, indent=1))
        return
    print(f"pixelpong {__version__}")
    print(", ".join(f"{name} {version}" for name, version in collect_versions().items()))
    print(f"{count_cores()} cores; {', '.join(map(str, describe_machine().values()))}")


class _Parser(argparse.ArgumentParser):
    """Argparse's parser, with our errors."""

    def error(self, message: str) -> NoReturn:
        """Refuse words that it cannot split."""
        text = on_one_line(message.removeprefix("argument "))[:MAX_GOT]
        raise ConfigError(f"{text}; see `{self.prog} --help`")


def make_parser(
    prog: str, command: Command, shown: Mapping[str, Any] = MappingProxyType({})
) -> argparse.ArgumentParser:
    """Make a parser that splits words into texts by option, without options not given.

    Args:
        prog: the full name of the command.
        command: the command.
        shown: defaults of the options of a training, for the help.
    """
    usage = [_show_place(each) for each in command.options if isinstance(each, Place)]
    width = max(shutil.get_terminal_size().columns - _EDGE, 20)  # narrower, nothing can be folded
    parser = _Parser(
        prog,
        " ".join([prog, "[options]", *usage]),
        textwrap.fill(command.help, width),
        _show_examples(command.examples, width),
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
            about = textwrap.fill(getattr(Config, each.section).__doc__ or "", width - _EDGE)
            sections[each.section] = parser.add_argument_group(f"{each.section} options", about)
        _add(sections[each.section], each, command.shown or shown.get(each.name))
    return parser


def _add(group: Any, option: Option, default: Any) -> None:
    """Add one option, with the default for its help."""
    help = _describe(option, default)
    metavar = option.metavar or ("NAME" if option.choices else _METAVARS.get(option.kind))
    flags = [option.short, option.flag] if option.short else [option.flag]
    if isinstance(option, Place):
        nargs = "*" if _takes_several(option) else "?"
        group.add_argument(option.name, nargs=nargs, metavar=metavar, help=help)
    elif option.kind is not bool:
        group.add_argument(*flags, metavar=metavar, help=help)
    else:  # a preset's or a file's value can be undone
        kind = argparse.BooleanOptionalAction if option.section else "store_true"
        group.add_argument(*flags, action=kind, help=help)


def _takes_several(place: Place) -> bool:
    return typing.get_origin(place.type) is tuple


def _show_place(place: Place) -> str:
    """How it stands in the line of usage."""
    name = place.metavar + "..." * _takes_several(place)
    return name if place.default is REQUIRED else f"[{name}]"


def _show_examples(examples: tuple[str, ...], width: int) -> str:
    """Command lines, each folded so that it can still be pasted."""
    lines = ["examples:"]
    for each in examples:
        folded = textwrap.wrap(
            f"pixelpong {each}", width - 6, break_long_words=False, break_on_hyphens=False
        )
        lines.append("  " + " \\\n      ".join(folded))
    return "\n".join(lines).replace("%", "%%")


def _describe(option: Option, default: Any) -> str:
    parts = [option.help]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if option.unit:
        parts.append(f"In {option.unit}.")
    if option.source:
        parts.append(f"Source: {option.source}.")
    if default not in (None, REQUIRED, False):
        parts.append(f"(default: {default})")
    return " ".join(parts).replace("%", "%%")


def _find_defaults(texts: Mapping[str, str]) -> dict[str, Any]:
    """The defaults for ``--help``: those of the preset and the file on the command line."""
    try:
        file = texts.get("config")
        return resolve_config(texts.get("preset"), Path(file) if file else None, {}).to_flat()
    except PixelpongError:  # reported when they are used
        return load_preset(DEFAULT_PRESET).to_flat()


def _read(option: Option, text: Any) -> Any:
    if isinstance(text, list):
        return tuple(map(option.read, text))
    return text if isinstance(text, bool) else option.read(text)


def _describe_unknown(unknown: list[str], command: Command, prog: str) -> str:
    advice = f"see `{prog} --help`"
    flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
    if flag is None:
        if "preset" in command.training and unknown[0] in preset_names():
            advice = f"did you mean --preset {unknown[0]}?"
        return expected("an option", repr(unknown[0]), advice)
    known = [each.flag for each in (*command.options, *map(OPTIONS.get, command.training)) if each]
    near = suggest(flag, known)
    return expected("an option of this command", flag, f"did you mean {near}?" if near else advice)
