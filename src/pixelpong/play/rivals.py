"""Rivals: earlier agents that the learning network plays against, small enough to send and keep.

The first layer is rounded to a byte per number, with a scale for each row; rows that learning has
not reached are 0. The rounded agent is the rival, so nothing is lost when it is saved. Its name is
the hash of its numbers.

Covered: making one, and its parameters. Not covered: who is one (`pixelpong.learners.league`).
"""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import Params

PREFIX = "rival."
"""The names of a rival's arrays are ``rival.NAME.`` and a part's name."""

_LARGEST = 127
_lock = threading.Lock()
_known: dict[str, Params] = {}


def pack_rival(params: Params, rows: NDArray[np.intp]) -> tuple[str, Params]:
    """Make a rival: its name, and its arrays under `PREFIX` names.

    Args:
        params: of the gated network; not changed.
        rows: [K] of the first layer to keep, ascending.
    """
    kept = params["W1"][rows].reshape(len(rows), -1).astype(np.float32)
    scale = np.abs(kept).max(axis=1, initial=0) / np.float32(_LARGEST)
    scale[scale == 0] = 1
    parts = {
        "rows": rows.astype(np.uint16),
        "W1": np.rint(kept / scale[:, None]).astype(np.int8),
        "scale": scale,
        "W2": params["W2"].copy(),
        "b2": params["b2"].copy(),
    }
    name = name_rival(parts)
    return name, {f"{PREFIX}{name}.{part}": array for part, array in parts.items()}


def name_rival(parts: Params) -> str:
    """The name that follows from a rival's arrays, without their `PREFIX`."""
    seal = hashlib.sha256()
    for part in sorted(parts):
        seal.update(f"{part}{parts[part].dtype}{parts[part].shape}".encode())
        seal.update(np.ascontiguousarray(parts[part]).tobytes())
    return seal.hexdigest()[:16]


def rival_of(key: str) -> str:
    """The name of the rival that an array belongs to, by its key; "" if to none.

    >>> rival_of("rival.0a1b.scale"), rival_of("W1")
    ('0a1b', '')
    """
    return key.split(".")[1] if key.startswith(PREFIX) else ""


def list_rivals(arrays: Params) -> dict[str, Params]:
    """The rivals among some arrays: by name, their arrays by part."""
    rivals: dict[str, Params] = {}
    for key, array in arrays.items():
        if name := rival_of(key):
            rivals.setdefault(name, {})[key.removeprefix(f"{PREFIX}{name}.")] = array
    return rivals


def find_rival(arrays: Params, name: str) -> Params:
    """The parameters of a rival; made once per process, as the name says all of them.

    Args:
        arrays: those of the rival, and ``W1`` of the learning network, with the same inputs.
        name: of the rival.
    """
    with _lock:
        if name not in _known:
            for old in [old for old in _known if f"{PREFIX}{old}.rows" not in arrays]:
                del _known[old]
            _known[name] = unpack_rival(list_rivals(arrays)[name], arrays["W1"])
        return _known[name]


def unpack_rival(parts: Params, like: NDArray[Any]) -> Params:
    """The parameters of a rival.

    Args:
        parts: its arrays, without `PREFIX`.
        like: [D, ·, 2], a first layer with the same inputs and of the same type.
    """
    W1 = np.zeros((len(like), *parts["W2"].shape[1:]), like.dtype)
    kept = parts["W1"] * parts["scale"][:, None]
    W1[parts["rows"]] = kept.reshape(-1, *W1.shape[1:])
    return {"W1": W1, "W2": parts["W2"].astype(like.dtype), "b2": parts["b2"].astype(like.dtype)}
