"""The states of the streams in a checkpoint: as arrays, and as counters in JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import StreamState, Tally


@dataclass(frozen=True)
class StreamCounters:
    """The counters of a stream; see `pixelpong.items.StreamState`."""

    last_action: int
    tally: Tally
    opponent: str
    opponent_action: int


def write_streams(
    states: Sequence[StreamState | None],
) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """The arrays of the streams that have begun, and their counters."""
    arrays: dict[str, NDArray[Any]] = {}
    counters = []
    for number, state in enumerate(states):
        if state is not None:
            arrays |= {
                f"stream.{number}.snapshot": np.frombuffer(state.snapshot, np.uint8),
                f"stream.{number}.previous": state.previous,
                f"stream.{number}.current": state.current,
            }
            names = [each.name for each in dataclasses.fields(StreamCounters)]
            stream = {name: getattr(state, name) for name in names}
            counters.append(stream | {"tally": dataclasses.asdict(state.tally)})
    return arrays, counters


def read_streams(
    arrays: Mapping[str, NDArray[Any]], streams: Iterable[StreamCounters]
) -> list[StreamState]:
    """Read the states again."""
    return [
        StreamState(
            arrays[f"stream.{number}.snapshot"].tobytes(),
            arrays[f"stream.{number}.previous"],
            arrays[f"stream.{number}.current"],
            **vars(stream),
        )
        for number, stream in enumerate(streams)
    ]
