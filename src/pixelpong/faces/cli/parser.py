"""Words on the command line → a command and its options; errors as one line."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import textwrap
import typing
from collections.abc import Callable
from typing import Any, NoReturn

from pixelpong import __version__
from pixelpong.config import OPTIONS
from pixelpong.config.options import Option
from pixelpong.config.presets import preset_names
from pixelpong.errors import MAX_GOT, ConfigError, did_you_mean, expected, on_one_line
from pixelpong.faces.cli.command import REQUIRED, Command, Place
from pixelpong.faces.cli.options import COMMANDS, WELCOME
from pixelpong.machine import collect_versions, count_cores, describe_machine

_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT"}
# The options of a training that ``--help`` shows; ``--help-all`` shows the others too.
_PLAIN = (
    "preset", "seed", "opponent", "updates", "total_timesteps", "until_return", "engine", "workers",
)  # fmt: skip
_ADVANCED = ("every", "debug")  # options of commands that only ``--help-all`` shows
_EDGE = 2  # columns that a line of help leaves free, as argparse does


def parse(words: list[str]) -> tuple[Callable[[Any], int], argparse.Namespace]:
    """The command in `words`, and its options; prints help and exits if requested."""
    name, rest = _find_command(words)
    command, prog = COMMANDS[name], f"pixelpong {name}"
    # A flag may be spelled like the key in a file.
    rest = [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in rest]
    parser = make_parser(prog, command, shows_all="--help-all" in rest)
    found, unknown = parser.parse_known_args(rest)
    texts = vars(found)
    if texts.pop("help"):
        parser.print_help()
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


def _find_command(words: list[str]) -> tuple[str, list[str]]:
    match words:
        case []:
            print(WELCOME)
        case ["-V" | "--version" | "version", *rest]:
            _print_versions("--json" in rest)
        case ["-h" | "--help" | "--help-all" | "help"]:
            _print_commands()
        case ["help", word, *_] if word in COMMANDS:
            return word, ["--help"]
        case [word, *rest] if word in COMMANDS:
            return word, rest
        case [word, *_]:
            advice = did_you_mean(
                word, [*COMMANDS, "--version", "--help"], f"use one of {', '.join(COMMANDS)}"
            )
            raise ConfigError(expected("a command", repr(word), advice))
    raise SystemExit(0)


def _print_commands() -> None:
    parser = argparse.ArgumentParser(
        "pixelpong", "pixelpong COMMAND [options]", "Trains an agent to play Atari Pong."
    )
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, each in COMMANDS.items():
        listed.add_parser(name, help=each.help)
    parser.print_help()


def _print_versions(as_json: bool) -> None:
    versions, machine, cores = collect_versions(), describe_machine(), count_cores()
    if as_json:
        about = {"pixelpong": __version__, "versions": versions, "cores": cores, "machine": machine}
        print(json.dumps(about, indent=1))
        return
    print(f"pixelpong {__version__}")
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"{cores} cores; {', '.join(map(str, machine.values()))}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise our error for words that argparse cannot split."""
        text = on_one_line(message.removeprefix("argument "))[:MAX_GOT]
        raise ConfigError(f"{text}; see `{self.prog} --help`")


def make_parser(prog: str, command: Command, *, shows_all: bool) -> argparse.ArgumentParser:
    """Make a parser that splits words into texts by option, but only for the options given."""
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
    is_long = not set(command.training) <= set(_PLAIN)
    help_all = "Print all options." if is_long else argparse.SUPPRESS
    parser.add_argument("-h", "--help", action="store_true", default=False, help="Print this text.")
    parser.add_argument("--help-all", dest="help", action="store_true", help=help_all)
    sections: dict[str, Any] = {"": parser}
    for each in (*command.options, *map(OPTIONS.__getitem__, command.training)):
        is_plain = each.name in _PLAIN if each.section else each.name not in _ADVANCED
        section = "" if is_plain else f"advanced: {each.section or 'this command'}"
        if section not in sections:
            sections[section] = parser.add_argument_group(section)
        _add(sections[section], each, is_shown=is_plain or shows_all)
    return parser


def _add(group: Any, option: Option, *, is_shown: bool) -> None:
    help = _describe(option) if is_shown else argparse.SUPPRESS
    metavar = option.metavar or ("NAME" if option.choices else _METAVARS.get(option.kind))
    flags = [option.short, option.flag] if option.short else [option.flag]
    if isinstance(option, Place):
        nargs = "*" if typing.get_origin(option.type) is tuple else "?"
        group.add_argument(option.name, nargs=nargs, metavar=metavar, help=help)
    elif option.kind is not bool:
        group.add_argument(*flags, metavar=metavar, help=help)
    else:  # a preset's or a file's value can be undone
        kind = argparse.BooleanOptionalAction if option.section else "store_true"
        group.add_argument(*flags, action=kind, help=help)


def _show_place(place: Place) -> str:
    name = place.metavar + "..." * (typing.get_origin(place.type) is tuple)
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


def _describe(option: Option) -> str:
    parts = [option.help]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if option.unit:
        parts.append(f"In {option.unit}.")
    if not option.section and option.default not in (None, False, REQUIRED):
        parts.append(f"(default: {option.default})")
    return " ".join(parts).replace("%", "%%")


def _read(option: Option, text: Any) -> Any:
    if isinstance(text, list):
        return tuple(text)
    return text if isinstance(text, bool) else option.read(text)


def _describe_unknown(unknown: list[str], command: Command, prog: str) -> str:
    advice = f"see `{prog} --help`"
    flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
    if flag is None:
        if "preset" in command.training and unknown[0] in preset_names():
            advice = f"did you mean --preset {unknown[0]}?"
        return expected("an option", repr(unknown[0]), advice)
    known = [each.flag for each in (*command.options, *map(OPTIONS.get, command.training)) if each]
    return expected("an option of this command", flag, did_you_mean(flag, known, advice))
