"""The records of games in progress that compiled code shares with its callers.

Compiled code changes them in place. They come in arrays: `RULES` [1]; games [N].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

GAME = np.dtype(
    [
        ("seed", np.int64),  # the game's seed in an environment
        ("episode", np.int64),  # the number of the episode with this seed
        ("is_on", np.int64),  # 0 if the episode has ended or none has started
        ("steps", np.int64),  # steps of the episode
        ("num_frames", np.int64),  # frames of the episode that count for the frame limit
        ("episode_frames", np.int64),  # frames of the episode, with its opening frames
        ("total_frames", np.int64),  # frames since the game was seeded
        ("held", np.int64, 2),  # the actions that the console holds: right side, left side
        ("points", np.int64, 2),  # points that the right side won and lost
        ("newest", np.int64),  # index of the newest field or picture
        # Results of the last step.
        ("reward", np.int64),  # the right side's
        ("is_over", np.int64),
        ("is_cut", np.int64),  # whether the episode has reached the frame limit
        ("may_end", np.int64),  # whether the next step may be the last
        ("fault", np.int64),  # the stop code if the console met something unsupported, else 0
    ]
)
"""A game in progress, between two steps. Its future depends on this and on its console's state.

It has no padding, whose bytes NumPy would not copy, so equal games have equal bytes.
"""

_MOST_USED = 2**62  # of a generator's words
WORDS = 1024  # the words that a twister keeps; a power of two, above 624

TWISTER = np.dtype(
    [
        ("words", np.uint32, WORDS),  # the last words; word n is at n modulo WORDS
        ("made", np.int64),  # number of words made so far, with the 624 that the seed gives
        ("used", np.int64),  # number of words used so far, with these 624
    ]
)
"""A generator, C++'s ``mt19937``, see `atari.steps.twister`."""

GENERATORS = ("opening", "coins", "console")  # of a `CHANCE`

CHANCE = np.dtype(
    [
        ("opening", TWISTER),  # decides the number of opening frames of each episode
        ("coins", TWISTER),  # decides in every frame whether the held action sticks
        ("console", TWISTER),  # decides the timer at each reset of the console
        ("lives", np.int64),  # the lives after the last step
        ("turn", np.int64),  # how far the held action turns a paddle in a frame, in ohm
    ]
)
"""What a game in an environment has besides `GAME`: its generators, as in ale-py, and so on."""

NOW = np.dtype(
    [
        ("moves", np.int64, 2),  # the actions of both sides for a step
        ("lives", np.int64, 2),  # the lives before the step, and now
        ("turns", np.int64, 2),  # how far the held and the new action turn a paddle, in ohm
        ("count", np.int64),  # the frames of the step; 0: as the rules and the uniforms say
        ("second", np.int64),  # the second player's reward for a step
    ]
)
"""What a console is told for a step, and tells."""

RULES = np.dtype(
    [
        # The addresses of the machine's compiled functions in this process; 0 without a machine.
        ("play_frames", np.int64),
        ("start_game", np.int64),
        ("state_size", np.int64),  # bytes at the machine's start that a game's future depends on
        ("draws", np.int64),  # what the machine draws, such as DRAW_PICTURE
        # 1 if every frame is drawn, because each is played alone and may be the newest one.
        ("draws_all", np.int64),
        ("takes_two", np.int64),  # 1 if the pictures of a step's last two frames are taken
        ("fewest_frames", np.int64),  # the fewest frames of a step
        ("most_frames", np.int64),
        ("max_frames", np.int64),  # the frame limit of an episode
        # The probability that a frame keeps the held action: right side, left side.
        ("sticky", np.float64, 2),
        ("first_action", np.int64),  # the action in an episode's first frame; 0: none
        ("max_noops", np.int64),  # an episode opens with fewer frames than this, or with none
        ("opens_as_on_macos", np.int64),  # 1 if their number is drawn as Apple's C++ does
        # The numbers that loading the cartridge takes from the console's generator, and the frames
        # that it counts; and the bytes of the cartridge's memory that a reset fills.
        ("loading_draws", np.int64),
        ("loading_frames", np.int64),
        ("filled_bytes", np.int64),
        ("coin_frames", np.int64),  # frames of a start that take coins, without those of a menu
        ("has_sticky_menu", np.int64),  # 1 if coins decide what sticks in a menu before a game
        ("first_mode", np.int64),  # the number of the game with which the cartridge is loaded
        ("counts_start", np.int64),  # 1 if the frames of a start count for the frame limit
        ("tosses_coins", np.int64),  # 1 if the game's own generator decides what sticks
        ("wastes_coins", np.int64),  # 1 if frames that an episode's last step lacks take coins
        ("is_continuous", np.int64),  # 1 if each action says how far it turns a paddle
        ("ends_at_lost_life", np.int64),  # 1 if an episode ends when a life is lost
        ("tells_lost_life", np.int64),  # 1 if a lost life is reported like an end
        ("clips_rewards", np.int64),  # 1 if a reward is at most 1 and at least −1
        ("idle", np.int64),  # the action of a side that does nothing
        ("num_sides", np.int64),
        # Where the second side's actions begin, and the bits by which they are shifted.
        ("second_at", np.int64),
        ("second_shift", np.int64),
        ("pays_second", np.int64),  # 1 if the second player has a reward of its own
    ]
)
"""The rules of a game for compiled code.

The machine's functions (`atari.machine.playing`, `atari.machine.resetting`) have C's calling
convention. They may run in any number of threads, each with its own machine; their results are
fields of that machine::

    void play_frames(machine, const uint8 *actions, int32 num_frames, int32 draws)
    void start_game(machine)
"""


def are_chances(chances: NDArray[np.void]) -> bool:
    """Whether the generators in these, [N] `CHANCE`, are those of a game."""
    for name in GENERATORS:
        made, used = chances[name]["made"], chances[name]["used"]
        if (used < 0).any() or (used > _MOST_USED).any() or (abs(made - used) > WORDS).any():
            return False
    return True


def aligned_zeros(*shape: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return zeros that start at a cache line and share no line with other arrays.

    So a row occupies no more lines than it needs, and no two threads slow each other down by
    writing to the same line.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + 256, np.uint8)
    begin = 192 - room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(shape)
