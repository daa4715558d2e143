"""The fast network: one gated hidden layer, a policy over A actions, and a value.

Formulas for inputs x [D], with H hidden units, O outputs and ⊙ for the product unit by unit:

    a = W1[:, :, 0]ᵀ x,  b = W1[:, :, 1]ᵀ x    [H]  pre-activations
    h = (max(a, 0), max(a, 0) ⊙ b)             [H, 2]  hidden activations
    y = W2 · h + b2                            [O]  logits of the actions, then the value
    π = softmax(y₀ … y_{A−1})                  [A]  probabilities of the actions
    v = y_A                                    value: the expected outcome of the point

In Pong there are three actions, and O is 4. In other games, the outputs after the value are parts
of actions, which are added to the logits first (`pixelpong.learn.ppo`).

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


def init_params(
    rng: np.random.Generator,
    num_inputs: int,
    num_outputs: int,
    hidden: int,
    dtype: str = "float32",
    *,
    typical_inputs: int,
) -> Params:
    """Draw parameters: pre-activations have a deviation of about 1, and outputs are near 0.

    `typical_inputs` is the number of inputs that are 1 at a step, which sets the scale.
    """
    W1 = rng.standard_normal((num_inputs, hidden, 2)) / np.sqrt(typical_inputs)
    W2 = 0.01 * rng.standard_normal((num_outputs, hidden, 2))
    return {
        "W1": W1.astype(dtype),
        "W2": W2.astype(dtype),
        "b2": np.zeros(num_outputs, dtype),
    }


def forward(params: Params, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute outputs y [T, O] and pre-activations z [T, H, 2] from inputs x [T, D].

    The parameters are W1 [D, H, 2], W2 [O, H, 2], b2 [O].
    """
    assert x.ndim == 2, x.shape
    W1 = params["W1"]
    z = (x @ W1.reshape(len(W1), -1)).reshape(len(x), *W1.shape[1:])
    return read_out(params, z), z


def read_out(params: Params, z: NDArray[Any]) -> NDArray[Any]:
    """Compute outputs y [T, O] from pre-activations z [T, H, 2]; parameters as in `forward`."""
    h = _activate(z).reshape(len(z), -1)
    return h @ params["W2"].reshape(len(params["b2"]), -1).T + params["b2"]


def backward(params: Params, x: NDArray[Any], z: NDArray[Any], dy: NDArray[Any]) -> Params:
    """Compute the parameters' gradient from `dy`, the gradient with respect to the outputs.

        dW2 = dyᵀ h
        dh  = dy W2
        da  = (dh₀ + dh₁ ⊙ b) where a > 0, else 0
        db  = dh₁ ⊙ max(a, 0)
        dW1 = xᵀ (da, db)

    x is [T, D], z is [T, H, 2] from `forward`, and dy is [T, O].
    """
    assert dy.shape == (len(x), len(params["b2"])), dy.shape
    W1, W2 = params["W1"], params["W2"]
    dh = (dy @ W2.reshape(len(W2), -1)).reshape(z.shape)
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
