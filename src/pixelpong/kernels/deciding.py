"""How a network decides, given its inputs: parts of the kernels that play."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.items import NUM_PIXELS
from pixelpong.kernels.elementary import exp, log


class PlainParams(NamedTuple):
    """Parameters of the classic network."""

    W1: NDArray[Any]  # [NUM_PIXELS, H]
    W2: NDArray[Any]  # [H]


class GatedParams(NamedTuple):
    """Parameters of the gated network; the two columns of a unit are next to each other."""

    W1: NDArray[Any]  # [D, 2H]
    W2: NDArray[Any]  # [O, 2H]
    b2: NDArray[Any]  # [O]


class Layers(NamedTuple):
    """The gated network's activations at one step; changed."""

    z: NDArray[Any]  # [2H], the sums of the first layer, in the parameters' type
    lanes: NDArray[Any]  # [8], partial sums of an output, in the parameters' type
    outputs: NDArray[np.float64]  # [O]
    log_probabilities: NDArray[np.float64]  # [A]
    probabilities: NDArray[np.float64]  # [A]


# --- the classic network ----------------------------------------------------------------------


@kernel_part
def up_probability(params, indices, start, stop, hidden, t):  # type: ignore[no-untyped-def]
    """Compute the probability of UP for the observation ``indices[start:stop]``.

    Definition: `pixelpong.learn.network.forward`. Writes the hidden activations to ``hidden[t]``.
    """
    W1, W2, h = params.W1, params.W2, hidden[t]
    for unit in range(len(h)):
        h[unit] = 0
    for k in range(start, stop):
        index = indices[k]
        if index < NUM_PIXELS:
            for unit in range(len(h)):
                h[unit] += W1[index, unit]
        else:
            for unit in range(len(h)):
                h[unit] -= W1[index - NUM_PIXELS, unit]
    for unit in range(len(h)):
        if h[unit] < 0:
            h[unit] = 0
    # Four partial sums in a fixed order; with a single sum, each addition would wait for the last.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(h) - len(h) % 4
    for i in range(0, whole, 4):
        s0 += h[i] * W2[i]
        s1 += h[i + 1] * W2[i + 1]
        s2 += h[i + 2] * W2[i + 2]
        s3 += h[i + 3] * W2[i + 3]
    for i in range(whole, len(h)):
        s0 += h[i] * W2[i]
    z = (s0 + s1) + (s2 + s3)
    smaller = exp(-abs(z))
    return (1.0 if z >= 0 else smaller) / (1.0 + smaller)


# --- the gated network ------------------------------------------------------------------------


@kernel_part
def read_out(params, layers, indices, start, stop):  # type: ignore[no-untyped-def]
    """Compute the outputs from the inputs ``indices[start:stop]``."""
    W1, W2, b2 = params.W1, params.W2, params.b2
    z, lanes = layers.z, layers.lanes
    for i in range(len(z)):
        z[i] = 0
    k = start
    while k + 4 <= stop:  # four rows at a time, as in `pixelpong.kernels.sum_rows`
        r0, r1 = W1[indices[k]], W1[indices[k + 1]]
        r2, r3 = W1[indices[k + 2]], W1[indices[k + 3]]
        for i in range(len(z)):
            z[i] += (r0[i] + r1[i]) + (r2[i] + r3[i])
        k += 4
    while k < stop:
        row = W1[indices[k]]
        for i in range(len(z)):
            z[i] += row[i]
        k += 1
    for i in range(0, len(z), 2):
        if z[i] < 0:
            z[i] = 0
        z[i + 1] *= z[i]
    whole = len(z) - len(z) % 8
    for output in range(len(W2)):
        # Eight partial sums in a fixed order; with one, each addition would wait for the last.
        for lane in range(8):
            lanes[lane] = 0
        for i in range(0, whole, 8):
            for lane in range(8):
                lanes[lane] += W2[output, i + lane] * z[i + lane]
        for i in range(whole, len(z)):
            lanes[0] += W2[output, i] * z[i]
        left = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        right = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        layers.outputs[output] = np.float64(left) + np.float64(right) + b2[output]


@kernel_part
def choose(layers, step, uniform):  # type: ignore[no-untyped-def]
    """Sample an action from the softmax of the outputs; record it with its probability."""
    y, logs, p = layers.outputs, layers.log_probabilities, layers.probabilities
    last = len(p) - 1
    highest, total, entropy, best = y[0], 0.0, 0.0, last
    for action in range(1, len(p)):
        if y[action] > highest:
            highest = y[action]
    for action in range(len(p)):
        total += exp(y[action] - highest)
    log_total = highest + log(total)
    for action in range(len(p)):
        logs[action] = y[action] - log_total
        p[action] = exp(logs[action])
        entropy += p[action] * logs[action]
        if y[last - action] == highest:
            best = last - action
    if uniform >= 0:
        best, below = 0, p[0]
        while best < last and uniform >= below:
            best += 1
            below += p[best]
    step.action, step.log_probability, step.entropy = best, logs[best], -entropy


@kernel_part
def conclude(layers, record, stream, side, uniform, t, stop):  # type: ignore[no-untyped-def]
    """Record a decision and the value, or only the value if `uniform` is above 1."""
    step = record.steps[t]
    step.value = layers.outputs[len(layers.probabilities)]
    if uniform <= 1:
        record.offsets[t + 1] = stop
        choose(layers, step, uniform)
        stream.last_actions[side] = step.action
    else:
        record.offsets[t + 1] = record.offsets[t]
