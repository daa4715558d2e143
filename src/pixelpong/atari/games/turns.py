"""Threads that play the shares of a step and may be interrupted at any moment.

A step of all games is a `Round`, cut into shares. The caller's thread plays the first share; each
helper always plays the same one of the others. The compiled code records which shares were played,
and answers are not counted. So an exception can interrupt `Crew.play_round` anywhere. Calling
it again skips finished shares, and answers to an older round are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from pixelpong.atari.games.memory import Memory, Restored

# Plays a share, except the parts that `done`, [parts] bool, marks as played.
Play = Callable[[Any, int], None]


class Workers(NamedTuple):
    """The threads that play."""

    num_threads: int = 1  # with the caller's
    # The other threads stay on the cores after this one, and after the last core comes the first
    # one; −1: on any core.
    first_core: int = -1


ONE_THREAD = Workers()


class Round:
    """A step of all games; if sent, helpers play all shares while the caller continues."""

    def __init__(self, play: Play, num_shares: int, num_parts: int, *, is_sent: bool) -> None:
        self._play, self._done = play, np.zeros(num_parts, np.bool_)
        self.is_sent = is_sent
        self.is_done = [False] * num_shares  # set a little later than `_done`
        self.answers: SimpleQueue[BaseException | None] = SimpleQueue()  # from the helpers

    def play_share(self, share: int) -> None:
        """Play a share if it has not been played yet."""
        self._play(self._done, share)
        self.is_done[share] = True

    def answer(self, share: int, prepare: Callable[[], object]) -> None:
        """Play a share in a helper thread and report the result; whatever fails is the answer."""
        try:
            prepare()
            self.play_share(share)
        except BaseException as error:
            self.answers.put(error)
        else:
            self.answers.put(None)


class Crew:
    """Threads that play shares, one for each; they end when the crew is freed."""

    def __init__(self, workers: Workers) -> None:
        self._size, self._first_core = workers
        self._queues: list[SimpleQueue[Round | None]] = []  # includes threads not yet started
        self._helpers: dict[int, SimpleQueue[Round | None]] = {}  # by share; only threads that run
        self.close = weakref.finalize(self, _end, self._queues)

    def hand_out(self, played: Round) -> None:
        """Have the helpers play the shares of a round that have not been played."""
        for share in range(0 if played.is_sent else 1, self._size):
            if share not in self._helpers:
                self._start(share)
            self._helpers[share].put(played)

    def play_round(self, played: Round) -> None:
        """Play the shares of a round that have not been played."""
        self.hand_out(played)
        if not played.is_sent:
            played.play_share(0)
        # Each helper answers after its share, so an answer will come while any share is missing.
        for share in range(self._size):
            while not played.is_done[share]:
                error = played.answers.get()
                if error is not None:
                    raise error

    def _start(self, share: int) -> None:
        tasks: SimpleQueue[Round | None] = SimpleQueue()
        self._queues.append(tasks)
        core = (self._first_core + share) % (os.cpu_count() or 1) if self._first_core >= 0 else -1
        threading.Thread(target=_help, args=(tasks, share, core), daemon=True).start()
        self._helpers[share] = tasks


class Now(NamedTuple):
    """What has begun and must be finished, and what its caller noted when it began."""

    noted: Any  # never changed, only replaced
    round: Round | None = None  # the round in progress
    state: Restored | None = None  # what is being restored


class Turns:
    """The calls of an environment, one at a time; each has its full effect or none.

    Only rounds and restores started here change the memory. If an exception interrupts one, the
    next call finishes it. They begin with one assignment, and with it what a caller has to keep
    beside the memory is replaced as well: `noted`. So both are from before a call or from after it.
    """

    def __init__(self, workers: Workers, memory: Memory, num_parts: int) -> None:
        """Play rounds with a share for each thread, of `num_parts` parts together."""
        self._workers, self._memory, self._crew = workers, memory, Crew(workers)
        self._num_parts = num_parts
        self._lock, self._pid = threading.RLock(), os.getpid()
        self._now = Now(None)

    @property
    def lock(self) -> threading.RLock:
        """The lock that a thread holds while it is its turn.

        After a fork, the child has only one thread. So the lock and the crew are made anew there,
        and if a round was in progress, all episodes are discarded, and what was noted.
        """
        if self._pid != os.getpid():
            played = self._now.round
            if played is not None and not all(played.is_done):
                self._memory.forget()
                self._now = Now(None)
            self._crew, self._lock = Crew(self._workers), threading.RLock()
            self._pid = os.getpid()
        return self._lock

    def settle(self) -> None:
        """Finish the work of this call or of an interrupted earlier one."""
        noted, played, state = self._now
        if played is not None:
            self._crew.play_round(played)
        if state is not None:
            self._memory.write(state)
        if played is not None or state is not None:
            self._now = Now(noted)

    def begin(self, play: Play, noted: Any, *, is_sent: bool) -> None:
        """Play a round; if it is sent, only begin it, and a later call finishes it."""
        played = Round(play, self._workers.num_threads, self._num_parts, is_sent=is_sent)
        self._now = Now(noted, played)
        if is_sent:
            self._crew.hand_out(played)
        else:
            self.settle()

    def restore(self, state: Restored, noted: Any) -> None:
        """Continue from a state that `Memory.read` has returned."""
        self._now = Now(noted, state=state)
        self.settle()

    @property
    def noted(self) -> Any:
        """What was noted last; None at first, and in a child of a fork in a round."""
        return self._now.noted

    def note(self, noted: Any) -> None:
        """Replace what was noted."""
        self._now = self._now._replace(noted=noted)

    def close(self) -> None:
        """End the threads."""
        self._crew.close()


def _help(tasks: SimpleQueue[Round | None], share: int, core: int) -> None:
    """Play a share of each round on a core, until None ends the thread.

    It must not refer to the environment or its crew. It is cheaper than a `ThreadPoolExecutor`
    (docs/log.md).
    """
    for played in iter(tasks.get, None):
        played.answer(share, functools.partial(_stay_on, core))
        core = -1


def _stay_on(core: int) -> None:
    """Keep this thread on a core; −1: on any."""
    if core >= 0 and hasattr(os, "sched_setaffinity"):  # Linux has it
        with contextlib.suppress(OSError):  # this process may not use that core
            os.sched_setaffinity(0, {core})


def _end(queues: list[SimpleQueue[Round | None]]) -> None:
    for tasks in queues:
        tasks.put(None)
