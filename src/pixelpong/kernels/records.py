"""The records that kernels share with their callers, besides those of the games.

A kernel changes them in place. They come in arrays: streams [N]; step records [T].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import KEPT_SIZE, STATE
from pixelpong.atari.steps.records import GAME
from pixelpong.items import ACTIONS
from pixelpong.kernels.viewing import VIEW_FIELDS
from pixelpong.pong.features import NUM_FEATURES, PAIR_COLUMNS, PAIR_ROWS
from pixelpong.pong.field import FIELD_SIZE
from pixelpong.pong.preprocess import are_fields

# The most inputs a step of the gated network can have: each feature has stayed, appeared or
# vanished, and there is the last action.
MAX_INPUTS = NUM_FEATURES + 1
NUM_MARKS = NUM_FEATURES + PAIR_ROWS * PAIR_COLUMNS  # the features and the cells of pairs
MAX_POINTS = 48  # a game to 21 has at most 41 points

MAX_ACTIONS = 18

# The statistics of Pong's learning side; `pixelpong.items.Episode` is made from them.
TALLY = np.dtype(
    [
        ("entropy", np.float64),  # entropy of the policy in nats, summed over the steps
        ("ups", np.int32),  # number of steps with the action UP
        ("points", np.int32),  # finished points
        ("ends", np.int32, MAX_POINTS),  # the step at which each point ended
        ("rewards", np.int8, MAX_POINTS),  # −1 or 1
    ]
)


def _make_stream(size: int, seen: list[Any], tally: np.dtype[Any]) -> np.dtype[Any]:
    """Make the record of a game as networks play it, between two calls.

    It is all zeros before the start, and has no padding. `size` is that of the console's state;
    `seen` has the fields for what the network saw, `tally` the statistics of the episode.
    """
    return np.dtype(
        [
            ("game", GAME),
            ("console", np.uint8, size),
            ("unused", np.uint8, -size % 8),  # aligns the next field
            ("is_new", np.int64),  # 1 if the console has drawn something that is not yet seen
            # The last action that each side chose, an index: right side, left side.
            ("last_actions", np.int64, 2),
            *seen,
            ("tally", tally),
        ]
    )


# Pong: the fields of the last two frames; `newest` says which is newer. Bit x of row y is a pixel.
# At the start of an episode the previous field is empty.
STREAM = _make_stream(STATE.itemsize, [("fields", np.uint64, (2, FIELD_SIZE, 2))], TALLY)
# Other games, for which a network also has preferences, see `pixelpong.learn.ppo`.
VIEW_STREAM = _make_stream(
    KEPT_SIZE,
    [("lives", np.int64), ("preferences", np.float64, MAX_ACTIONS), *VIEW_FIELDS],
    np.dtype([("entropy", np.float64)]),
)


def are_streams(streams: NDArray[np.void]) -> bool:
    """Whether these streams, [N] `STREAM`, keep compiled code inside its arrays."""
    newest, actions = streams["game"]["newest"], streams["last_actions"]
    are_indices = np.isin(newest, (0, 1)).all() and np.isin(actions, range(len(ACTIONS))).all()
    return bool(are_indices) and are_fields(streams["fields"])


# --- records of steps ---

# One step of the classic mode.
PLAIN_STEP = np.dtype(
    [
        ("up_probability", np.float64),  # probability of UP under the policy
        ("entropy", np.float64),  # entropy of the policy, in nats
        ("reward", np.float32),  # −1, 0 or +1
        ("action", np.int8),  # UP or DOWN
        ("is_end", np.bool_),  # whether a point ended
    ],
    align=True,
)

# One step of the fast mode.
GATED_STEP = np.dtype(
    [
        ("log_probability", np.float64),  # log-probability of the action
        ("value", np.float64),  # estimated value of the observation
        ("entropy", np.float64),  # entropy of the policy, in nats
        ("reward", np.float32),  # in Pong, −1, 0 or +1
        ("action", np.int8),  # an index among the actions
        ("is_end", np.bool_),  # whether a point ended, or in other games a life
    ],
    align=True,
)
