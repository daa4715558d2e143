"""The cartridges that the machine plays, by name: ``cartridge("breakout")``.

Their facts are data: ``cartridges.json`` has a line for each ROM that ale-py 0.12 ships. Facts that
are left out have the defaults of `Cartridge`. If a cartridge is known to differ from ALE in some
frame or picture, its line says why, and the cartridge is refused.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from pixelpong.errors import EmulatorError, did_you_mean, unknown

if TYPE_CHECKING:  # who asks for names alone loads no NumPy
    from pixelpong.atari.machine.cartridge import Cartridge
    from pixelpong.atari.machine.scoring import Scoring


@functools.cache
def facts() -> dict[str, dict[str, Any]]:
    """Return the lines of the file, by name."""
    text = resources.files(__package__).joinpath("cartridges.json").read_text("utf-8")
    lines: dict[str, dict[str, Any]] = json.loads(text)
    return lines


@functools.cache
def first_lives() -> dict[str, int]:
    """Return the lives that ALE tells after a start, by game; tests ask ALE again."""
    text = resources.files(__package__).joinpath("lives.json").read_text("utf-8")
    lives: dict[str, int] = json.loads(text)
    return lives


def names() -> list[str]:
    """List the cartridges whose memory and pictures equal ALE's in every frame."""
    return [name for name, line in facts().items() if "not_covered" not in line]


def not_covered() -> dict[str, str]:
    """Return the other cartridges, each with the reason why it is not covered."""
    return {name: line["not_covered"] for name, line in facts().items() if "not_covered" in line}


def scored_names() -> list[str]:
    """List the cartridges whose points, lives and ends equal ALE's, too."""
    return [name for name, line in facts().items() if "scoring" in line]


def require_covered(name: str) -> None:
    """Refuse a name that no cartridge has, or whose cartridge cannot be played exactly."""
    if name not in facts():
        near = {_squeeze(known): known for known in facts()}.get(_squeeze(name), name)
        advice = did_you_mean(near, facts(), 'use a name of ale-py\'s, such as "space_invaders"')
        raise EmulatorError(unknown("game", name, advice))
    if reason := facts()[name].get("not_covered"):
        raise EmulatorError(f"{name} cannot be played exactly: {reason}; choose another game.")


def names_for_two() -> list[str]:
    """List the cartridges with games for two players that equal multi-agent-ale-py's."""
    return [name for name, line in facts().items() if "two" in line]


@functools.cache
def cartridge(name: str, *, is_for_two: bool = False) -> Cartridge:
    """Return the facts about a cartridge, given ale-py's name, such as ``"space_invaders"``.

    For two players, other facts replace some of them; `names_for_two` have such.
    """
    from pixelpong.atari.machine.cartridge import Cartridge, Select

    line = dict(facts().get(name, {}))
    two = line.pop("two", {})
    if is_for_two and two:
        line = {**line, **two}
        line.pop("not_covered", None)
    else:
        require_covered(name)
    for key in ("actions", "legal_actions", "modes", "difficulties"):
        if key in line:
            line[key] = tuple(line[key])
    for key in ("first_actions", "start_actions"):
        if key in line:
            line[key] = tuple((action, count) for action, count in line[key])
    if "select" in line:
        steps = tuple((action, until) for action, until in line["select"].get("menu", ()))
        line["select"] = Select(**{**line["select"], "menu": steps})
    if scoring := line.get("scoring"):
        line["scoring"] = _read_scoring(dict(scoring))
    return Cartridge(name, **line)


def id_of(game: str, namespace: str = "pixelpong", version: int = 0) -> str:
    """Return the name of a game's environment in Gymnasium.

    >>> id_of("ms_pacman"), id_of("breakout", "ALE", 5)
    ('pixelpong/MsPacman-v0', 'ALE/Breakout-v5')
    """
    return f"{namespace}/{game.title().replace('_', '')}-v{version}"


def _squeeze(name: str) -> str:
    """Reduce a name to the letters that ale-py's and Gymnasium's names of a game share.

    >>> _squeeze("ms_pacman"), _squeeze("ALE/MsPacman-v5"), _squeeze("MsPacmanNoFrameskip-v4")
    ('mspacman', 'mspacman', 'mspacman')
    """
    bare = re.sub(r".*/|(-ram)?(NoFrameskip|Deterministic)?-v\d+$", "", name)
    return re.sub(r"[\W_]", "", bare).lower()


def _read_scoring(facts: dict[str, Any]) -> Scoring:
    from pixelpong.atari.machine.scoring import Scoring

    first, keeps_lives = facts.pop("first", {}), facts.pop("keeps_lives", False)
    board: list[int] = []
    for span in facts.pop("board", "").split():
        start, end = (int(address, 16) & 127 for address in span.split("-"))
        board += range(start, end + 1)
    return Scoring(facts, first, tuple(board), keeps_lives)
