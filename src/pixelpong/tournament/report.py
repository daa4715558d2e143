"""The file of a tournament, read: what a page shows of it.

Covered: reading ``tournament.json``, which may be damaged. Not covered: writing it
(`pixelpong.tournament.tournament.summarize` makes its content).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from pixelpong.errors import RunError, expected, refusing
from pixelpong.schema import Count, Figure, Return, decode
from pixelpong.tournament.games import Played, Rules
from pixelpong.tournament.players import MAX_PLAYERS

FOLDER = Path("tournaments")
"""Where tournaments are, beside the folder of runs."""

FORMAT = 1
FILE = "tournament.json"


@dataclass(frozen=True)
class Ranked:
    """A player on the ladder.

    Attributes:
        name: the word that named it.
        rating: on Elo's scale.
        ci95: both ends of the rating's interval.
        mean_return: over all its games.
        points_won: in them.
        points_lost: in them.
        games: their number.
    """

    name: str
    rating: Figure
    ci95: tuple[Figure, Figure]
    mean_return: Return | None
    points_won: Count
    points_lost: Count
    games: Count


@dataclass(frozen=True)
class Pair:
    """Two players, with their best rally.

    Attributes:
        players: their names.
        best_rally: the game with their longest rally, without its moves; None if there is none.
        moves: of that game.
    """

    players: tuple[str, str]
    best_rally: Played | None
    moves: str = ""


@dataclass(frozen=True)
class Report:
    """A tournament.

    Attributes:
        format: number of this layout.
        rules: of all games.
        rounds: in each, a pair was to play two games.
        games_played: in all.
        games_planned: more, if it was interrupted.
        players: by rank.
        matrix: the mean return of each player against each, by rank.
        triples: of whom the first beats the second, the second the third, the third the first.
        pairs: all that have played.
    """

    format: int
    rules: Rules
    rounds: Count
    games_played: Count
    games_planned: Count
    players: tuple[Ranked, ...]
    matrix: tuple[tuple[Return | None, ...], ...]
    triples: tuple[tuple[str, str, str], ...]
    pairs: tuple[Pair, ...]

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        names = {each.name for each in self.players}
        size = len(self.players)
        if self.format != FORMAT:
            raise ValueError(f"format {self.format}")
        if not 2 <= size <= MAX_PLAYERS or len(names) != size:
            raise ValueError(f"{size} players of {len(names)} names")
        if [len(row) for row in self.matrix] != [size] * size:
            raise ValueError("a matrix of another size")
        groups = [*self.triples, *(pair.players for pair in self.pairs)]
        if unknown := {name for group in groups for name in group} - names:
            raise ValueError(f"an unknown player {min(unknown)}")

    def find_rally(self, number: int) -> Played:
        """The game with the best rally of a pair, by its place, with its moves.

        Raises:
            RunError: there is none.
        """
        pair = self.pairs[number] if number < len(self.pairs) else None
        if pair is None or pair.best_rally is None:
            raise RunError(expected("a pair with a rally", number, "choose another one"))
        return dataclasses.replace(pair.best_rally, moves=pair.moves)


def read_report(folder: Path) -> Report:
    """Read the tournament in a folder.

    Raises:
        RunError: there is none, or it is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        advice = "it comes when the games have been played"
        raise RunError(expected(f"a {FILE}", "none yet", advice))
    with refusing(f"a {FILE} that can be read", "hold the tournament again", RunError):
        return decode(file.read_bytes(), Report)
