"""The records that kernels share with their callers.

A kernel changes them in place. They come in arrays: the `RULES`, [1]; games or streams, [N]; a
record for each step, [T].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pixelpong.atari.machine import STATE
from pixelpong.env.features import NUM_FEATURES, PAIR_COLUMNS, PAIR_ROWS
from pixelpong.env.field import FIELD_SIZE
from pixelpong.items import ACTIONS

# The most that a step of the gated network can have: a feature stayed, appeared or vanished.
MAX_INPUTS = NUM_FEATURES + 1
NUM_MARKS = NUM_FEATURES + PAIR_ROWS * PAIR_COLUMNS  # features, and the cells that form pairs
MAX_POINTS = 48  # room for the 41 of a game to 21

_CONSOLE = STATE.itemsize

GAME = np.dtype(
    [
        ("seed", np.int64),  # of an environment's game
        ("episode", np.int64),  # number of the episode, of this seed
        ("is_on", np.int64),  # 0 if the episode has ended or none has begun
        ("steps", np.int64),  # since the episode began
        ("num_frames", np.int64),  # since it began, without its opening frames
        ("episode_frames", np.int64),  # since it began
        ("total_frames", np.int64),  # since the game was seeded
        ("held", np.int64, 2),  # actions that the console holds: the right side's, the left's
        ("points", np.int64, 2),  # won and lost by the right side
        ("newest", np.int64),  # index of its newest field or picture
        # Results of the last step.
        ("reward", np.int64),  # the right side's
        ("is_over", np.int64),
        ("is_cut", np.int64),  # whether the episode has reached the limit of frames
        ("may_end", np.int64),  # whether the next step may be the last
        ("fault", np.int64),  # the stop code if the console met something not covered, or 0
        ("console", np.uint8, _CONSOLE),  # `STATE`
        ("unused", np.uint8, -_CONSOLE % 8),  # aligns the next record
    ]
)
"""A game in progress, between two steps: everything its future depends on but what is seen of it.

It has no gaps, whose bytes NumPy would not copy, so that equal games have equal bytes.
"""

BEGIN = np.dtype([("seed", np.int64), ("episode", np.int64), ("waits", np.int64)])
"""A game's next episode, and its number of opening frames without a press; the first episode of a
seed is episode 0."""

RULES = np.dtype(
    [
        # Address in this process of the machine's compiled function; 0 if there is no machine.
        ("play_frames", np.int64),
        ("draws", np.int64),  # what the machine draws: DRAW_FIELD or DRAW_PICTURE
        ("takes_two", np.int64),  # 1 if the pictures of a step's last two frames are taken
        ("fewest_frames", np.int64),  # of a step
        ("most_frames", np.int64),
        ("max_frames", np.int64),  # of an episode
        # For each side, the right one first: the probability that a frame keeps the held action.
        ("sticky", np.float64, 2),
        ("first_action", np.int64),  # of an episode, in its first frame; 0: none
        ("idle", np.int64),  # action of a side that stays: 0, or SERVE in the two-player game
        ("num_sides", np.int64),
    ]
)
"""The rules of a game for compiled code.

The machine's function (`pixelpong.atari.playing`) has C's calling convention and may run in any
number of threads, each with its own machine, whose fields are the results::

    void play_frames(machine, const uint8 *actions, int32 num_frames, int32 draws)
"""

# The statistics of the learning side, from which `pixelpong.items.Episode` is made.
TALLY = np.dtype(
    [
        ("entropy", np.float64),  # of the policy, in nats, summed over the steps
        ("ups", np.int32),  # steps at which the action was UP
        ("points", np.int32),  # finished points
        ("ends", np.int32, MAX_POINTS),  # the step at which each point ended
        ("rewards", np.int8, MAX_POINTS),  # −1 or 1
    ]
)

STREAM = np.dtype(
    [
        ("game", GAME),
        ("is_new", np.int64),  # 1 if the console has drawn a field that is not in `fields` yet
        # Each side's last action chosen, an index in `ACTIONS`: the right one's, the left one's.
        ("last_actions", np.int64, 2),
        # The field in the newest and the previous frame, in either order: bit x of row y. At the
        # start of an episode the previous one is empty.
        ("fields", np.uint64, (2, FIELD_SIZE, 2)),
        ("tally", TALLY),
    ]
)
"""A game as networks play it, between two calls; all zeros before its start. It has no gaps."""


def are_fields(fields: NDArray[np.uint64]) -> bool:
    """Whether no bit is set beside the 80 columns of fields, [..., 80, 2]."""
    return not (fields[..., 1] >> np.uint64(FIELD_SIZE - 64)).any()


def are_streams(streams: NDArray[np.void]) -> bool:
    """Whether compiled code stays inside its arrays with these streams, [N] `STREAM`."""
    newest, actions = streams["game"]["newest"], streams["last_actions"]
    are_indices = np.isin(newest, (0, 1)).all() and np.isin(actions, range(len(ACTIONS))).all()
    return bool(are_indices) and are_fields(streams["fields"])


# --- what is recorded of a step ---

# A step of the classic mode.
PLAIN_STEP = np.dtype(
    [
        ("up_probability", np.float64),  # of the policy
        ("entropy", np.float64),  # of the policy, in nats
        ("reward", np.float32),  # −1, 0 or +1
        ("action", np.int8),  # UP or DOWN
        ("is_end", np.bool_),  # whether a point ended
    ],
    align=True,
)

# A step of the fast mode.
GATED_STEP = np.dtype(
    [
        ("log_probability", np.float64),  # of the action
        ("value", np.float64),  # of the observation
        ("entropy", np.float64),  # of the policy, in nats
        ("reward", np.float32),  # −1, 0 or +1
        ("action", np.int8),  # an index in `ACTIONS`
        ("is_end", np.bool_),  # whether a point ended
    ],
    align=True,
)


def aligned_zeros(*shape: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros that begin at a cache line and share none: a row takes no more of them than it needs,
    and no two threads, which would slow each other, write to the same one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + 256, np.uint8)
    begin = 192 - room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(shape)
