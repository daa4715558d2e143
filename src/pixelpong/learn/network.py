"""The policy network: 6,400 inputs, one hidden ReLU layer, and the probability of moving up.

Formulas for an observation x [D], with D inputs and H hidden units:

    a = W1ᵀ x         [H]   pre-activations
    h = max(a, 0)     [H]   hidden activations
    z = W2 · h              logit
    p = 1 / (1 + e⁻ᶻ)       probability of UP

Source: Karpathy (2016). W1 is stored as [D, H], the transpose of the originals' W1, so that an
active pixel is one contiguous row. In the originals, e⁻ᶻ overflows for large negative z; `sigmoid`
avoids that. All functions compute in the type of the parameters, float32 or float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import NUM_PIXELS, Params


def init_params(rng: np.random.Generator, hidden: int, dtype: str = "float32") -> Params:
    """Draw normal weights with deviation 1/√(number of inputs), in float64 for both types."""
    W1 = rng.standard_normal((NUM_PIXELS, hidden)) / np.sqrt(NUM_PIXELS)
    W2 = rng.standard_normal(hidden) / np.sqrt(hidden)
    return {"W1": W1.astype(dtype), "W2": W2.astype(dtype)}


def sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    """Compute 1 / (1 + e⁻ᶻ), without overflow for any z.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    smaller = np.exp(-np.abs(z))
    p: NDArray[Any] = np.where(z >= 0, 1 / (1 + smaller), smaller / (1 + smaller))
    return p


def logits(params: Params, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute logits of UP z [T] and activations h [T, H] from W1 [D, H], W2 [H] and x [T, D]."""
    assert x.ndim == 2, x.shape
    h = np.maximum(x @ params["W1"], 0)
    return h @ params["W2"], h


def forward(params: Params, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute probabilities of UP p [T] and activations h [T, H]; arguments as in `logits`."""
    z, h = logits(params, x)
    return sigmoid(z), h


def backward(params: Params, x: NDArray[Any], h: NDArray[Any], dz: NDArray[Any]) -> Params:
    """Compute the parameters' gradient from `dz`, the gradient with respect to the logits.

        dW2 = hᵀ dz
        dh  = dz W2ᵀ where h > 0, else 0
        dW1 = xᵀ dh

    x is [T, D], h is [T, H] from `forward`, and dz is [T].
    """
    assert dz.shape == h.shape[:1], (dz.shape, h.shape)
    dh = np.outer(dz, params["W2"]) * (h > 0)
    return {"W1": x.T @ dh, "W2": h.T @ dz}
