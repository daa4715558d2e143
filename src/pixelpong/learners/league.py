"""The league: whom the agent meets, and how often.

Against itself alone an agent can run in circles: it learns what beats its newest self, and forgets
what beat an older one. So in a league half of the streams play against itself, and the others
against opponents of which the agent must not forget how to beat them: its own past, and the
built-in one. Those that it loses to more often are met more often, and the built-in one, which
plays like no other, in a third of these games at least.

Source: Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement
learning" (Nature, 2019): prioritised fictitious self-play, with the weight (1 - x)² of an opponent
that is beaten with probability x. Here x is the share of points won, of which a game has many.

Covered: the opponents, their shares, and their state in a checkpoint.
Not covered: how a rival is kept and plays (`pixelpong.play.rivals`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import BUILTIN, LEAGUE, ONLY_BUILTIN, SELF, Opponents, Params
from pixelpong.play.rivals import list_rivals, name_rival, pack_rival, rival_of
from pixelpong.schema import Figure

MAX_ROWS = 24_576
"""First-layer rows of a rival, those that learning has changed most: two megabytes."""

_MEMORY = 0.98
"""Share of the old points that an update keeps in the estimate of who beats whom."""

_LEAST = 0.1
"""Weight of an opponent that is always beaten: nobody is forgotten."""

_BUILTIN_SHARE = 1 / 3
"""The least share of the built-in opponent; rivals that are hard to beat would take it all."""


@dataclass
class Score:
    """What is remembered of the games against an opponent.

    Attributes:
        name: of the opponent.
        won: points won; older ones count less.
        lost: points lost; older ones count less.
    """

    name: str
    won: Figure = 0.0
    lost: Figure = 0.0

    @property
    def share(self) -> float:
        """The share of points won; one half before any has been played."""
        return (self.won + 1) / (self.won + self.lost + 2)


class League:
    """The opponents of a training.

    Attributes:
        arrays: of all rivals, as `pixelpong.play.rivals` has them: a worker needs these.
        scores: of the opponents that are met by their shares.
    """

    def __init__(self, config: Config) -> None:
        ppo = config.ppo
        self._kind, self._size, self._every = ppo.opponent, ppo.league_size, ppo.league_every
        self._streams = ppo.streams
        self.arrays: Params = {}
        self.scores = [Score(BUILTIN)] if self._kind == LEAGUE else []

    @property
    def is_alone(self) -> bool:
        """Whether the built-in opponent is the only one."""
        return self._kind == BUILTIN

    @property
    def needs_rival(self) -> bool:
        """Whether the opponent is an agent that has not been given yet (`admit`)."""
        return self._kind not in (BUILTIN, SELF, LEAGUE) and not self.scores

    def opponents(self, stream: int) -> Opponents:
        """Who may be met in the episodes of a stream."""
        if self.is_alone:
            return ONLY_BUILTIN
        if self._kind == SELF or (self._kind == LEAGUE and stream < self._streams // 2):
            return ((SELF, 1.0),)
        weights = {score.name: (1 - score.share) ** 2 + _LEAST for score in self.scores}
        if BUILTIN in weights and len(weights) > 1:
            rivals = sum(weights.values()) - weights[BUILTIN]
            least = rivals * _BUILTIN_SHARE / (1 - _BUILTIN_SHARE)
            weights[BUILTIN] = max(weights[BUILTIN], least)
        total = sum(weights.values())
        return tuple((name, weight / total) for name, weight in weights.items())

    def record(self, points: Iterable[tuple[str, tuple[int, ...]]]) -> None:
        """Add an update's points, in the order of the items."""
        scores = {score.name: score for score in self.scores}
        for score in self.scores:
            score.won, score.lost = _MEMORY * score.won, _MEMORY * score.lost
        for name, rewards in points:
            if name in scores:
                scores[name].won += rewards.count(1)
                scores[name].lost += rewards.count(-1)

    def is_due(self, update: int) -> bool:
        """Whether the agent of this update joins the league."""
        return self._kind == LEAGUE and update % self._every == 0

    def admit(self, params: Params, rows: NDArray[np.intp] | None = None) -> None:
        """Add a rival, in a full league in place of the one that is beaten most.

        Args:
            params: its parameters, not changed.
            rows: of the first layer that are kept; by default those that are not 0.
        """
        if rows is None:
            rows = np.flatnonzero(params["W1"].any(axis=(1, 2)))
        name, arrays = pack_rival(params, rows)
        if any(score.name == name for score in self.scores):
            return
        rivals = [score for score in self.scores if score.name != BUILTIN]
        while len(rivals) >= self._size:  # more than one if a resume has made the league smaller
            beaten = max(rivals, key=lambda score: score.share)  # the oldest of equals
            self.scores.remove(beaten)
            rivals.remove(beaten)
        self.arrays = self.arrays | arrays
        self.scores.append(Score(name))

    def forget(self, met: Iterable[str]) -> None:
        """Drop the numbers of those who have left the league, and whom no stream meets any more."""
        names = {score.name for score in self.scores} | set(met)
        self.arrays = {key: it for key, it in self.arrays.items() if rival_of(key) in names}

    def get_state(self) -> list[dict[str, Any]]:
        """The scores, as in JSON; `arrays` belong to the state too."""
        return [asdict(score) for score in self.scores]

    def set_state(
        self, arrays: Params, scores: Iterable[Score] | None, met: Collection[str]
    ) -> None:
        """Continue from a state of `get_state`.

        Args:
            arrays: hold those of the rivals.
            scores: of the opponents; None if ``--opponent`` has changed, so that only the current
                episodes go on.
            met: the opponents of the streams' current episodes.

        Raises:
            ValueError: a rival is missing, or is not what its name says.
        """
        rivals = list_rivals(arrays)
        if scores is not None:
            self.scores = list(scores)
        wanted = {score.name for score in self.scores} | set(met)
        if missing := wanted - {BUILTIN, SELF, *rivals}:
            raise ValueError(f"no numbers of the rivals {sorted(missing)}")
        for name, parts in rivals.items():
            self._check(name, parts)
        self.arrays = {key: array for key, array in arrays.items() if rival_of(key)}
        if scores is None:
            self.forget(met)

    def _check(self, name: str, parts: Params) -> None:
        """Refuse what kernels must not read.

        Raises:
            KeyError, ValueError, IndexError: it is no rival.
        """
        shapes = {part: array.shape for part, array in parts.items()}
        count, hidden = shapes["W1"][0], shapes["W2"][1]
        wanted = {
            "rows": (count,), "W1": (count, 2 * hidden), "scale": (count,),
            "W2": (4, hidden, 2), "b2": (4,),
        }  # fmt: skip
        if shapes != wanted or parts["rows"].max(initial=0) >= NUM_INPUTS:
            raise ValueError(f"a rival {name} of another network")
        if name_rival(parts) != name:
            raise ValueError(f"a rival {name} that is damaged: its hash differs")
