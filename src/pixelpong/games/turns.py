"""Threads that play the shares of a step, in a way that may be interrupted at any moment.

A step of all games is a `Round`, cut into shares. The caller's thread plays the first share, and
each helper always the same other one. The compiled code notes which shares were played, and no
answers are counted: so `Crew.play` may be left by an exception anywhere, and called again. What was
played is then skipped, and an answer of an older round reaches nobody.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from pixelpong.games.memory import Memory, State

Play = Callable[[Any, int], None]  # plays a share, unless `done`, [shares] bool, says that it was


class Round:
    """A step of all games."""

    def __init__(self, play: Play, num_shares: int) -> None:
        self._play, self._done = play, np.zeros(num_shares, np.bool_)
        self.is_done = [False] * num_shares  # a little later, when a helper has answered
        self.answers: SimpleQueue[BaseException | None] = SimpleQueue()  # of the helpers

    def play(self, share: int) -> None:
        """Play a share, if it was not played yet."""
        self._play(self._done, share)
        self.is_done[share] = True

    def answer(self, share: int) -> None:
        """Play a share in a helper."""
        try:
            self.play(share)
        except BaseException as error:
            self.answers.put(error)
        else:
            self.answers.put(None)


class Crew:
    """A thread for each share but the first; they end with the last reference to the crew."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._queues: list[SimpleQueue[Round | None]] = []  # all, of threads that may not run yet
        self._helpers: list[SimpleQueue[Round | None]] = []  # of the threads that run
        self.close = weakref.finalize(self, _end, self._queues)

    def play(self, played: Round) -> None:
        """Play what is left of a round."""
        while len(self._helpers) < self._size - 1:
            self._start(len(self._helpers) + 1)
        for tasks in self._helpers:
            tasks.put(played)
        played.play(0)
        # Each helper answers after its share, so as long as one is missing, an answer will come.
        for share in range(1, self._size):
            while not played.is_done[share]:
                error = played.answers.get()
                if error is not None:
                    raise error

    def _start(self, share: int) -> None:
        tasks: SimpleQueue[Round | None] = SimpleQueue()
        self._queues.append(tasks)
        threading.Thread(target=_help, args=(tasks, share), daemon=True).start()
        self._helpers.append(tasks)


class Turns:
    """The calls of an environment, one after the other: each is done wholly or not at all.

    Only what has begun here changes the memory, and an exception may leave it anywhere: then the
    next call settles it.
    """

    def __init__(self, size: int, memory: Memory) -> None:
        """Play rounds of as many shares as `size`."""
        self._size, self._memory, self._crew = size, memory, Crew(size)
        self._lock, self._pid = threading.RLock(), os.getpid()
        self._round: Round | None = None  # that has begun
        self._state: State | None = None  # that is being restored

    @property
    def lock(self) -> threading.RLock:
        """The lock of the thread whose turn it is.

        The child of a fork has no thread but one. So there everything is new; and if a round was
        going on, no episode is in progress.
        """
        if self._pid != os.getpid():
            if self._round is not None and not all(self._round.is_done):
                self._memory.forget()
                self._round = None
            self._crew, self._lock = Crew(self._size), threading.RLock()
            self._pid = os.getpid()
        return self._lock

    def settle(self) -> None:
        """Finish what this call, or an interrupted one before it, has begun."""
        if self._round is not None:
            self._crew.play(self._round)
            self._round = None
        if self._state is not None:
            self._memory.write(self._state)
            self._state = None

    def play(self, play: Play) -> None:
        """Play a round."""
        self._round = Round(play, self._size)
        self.settle()

    def restore(self, state: State) -> None:
        """Continue from a state that `Memory.read` has returned."""
        self._state = state
        self.settle()

    def close(self) -> None:
        """End the threads."""
        self._crew.close()


def _help(tasks: SimpleQueue[Round | None], share: int) -> None:
    """Play a share of each round until one is None.

    It must not refer to the environment or its crew. It is cheaper than a `ThreadPoolExecutor`, see
    docs/log.md.
    """
    for played in iter(tasks.get, None):
        played.answer(share)


def _end(queues: list[SimpleQueue[Round | None]]) -> None:
    for tasks in queues:
        tasks.put(None)
