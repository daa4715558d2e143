"""Points, lives and the end of a game: from facts about its memory to compiled functions.

The facts are expressions, in the order in which they are computed after each frame:

    "is_on":  "old.is_on or xB9 == 5"
    "points": "dec(lo(xCC), xCD)"
    "over":   "is_on and xB9 == 0"
    "lives":  "xB9"

`atari.machine.formulas` says what they may name. The prefix ``old.`` stands for the value of a byte
or an expression after the previous frame. An expression may name those before it.
``count(board, 1, 2)`` is the number of the board's cells with one of these values; ``total`` and
``alike`` ask for other numbers.

Five names have a meaning: ``points``; ``over``; ``reward``, by default the change of the points;
``lives``, by default 0; and, in games where two players do not play against each other alone,
``second``, the second player's reward. After the end ALE shows no lives, except in games that keep
them.

What an expression needs from the previous frame is noted in the record, so a snapshot contains it.
Source: the addresses and formulas are those of ALE 0.12, and tests compare them with its answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

from pixelpong.atari.machine.formulas import is_byte, make_module, to_typed
from pixelpong.atari.machine.record import MOST_NOTED

_HEAD = (
    '"""The points, lives and end of a game."""',
    "",
    "from __future__ import annotations",
    "",
    "from pixelpong.atari.machine.digits import *",
    "from pixelpong.atari.machine.typed import Machine, inline",
    "",
    "",
)
_RESULTS = {"points": "0", "over": "0", "reward": "points - old.points", "lives": "0"}


@dataclass(frozen=True)
class Scoring:
    """How a game's memory shows its points, lives and end."""

    rules: Mapping[str, str]  # expressions by name
    # Values at the start, where the rules would give others.
    first: Mapping[str, int] = field(default_factory=dict)
    board: tuple[int, ...] = ()  # addresses of its cells, from 0 on
    keeps_lives: bool = False  # whether lives are shown after the end, too

    @property
    def all_rules(self) -> dict[str, str]:
        """The rules in the order of computation, with defaults for those left out."""
        return {
            **self.rules,
            **{name: _RESULTS[name] for name in _RESULTS if name not in self.rules},
        }

    @property
    def pays_second(self) -> bool:
        """Whether the second player has a reward of its own, not the first one's loss."""
        return "second" in self.rules

    @property
    def noted(self) -> list[str]:
        """The names whose previous frame's values some rule needs."""
        names = re.findall(r"\bold\.(\w+)", " ".join(self.all_rules.values()))
        return list(dict.fromkeys(names))


def to_source(scoring: Scoring) -> str:
    """Write the functions `score`, `recall` and `begin_score` of a game as typed Python."""
    noted = scoring.noted
    assert len(noted) <= MOST_NOTED, noted
    lines = [*_HEAD, *_score(scoring)]
    lines += ["", "", "@inline", "def recall(m: Machine) -> None:"]
    lines += ["    m.points = 0", "    m.is_over = 0"]
    lines += ["    m.second = 0"] * scoring.pays_second
    lines += ["", "", "def begin_score(m: Machine) -> None:"]
    for at, name in enumerate(noted):
        value = to_typed(name) if is_byte(name) else scoring.first.get(name, 0)
        lines.append(f"    m.noted[{at}] = {value}")
    lines.append("    score(m)")
    for name, first in scoring.first.items():
        if name in noted:
            lines.append(f"    m.noted[{noted.index(name)}] = {first}")
        if name == "lives":
            lines.append(f"    m.lives = {first}")
    lines += ["    m.points = 0", *["    m.second = 0"] * scoring.pays_second, ""]
    return "\n".join(lines)


def _score(scoring: Scoring) -> list[str]:
    """Write the lines of the function `score`."""
    noted = scoring.noted
    lines = ["def score(m: Machine) -> None:"]
    for name, rule in scoring.all_rules.items():
        text = to_typed(rule, noted)
        lines.append(f"    {name} = " + (f"1 if {text} else 0" if name == "over" else text))
    for at, name in enumerate(noted):
        lines.append(f"    m.noted[{at}] = {to_typed(name) if is_byte(name) else name}")
    return [
        *lines,
        "    m.points += reward",
        *["    m.second += second"] * scoring.pays_second,
        "    m.is_over = over",
        f"    m.lives = {'lives' if scoring.keeps_lives else '0 if over else lives'}",
        "    m.may_end = 1",
    ]


def make_scoring(name: str, scoring: Scoring) -> ModuleType:
    """Make a module of a game's functions."""
    return make_module(f"scoring of {name}", to_source(scoring))
