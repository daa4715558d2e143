"""The sparse gradient of the fast mode's loss, in pieces that threads can compute in parallel.

A minibatch takes two sparse matrix products with a dense part between them:

    Z = X W1             each step sums the rows of W1 at its inputs           `sum_rows`
    dZ from Z            outputs, loss, and back to the pre-activations        `differentiate`
    dW1 = Xᵀ dZ          each input sums the rows of dZ at its steps           `sum_rows`

X is a list of inputs for each step. `list_steps` turns it into a list of steps for each input, so
both products read rows and write each sum once. A piece is a range of steps or of inputs. No two
pieces write to the same memory, and the order of every sum depends only on the lists.

The output layer, W2 and b2 in `pixelpong.learn.gated`, is one matrix [O, 2H + 1] here: the weights
of all max(a, 0), the weights of all max(a, 0) b, and the bias. So the loops run over adjacent
memory, and the processor computes several sums at a time.

The code avoids what numba compiles slowly. Filling an array from another one takes four seconds to
compile; a new array, `max` or a four-value assignment takes a few tenths of a second.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel
from pixelpong.kernels.elementary import exp, log
from pixelpong.learn.ppo import LossStats


@kernel
def list_steps(indices, offsets, chosen, slots, inputs, starts, positions):  # type: ignore[no-untyped-def]
    """Turn the inputs of each step into the steps of each input.

    Args:
        indices, offsets: [N] and [T + 1] int32, the inputs of all steps, as in `Played`.
        chosen: [M] int64, the indices of the minibatch's steps.
        slots: [D] int32, scratch: the number of steps at an input, then its next free slot.
        inputs: [D], of the type of `indices`; changed: the inputs that are 1 at any chosen step,
            in ascending order.
        starts: [D + 1] int32; changed: the start of each such input's list, then the end.
        positions: [≥ number of entries] uint16; changed: for each such input, the positions in
            `chosen` of the steps at which it is 1, in ascending order.

    Returns K, the number of such inputs.
    """
    slots[:] = 0
    for m in range(len(chosen)):
        for k in range(offsets[chosen[m]], offsets[chosen[m] + 1]):
            slots[indices[k]] += 1
    count = end = 0
    for index in range(len(slots)):
        length = slots[index]
        if length > 0:
            inputs[count], starts[count], slots[index] = index, end, end
            count += 1
            end += length
    starts[count] = end
    for m in range(len(chosen)):
        for k in range(offsets[chosen[m]], offsets[chosen[m] + 1]):
            index = indices[k]
            positions[slots[index]] = m
            slots[index] += 1
    return count


@kernel
def sum_rows(source, rows, starts, stops, totals):  # type: ignore[no-untyped-def]
    """Multiply a matrix of zeros and ones by a dense one; each result row sums some source rows.

    Definition: ``X @ source``, where row m of X has its ones at ``rows[starts[m]:stops[m]]``.

    Args:
        source: [·, C].
        rows: [·], indices of rows in `source`.
        starts, stops: [M] int32.
        totals: [M, C]; changed.
    """
    for m in range(len(starts)):
        total, k, stop = totals[m], starts[m], stops[m]
        total[:] = 0
        # Adding eight rows at a time takes an eighth of the loads and stores of the sum.
        while k + 8 <= stop:
            r0, r1 = source[rows[k]], source[rows[k + 1]]
            r2, r3 = source[rows[k + 2]], source[rows[k + 3]]
            r4, r5 = source[rows[k + 4]], source[rows[k + 5]]
            r6, r7 = source[rows[k + 6]], source[rows[k + 7]]
            for i in range(len(total)):
                left, right = (r0[i] + r1[i]) + (r2[i] + r3[i]), (r4[i] + r5[i]) + (r6[i] + r7[i])
                total[i] += left + right
            k += 8
        while k < stop:
            r0 = source[rows[k]]
            for i in range(len(total)):
                total[i] += r0[i]
            k += 1


class Scratch(NamedTuple):
    """Room for the numbers of a step."""

    units: NDArray[Any]  # [2, 2H + 1]: activations, the last of which is 1, and sums
    # [3, O]: the outputs; log-probabilities and probabilities of the actions.
    outputs: NDArray[np.float64]


@kernel
def differentiate(W2, z, batch, weights, size, parts, scratch, dW2):  # type: ignore[no-untyped-def]
    """Compute the contribution of some steps to the gradient of a minibatch's mean loss.

    Definition: `pixelpong.learn.gated.read_out`, `pixelpong.learn.ppo.loss_gradient` and
    `pixelpong.learn.gated.backward`. For each step it computes the outputs y; the loss, whose
    gradient with respect to y replaces y; the gradient with respect to W2; and the gradient with
    respect to z, which replaces z. Each output is the sum of four partial sums, so the order is
    fixed and no addition waits for the previous one. There are A actions and O outputs.

    Args:
        W2: [O, 2H + 1], the output layer as above.
        z: [M', 2H], pre-activations, two adjacent ones per unit; replaced by their gradient.
        batch: `pixelpong.learn.ppo.Minibatch` [M'], these steps.
        weights: `pixelpong.learn.ppo.LossWeights`.
        size: the number of steps in the whole minibatch.
        parts: [A, ·] int64, see `pixelpong.learn.ppo.add_parts`.
        scratch: `Scratch`; changed.
        dW2: [O, 2H + 1]; replaced by the gradient with respect to the output layer.

    Returns `LossStats`, with sums over these steps instead of means.
    """
    dW2[:] = 0
    number, zero = z.dtype.type, z.dtype.type(0)
    units, quarter = z.shape[1] // 2, z.shape[1] // 4
    clip_coef, vf_coef, ent_coef = weights.clip_coef, weights.vf_coef, weights.ent_coef
    surrogates = squares = entropies = kl = clipped = 0.0
    h, lanes = scratch.units[0], scratch.units[1]
    y, logs, pi = scratch.outputs[0], scratch.outputs[1], scratch.outputs[2]
    num_actions, num_outputs = len(parts), len(W2)
    whole = num_outputs - num_outputs % 4
    num_parts, has_preferences = parts.shape[1], batch.preferences.shape[1] > 0
    for m in range(len(z)):
        row = z[m]
        # 1. The outputs.
        for i in range(units):
            a, b = row[2 * i], row[2 * i + 1]
            relu = a if a > zero else zero
            h[i], h[units + i] = relu, relu * b
        for output in range(num_outputs):
            w, total = W2[output], zero
            for i in range(quarter):
                j, k, n = quarter + i, 2 * quarter + i, 3 * quarter + i
                lanes[i] = (w[i] * h[i] + w[j] * h[j]) + (w[k] * h[k] + w[n] * h[n])
            for i in range(quarter):
                total += lanes[i]
            for i in range(4 * quarter, len(w)):
                total += w[i] * h[i]
            y[output] = total
        # 2. The policy.
        top = -math.inf
        for action in range(num_actions):
            logit = y[action]
            for k in range(num_parts):
                logit += y[parts[action, k]]
            if has_preferences:
                logit += batch.preferences[m, action]
            y[action] = logit
            top = logit if logit > top else top
        total_exp = entropy = 0.0
        for action in range(num_actions):
            total_exp += exp(y[action] - top)
        log_total = top + log(total_exp)
        for action in range(num_actions):
            logs[action] = y[action] - log_total
            pi[action] = exp(logs[action])
            entropy += pi[action] * logs[action]
        entropy = -entropy
        # 3. The loss, and its gradient with respect to the outputs.
        action, gain = batch.actions[m], batch.advantages[m]
        log_ratio = logs[action] - batch.log_probabilities[m]
        error = y[num_actions] - batch.targets[m]
        ratio, bound = exp(log_ratio), 1 + clip_coef if gain >= 0 else 1 - clip_coef
        is_clipped = ratio > bound if gain >= 0 else ratio < bound
        slope = 0.0 if is_clipped else -ratio * gain
        surrogates += (bound if is_clipped else ratio) * gain
        squares, entropies = squares + error * error, entropies + entropy
        kl, clipped = kl + (ratio - 1 - log_ratio), clipped + is_clipped
        for k in range(num_actions):
            y[k] = pi[k] * (ent_coef * (logs[k] + entropy) - slope) / size
        y[action] += slope / size
        y[num_actions] = vf_coef * error / size
        for output in range(num_actions + 1, num_outputs):
            y[output] = 0.0
        for k in range(num_actions):
            for n in range(num_parts):
                y[parts[k, n]] += y[k]
        # 4. Back to the weights and the pre-activations, four outputs at a time.
        for output in range(num_outputs):
            d = number(y[output])
            for i in range(dW2.shape[1]):
                dW2[output, i] += d * h[i]
        for i in range(2 * units):
            lanes[i] = zero
        for output in range(0, whole, 4):
            d0, d1 = number(y[output]), number(y[output + 1])
            d2, d3 = number(y[output + 2]), number(y[output + 3])
            for i in range(2 * units):
                left = d0 * W2[output, i] + d1 * W2[output + 1, i]
                lanes[i] += left + (d2 * W2[output + 2, i] + d3 * W2[output + 3, i])
        for output in range(whole, num_outputs):
            d0 = number(y[output])
            for i in range(2 * units):
                lanes[i] += d0 * W2[output, i]
        for i in range(units):
            relu, gated = lanes[i], lanes[units + i]
            row[2 * i] = relu + gated * row[2 * i + 1] if h[i] > zero else zero
            row[2 * i + 1] = gated * h[i]
    loss = vf_coef * squares / 2 - surrogates - ent_coef * entropies
    return LossStats(loss, squares, entropies, kl, clipped)
