"""The processes, the pipes and the clock of `pixelpong.engines.processes`, made of nothing.

A pipe carries bytes in order, as a socket does; its messages may in this world also come twice,
late, in another order, by half or not at all.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from simulation import ITEM_TIMEOUT, World

from pixelpong.engines import answers, channel, processes
from pixelpong.engines.channel import _HEADER, encode

CAPACITY = 4096
"""Bytes that fit into a pipe which nobody reads."""


class Pipe:
    """The driver's end of a socket pair, and what lies in it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.to_driver, self.to_worker = bytearray(), bytearray()
        self.worker: Process | None = None
        self.is_open = True
        self._timeout = 0.0

    def has_news(self) -> bool:
        """Whether reading would give something, if only the end."""
        assert self.worker is not None
        return bool(self.to_driver) or self.worker.exitcode is not None

    # --- the part of `socket.socket` that a channel uses ---

    def settimeout(self, seconds: float) -> None:
        self._timeout = seconds

    def send(self, view: memoryview) -> int:
        worker = self.worker
        assert worker is not None
        self._world.wait_for(
            lambda: len(self.to_worker) < CAPACITY or worker.exitcode is not None, self._timeout
        )
        if worker.exitcode is not None:
            raise BrokenPipeError(32, "Broken pipe")
        count = min(len(view), CAPACITY - len(self.to_worker))
        if count == 0:
            raise TimeoutError
        self.to_worker += view[:count]
        self._world.after(1e-4, worker.read)
        return count

    def recv_into(self, view: memoryview) -> int:
        if not self._world.wait_for(self.has_news, self._timeout):
            raise TimeoutError
        count = min(len(view), len(self.to_driver))
        view[:count] = self.to_driver[:count]
        del self.to_driver[:count]
        return count

    def close(self) -> None:
        self.is_open = False


class Process:
    """A worker process; does with the messages what `processes._serve` does."""

    def __init__(self, world: World, pid: int, args: tuple[Any, ...]) -> None:
        self._world, self.pid = world, pid
        (self._pipe, self._board, self._make_worker) = args
        self.exitcode: int | None = None
        self._is_busy, self._hangs, self._params = True, False, None
        self._inbox = bytearray()
        self._missed: list[Callable[[], None]] = []  # what it would have done while it hung

    # --- the part of `multiprocessing.Process` that the engine uses ---

    def start(self) -> None:
        self._pipe.worker = self
        self._world.after(self._world.rng.uniform(0.5, 2.0), self._begin)

    def kill(self) -> None:
        self._die(-9)

    def join(self, timeout: float) -> None:
        if self.exitcode is None and not self._hangs and not self._pipe.is_open:
            self._die(0)  # it reads the end of the pipe
        if self.exitcode is None:
            self._world.sleep(timeout)

    def close(self) -> None:
        assert self.exitcode is not None

    # --- its life ---

    def read(self) -> None:
        """Take the next message, where there is a whole one and nothing else to do."""
        if self._is_busy or not self._is_well(self.read):
            return
        self._inbox += self._pipe.to_worker
        self._pipe.to_worker.clear()
        (size,) = _HEADER.unpack(self._inbox[: _HEADER.size].ljust(_HEADER.size, b"\xff"))
        end = _HEADER.size + size
        if len(self._inbox) < end:
            return
        kind, content = pickle.loads(self._inbox[_HEADER.size : end])
        del self._inbox[:end]
        if kind == "params":
            self._params = self._board.read(content)
            self.read()
        else:
            self._play(*content)

    def _begin(self) -> None:
        if self._world.happens(0.3):
            self._suffer(self._world.rng.choice(("dies", "hangs", "pauses")), "while it starts")
        if self._is_well(self._begin):
            self._worker = self._make_worker()
            self._say(encode((None, ("ready", None))))
            self._go_on()

    def _play(self, number: int, items: list[Any]) -> None:
        """Answer after a while, unless something happens to the worker or to the answer."""
        self._is_busy = True
        before = self._world.perf_counter()
        answer = encode((number, answers.play_items(self._worker, items, self._params)))
        seconds = self._world.perf_counter() - before
        accident = self._world.draw_accident()
        if accident in ("dies", "hangs", "pauses"):
            moment = self._world.rng.random() * seconds
            self._world.after(moment, lambda: self._suffer(accident, f"at parcel {number}"))
        self._world.after(seconds, lambda: self._answer(number, answer, accident))

    def _answer(self, number: int, answer: bytes, accident: str) -> None:
        if not self._is_well(lambda: self._answer(number, answer, accident)):
            return
        late = self._world.rng.random() * 2 * ITEM_TIMEOUT
        if accident in ("dropped", "delayed", "doubled"):
            self._tell(f"has answer {number} {accident}")
        if accident == "half":
            self._say(answer, cut=self._world.rng.randrange(1, _HEADER.size + len(answer)))
            kind = self._world.rng.choice(("dies", "hangs"))
            self._suffer(kind, f"in the middle of answer {number}")
            return
        if accident not in ("dropped", "delayed"):
            self._say(answer)
        if accident in ("delayed", "doubled"):
            self._world.after(late, lambda: self._say(answer))
        if accident == "dies after it":
            self._suffer("dies", f"after an answer, {number}")
        self._go_on()

    def _go_on(self) -> None:
        self._is_busy = False
        self.read()

    def _say(self, message: bytes, cut: int | None = None) -> None:
        if self.exitcode is None and not self._hangs:
            self._pipe.to_driver += (_HEADER.pack(len(message)) + message)[:cut]

    def _is_well(self, action: Callable[[], None]) -> bool:
        """Whether it can do something; while it hangs, it does it after that."""
        if self.exitcode is None and self._hangs:
            self._missed.append(action)
        return self.exitcode is None and not self._hangs

    def _suffer(self, accident: str, when: str) -> None:
        if self.exitcode is not None:
            return
        self._tell(f"{accident} {when}")
        if accident == "dies":
            self._die(-9)
            return
        self._hangs = True
        if accident == "pauses":
            self._world.after(self._world.rng.random() * 2 * ITEM_TIMEOUT, self._wake)

    def _wake(self) -> None:
        self._hangs, missed, self._missed = False, self._missed, []
        for action in missed:
            action()

    def _die(self, exit_code: int) -> None:
        if self.exitcode is None:
            self.exitcode = exit_code

    def _tell(self, what: str) -> None:
        self._world.tell(f"worker {self.pid} {what}")


def _wait_in(world: World) -> Callable[..., list[Any]]:
    """`multiprocessing.connection.wait` in this world."""

    def wait(channels: list[Any], timeout: float) -> list[Any]:
        pipes = [each._socket for each in channels]
        world.wait_for(lambda: any(pipe.has_news() for pipe in pipes), timeout)
        return [each for each, pipe in zip(channels, pipes, strict=True) if pipe.has_news()]

    return wait


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """While inside, `ProcessEngine` lives in `world`."""
    pids = itertools.count(1)

    def pair() -> tuple[Pipe, Any]:
        pipe = Pipe(world)
        return pipe, SimpleNamespace(pipe=pipe, close=lambda: None)

    def make_process(*, args: tuple[Any, ...], **_: Any) -> Process:
        end, *others = args
        return Process(world, next(pids), (end.pipe, *others))

    context = SimpleNamespace(Process=make_process)
    with (
        patch.object(processes, "socket", SimpleNamespace(socketpair=pair)),
        patch.object(processes, "multiprocessing", SimpleNamespace(get_context=lambda _: context)),
        patch.object(processes, "connection", SimpleNamespace(wait=_wait_in(world))),
        patch.object(processes, "_interrupts_blocked", nullcontext),
        patch.object(processes, "time", world),
        patch.object(channel, "time", world),
        patch.object(answers, "time", world),
    ):
        yield
