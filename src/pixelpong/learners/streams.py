"""The states of the streams in a checkpoint: as arrays, and as counters in JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import ACTIONS, BUILTIN, NUM_PIXELS, Params, StreamState, Tally
from pixelpong.schema import Meta, restore

Place = Annotated[int, Meta(ge=0, lt=len(ACTIONS))]


@dataclass(frozen=True)
class StreamCounters:
    """The counters of a stream; see `pixelpong.items.StreamState`.

    The defaults are for old checkpoints, which do not have these counters.
    """

    last_action: Place
    tally: dict[str, Any]
    opponent: str = BUILTIN
    opponent_action: Place = 0
    is_left: bool = False


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


def read_streams(arrays: Params, streams: Iterable[StreamCounters]) -> list[StreamState | None]:
    """Read the states again; the kernels rely on these checks.

    Raises:
        KeyError, ValueError: these are not such states.
    """
    return [_read_stream(arrays, number, stream) for number, stream in enumerate(streams)]


def _read_stream(arrays: Params, number: int, stream: StreamCounters) -> StreamState:
    snapshot, previous, current = (
        arrays[f"stream.{number}.{name}"] for name in ("snapshot", "previous", "current")
    )
    for pixels in (previous, current):
        is_list = pixels.dtype == np.uint16 and pixels.ndim == 1 and len(pixels) <= NUM_PIXELS
        if not is_list or pixels.max(initial=0) >= NUM_PIXELS:
            raise ValueError(f"no pixels of stream {number}")
    counters = {each.name: getattr(stream, each.name) for each in dataclasses.fields(stream)}
    counters["tally"] = restore(stream.tally, Tally)
    return StreamState(snapshot.tobytes(), previous, current, **counters)
