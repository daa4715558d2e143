"""Words on the command line → a command and its options; errors as one line."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import itertools
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from pixelpong.config import DEFAULT_PRESET, OPTIONS, Config
from pixelpong.config.presets import load_preset, resolve_config
from pixelpong.errors import ConfigError, PixelpongError, expected
from pixelpong.faces.cli import bench, commands, doctor, faces
from pixelpong.faces.cli import face_options as f
from pixelpong.faces.cli import options as o

Command = Callable[[o.Request], int]
Specs = dict[str, tuple[type, Command]]


def parse(words: list[str]) -> tuple[Command, o.Request]:
    """The command that `words` ask for; prints help and exits where asked to.

    Raises:
        ConfigError: the words are no command line of ours.
    """
    if words[:1] == ["bench"]:
        specs, prog, rest = _make_bench_specs(), "pixelpong bench", words[1:]
    else:
        specs, prog, rest = _make_specs(words), "pixelpong", words
    options, unknown = _run_tyro(specs, prog, rest)
    if unknown:
        raise ConfigError(_describe_unknown(unknown[0], options))
    command = next(command for spec, command in specs.values() if spec is type(options))
    return command, o.Request(options, _given_options(options, words))


def _make_specs(words: list[str]) -> Specs:
    return {
        "train": (o.with_config(o.Train, _defaults_to_show(words)), commands.train),
        "resume": (o.with_config(o.Resume, None), commands.resume),
        "evaluate": (o.with_engine(o.with_protocol(o.Evaluate, "the run's")), commands.evaluate),
        "inspect": (o.Inspect, commands.inspect),
        "doctor": (o.Doctor, doctor.doctor),
        "verify": (o.with_protocol(o.Verify, "the preset's"), commands.verify),
        "record": (f.Record, faces.record),
        "plot": (f.Plot, faces.plot),
        "dashboard": (f.Dashboard, faces.dashboard),
        "watch": (f.Watch, faces.watch),
        "play": (f.Play, faces.play),
        "export": (f.Export, faces.export),
        "track": (f.Track, faces.track),
        "bench": (o.Bench, bench.throughput),
    }


def _make_bench_specs() -> Specs:
    return {
        "throughput": (o.with_engine(o.BenchThroughput, ["workers"]), bench.throughput),
        "solve": (o.with_engine(o.BenchSolve, ["workers"]), bench.solve),
        "predict": (o.with_engine(o.BenchPredict, ["workers"]), bench.predict),
    }


def _defaults_to_show(words: list[str]) -> Config:
    """The defaults that ``train --help`` names: those of the preset and file on the line."""
    if not {"-h", "--help"} & set(words):
        return load_preset(DEFAULT_PRESET)  # nobody looks; a pipe can be read only once
    file = _peek(words, "--config")
    try:
        return resolve_config(_peek(words, "--preset"), Path(file) if file else None, {})
    except PixelpongError:
        return load_preset(DEFAULT_PRESET)  # what is wrong with them is said when they are used


def _peek(words: list[str], flag: str) -> str | None:
    for word, following in itertools.pairwise([*words, None]):
        if word == flag:
            return following
        if word and word.startswith(flag + "="):
            return word.partition("=")[2]
    return None


def _given_options(options: Any, words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        if dataclasses.is_dataclass(value):
            found |= _given_options(value, words)
        elif each.name in OPTIONS and _is_given(each.name, value, words):
            found[each.name] = value
    return found


def _is_given(name: str, value: Any, words: list[str]) -> bool:
    if isinstance(value, bool):  # a flag cannot be None, so its False means nothing by itself
        return f"--{name}" in words or f"--no-{name}" in words
    return value is not None


def _run_tyro(specs: Specs, prog: str, words: list[str]) -> tuple[Any, list[str]]:
    members = tuple(
        Annotated[spec, tyro.conf.subcommand(name)] for name, (spec, _) in specs.items()
    )
    union: Any = typing.Union[members]  # noqa: UP007 - made at run time
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            found: tuple[Any, list[str]] = tyro.cli(
                union,
                prog=prog,
                description="Teaches a program to play Atari Pong from its screen.",
                args=words,
                return_unknown_args=True,
                config=(tyro.conf.OmitArgPrefixes,),
            )
            return found
    except SystemExit as exit:
        if not exit.code:
            raise
        raise ConfigError(_condense(errors.getvalue())) from None


def _condense(box: str) -> str:
    """The first paragraph of tyro's boxed message, as one line in our words.

    >>> _condense("╭ Value error ╮\\n│ Error parsing --seed: invalid literal for int(): 'x'│\\n╰─╯")
    "expected a whole number for --seed, got 'x'; see --help"
    """
    # The frame is drawn with lines, or where the terminal knows no such letters, with hyphens.
    lines = [line.strip("│ ") for line in box.splitlines()[1:]]
    body = itertools.dropwhile(lambda line: line.startswith("---"), lines)
    paragraph = itertools.takewhile(lambda line: not line.startswith(("─", "╰", "---")), body)
    text = " ".join(" ".join(paragraph).split())
    if bad := re.match(r"Error parsing (--\S+): .*?'(.*?)'", text):
        kind = "a whole number" if re.search(r"\bint\b", text, re.IGNORECASE) else "a number"
        return expected(f"{kind} for {bad[1]}", repr(bad[2]), "see --help")
    return f"{text.rstrip('.')}; see --help"


def _describe_unknown(word: str, options: Any) -> str:
    if not word.startswith("-"):
        return expected("an option", repr(word), "see --help")
    flag = word.partition("=")[0]
    near = difflib.get_close_matches(flag, _flags_of(options), n=1)
    advice = f"did you mean {near[0]}?" if near else "see --help"
    return expected("an option of this command", flag, advice)


def _flags_of(options: Any) -> list[str]:
    flags = []
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        if dataclasses.is_dataclass(value):
            flags += _flags_of(value)
        else:
            flags.append("--" + each.name.replace("_", "-"))
    return flags
