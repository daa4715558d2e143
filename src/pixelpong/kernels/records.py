"""The records that kernels share with their callers.

A kernel changes them in place. They come in arrays: one `GAME`, [1]; the streams of an item, [N];
a record for each step, [T]. Of many games at once, each is a row of `PLACE`, [N].
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

# An episode in progress.
MEMORY = np.dtype(
    [
        ("is_on", np.int64),  # 0 if the episode has ended or none has begun
        ("steps", np.int64),  # decisions since it began
        ("num_frames", np.int64),  # frames since it began
        ("is_new", np.int64),  # 1 if the console has drawn a field that is not in `fields` yet
        ("newest", np.int64),  # which of the two `fields`, 0 or 1
        ("fault", np.int64),  # the stop code if the console met something not covered, or 0
    ]
)

# One side of an episode; actions are in Gymnasium's numbers.
SIDE = np.dtype(
    [
        ("last_action", np.int64),  # the last action chosen, as an index in `ACTIONS`
        ("wanted", np.int64),  # the last action chosen
        ("held", np.int64),  # the action that the console holds
    ]
)

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
        ("memory", MEMORY),
        ("sides", SIDE, 2),  # the right one, then in the two-player game the left one
        # The field in the newest and the previous frame, in either order (`newest`): bit x of row
        # y. At the start of an episode the previous one is empty.
        ("fields", np.uint64, (2, FIELD_SIZE, 2)),
        ("tally", TALLY),
        ("console", np.uint8, STATE.itemsize),  # a `STATE`
        ("unused", np.uint8, -STATE.itemsize % 8),  # so that the next stream is aligned
    ]
)
"""A stream between two calls: everything its future depends on; all zeros before its start.

It has no gaps, whose bytes NumPy would not copy, so that equal streams have equal bytes.
"""


def are_fields(fields: NDArray[np.uint64]) -> bool:
    """Whether no bit is set beside the 80 columns of fields, [..., 80, 2]."""
    return not (fields[..., 1] >> np.uint64(FIELD_SIZE - 64)).any()


def are_streams(streams: NDArray[np.void]) -> bool:
    """Whether compiled code stays inside its arrays with these streams, [N] `STREAM`."""
    newest, actions = streams["memory"]["newest"], streams["sides"]["last_action"]
    are_indices = np.isin(newest, (0, 1)).all() and np.isin(actions, range(len(ACTIONS))).all()
    return bool(are_indices) and are_fields(streams["fields"])


GAME = np.dtype(
    [
        # Addresses in this process.
        ("play_frames", np.int64),  # of the console's compiled function; 0 if there is none
        ("machine", np.int64),  # of the machine that it plays on
        ("actions", np.int64),  # of the actions of a step's frames, uint8
        # The protocol.
        ("fewest_frames", np.int64),  # of a step
        ("most_frames", np.int64),
        ("max_frames", np.int64),  # of an episode
        ("sticky", np.float64),  # probability that a frame keeps the held action
        ("serve", np.int64),  # added to each action: SERVE in the two-player game, otherwise 0
    ]
)
"""A game for compiled code to play.

The console's function (`pixelpong.atari.playing`) has C's calling convention and may run in any
number of threads, each with its own machine, whose fields are the results::

    void play_frames(machine, const uint8 *actions, int32 num_frames, int32 draws)
"""

# --- many games at once, of `pixelpong.kernels.stepping` ---

PLACE = np.dtype(
    [
        ("seed", np.int64),
        ("episode", np.int64),  # of the seed, from 0 on
        ("steps", np.int64),  # of the episode
        ("is_on", np.int64),  # 0 once the episode has ended
        ("held", np.int64, 2),  # the actions that the console holds: the right side's, the left's
        ("num_frames", np.int64),  # of the episode, without its opening frames
        ("episode_frames", np.int64),  # with them
        ("total_frames", np.int64),  # since it was seeded
        ("newest", np.int64),  # which of its pictures or fields is the newest
        ("points", np.int64, 2),  # won and lost by the right side
        ("may_end", np.int64),  # 1 if the next step may be the last
        ("reward", np.int64),  # of the last step, as all that follows
        ("is_over", np.int64),
        ("is_cut", np.int64),  # it reached the limit of frames
        ("fault", np.int64),  # the stop code if the console met something not covered, or 0
    ]
)
"""A game between two steps, besides its console and what it shows."""

BEGIN = np.dtype([("seed", np.int64), ("episode", np.int64), ("waits", np.int64)])
"""The next episode of a game, and with how many frames without a press it begins; the first episode
of a seed is episode 0."""

GAMES = np.dtype(
    [
        # Addresses: the console's compiled function; this thread's machines and actions.
        ("play_frames", np.int64),
        ("machine", np.int64, 2),
        ("actions", np.int64),
        # This thread's share: which it is, its first game, and the game after its last one.
        ("share", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        # The rules.
        ("fewest_frames", np.int64),  # of a step
        ("most_frames", np.int64),
        ("max_frames", np.int64),  # of an episode
        ("sticky", np.float64),  # probability that a frame keeps the held action
        ("first_action", np.int64),  # an action for the first frame of an episode, or −1
        ("no_action", np.int64),  # of a side that presses nothing
        ("num_sides", np.int64),
        ("draws_pictures", np.int64),  # 1 if the console draws pictures, 0 if it draws fields
        ("takes_two", np.int64),  # 1 if it takes the pictures of the last two frames of a step
        ("goes_on", np.int64),  # 1 if the next episode begins in the step in which one ends
    ]
)

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


def unshared(*shape: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros that begin at a cache line and share none: a row takes no more of them than it needs,
    and no two threads, which would slow each other, write to the same one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + 256, np.uint8)
    begin = 192 - room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(shape)
