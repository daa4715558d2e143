"""Small checkpoints to save and to compare."""

from __future__ import annotations

import json

import numpy as np

from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint


def make_checkpoint(update: int, score: float | None = None, of: str = "") -> Checkpoint:
    rng = np.random.default_rng(update)
    arrays = {"W1": rng.standard_normal((6, 4)).astype(np.float32), "W2": rng.random(4)}
    own = {"update": update, "score": score, "score_of": of or "mean_return_100"}
    return Checkpoint(arrays, own | {"progress": {"steps": 17}, "wall_seconds": 1.5})


def describe(found: Checkpoint) -> str:
    """Every bit of a checkpoint."""
    card = json.dumps(found.card, sort_keys=True)
    return f"{found.update} {card} {fingerprint(found.arrays)}"
