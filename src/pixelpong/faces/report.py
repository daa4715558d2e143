"""Results as text: tables and lists of names and values.

Every function of `pixelpong.faces.api` returns a result. ``str(result)`` is what its command
prints; ``result.to_dict()`` is what the command prints with ``--json``.
"""

from __future__ import annotations

import contextlib
import sys
import textwrap
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import COUNTED, LOCAL_OPTIONS, OPTIONS, Config
from pixelpong.config.protocols import PONG
from pixelpong.errors import as_argument, list_words, number_of, on_one_line
from pixelpong.run.words import describe_times, duration, in_game, signed

if TYPE_CHECKING:
    from pixelpong.loop import Ended

Facts = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """The result of a function: the facts, and the text that its command prints."""

    facts: Facts
    text: str
    exit_code: int = 0  # the exit code of its command

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> Facts:
        """Return the result as JSON."""
        return self.facts


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Container[int] = (0,),
    width: int = 80,
) -> list[str]:
    """Format the lines of a table; columns in `left` are left-aligned.

    Columns beyond `width` are left out, and the last lines name them.

    >>> table(["name", "steps"], [["a", "1,000"], ["longer", "9"]])
    ['name    steps', 'a       1,000', 'longer      9']
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    while len(widths) > 1 and sum(widths) + 2 * len(widths) - 2 > width:
        widths.pop()
    lines = []
    for row in (heads, *rows):
        cells = [
            cell.ljust(size) if column in left else cell.rjust(size)
            for column, (cell, size) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join(cells).rstrip())
    if missing := heads[len(widths) :]:
        left_out = f"too wide to show: {list_words(missing, 'and')}; --json has everything"
        lines += textwrap.wrap(left_out, max(width, 20))
    return lines


def pairs(values: Mapping[str, object]) -> list[str]:
    """Format named values, one per line; leave out empty values.

    >>> pairs({"won": "1 of 3", "median time": "12 s", "damaged": ""})
    ['won          1 of 3', 'median time  12 s']
    """
    width = max(map(len, values))
    return [f"{name:{width}}  {value}" for name, value in values.items() if value]


def shorten(text: str, width: int) -> str:
    """Shorten a name to one line of `width` columns, keeping the end, which says the most."""
    text = on_one_line(text)
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"


def show_count(number: int, total: int, noun: str) -> None:
    """Display a counter on a terminal; it disappears at the end."""
    if is_terminal(sys.stderr):
        text = "" if number == total else f"{number:,} of {total:,} {noun}"
        with dropping():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# --- output that must not stop the work -------------------------------------------------------


@contextlib.contextmanager
def dropping() -> Iterator[None]:
    """Context manager that drops output errors: the terminal is gone, the disk full, a file closed.

    A closed pipe, as with ``| head``, does end the work, because its reader wants no more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError):
        pass


def tell(line: str) -> None:
    """Print a line about progress."""
    Outlet(sys.stdout).write(f"{line}\n")


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; False if the stream cannot say."""
    with dropping():
        return stream is not None and hasattr(stream, "isatty") and bool(stream.isatty())
    return False


class Outlet:
    """A stream for progress output that drops errors, see `dropping`.

    The underlying stream may be any object with ``write``, or None.
    """

    def __init__(self, stream: Any) -> None:
        """Write to `stream`."""
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write text and flush it."""
        if self._stream is not None:
            with dropping():
                self._stream.write(
                    text.encode(self.encoding, "backslashreplace").decode(self.encoding)
                )
        self.flush()
        return len(text)

    def flush(self) -> None:
        """Flush the stream if it can be flushed."""
        if hasattr(self._stream, "flush"):
            with dropping():
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return is_terminal(self._stream)


# --- a training run ---------------------------------------------------------------------------

_NEXT = """
watch it         pixelpong watch {run}
play against it  pixelpong play {run}
film it          pixelpong record {run} --overlay --out best.mp4
"""
# It has met the built-in opponent alone, so a person may beat it.
_HARDER = "for a harder opponent: pixelpong train --preset half\n"


def describe_ending(facts: Facts, outcome: Ended, *, is_brief: bool) -> str:
    """Describe how a training run ended: won or not, and the commands to try next."""
    run = as_argument(facts["run"])
    ended = _describe_end(facts, outcome)
    if is_brief:
        return f"{ended}; saved in {run}"
    progress, result = outcome.progress, outcome.test
    lines, budget = [], ""
    if facts["sampled"] and facts["sampled"]["update"] == progress.update:
        rules = f"by the rules of {facts['protocol']} ({facts['rules']}), with sampled actions"
        lines += [facts["result"], rules, _NEXT.format(run=run)]
    if outcome.reason in COUNTED:
        reached = getattr(progress, COUNTED[outcome.reason])
        budget = f" {OPTIONS[outcome.reason].flag} {2 * reached}"
        if outcome.reason == "total_timesteps" and facts["game"] != PONG:
            # Its learning rate has fallen to 0, and is to fall later.
            budget += f" --anneal-steps {2 * reached} --allow-changes"
    if result is not None and result.target is not None:
        word = "Won" if result.is_won else "Not won yet"
        lines.append(f"{word}: {result}; the target is {signed(result.target)}")
        if result.is_won:
            budget = f" --until-return {min(result.target + 1, 21):g}"
            after = number_of(progress.steps, "step")
            if result.total_seconds is not None:  # the new games came after the win
                after += f" and {duration(result.total_seconds)}, before the new games"
            lines += [f"after {after}, on {facts['machine']}", _NEXT.format(run=run)]
            lines += [_HARDER] * (facts["preset"] != "half")
    lines += [
        ended,
        f"params {outcome.params_sha256}",
        f"saved in {run}; continue with:",
        f"  {facts['resume']}{budget}",
    ]
    return "\n".join(lines)


def _describe_end(facts: Facts, outcome: Ended) -> str:
    """Describe why and where a training run ended, on one line."""
    progress = outcome.progress
    reasons = {"interrupted": "interrupted", "until_return": "done"}
    reason = reasons.get(outcome.reason, f"budget spent ({outcome.reason})")
    steps = number_of(progress.steps, "step")
    times = describe_times(facts["training_seconds"], facts["total_seconds"])
    if times:
        steps += f" in {times}"
    return (
        f"{reason}: update {progress.update}, {number_of(progress.episodes, 'episode')}, {steps}, "
        f"mean of the last 100 {in_game(progress.mean_return_100, facts['game'], 2)}"
    )


def _local_options(config: Config) -> dict[str, Any]:
    """Return the options with which a resume plays where this run did; none without Ray."""
    if config.engine != "ray":
        return {}
    values = {name: getattr(config, name) for name in LOCAL_OPTIONS}
    return {name: value for name, value in values.items() if value != OPTIONS[name].default}


def resume_command(path: Path, config: Config) -> str:
    """Return the command that continues a run where it was trained.

    >>> resume_command(Path("my run"), Config(engine="ray", ray_address="auto"))
    "pixelpong resume 'my run' --engine ray --ray-address auto"
    """
    words = ["pixelpong", "resume", str(path)]
    for name, value in _local_options(config).items():
        words += [OPTIONS[name].flag, str(value)]
    return " ".join(map(as_argument, words))


def resume_call(path: Path, config: Config) -> str:
    """Return the Python call that continues a run where it was trained.

    >>> resume_call(Path("my run"), Config(engine="ray", ray_address="auto"))
    "pixelpong.resume('my run', engine='ray', ray_address='auto')"
    """
    options = (f"{name}={value!r}" for name, value in _local_options(config).items())
    return f"pixelpong.resume({', '.join([repr(str(path)), *options])})"


# --- runs -------------------------------------------------------------------------------------


def describe_runs(facts: Facts, width: int = 80) -> str:
    """Return a table of runs, then one of sweeps."""
    listed = [*facts["runs"], *facts["sweeps"]]
    rows = [_make_row(it) for it in listed]
    heads = [*rows[0]]
    if all(_is_of_pong(it) for it in listed):
        heads.remove("game")
    else:  # the preset follows from the game, so it may be left out first
        heads.sort(key=lambda head: head == "preset")
    left = [number for number, head in enumerate(heads) if head in _LEFT]
    cells = [[row[head] for head in heads] for row in rows]
    lines = table(heads, cells, left, width)
    for index, run in enumerate(facts["runs"], start=1):
        if run["problem"]:
            problem = textwrap.indent(
                textwrap.fill(on_one_line(run["problem"]), max(width - 2, 20)), "  "
            )
            lines[index] += "\n" + problem
    total = number_of(len(facts["runs"]), "run")
    if facts["sweeps"]:
        total += f", {number_of(len(facts['sweeps']), 'sweep')}"
    total += f", {sum(it['bytes'] for it in listed) / 1e6:,.1f} MB"
    estimated = [it for it in listed if _is_estimate(it)]
    if any(_is_of_pong(it) for it in estimated):
        total += "; ~ is an estimate from the points won"
    if not all(_is_of_pong(it) for it in estimated):
        total += "; ~ is the mean of the last 100 games of the training"
    return "\n".join([*lines, total])


_LEFT = ("run", "state", "game", "preset")  # the columns with words


def _make_row(facts: Facts) -> dict[str, str]:
    """Make the row of the table for a run or a sweep: its cells by the heads of the columns."""
    value = in_game(_find_return(facts), facts["game"] or PONG)
    return {
        "run": shorten(facts["name"], 28),
        "state": facts["state"],
        "game": facts["game"] or "–",
        "return": f"~{value}" if _is_estimate(facts) else value,
        "steps": f"{facts['steps']:,}",
        "seed": "–" if facts["seed"] is None else str(facts["seed"]),
        "preset": shorten(facts["preset"] or "–", 10),
        "size": f"{facts['bytes'] / 1e6:,.1f} MB",
        "age": duration(max(time.time() - facts["modified"], 0)),
    }


def _find_return(facts: Facts) -> float | None:
    """Find the best known return of a run: that of its evaluation, or that of its training."""
    if evaluation := facts["greedy"] or facts["sampled"]:
        return float(evaluation["mean_return"])
    value: float | None = facts["estimated_return" if _is_of_pong(facts) else "mean_return_100"]
    return value


def _is_estimate(facts: Facts) -> bool:
    """Whether the return of a run is known from training only."""
    return not (facts["greedy"] or facts["sampled"]) and _find_return(facts) is not None


def _is_of_pong(facts: Facts) -> bool:
    return facts["game"] in (None, PONG)


def describe_facts(facts: Facts) -> str:
    """Describe the facts about one run."""
    changed = {name: value for name, value in facts["changed"].items() if name != "seed"}
    sound = [str(update) for update in facts["checkpoints"] if update not in facts["damaged"]]
    values = {
        "result": facts["verdict"],
        "run": facts["run"],
        "preset": f"{facts['preset']}, seed {facts['seed']}",
        "protocol": facts["protocol"],
        "rules": facts["rules"] if not _is_of_pong(facts) else "",
        "changed": _list_values(changed) or "nothing",
        "progress": f"update {facts['update']}, {number_of(facts['steps'], 'step')}, "
        f"{number_of(facts['episodes'], 'episode')}",
        "time": describe_times(facts["training_seconds"], facts["total_seconds"]),
        "params": facts.get("params_sha256"),
        "state": facts.get("state_sha256"),
        "checkpoints": f"{', '.join(sound)} (SHA-256 verified)" if sound else "none",
        "damaged": "; ".join(facts["damaged"].values()),
        "machine": ", ".join(map(str, facts["machine"].values())),
        "versions": _list_values(facts["versions"]),
    }
    return "\n".join(pairs(values))


def _list_values(values: Facts) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
