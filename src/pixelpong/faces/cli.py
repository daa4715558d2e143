"""The command line: words are parsed into a call of `pixelpong.faces.api`, whose result is printed.

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

from pixelpong.config import OPTIONS, Option
from pixelpong.config.presets import preset_names
from pixelpong.errors import (
    MAX_GOT,
    ConfigError,
    Interrupted,
    PixelpongError,
    did_you_mean,
    on_one_line,
    warn,
)
from pixelpong.faces import api
from pixelpong.faces.report import is_terminal
from pixelpong.sweeps.grid import NOT_SWEPT

EXIT_INTERRUPTED = 130

# Functions whose results are on disk when they return: one that cannot be printed is not lost.
_SAVING = (api.train, api.resume, api.sweep)

# Names in annotations that are not imported here; on the command line they are strings.
_TEXTS = dict.fromkeys(("Run", "Policy", "Evaluation"), str)
_SHORT = {"seed": "-s", "quiet": "-q", "out": "-o"}
_MARKUP = re.compile(r"``\"?(.*?)\"?``|`(\w+)`")
# The options of a training that ``--help`` shows; ``--help-all`` shows the others too.
_PLAIN = ("preset", "seed", "opponent", "updates", "total_timesteps", "until_return", "engine",
          "workers")  # fmt: skip
_ADVANCED = ("every", "debug")  # of the commands' own options
# The usage of commands that take several words.
_MANY = {"runs": "[RUN | FOLDER ...]", "plot": "RUN...", "tournament": "PLAYER PLAYER..."}
_COMMON = (
    Option("json", bool, False, "Print one JSON object on stdout."),
    Option("debug", bool, False, "Show the traceback of an error."),
)


def _of(*sections: str) -> tuple[str, ...]:
    return tuple(name for name, each in OPTIONS.items() if each.section in sections)


# Each command is a function of `pixelpong.faces.api`, and takes these options of a training.
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": tuple(OPTIONS),
    "resume": tuple(name for name in OPTIONS if name != "preset"),
    "evaluate": tuple(name for name in _of("environment", "engine") if name != "verbose"),
    "sweep": tuple(name for name in OPTIONS if name not in (*NOT_SWEPT, "seed")),
    **dict.fromkeys(("tournament", "runs", "record", "plot", "dashboard", "watch", "play"), ()),
    "verify": (*_of("environment"), "opponent"),
    "export": (),
}
EXAMPLES = """
train
train --seed 1 --updates 20
train --preset classic --batch-size 20
train --until-return none --updates 200
train --config mine.toml --run runs/mine
resume latest
resume fast-001 --updates 200
evaluate latest --episodes 20
evaluate fast-001 --checkpoint latest --sticky 0
sweep --seeds 0-4 --preset classic --episodes 2000 --engine serial
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
    """Run one command and return its exit code; `begin` is called once the words are parsed."""
    words = sys.argv[1:] if argv is None else argv
    _open_missing_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may be ASCII
        sys.stdout.reconfigure(errors="backslashreplace")
    as_json = "--json" in words
    try:
        function, places, options = parse(words)
        begin()
        # What a function prints while it works is not part of the result.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            result = function(*places, **options)
        try:
            _print(result, as_json)
        except BrokenPipeError:
            raise
        except OSError as error:
            if function not in _SAVING:
                raise
            sys.stdout = None  # Python would flush it again at its end
            warn(f"the result cannot be shown ({error}); everything is saved")
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
            if details := getattr(error, "details", ""):
                _complain(f"\nIn the worker:\n{details}")
        _complain(f"pixelpong: error: {on_one_line(_describe(error))}")
        return error.exit_code if isinstance(error, PixelpongError) else 1


def _complain(text: str) -> None:
    """Print on stderr; if nobody can read it, the exit code still tells."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _print(result: Any, as_json: bool) -> None:
    """Print a result, without control characters; lines are folded on a terminal only."""
    if result is not None:
        text = json.dumps(result.to_dict(), indent=1) if as_json else str(result)
        text = "".join(each if each.isprintable() or each == "\n" else "?" for each in text)
        is_folded = is_terminal(sys.stdout) and not as_json
        print(fold(text, shutil.get_terminal_size().columns) if is_folded else text)
    sys.stdout.flush()


def fold(text: str, width: int) -> str:
    """Break long lines between words; a command stays whole, so that it can be pasted.

    >>> print(fold("mean return +18.47 over 200 games", 30))
    mean return +18.47 over 200
      games
    """
    wrap = textwrap.TextWrapper(max(width, 30), subsequent_indent="  ")
    wrap.break_on_hyphens = wrap.break_long_words = False
    lines = text.split("\n")
    return "\n".join(line if "pixelpong " in line else wrap.fill(line) for line in lines)


def _open_missing_streams() -> None:
    """Open missing standard streams, or our output could go into the first file we open."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)  # for the workers too
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - kept until the process ends
    sys.stderr = sys.stderr or sys.stdout


def _describe(error: BaseException) -> str:
    if isinstance(error, PixelpongError):
        text = str(error)
        for name in error.options:  # flags here, and not where it is part of a path
            flag = "--" + name.replace("_", "-")
            text = re.sub(rf"(?<![\w/.-]){name}(?![\w/=-]|\.\w)", flag, text)
        return text
    # Not an `Exception`: what safetensors raises if memory runs out.
    has_panicked = type(error).__name__ == "PanicException"
    if isinstance(error, OSError | MemoryError) or has_panicked:
        return (
            f"The system refused: {error or 'out of memory'}. Fix that, then try again or resume."
        )
    return f"internal error ({type(error).__name__}: {error}); please report it with --debug"


# --- words ------------------------------------------------------------------------------------


def parse(words: list[str]) -> tuple[Callable[..., Any], list[str], dict[str, Any]]:
    """The function that `words` call, and its arguments; prints help and exits if requested.

    Only what was given is among the arguments, so that the function's defaults hold.
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
        raise ConfigError(on_one_line(f"unknown command {words[0][:MAX_GOT]!r}; {advice}"))
    # A flag may be spelled like the key in a file.
    words = [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in words]
    parser = make_parser(words[0], shows_all="--help-all" in words)
    try:
        found, unknown = parser.parse_known_args(words)
    finally:
        sys.stdout.flush()  # a help that nobody reads is noticed here
    options = vars(found)
    name = options.pop("command")
    if unknown:
        word = next((it for it in unknown if it.startswith("-")), unknown[0]).partition("=")[0]
        known = [each.flag for each in flags_of(name)]
        advice = did_you_mean(word, known, f"see `pixelpong {name} --help`")
        if "preset" in COMMANDS[name] and word in preset_names():
            advice = f"did you mean --preset {word}?"
        what = "option" if word.startswith("-") else "argument"
        raise ConfigError(on_one_line(f"unknown {what} {word[:MAX_GOT]!r} of {name}; {advice}"))
    places = options.pop("places", [])
    options = {name: value for name, value in options.items() if name not in ("json", "debug")}
    return getattr(api, name), places if isinstance(places, list) else [places], options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise a `ConfigError` for words that argparse cannot parse."""
        text = on_one_line(message.removeprefix("argument "))[:MAX_GOT]
        raise ConfigError(f"{text}; see `{self.prog} --help`")


def make_parser(chosen: str, *, shows_all: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands; only the chosen one has its arguments."""
    parser = _Parser("pixelpong", description="Trains an agent to play Atari Pong.")
    parser.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
    listed = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name in COMMANDS:
        about, arguments = read_docstring(name)
        examples = [f"  pixelpong {each}" for each in EXAMPLES if each.split()[0] == name]
        one = listed.add_parser(
            name,
            help=about,
            description=fold(about, shutil.get_terminal_size().columns),
            epilog="\n".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        usage = f"pixelpong {name} [options]"
        if place := _find_place(name):
            metavar = place.name.upper()
            nargs, shown = None, metavar
            if place.kind == place.VAR_POSITIONAL:
                nargs, shown = "*", _MANY[name]
            elif place.default is not place.empty:
                nargs, shown = "?", f"[{metavar}]"
            help = arguments.get(place.name)
            one.add_argument("places", nargs=nargs, metavar=metavar, help=help)
            usage += f" {shown}"
        one.usage = usage
        if name == chosen:
            _add_flags(one, name, shows_all=shows_all)
    return parser


def _find_place(name: str) -> inspect.Parameter | None:
    """The command's positional argument: its first, if Python takes that by position."""
    first = next(iter(inspect.signature(getattr(api, name)).parameters.values()))
    is_flag = first.kind == first.KEYWORD_ONLY or first.name in COMMANDS[name]
    return None if is_flag else first


def read_docstring(name: str) -> tuple[str, dict[str, str]]:
    """A command's description and those of its arguments, from its function's docstring.

    >>> about, arguments = read_docstring("plot")
    >>> about, arguments["kind"]
    ('Plot one or several runs (needs the extra [plot]).', 'Kind of picture.')
    """
    about, arguments = "", {}
    # Arguments that several commands share are described in the first two.
    for function in (api.evaluate, api.dashboard, getattr(api, name)):
        text = _MARKUP.sub(r"\1\2", inspect.getdoc(function) or "")
        about = text.partition("\n")[0]
        block = text.partition("Args:\n")[2].partition("\n\n")[0]
        for each in re.split(r"\n(?=    \w)", block):
            word, _, help = " ".join(each.split()).partition(": ")
            arguments[word] = help[:1].upper() + help[1:]
    return about, arguments


def flags_of(name: str) -> list[Option]:
    """The options of a command: its own, those of all commands, those of a training."""
    function, own = getattr(api, name), []
    _, about = read_docstring(name)
    types = inspect.get_annotations(function, locals=_TEXTS, eval_str=True)
    for each in inspect.signature(function).parameters.values():
        is_none = each.kind == each.VAR_KEYWORD or each.name in COMMANDS[name]
        if not is_none and each != _find_place(name):
            kinds = get_args(types[each.name])
            kind = next((it for it in (Path, str) if it in kinds), types[each.name])
            short = _SHORT.get(each.name, "")
            own.append(Option(each.name, kind, each.default, about.get(each.name, ""), short=short))
    return [*own, *_COMMON, *(OPTIONS[it] for it in COMMANDS[name])]


def _add_flags(parser: argparse.ArgumentParser, name: str, *, shows_all: bool) -> None:
    parser.add_argument("--help-all", action="help", help="Print all options.")
    sections: dict[str, Any] = {"": parser}
    for each in flags_of(name):
        is_plain = each.name in _PLAIN if each.section else each.name not in _ADVANCED
        section = "" if is_plain else f"advanced: {each.section or 'this command'}"
        if section not in sections:
            sections[section] = parser.add_argument_group(section)
        about = _describe_option(each)
        if name == "resume" and each.name in COMMANDS[name] and not each.is_free:
            about += " Needs --allow-changes."
        shown = about if is_plain or shows_all else argparse.SUPPRESS
        facts: dict[str, Any] = {"help": shown}
        if each.kind is bool:  # a preset's or a file's value can be undone
            facts["action"] = argparse.BooleanOptionalAction if each.section else "store_true"
        else:
            facts["metavar"] = "NAME" if each.choices else each.kind.__name__.upper()
            facts["type"] = each.read
        sections[section].add_argument(*filter(None, (each.short, each.flag)), **facts)


def _describe_option(option: Option) -> str:
    parts = [option.help]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if not option.section and option.default not in (None, False):
        parts.append(f"(default: {option.default})")
    return " ".join(parts).replace("%", "%%")
