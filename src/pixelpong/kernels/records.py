"""The records that kernels share with their callers.

A kernel changes them in place. Each is the only entry of an array, [1]; steps have one entry each.
"""

from __future__ import annotations

import numpy as np

from pixelpong.env.features import NUM_FEATURES, PAIR_COLUMNS, PAIR_ROWS

MAX_INPUTS = 2 * NUM_FEATURES + 1  # the most that a step of the gated network can have
NUM_MARKS = NUM_FEATURES + PAIR_ROWS * PAIR_COLUMNS  # features, and the cells that form pairs

# What a player remembers from one step to the next.
MEMORY = np.dtype(
    [
        # Observation: two frames as lists of active pixels, each the newest in turn.
        ("is_new", np.int64),  # 1 if the field shows a frame that is not in the lists yet
        ("newest", np.int64),  # which of the two lists, 0 or 1
        ("num_now", np.int64),  # pixels in it; −1 if there is no frame yet
        ("num_before", np.int64),  # pixels in the other one; −1 likewise
        ("num_features", np.int64),  # marked in the frame before; −1 if still to be found
        ("last_action", np.int64),  # the last one chosen, as a place in `ACTIONS`
        # The game.
        ("wanted", np.int64),  # the chosen action, in Gymnasium's numbers
        ("held", np.int64),  # the action that the console holds, in Gymnasium's numbers
        ("num_frames", np.int64),  # frames since the episode began
        ("is_over", np.int64),  # 1 if the episode has ended
        ("fault", np.int64),  # negative if the console met something it does not cover, see `GAME`
        ("step", np.int64),  # the next step's number in the record
    ]
)

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
        ("serve", np.int64),  # added to each action: SERVE in the game for two, otherwise 0
    ]
)
"""The game that compiled code plays.

The console's function has C's calling convention and may run in any number of threads, each with
its own machine::

    int32 play_frames(machine, const uint8 *actions, int32 num_frames, int32 draws)

It emulates one frame per action, fewer if the game ends, and with ``draws`` = 1 draws the field of
the last one. It returns ``frames << 16 | is_over << 8 | reward + 128``, or a negative number if the
machine met something it does not cover.
"""

# A step of the classic mode.
PLAIN_STEP = np.dtype(
    [
        ("up_probability", np.float64),  # the policy's
        ("reward", np.float32),  # −1, 0 or +1
        ("action", np.int8),  # UP or DOWN
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
        ("action", np.int8),  # a place in `ACTIONS`
        ("is_end", np.bool_),  # whether a point ended
    ],
    align=True,
)
