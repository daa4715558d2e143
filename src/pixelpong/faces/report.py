"""Results as text: tables, and rows of names and values.

Every function of `pixelpong.faces.api` returns a result: ``str(result)`` is what its command
prints, ``result.to_dict()`` what it prints with ``--json``.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import COUNTED, OPTIONS, PLACE, Config
from pixelpong.errors import number_of, on_one_line
from pixelpong.run.words import describe_times, duration, signed

if TYPE_CHECKING:
    from pixelpong.loop import Ended

Facts = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """The result of a function: facts, and the text that its command prints."""

    facts: Facts
    text: str
    exit_code: int = 0  # of its command

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> Facts:
        """The result as JSON."""
        return self.facts


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Container[int] = (0,),
    width: int = 80,
) -> list[str]:
    """Lines in columns; those in `left` are left-aligned, and the last are cut if too wide.

    >>> table(["name", "steps"], [["a", "1,000"], ["longer", "9"]])
    ['name    steps', 'a       1,000', 'longer      9']
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    while len(widths) > 1 and sum(widths) + 2 * len(widths) - 2 > width:
        widths.pop()
    sides = ["<" if place in left else ">" for place in range(len(widths))]
    return [
        "  ".join(
            f"{cell:{side}{wide}}" for cell, side, wide in zip(row, sides, widths, strict=False)
        ).rstrip()
        for row in (heads, *rows)
    ]


def pairs(values: Mapping[str, object]) -> list[str]:
    """A line for each value that is not empty, with its name."""
    return [f"{name:12} {value}" for name, value in values.items() if value]


def shorten(text: str, room: int) -> str:
    """Shorten a name to one line of at most `room` columns; the end of a path says the most."""
    text = on_one_line(text)
    return text if len(text) <= room else f"…{text[len(text) - room + 1 :]}"


def count(number: int, total: int, what: str) -> None:
    """Show a counter on a terminal; it disappears at the end."""
    if is_terminal(sys.stderr):
        text = "" if number == total else f"{number:,} of {total:,} {what}"
        with dropping():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# --- what shows the work is not the work -------------------------------------------------------


@contextlib.contextmanager
def dropping() -> Iterator[None]:
    """While inside, drop what cannot be shown: a terminal may be gone, a disk full, a file closed.

    Only a reader who has gone, as with ``| head``, ends the work: that is what the reader wants.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError):
        pass


def tell(line: str) -> None:
    """Print a line about the work that goes on."""
    Outlet(sys.stdout).write(f"{line}\n")


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; one that cannot say is none."""
    with dropping():
        return stream is not None and hasattr(stream, "isatty") and bool(stream.isatty())
    return False


class Outlet:
    """A stream for those who print about the work; see `dropping`.

    The stream itself may be any object with ``write``, or None.
    """

    def __init__(self, stream: Any) -> None:
        """Write to `stream`."""
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write text, and let nobody wait for it."""
        if self._stream is not None:
            with dropping():
                self._stream.write(
                    text.encode(self.encoding, "backslashreplace").decode(self.encoding)
                )
        self.flush()
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, if the stream can."""
        if hasattr(self._stream, "flush"):
            with dropping():
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return is_terminal(self._stream)


# --- a training -------------------------------------------------------------------------------

_NEXT = """
watch it         pixelpong watch {run}
play against it  pixelpong play {run}
film it          pixelpong record {run} --overlay --out best.mp4
"""


def describe_ending(facts: Facts, outcome: Ended, *, is_brief: bool) -> str:
    """How a training ended: won or not, and the commands that come next."""
    progress, verdict = outcome.progress, outcome.test
    run = shlex.quote(facts["run"])
    words = {"interrupted": "interrupted", "until_return": "done"}
    times = describe_times(facts["training_seconds"], facts["total_seconds"])
    ended = (
        f"{words.get(outcome.reason, f'budget spent ({outcome.reason})')}: "
        f"update {progress.update}, {number_of(progress.episodes, 'episode')}, "
        f"{number_of(progress.steps, 'step')}{' in ' * bool(times)}{times}, "
        f"mean of the last 100 {signed(progress.mean_return_100, 2)}"
    )
    if is_brief:
        return f"{ended}; saved in {run}"
    lines, more = [], ""
    if outcome.reason in COUNTED:
        count = getattr(progress, COUNTED[outcome.reason])
        more = f" --{outcome.reason.replace('_', '-')} {2 * count}"
    if verdict is not None and verdict.target is not None:
        word = "Won" if verdict.is_won else "Not won yet"
        lines.append(f"{word}: {verdict}; the target is {signed(verdict.target)}")
        if verdict.is_won:
            more = f" --until-return {min(verdict.target + 1, 21):g}"
            after = number_of(progress.steps, "step")
            if verdict.total_seconds is not None:  # the new games came after the win
                after += f" and {duration(verdict.total_seconds)}, before the new games"
            lines += [f"after {after}, on {facts['machine']}", _NEXT.format(run=run)]
    lines += [ended, f"params {outcome.params_sha256}"]
    return "\n".join([*lines, f"saved in {run}; continue with:", f"  {facts['resume']}{more}"])


def place_of(config: Config) -> dict[str, Any]:
    """The options that a resume needs to play where this training does; none without Ray."""
    if config.engine != "ray":
        return {}
    flat = vars(config)
    return {name: flat[name] for name in PLACE if flat[name] != OPTIONS[name].default}


def resume_command(path: Path, config: Config) -> str:
    """The command that continues a run where it was trained.

    >>> resume_command(Path("my run"), Config(engine="ray", ray_address="auto"))
    "pixelpong resume 'my run' --engine ray --ray-address auto"
    """
    words = ["pixelpong", "resume", str(path)]
    for name, value in place_of(config).items():
        words += [OPTIONS[name].flag, str(value)]
    return shlex.join(words)


# --- runs -------------------------------------------------------------------------------------


def describe_runs(facts: Facts, width: int = 80) -> str:
    """A table of runs, then of sweeps."""
    found, rows = [*facts["runs"], *facts["sweeps"]], []
    for it in found:
        greedy, best = it["greedy"], it["estimated_return"]
        shown = signed(greedy["mean_return"]) if greedy else "~" * (best is not None) + signed(best)
        seed = "–" if it["seed"] is None else str(it["seed"])
        size, since = f"{it['bytes'] / 1e6:,.1f} MB", duration(max(time.time() - it["modified"], 0))
        row = (shorten(it["name"], 28), it["state"], shown, f"{it['steps']:,}", seed)
        rows.append((*row, (it["preset"] or "–")[:10], size, since))
    heads = ("run", "state", "return", "steps", "seed", "preset", "size", "age")
    lines = table(heads, rows, left=(0, 1, 5), width=width)
    for place, it in enumerate(facts["runs"], start=1):
        if it["problem"]:
            lines[place] += "\n  " + it["problem"][: width - 2]
    numbers = [number_of(len(facts["runs"]), "run")]
    numbers += [number_of(len(facts["sweeps"]), "sweep")] if facts["sweeps"] else []
    hint = "; ~ is an estimate from the points won" * any(row[2].startswith("~") for row in rows)
    lines.append(f"{', '.join(numbers)}, {sum(it['bytes'] for it in found) / 1e6:,.1f} MB{hint}")
    return "\n".join(lines)


def describe_facts(facts: Facts) -> str:
    """The facts about one run."""
    changed = {name: value for name, value in facts["changed"].items() if name != "seed"}
    sound = [str(update) for update in facts["checkpoints"] if update not in facts["damaged"]]
    rows = {
        "result": facts["verdict"],
        "run": facts["run"],
        "preset": f"{facts['preset']}, seed {facts['seed']}",
        "protocol": facts["protocol"],
        "changed": _listed(changed) or "nothing",
        "progress": f"update {facts['update']}, {number_of(facts['steps'], 'step')}, "
        f"{number_of(facts['episodes'], 'episode')}",
        "time": describe_times(facts["training_seconds"], facts["total_seconds"]),
        "params": facts.get("params_sha256"),
        "state": facts.get("state_sha256"),
        "checkpoints": f"{', '.join(sound)} (SHA-256 verified)" if sound else "none",
        "damaged": "; ".join(facts["damaged"].values()),
        "machine": ", ".join(map(str, facts["machine"].values())),
        "versions": _listed(facts["versions"]),
    }
    return "\n".join(pairs(rows))


def _listed(values: Facts) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


# --- many trainings, many games ---------------------------------------------------------------


def describe_trainings(facts: Facts) -> str:
    """For each setting how many won, how fast, and how well they play; then what is left to do."""
    lines = []
    for group in facts["settings"]:
        lines += [group["label"]] * bool(group["label"])
        rows = {
            "won": f"{group['won']} of {group['done']}",
            "median time": _spread(group["seconds"], duration),
            "median steps": _spread(group["steps"], "{:,.0f}".format),
            "median final return": _spread(
                group["final_return"], functools.partial(signed, digits=2)
            ),
        }
        lines += pairs(rows)
    if left := sum(not row["is_done"] for row in facts["runs"]):
        lines += [f"{number_of(left, 'run')} left to train; continue with:", f"  {facts['resume']}"]
    return "\n".join([*lines, f"saved in {facts['sweep']}"])


def _spread(found: Facts | None, show: Callable[[float], str]) -> str:
    """The median of several trainings, with its 95 % interval."""
    if found is None:
        return ""
    ends = f" ({show(found['ci95'][0])} to {show(found['ci95'][1])})" if found["ci95"] else ""
    return show(found["median"]) + ends


def describe_tournament(facts: Facts) -> str:
    """The ladder, and the matrix of mean returns."""
    players, rows = facts["players"], []
    for rank, each in enumerate(players, 1):
        low, high = each["ci95"]
        points = each["points_won"] + each["points_lost"]
        share = f"{100 * each['points_won'] / points:.0f} %" if points else "–"
        rating = f"{signed(each['rating'], 0)} ± {(high - low) / 2:.0f}"
        mean = signed(each["mean_return"])
        rows.append((str(rank), shorten(each["name"], 34), rating, mean, share))
    lines = table(("rank", "player", "rating", "mean return", "points won"), rows, left=(1,))
    ranks = [str(rank) for rank in range(1, len(players) + 1)]
    cells = zip(ranks, players, facts["matrix"], strict=True)
    matrix = [[rank, shorten(it["name"], 14), *map(signed, row)] for rank, it, row in cells]
    lines += ["", *table(["", "return against", *ranks], matrix, left=(1,))]
    done, total = facts["games_played"], facts["games_planned"]
    of_all = f"only {done:,} of {total:,} games were played"
    return "\n".join([*lines, number_of(done, "game") if done == total else of_all])
