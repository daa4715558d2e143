"""`examples/to_tensorboard.py` tells TensorBoard every number of a run."""

from __future__ import annotations

import struct
from collections import defaultdict

import numpy as np
import pytest
from to_tensorboard import convert

from pixelpong.loop import train


def read_board(folder) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would draw: tag → (step, value)."""
    from tensorboardX.proto.event_pb2 import Event

    drawn = defaultdict(list)
    (path,) = folder.glob("*tfevents*")
    content, place = path.read_bytes(), 0
    while place < len(content):
        (size,) = struct.unpack_from("<Q", content, place)
        event = Event.FromString(content[place + 12 : place + 12 + size])
        place += 16 + size
        for value in event.summary.value:
            drawn[value.tag].append((event.step, value.simple_value))
    return drawn


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_gets_every_number_of_a_run(make_run, tmp_path):
    run = make_run(updates=4, evaluate_every=2)
    train(run)
    convert(run.path, tmp_path / "board")
    for path in (run.path, tmp_path / "none"):
        with pytest.raises(SystemExit, match="a folder that does not exist yet"):
            convert(path, tmp_path / "board" if path == run.path else tmp_path / "new")
    board = read_board(tmp_path / "board")
    lines = list(run.metrics.read())
    assert board["training/entropy"] == [(x["update"], np.float32(x["entropy"])) for x in lines]
    assert len(board["timing/wall_seconds"]) >= 4
    assert [step for step, _ in board["evaluation/mean_return"]][:2] == [2, 4]
    assert {"training/steps", "training/mean_return_100"} <= set(board)
