"""The command line, which is parsed into a call of `pixelpong.faces.api` whose result is printed.

    pixelpong train | resume | evaluate | sweep | tournament | runs | verify
    pixelpong record | plot | dashboard | watch | play | export

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the checkpoint saved.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, get_args

from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.config import OPTIONS
from pixelpong.config.option import Option
from pixelpong.config.presets import preset_names
from pixelpong.errors import (
    MAX_GOT,
    ConfigError,
    Interrupted,
    PixelpongError,
    did_you_mean,
    on_one_line,
    unknown,
    warn,
)
from pixelpong.faces import api
from pixelpong.faces.arguments import Argument, Parameter, parameters_of
from pixelpong.faces.report import is_terminal
from pixelpong.sweeps.grid import NOT_SWEPT

EXIT_INTERRUPTED = 130

# Functions that save their results before they return, so a failure to print loses nothing.
_SAVING = (api.train, api.resume, api.sweep)

# The training options with a section that ``--help`` lists too; ``--help-all`` lists all.
_BASIC = ("opponent", "updates", "total_timesteps", "until_return", "engine", "workers")
_COMMON = (
    Option("json", bool, False, "Print one JSON object on stdout."),
    Option("debug", bool, False, "Show the traceback of an error.", is_advanced=True),
)


def _in_sections(*sections: str) -> tuple[str, ...]:
    return tuple(name for name, option in OPTIONS.items() if option.section in sections)


# The commands, which are functions of `pixelpong.faces.api`, and the training options they take.
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": tuple(OPTIONS),
    "resume": tuple(name for name in OPTIONS if name != "preset"),
    "evaluate": tuple(name for name in _in_sections("environment", "engine") if name != "verbose"),
    "sweep": tuple(name for name in OPTIONS if name not in (*NOT_SWEPT, "seed", "game")),
    **dict.fromkeys(("tournament", "runs", "record", "plot", "dashboard", "watch", "play"), ()),
    "verify": (*_in_sections("environment"), "opponent"),
    "export": (),
}
EXAMPLES = """
train
train --seed 1 --updates 20
train --game breakout
train --preset classic --batch-size 20
train --until-return none --updates 200
train --config mine.toml --run runs/mine
resume latest
resume fast-001 --updates 200
evaluate latest --episodes 20
evaluate fast-001 --checkpoint latest --sticky 0
sweep --seeds 0-4 --preset classic --episodes 2000 --engine serial
sweep --games breakout,seaquest --seeds 0-2
sweep grid.toml --out sweeps/learning-rates
sweep runs/sweep-001
tournament beginner club strong champion builtin
tournament latest fast-001@80 champion --games 20 -o ladder.json
runs
runs latest
runs old/runs --sort return --json
record latest --overlay -o best.mp4
record fast-001 --checkpoint 80 --seconds 20 -o film.gif
plot latest
plot fast-001 fast-002 --kind health -o health.svg
dashboard --port 9000 --no-open
watch latest
play beginner
play latest --checkpoint 80
verify --presets fast --updates 5
verify --game breakout
verify --opponent half
export latest --out agent.safetensors
""".strip().split("\n")
WELCOME = """\
pixelpong teaches a program to play Atari Pong from its screen, and shows you
how it learns. Four commands to begin with:

  pixelpong train        train an agent until it wins
  pixelpong watch        watch an agent play, in a browser
  pixelpong play         play against it
  pixelpong dashboard    see all your runs on a live page

All commands: pixelpong --help
Help for a command, with examples: pixelpong train --help"""


def main(argv: list[str] | None = None, begin: Callable[[], None] = lambda: None) -> int:
    """Run one command and return its exit code; `begin` is called once `argv` is parsed."""
    words = sys.argv[1:] if argv is None else argv
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _let_print_all(stream)
    as_json = "--json" in words
    try:
        function, arguments, options = parse(words)
        begin()
        # Text that a function prints while it works is not part of the result.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            result = function(*arguments, **options)
        try:
            _print(result, as_json)
        except BrokenPipeError:
            raise
        except OSError as error:
            if function not in _SAVING:
                raise
            sys.stdout = None  # otherwise Python would flush it again at exit
            warn(f"the result cannot be printed ({error}), but everything is saved")
        return getattr(result, "exit_code", 0)
    except BrokenPipeError:  # the reader has gone, as with `| head`: print no error
        sys.stdout = None  # Python would flush it again at its end
        return 1
    except SystemExit:
        raise
    except BaseException as error:
        result = getattr(error, "result", None)  # the result so far
        try:
            _print(result, as_json)
        except OSError:  # the reader may be gone
            sys.stdout = None
        if isinstance(error, Interrupted | KeyboardInterrupt):
            if result is None:
                _complain("pixelpong: interrupted")
            return EXIT_INTERRUPTED
        if "--debug" in words:
            _complain("".join(traceback.format_exception(error)))
            details = getattr(error, "details", "")
            if details:
                _complain(f"\nIn the worker:\n{details}")
        _complain(f"pixelpong: error: {on_one_line(_describe(error))}")
        return error.exit_code if isinstance(error, PixelpongError) else 1


def _complain(text: str) -> None:
    """Print on stderr; if that fails, the exit code still reports the error."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _print(result: Any, as_json: bool) -> None:
    """Print a result without control characters; only on a terminal, fold its lines."""
    if result is not None:
        text = json.dumps(result.to_dict(), indent=1) if as_json else str(result)
        text = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
        is_folded = is_terminal(sys.stdout) and not as_json
        print(fold(text, shutil.get_terminal_size().columns) if is_folded else text)
    sys.stdout.flush()


def fold(text: str, width: int) -> str:
    """Break long lines between words; commands stay whole, so that they can be pasted.

    >>> print(fold("mean return +18.47 over 200 games", 30))
    mean return +18.47 over 200
      games
    """
    wrap = textwrap.TextWrapper(max(width, 30), subsequent_indent="  ")
    wrap.break_on_hyphens = wrap.break_long_words = False
    lines = text.split("\n")
    return "\n".join(line if "pixelpong " in line else wrap.fill(line) for line in lines)


def _let_print_all(stream: io.TextIOWrapper, system: str = sys.platform) -> None:
    """Let every character be printed, although the stream's encoding may be ASCII.

    Windows' consoles take all of Unicode; its pipes and files get the old code page by default,
    in which a minus sign is missing. PYTHONIOENCODING stays what it is.
    """
    is_old = system == "win32" and not stream.isatty() and "PYTHONIOENCODING" not in os.environ
    stream.reconfigure(encoding="utf-8" if is_old else None, errors="backslashreplace")


def _open_missing_streams() -> None:
    """Open missing standard streams; otherwise output could go into the next opened file."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)  # for the workers too
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - kept until the process ends
    sys.stderr = sys.stderr or sys.stdout


def _describe(error: BaseException) -> str:
    if isinstance(error, PixelpongError):
        text = str(error)
        for name in error.options:  # spelled as a flag, unless the word is part of a path
            flag = "--" + name.replace("_", "-")
            text = re.sub(rf"(?<![\w/.-]){name}(?![\w/=-]|\.\w)", flag, text)
        return text
    # What safetensors raises if memory runs out is not an `Exception`.
    has_panicked = type(error).__name__ == "PanicException"
    if isinstance(error, OSError | MemoryError) or has_panicked:
        reason = str(error) or "out of memory"
        return f"The system reported an error: {reason}. Fix it, then try again or resume."
    what = f"internal error ({type(error).__name__}: {error})"
    return f"{what}; please report it with the output of --debug"


# --- parsing ----------------------------------------------------------------------------------


def parse(words: list[str]) -> tuple[Callable[..., Any], list[str], dict[str, Any]]:
    """Parse words into a function, its positional arguments and its keyword arguments.

    The arguments contain only what was given, so the function's defaults apply. If help is
    requested, print it and exit.
    """
    match words:
        case []:
            print(WELCOME, flush=True)
            raise SystemExit(0)
        case ["help", *rest]:
            words = [*rest, "--help"]
        case ["-V" | "--version" | "version", *_]:
            return api.version, [], {}
    known = [*COMMANDS, "--version", "--help"]
    if words[0] not in (*known, "-h", "--help-all"):
        advice = did_you_mean(words[0], known, f"use one of {', '.join(COMMANDS)}")
        raise ConfigError(unknown("command", words[0], advice))
    # A flag may be spelled like a key in a file, with underscores.
    words = [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in words]
    parser = make_parser(words[0], shows_all="--help-all" in words)
    try:
        namespace, extra = parser.parse_known_args(words)
    finally:
        sys.stdout.flush()  # raises an error here if nobody reads the help
    options = vars(namespace)
    name = options.pop("command")
    if extra:
        raise ConfigError(_describe_unknown(name, extra))
    for common in _COMMON:
        options.pop(common.name, None)
    arguments: list[str] = []
    parameter = _positional_of(name)
    if parameter is not None and parameter.name in options:
        given = options.pop(parameter.name)
        arguments = given if parameter.is_variadic else [given]
    return getattr(api, name), arguments, options


def _describe_unknown(name: str, extra: list[str]) -> str:
    """Return the error message for words that a command does not take."""
    flags = [word for word in extra if word.startswith("-")]
    word = flags[0].partition("=")[0] if flags else extra[0]
    known = [option.flag for option in flags_of(name)]
    advice = did_you_mean(word, known, f"see `pixelpong {name} --help`")
    if "preset" in COMMANDS[name] and word in preset_names():
        advice = f"did you mean --preset {word}?"
    if "game" in COMMANDS[name] and word in scored_names():
        advice = f"did you mean --game {word}?"
    return unknown("option" if flags else "argument", word, advice)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise a `ConfigError` for words that argparse cannot parse."""
        text = on_one_line(message.removeprefix("argument "))[:MAX_GOT]
        raise ConfigError(f"{text}; see `{self.prog} --help`")


def make_parser(chosen: str, *, shows_all: bool = False) -> argparse.ArgumentParser:
    """Make the parser of all commands; only the chosen command gets its arguments."""
    parser = _Parser("pixelpong", description="Trains an agent to play Atari Pong.")
    parser.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name in COMMANDS:
        summary = (inspect.getdoc(getattr(api, name)) or "").partition("\n")[0]
        examples = [f"  pixelpong {line}" for line in EXAMPLES if line.split()[0] == name]
        subparser = subparsers.add_parser(
            name,
            usage=f"pixelpong {name} [options]",
            help=summary,
            description=fold(summary, shutil.get_terminal_size().columns),
            epilog="\n".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        if name == chosen:
            _add_positional(subparser, name)
            _add_flags(subparser, name, shows_all=shows_all)
    return parser


def _positional_of(name: str) -> Parameter | None:
    """Return the positional argument of a command, if it has one."""
    parameters = parameters_of(getattr(api, name))
    return next((it for it in parameters if isinstance(it.help, Argument)), None)


def _add_positional(parser: argparse.ArgumentParser, name: str) -> None:
    parameter = _positional_of(name)
    if parameter is None:
        return
    assert isinstance(parameter.help, Argument)
    metavar = parameter.help.metavar or parameter.name.upper()
    nargs, usage = None, metavar
    if parameter.is_variadic:
        nargs, usage = "*", parameter.help.usage
    elif parameter.default is not inspect.Parameter.empty:
        nargs, usage = "?", f"[{metavar}]"
    parser.add_argument(parameter.name, nargs=nargs, metavar=metavar, help=parameter.help.text)
    parser.usage = f"{parser.usage} {usage}"


def flags_of(name: str) -> list[Option]:
    """List the options of a command: its own, those of every command, and training options."""
    parameters = parameters_of(getattr(api, name))
    special = [_make_option(it) for it in parameters if not isinstance(it.help, Argument)]
    return [*special, *_COMMON, *(OPTIONS[it] for it in COMMANDS[name])]


def _make_option(parameter: Parameter) -> Option:
    # If there are several types, as in `int | str`, the command line uses the one for any text.
    members = get_args(parameter.type)
    type_ = next((it for it in (Path, str) if it in members), parameter.type)
    help_ = parameter.help
    return Option(
        parameter.name, type_, parameter.default, help_.text,
        short=help_.short, is_advanced=help_.is_advanced,
    )  # fmt: skip


def _add_flags(parser: argparse.ArgumentParser, name: str, *, shows_all: bool) -> None:
    parser.add_argument("--help-all", action="help", help="Print all options.")
    groups: dict[str, Any] = {"": parser}
    for option in flags_of(name):
        is_basic = option.name in _BASIC if option.section else not option.is_advanced
        title = "" if is_basic else f"advanced: {option.section or 'this command'}"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        text = _describe_option(option)
        if name == "resume" and option.name in COMMANDS[name] and not option.is_free:
            text += " Needs --allow-changes."
        settings: dict[str, Any] = {"help": text if is_basic or shows_all else argparse.SUPPRESS}
        settings["dest"] = option.name  # whatever its short form is
        if option.base_type is not bool:
            settings["metavar"] = "NAME" if option.choices else option.base_type.__name__.upper()
            settings["type"] = option.read
        elif option.section:  # a preset or a file may have set the option
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings["action"] = "store_true"
        names = [option.short, option.flag] if option.short else [option.flag]
        groups[title].add_argument(*names, **settings)


def _describe_option(option: Option) -> str:
    parts = [option.help]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if not option.section and option.default not in (None, False):
        parts.append(f"(default: {option.default})")
    return " ".join(parts).replace("%", "%%")
