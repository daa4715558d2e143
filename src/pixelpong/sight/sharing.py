"""Which cells of a picture caused a decision: the inputs' contributions, shared among lit cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.sight.blobs import COLUMNS, ROWS
from pixelpong.sight.view import NUM_FEATURES, View


def share_among_cells(
    now: View, before: View | None, inputs: NDArray[Any], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Divide the contribution of each input equally among the lit cells that turn it on, [105, 80].

    These are cells of the newest frame, or of the one before if the feature vanished. How far a
    blob moved, and where the player is, is shared by the cells of the blob. The last action gives
    nothing. `shares` is the contribution of each of the `inputs`.
    """
    worth = np.zeros(3 * NUM_FEATURES + 18)
    worth[inputs] = shares
    stayed, appeared, vanished = worth[: 3 * NUM_FEATURES].reshape(3, NUM_FEATURES)
    cells = np.zeros(ROWS * COLUMNS)
    for view, worths in ((now, stayed + appeared), (before, vanished)):
        if view:
            features, indices = np.unique(view.links, axis=0).T
            counts = np.bincount(features, minlength=NUM_FEATURES)
            np.add.at(cells, indices, worths[features] / counts[features])
    return cells.reshape(ROWS, COLUMNS)
