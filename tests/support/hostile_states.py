"""States with a hostile value in each field of each record, played on; run by `test_states`.

    python tests/support/hostile_states.py "field, two threads"

Prints how many states were refused and how many were played.
"""

from __future__ import annotations

import sys

import numpy as np
from environments import KINDS, make

from pixelpong.errors import ConfigError, EmulatorError


def leaves(records, name="state"):
    """Each field of records, however deep, with its name; an array without fields is one."""
    if records.dtype.names is None:
        yield name, records
        return
    for each in records.dtype.names:
        yield from leaves(records[each], f"{name}.{each}")


def values(array, rng):
    """Hostile contents of an array: least, most, zeros, random bytes."""
    kind = array.dtype.kind
    info = np.finfo(array.dtype) if kind == "f" else np.iinfo(array.dtype)
    yield from (info.min, info.max, 0, 1)
    yield (
        rng.integers(256, size=array.nbytes, dtype=np.uint8).view(array.dtype).reshape(array.shape)
    )


def play(kind):
    envs, _ = make(kind)
    envs.reset(seed=1)
    envs.step(np.full(envs.num_envs, 2))
    state, rng = envs.clone_state(), np.random.default_rng(0)
    num_refused, played = 0, set()
    for number, whole in enumerate(state):
        for name, _ in leaves(whole, str(number)):
            sizes = dict(leaves(whole, str(number)))[name]
            for value in values(np.ascontiguousarray(sizes), rng) if sizes.size else ():
                odd = [each.copy() for each in state]
                dict(leaves(odd[number], str(number)))[name][-1:] = (
                    value if np.ndim(value) == 0 else value[-1:]
                )
                try:
                    envs.restore_state(tuple(odd))
                except ConfigError:
                    num_refused += 1
                    continue
                played.add(name)
                for call in (
                    lambda: envs.step(np.full(envs.num_envs, 1)),
                    envs.render,
                    envs.reset,
                    lambda: envs.step(np.full(envs.num_envs, 3)),
                    lambda: envs.reset(options={"reset_mask": np.arange(envs.num_envs) == 0}),
                ):
                    try:
                        call()
                    except EmulatorError:
                        pass  # a console may be in any state
                    except ConfigError as error:  # its game ended in a fault
                        assert "call reset()" in str(error), error
                envs.reset(seed=0)
    print(num_refused, len(played))


if __name__ == "__main__":
    assert sys.argv[1] in KINDS
    play(sys.argv[1])
