"""Results as text: tables and lists of names and values.

Every function of `pixelpong.faces.api` returns a result. ``str(result)`` is what its command
prints; ``result.to_dict()`` is what the command prints with ``--json``.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import COUNTED, LOCAL_OPTIONS, OPTIONS, Config
from pixelpong.errors import list_words, number_of, on_one_line
from pixelpong.run.words import describe_times, duration, signed

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
    run = shlex.quote(facts["run"])
    ended = _describe_end(facts, outcome)
    if is_brief:
        return f"{ended}; saved in {run}"
    progress, result = outcome.progress, outcome.test
    lines, budget = [], ""
    if outcome.reason in COUNTED:
        reached = getattr(progress, COUNTED[outcome.reason])
        budget = f" {OPTIONS[outcome.reason].flag} {2 * reached}"
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
        f"mean of the last 100 {signed(progress.mean_return_100, 2)}"
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
    return shlex.join(words)


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
    heads = ("run", "state", "return", "steps", "seed", "preset", "size", "age")
    lines = table(heads, [_make_row(it) for it in listed], left=(0, 1, 5), width=width)
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
    if any(_is_estimate(it) for it in listed):
        total += "; ~ is an estimate from the points won"
    return "\n".join([*lines, total])


def _make_row(facts: Facts) -> tuple[str, ...]:
    """Make the row of the table for a run or a sweep."""
    if _is_estimate(facts):
        shown_return = f"~{signed(facts['estimated_return'])}"
    else:
        shown_return = signed(facts["greedy"]["mean_return"] if facts["greedy"] else None)
    return (
        shorten(facts["name"], 28),
        facts["state"],
        shown_return,
        f"{facts['steps']:,}",
        "–" if facts["seed"] is None else str(facts["seed"]),
        shorten(facts["preset"] or "–", 10),
        f"{facts['bytes'] / 1e6:,.1f} MB",
        duration(max(time.time() - facts["modified"], 0)),
    )


def _is_estimate(facts: Facts) -> bool:
    """Whether the return of a run is known from training only."""
    return not facts["greedy"] and facts["estimated_return"] is not None


def describe_facts(facts: Facts) -> str:
    """Describe the facts about one run."""
    changed = {name: value for name, value in facts["changed"].items() if name != "seed"}
    sound = [str(update) for update in facts["checkpoints"] if update not in facts["damaged"]]
    values = {
        "result": facts["verdict"],
        "run": facts["run"],
        "preset": f"{facts['preset']}, seed {facts['seed']}",
        "protocol": facts["protocol"],
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


# --- sweeps and tournaments -------------------------------------------------------------------


def describe_sweep(facts: Facts) -> str:
    """Describe for each setting how many runs won, how fast and how well; and what is left."""
    lines = []
    for setting in facts["settings"]:
        if setting["label"]:
            lines.append(setting["label"])
        lines += pairs(
            {
                "won": f"{setting['won']} of {setting['done']}",
                "median time": _spread(setting["seconds"], duration),
                "median steps": _spread(setting["steps"], "{:,.0f}".format),
                "median final return": _spread(
                    setting["final_return"], functools.partial(signed, digits=2)
                ),
            }
        )
    num_left = sum(not run["is_done"] for run in facts["runs"])
    if num_left:
        lines.append(f"{number_of(num_left, 'run')} left to train; continue with:")
        lines.append(f"  {facts['resume']}")
    return "\n".join([*lines, f"saved in {facts['sweep']}"])


def _spread(summary: Facts | None, show: Callable[[float], str]) -> str:
    """Format the median of several runs with its 95 % interval."""
    if summary is None:
        return ""
    median = show(summary["median"])
    if not summary["ci95"]:
        return median
    low, high = map(show, summary["ci95"])
    return f"{median} ({low} to {high})"


def describe_tournament(facts: Facts) -> str:
    """Describe the ladder and the matrix of mean returns."""
    players, rows = facts["players"], []
    for rank, player in enumerate(players, 1):
        low, high = player["ci95"]
        points = player["points_won"] + player["points_lost"]
        share = f"{100 * player['points_won'] / points:.0f} %" if points else "–"
        rating = f"{signed(player['rating'], 0)} ± {(high - low) / 2:.0f}"
        mean = signed(player["mean_return"])
        rows.append((str(rank), shorten(player["name"], 34), rating, mean, share))
    lines = table(("rank", "player", "rating", "mean return", "points won"), rows, left=(1,))
    ranks = [str(rank) for rank in range(1, len(players) + 1)]
    matrix = [
        [rank, shorten(player["name"], 14), *map(signed, returns)]
        for rank, player, returns in zip(ranks, players, facts["matrix"], strict=True)
    ]
    lines += ["", *table(["", "return against", *ranks], matrix, left=(1,))]
    played, planned = facts["games_played"], facts["games_planned"]
    if played == planned:
        lines.append(number_of(played, "game"))
    else:
        lines.append(f"only {played:,} of {planned:,} games were played")
    rules = facts["rules"]
    num_cut = sum(max(game["points"]) < rules["points"] for game in facts["games"])
    if num_cut:
        limit = f"the limit of {rules['frames']:,} frames"
        lines.append(f"{number_of(num_cut, 'game')} ended at {limit}, before either side had won")
    return "\n".join(lines)
