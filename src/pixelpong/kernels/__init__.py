"""Kernels: sparse, compiled by numba, in a fixed order of summation.

Each kernel has its definition in `pixelpong.learn` or `pixelpong.env` and is tested against it.
They agree to within 1e-4 of the largest entry in float32 and 1e-11 in float64. They are not equal,
because kernels sum only over active inputs, in a different order from a matrix product. Only the
kernels in `pixelpong.kernels.stepping` have no definition here; they are tested against ale-py.

They do not use ``fastmath``: the order of a sum is part of the promise "same seed, same bits".
Numba compiles the kernels once per machine; `pixelpong.kernels.compiling` says where they are kept.
"""

from pixelpong.kernels.observing import MAX_ACTIVE as MAX_ACTIVE
from pixelpong.kernels.optimizer import adam_rows as adam_rows
from pixelpong.kernels.optimizer import rmsprop as rmsprop
from pixelpong.kernels.optimizer import sum_of_squares as sum_of_squares
from pixelpong.kernels.playing import play_gated as play_gated
from pixelpong.kernels.playing import play_plain as play_plain
from pixelpong.kernels.ppo import differentiate as differentiate
from pixelpong.kernels.ppo import list_steps as list_steps
from pixelpong.kernels.ppo import sum_rows as sum_rows
from pixelpong.kernels.records import CHANCE as CHANCE
from pixelpong.kernels.records import GAME as GAME
from pixelpong.kernels.records import GATED_STEP as GATED_STEP
from pixelpong.kernels.records import MAX_INPUTS as MAX_INPUTS
from pixelpong.kernels.records import NOW as NOW
from pixelpong.kernels.records import NUM_MARKS as NUM_MARKS
from pixelpong.kernels.records import PLAIN_STEP as PLAIN_STEP
from pixelpong.kernels.records import RULES as RULES
from pixelpong.kernels.records import STREAM as STREAM
from pixelpong.kernels.records import aligned_zeros as aligned_zeros
from pixelpong.kernels.records import are_chances as are_chances
from pixelpong.kernels.records import are_fields as are_fields
from pixelpong.kernels.records import are_streams as are_streams
from pixelpong.kernels.reinforce import add_rows as add_rows
from pixelpong.kernels.reinforce import discounted_returns as discounted_returns
from pixelpong.kernels.reinforce import episode_gradient as episode_gradient
from pixelpong.kernels.stepping import LEAVE as LEAVE
from pixelpong.kernels.stepping import NEVER as NEVER
from pixelpong.kernels.stepping import NEXT_STEP as NEXT_STEP
from pixelpong.kernels.stepping import RESET as RESET
from pixelpong.kernels.stepping import SAME_STEP as SAME_STEP
from pixelpong.kernels.stepping import SKIP as SKIP
from pixelpong.kernels.stepping import STEPS as STEPS
