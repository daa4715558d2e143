"""Who plays the second side of games: what `Games` needs of them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Opponents(Protocol):
    """The players of the second side of N games."""

    record: np.dtype[Any]  # of what one of them remembers between two steps
    fingerprint: str  # names all that their moves depend on

    def are_sound(self, records: NDArray[np.void]) -> bool:
        """Whether they can continue from records that a program has given."""

    def decide(
        self,
        frames: NDArray[np.uint8],
        uniforms: NDArray[np.float64],
        records: NDArray[np.void],
        is_on: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Choose the console's action of each game in progress, [N].

        Args:
            frames: [N, rows, 160], the newest frames.
            uniforms: [N], a random number for each.
            records: [N] `record`; changed in games in progress.
            is_on: [N], whether a game is in progress.
        """
