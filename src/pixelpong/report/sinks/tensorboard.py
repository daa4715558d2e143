"""TensorBoard's event files, a record an entry, which are read back to see what they hold.

The records are written one by one and not by tensorboardX's own thread: where the disk is full,
that one would die and whoever writes next would wait for it forever.

Covered: writing, reading back, going on, dropping what a resume has cut back.
Not covered: drawing them, which is ``tensorboard``'s.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import RecordWriter, masked_crc32c
from tensorboardX.summary import text as make_text

from pixelpong.errors import RunError, expected
from pixelpong.report.sinks.source import Entry, claim_folder
from pixelpong.run import Run

_PATTERN = "events.out.tfevents.*.pixelpong"
_VERSION = "brain.Event:2"
"""Of the files; from this one on TensorBoard drops what a session that begins anew replaces."""

_RECORD_LIMIT = 1 << 24
"""Bytes of the longest record that is read; ours have some 1,200."""

_Mark = tuple[int, int]
"""Update of an entry, and a digest of its numbers."""


class TensorBoardSink:
    """See `pixelpong.report.sinks.Sink`. Steps are updates; the times are those of the training."""

    name = "tensorboard"

    def __init__(self, run: Run, folder: Path) -> None:
        """Use a folder, which need not exist yet.

        Raises:
            ConfigError: it is another run's.
            RunError: it cannot be made.
        """
        claim_folder(run, folder)
        self.folder = folder.absolute()
        self.advice = f"tensorboard --logdir {folder}"
        self._run = run
        self._marks: list[_Mark] | None = None
        self._writer: RecordWriter | None = None
        self._origin: float | None = None

    def align(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """See `Sink.align`."""
        if self._marks is None:
            with self._refusals("read"):
                self._marks = self._read_back()
        marks = self._marks
        self._origin = self._find_origin(entries)
        both = zip(marks, map(_mark_of, entries), strict=False)
        num_kept = next((place for place, (a, b) in enumerate(both) if a != b), None)
        if num_kept is None:
            num_kept = min(len(marks), len(entries))
        if num_kept < len(marks):
            first = min(mark[0] for mark in marks[num_kept:])
            if num_kept < len(entries):
                first = min(first, entries[num_kept].update)
            while num_kept and marks[num_kept - 1][0] >= first:
                num_kept -= 1
            self._drop_from(first)
            del marks[num_kept:]
        return entries[num_kept:]

    def write(self, entries: Sequence[Entry]) -> None:
        """See `Sink.write`."""
        assert self._marks is not None
        assert self._origin is not None
        with self._refusals("write to"):
            writer = self._open()
            for entry in entries:
                event = Event(step=entry.update, summary=_summarize(entry))
                event.wall_time = self._origin + entry.seconds
                writer.write(event.SerializeToString())
            writer.flush()
        self._marks += map(_mark_of, entries)

    def close(self) -> None:
        """See `Sink.close`."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with self._refusals("write to"):
                writer.close()

    def _open(self) -> RecordWriter:
        if self._writer is None:
            before = self._list_files()
            number = 1 + int(before[-1].name.split(".")[-2]) if before else 1
            path = self.folder / _PATTERN.replace("*", f"{number:010d}")
            self._writer = RecordWriter(str(path))
            self._put(Event(file_version=_VERSION))
            if not before:
                config = "\n".join(f"    {k} = {v}" for k, v in self._run.config.to_flat().items())
                self._put(Event(summary=make_text("configuration", config)))
        return self._writer

    def _drop_from(self, update: int) -> None:
        """Let TensorBoard forget this update and all later ones."""
        with self._refusals("write to"):
            writer = self._open()
            self._put(Event(step=update, session_log=SessionLog(status=SessionLog.START)))
            writer.flush()

    def _put(self, event: Any) -> None:
        assert self._writer is not None
        event.wall_time = self._origin or 0.0
        self._writer.write(event.SerializeToString())

    def _list_files(self) -> list[Path]:
        return sorted(
            path for path in self.folder.glob(_PATTERN) if path.name.split(".")[-2].isdecimal()
        )

    def _read_back(self) -> list[_Mark]:
        marks: list[_Mark] = []
        for path in self._list_files():
            for record in read_records(path):
                event = Event.FromString(record)
                if event.session_log.status == SessionLog.START:
                    marks = [mark for mark in marks if mark[0] < event.step]
                elif any(value.HasField("simple_value") for value in event.summary.value):
                    marks.append((event.step, _digest(event.summary)))
        return marks

    def _find_origin(self, entries: Sequence[Entry]) -> float:
        """When the training would have begun, had there been no breaks: seconds since 1970."""
        seconds = entries[-1].seconds if entries else 0.0
        with contextlib.suppress(OSError):
            return self._run.metrics.path.stat().st_mtime - seconds
        return 0.0

    @contextlib.contextmanager
    def _refusals(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(OSError):
                    writer.close()
            got = error.strerror or str(error)
            advice = "make room there, or choose another --out"
            raise RunError(expected(f"to {verb} {self.folder}", got, advice)) from error


def read_records(path: Path) -> Iterator[bytes]:
    """The records of an event file, up to one that is cut off or damaged.

    A record is its length as uint64, that number's checksum, the bytes, their checksum; all
    little-endian. Source: TensorFlow's ``record_writer.h``.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        while len(header := file.read(12)) == 12:
            size, checksum = struct.unpack("<QI", header)
            if checksum != masked_crc32c(header[:8]) or size > _RECORD_LIMIT:
                return
            record, end = file.read(size), file.read(4)
            if len(end) < 4 or struct.unpack("<I", end)[0] != masked_crc32c(record):
                return
            yield record


def _summarize(entry: Entry) -> Any:
    values = [Summary.Value(tag=name, simple_value=v) for name, v in entry.values.items()]
    return Summary(value=values)


def _mark_of(entry: Entry) -> _Mark:
    return entry.update, _digest(_summarize(entry))


def _digest(summary: Any) -> int:
    return hash(tuple(sorted((value.tag, value.simple_value) for value in summary.value)))
