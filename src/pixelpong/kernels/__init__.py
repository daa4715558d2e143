"""Kernels: sparse, compiled by numba, in a fixed order of summation.

Each kernel has its definition in `pixelpong.learn` or `pixelpong.pong` and is tested against it.
They agree to within 1e-4 of the largest entry in float32 and 1e-11 in float64. They are not equal,
because kernels sum only over active inputs, in a different order from a matrix product. Only the
kernels in `pixelpong.atari.steps.stepping` have no definition here; they are tested against ale-py.

They do not use ``fastmath``: the order of a sum is part of the promise "same seed, same bits".
Numba compiles the kernels once per machine; see `pixelpong.atari.steps.compiling`.
"""
