"""The code in Ray's processes, which play chunks of items in threads."""

from __future__ import annotations

import functools
import os
import pickle
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.engines import Combine
from pixelpong.engines.ray.connection import require_versions
from pixelpong.engines.threads import ThreadEngine

_LARGE = 2**16  # arrays of at least this many bytes are sent without a copy in a pickle


class Actor:
    """Plays chunks of items in threads, in a Ray process."""

    def __init__(self, recipe: bytes, size: int) -> None:
        """Keep the pickled `recipe`: the driver's versions and the function that makes workers."""
        self._recipe, self._size = recipe, size

    @functools.cached_property
    def _parts(self) -> tuple[ThreadEngine, Combine | None]:
        versions, recipe = pickle.loads(self._recipe)
        require_versions(versions)
        make_worker, combine = pickle.loads(recipe)
        # BLAS threads that compete for cores would make parallel work slower. Environment
        # variables have no effect once NumPy is imported.
        threadpool_limits(limits=1)
        return ThreadEngine(make_worker, self._size), combine

    def play_chunk(self, params: Any, items: bytes) -> list[Any]:
        """Play pickled items; return the process id, the pickled results, and their large arrays.

        Ray's own pickling takes longer for many small arrays, but copies a large one only once.
        """
        (engine, combine), chunk = self._parts, pickle.loads(items)
        run = engine.run(chunk, params)
        results = combine(chunk, run) if combine else list(run)
        large: list[pickle.PickleBuffer] = []

        def is_small(array: pickle.PickleBuffer) -> bool:
            if array.raw().nbytes < _LARGE:
                return True
            large.append(array)
            return False

        content = pickle.dumps(results, protocol=5, buffer_callback=is_small)
        return [os.getpid(), pickle.PickleBuffer(content), *large]


# A process that runs tasks keeps an actor with one thread, so that it makes its worker only once.
actor_of_process = functools.lru_cache(maxsize=1)(functools.partial(Actor, size=1))


def play_in_task(recipe: bytes, params: Any, items: bytes) -> list[Any]:
    """Play like `Actor.play_chunk`, in any process that Ray chooses."""
    return actor_of_process(recipe).play_chunk(params, items)
