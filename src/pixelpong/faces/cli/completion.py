"""Tab in a shell completes commands, options, values, names of runs; extra [completion].

    eval "$(pixelpong completion bash)"

From then on the shell runs ``pixelpong`` at each tab, with the words so far in its environment, and
argcomplete answers from the same parsers that read a command line.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pixelpong.config.options import Option
from pixelpong.errors import ConfigError, expected

if TYPE_CHECKING:
    from pixelpong.faces.cli.options import Group

SHELLS = ("bash", "zsh", "fish")

_ASKED = "_ARGCOMPLETE"
"""Environment variable that the shell sets when it asks."""


def completion(options: Any) -> int:
    """``pixelpong completion SHELL``"""
    if importlib.util.find_spec("argcomplete") is None:
        advice = "pip install 'pixelpong[completion]'"
        raise ConfigError(expected("argcomplete, for completion", "none", advice))
    import argcomplete

    print(argcomplete.shellcode(["pixelpong"], shell=options.shell))
    return 0


def answer_shell() -> None:
    """If a shell asks how the words go on, answer it and end this process."""
    if _ASKED not in os.environ:
        return
    import argcomplete

    argcomplete.autocomplete(make_whole_parser())


def make_whole_parser() -> argparse.ArgumentParser:
    """One parser for the whole program."""
    from pixelpong.faces.cli.options import PROGRAM

    parser = argparse.ArgumentParser("pixelpong")
    parser.add_argument("--version", action="store_true")
    _add_commands(parser, PROGRAM)
    return parser


def _add_commands(parser: argparse.ArgumentParser, group: Group) -> None:
    from pixelpong.faces.cli.options import Command
    from pixelpong.faces.cli.parser import make_parser

    listed = parser.add_subparsers()
    for name, each in group.commands.items():
        if isinstance(each, Command) or each.own is not None:
            own = each if isinstance(each, Command) else each.own
            assert own is not None
            words = make_parser(name, own)
            listed.add_parser(name, parents=[words], add_help=False, help=each.help)
        else:
            _add_commands(listed.add_parser(name, help=each.help), each)


def find_completer(option: Option) -> Callable[..., Iterable[str]] | None:
    """What gives the words that an option's value may begin with; None for files."""
    if option.choices:
        return lambda **_: option.choices
    if option.name == "preset":
        return _list_presets
    completers: dict[str, Callable[..., Iterable[str]]] = {"RUN": _list_runs, "AGENT": _list_agents}
    return completers.get(option.metavar)


def _list_presets(**_: Any) -> list[str]:
    from pixelpong.config.presets import preset_names

    return preset_names()


def _list_agents(**_: Any) -> tuple[str, ...]:
    from pixelpong.agent.file import SHIPPED

    return ("best", "latest", *SHIPPED)


def _list_runs(prefix: str, **_: Any) -> list[str]:
    """Names in the folder of runs; directories if a path has been begun."""
    import argcomplete

    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import LATEST, list_runs

    if os.sep in prefix:
        return list(argcomplete.completers.DirectoriesCompleter()(prefix))
    return [LATEST, *(run.name for run in list_runs(RUNS_FOLDER))]
