"""Who has played what, and what was learned from: written down on both sides, to be compared."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.config import Config
from pixelpong.learners.ppo import PPOLearner
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.play.worker import make_worker


class LedgerWorker:
    """The real worker; each item that it has played is a line in a file, with its result's seal."""

    def __init__(self, config: Config, path: Path) -> None:
        self._worker = make_worker(config)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def play(self, item: Any, params: Any) -> Any:
        """See `pixelpong.play.worker`."""
        result = self._worker.play(item, params)
        line = f"{os.getpid()} {item.update} {item.index} {seal(result)}\n"
        os.write(self._file, line.encode())
        return result


def seal(value: Any) -> str:
    """SHA-256 of a result, all but its wall times."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:24]


def _feed(digest: Any, value: Any) -> None:
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            if each.name != "seconds":
                _feed(digest, getattr(value, each.name))
    elif isinstance(value, np.ndarray):
        for array in [value[name] for name in value.dtype.names or ()] or [value]:
            digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    elif isinstance(value, tuple | list):
        for each in value:
            _feed(digest, each)
    else:
        digest.update(repr(value).encode())


class Ledger:
    """Both sides of it, for one training."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.learned: dict[int, list[str]] = {}

    def make_worker(self, config: Config) -> Any:
        """Makes a `LedgerWorker`; can be pickled."""
        return functools.partial(LedgerWorker, config, self._path)

    def watch_learning(self, monkeypatch: Any) -> None:
        """From now on, write down which results each update is made of."""
        for owner in (ReinforceLearner, PPOLearner):
            monkeypatch.setattr(owner, "apply", self._watched(owner.apply))

    def played(self) -> dict[tuple[int, int], list[str]]:
        """The seals of all results of each item, by update and place."""
        found = defaultdict(list)
        for line in self._path.read_text().splitlines():
            _, update, place, seal = line.split()
            found[int(update), int(place)].append(seal)
        return found

    def _watched(self, apply: Any) -> Any:
        def watched(learner: Any, results: Any) -> Any:
            seals: list[str] = []

            def look():
                for result in results:
                    seals.append(seal(result))
                    yield result

            stats = apply(learner, look())
            self.learned[learner.progress.update] = seals
            return stats

        return watched


def require_exactly_once(ledger: Ledger, updates: int, num_items: int) -> int:
    """Every item of every update was learned from once; how often one was played for nothing."""
    played = ledger.played()
    of_updates = {item for item in played if item[0] <= updates}
    assert of_updates == {(u, i) for u in range(1, updates + 1) for i in range(num_items)}
    # An item gives the same, whoever plays it and how often; no two items give the same.
    assert all(len(set(played[item])) == 1 for item in of_updates)
    assert len({played[item][0] for item in of_updates}) == len(of_updates)
    assert sorted(ledger.learned) == list(range(1, updates + 1))
    for update, seals in ledger.learned.items():
        assert seals == [played[update, index][0] for index in range(num_items)], update
    return sum(map(len, played.values())) - len(of_updates)
