"""The fast network: one gated hidden layer, a policy over three actions, and a value.

Formulas for inputs x [D], with H hidden units and ⊙ for the product unit by unit:

    a = W1[:, :, 0]ᵀ x,  b = W1[:, :, 1]ᵀ x    [H]  pre-activations
    h = (max(a, 0), max(a, 0) ⊙ b)             [H, 2]  hidden activations
    y = W2 · h + b2                            [4]  three logits, then the value
    π = softmax(y₀, y₁, y₂)                    [3]  probabilities of `ACTIONS`
    v = y₃                                     value: the expected outcome of the point

In Pong, two objects matter: the ball and the paddle. A product of two sums of pixels is large if
both objects are at certain positions; a plain layer has to imitate that with sums.
Source: gates as in Dauphin et al. (2017), with a ReLU instead of the sigmoid.

The two numbers of a unit are adjacent in memory. All functions compute in the type of the
parameters, float32 or float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import Params

NUM_OUTPUTS = 4
# Sets the scale of the first layer. At each step 75 to 80 inputs are 1; this is a round number
# above that.
_TYPICAL_INPUTS = 100


def init_params(
    rng: np.random.Generator, num_inputs: int, hidden: int, dtype: str = "float32"
) -> Params:
    """Draw parameters: pre-activations have a deviation of about 1, and outputs are near 0."""
    W1 = rng.standard_normal((num_inputs, hidden, 2)) / np.sqrt(_TYPICAL_INPUTS)
    W2 = 0.01 * rng.standard_normal((NUM_OUTPUTS, hidden, 2))
    return {
        "W1": W1.astype(dtype),
        "W2": W2.astype(dtype),
        "b2": np.zeros(NUM_OUTPUTS, dtype),
    }


def forward(params: Params, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute outputs y [T, 4] and pre-activations z [T, H, 2] from inputs x [T, D].

    The parameters are W1 [D, H, 2], W2 [4, H, 2], b2 [4].
    """
    assert x.ndim == 2, x.shape
    W1 = params["W1"]
    z = (x @ W1.reshape(len(W1), -1)).reshape(len(x), *W1.shape[1:])
    return read_out(params, z), z


def read_out(params: Params, z: NDArray[Any]) -> NDArray[Any]:
    """Compute outputs y [T, 4] from pre-activations z [T, H, 2]; parameters as in `forward`."""
    h = _activate(z).reshape(len(z), -1)
    return h @ params["W2"].reshape(NUM_OUTPUTS, -1).T + params["b2"]


def backward(params: Params, x: NDArray[Any], z: NDArray[Any], dy: NDArray[Any]) -> Params:
    """Compute the parameters' gradient from `dy`, the gradient with respect to the outputs.

        dW2 = dyᵀ h
        dh  = dy W2
        da  = (dh₀ + dh₁ ⊙ b) where a > 0, else 0
        db  = dh₁ ⊙ max(a, 0)
        dW1 = xᵀ (da, db)

    x is [T, D], z is [T, H, 2] from `forward`, and dy is [T, 4].
    """
    assert dy.shape == (len(x), NUM_OUTPUTS), dy.shape
    W1, W2 = params["W1"], params["W2"]
    dh = (dy @ W2.reshape(NUM_OUTPUTS, -1)).reshape(z.shape)
    a, b = z[..., 0], z[..., 1]
    da = (dh[..., 0] + dh[..., 1] * b) * (a > 0)
    dz = np.stack([da, dh[..., 1] * np.maximum(a, 0)], axis=-1)
    return {
        "W1": (x.T @ dz.reshape(len(x), -1)).reshape(W1.shape),
        "W2": (dy.T @ _activate(z).reshape(len(x), -1)).reshape(W2.shape),
        "b2": dy.sum(axis=0),
    }


def _activate(z: NDArray[Any]) -> NDArray[Any]:
    relu = np.maximum(z[..., 0], 0)
    return np.stack([relu, relu * z[..., 1]], axis=-1)
