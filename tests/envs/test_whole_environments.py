"""An environment is whole whatever happens: an interrupt, a fork, threads, its last reference."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import weakref

import numpy as np
import pytest
from environments import KINDS, SHORT, make, state_of
from interrupts import Interrupts
from promises import promise
from waiting import join, wait_until

import pixelpong
from pixelpong.atari.games.turns import Now
from pixelpong.errors import ConfigError


@promise("whole environments")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["step", "reset", "restore"])
def test_an_interrupt_at_any_bytecode_leaves_the_call_done_or_not_done(kind, what):
    """Each bytecode in turn: afterwards all is as before the call or as after it, and plays on."""
    envs, other = make(kind)
    size = envs.num_envs
    start = envs.clone_state()
    other.step(np.full(size, 2))
    elsewhere = other.clone_state()
    calls = {
        "step": lambda it: it.step(np.full(size, 3)),
        "reset": lambda it: it.reset(seed=9),
        "restore": lambda it: it.restore_state(elsewhere),
    }
    other.restore_state(start)
    before = state_of(other)
    calls[what](other)
    after, done = state_of(other), other.clone_state()
    assert before != after
    number, stride, found = 1, 1 if kind == "field, two threads" else 7, set()
    while True:
        envs.restore_state(start)
        try:
            with Interrupts(number) as interrupts:
                calls[what](envs)
        except KeyboardInterrupt:
            pass
        if interrupts.left > 0:
            break
        is_done = state_of(envs) == after
        assert is_done or state_of(envs) == before, f"bytecode {number}"
        found.add(is_done)
        other.restore_state(done if is_done else start)
        for ours, theirs in zip(
            *(it.step(np.ones(size, int)) for it in (envs, other)), strict=True
        ):
            if isinstance(ours, np.ndarray):
                np.testing.assert_array_equal(ours, theirs, f"bytecode {number}")
        number += stride
    assert found == {True, False}
    assert number > 100


@promise("whole environments")
def test_numbers_that_were_half_drawn_are_drawn_again():
    """An interrupt in the step that draws the next ones, then a state that needs the last ones."""
    options = {"repeat_action_probability": 0.5, "noop_max": 0, "num_threads": 1}
    envs, other = (pixelpong.make_vec(6, "field", **options) for _ in range(2))
    for each in (envs, other):
        each.reset(seed=4)
        for step in range(127):
            each.step(np.full(6, step % 6))
    last = envs.clone_state()
    envs.step(np.full(6, 2))
    other.step(np.full(6, 2))
    wanted, first, number = state_of(other), envs.clone_state(), 1
    while True:
        envs.restore_state(last)
        envs.step(np.full(6, 2))
        envs.restore_state(first)
        with contextlib.suppress(KeyboardInterrupt), Interrupts(number) as interrupts:
            envs.step(np.full(6, 3))
        if interrupts.left > 0:
            break
        envs.restore_state(last)
        envs.step(np.full(6, 2))
        assert state_of(envs) == wanted, f"bytecode {number}"
        number += 1


@promise("whole environments")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_hundreds_of_interrupts_leave_no_answer_behind():
    """As Ctrl-C in a notebook does, again and again: what is returned is complete and right."""
    envs, other = (pixelpong.make_vec(16, num_threads=2, noop_max=6) for _ in range(2))
    envs.reset(seed=1)
    other.reset(seed=1)
    rng, interrupts = np.random.default_rng(0), 0

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(600):
            actions = rng.integers(6, size=16)
            start = state_of(other)
            wanted = other.step(actions)
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-3)))
                result = envs.step(actions)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
                if state_of(envs) == start:
                    result = envs.step(actions)
                else:
                    result = None
            assert state_of(envs) == state_of(other)
            if result is not None:
                for ours, theirs in zip(result[:4], wanted[:4], strict=True):
                    np.testing.assert_array_equal(ours, theirs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 0


@promise("whole environments")
def test_an_environment_is_freed_with_its_last_reference():
    before, kept = threading.active_count(), []
    for _ in range(5):
        envs = pixelpong.make_vec(4, "field", num_threads=3)
        envs.reset(seed=0)
        envs.step(np.zeros(4, int))
        kept.append(weakref.ref(envs))
        kept.append(weakref.ref(envs.games))
        del envs
    gc.collect()
    wait_until(lambda: threading.active_count() <= before)
    assert [each() for each in kept] == [None] * 10


def test_a_closed_environment_says_so():
    envs = pixelpong.make_vec(4, "field", num_threads=2)
    envs.reset(seed=0)
    envs.close()
    envs.close()
    for call in (lambda: envs.step(np.zeros(4, int)), lambda: envs.reset(seed=0)):
        with pytest.raises(ConfigError, match="closed; make a new one"):
            call()


@promise("whole environments")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_of_a_fork_plays_its_parents_environment_on():
    envs, other = make("field, two threads")
    wanted = other.step(np.ones(3, int))[0]
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if np.array_equal(envs.step(np.ones(3, int))[0], wanted) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(envs.step(np.ones(3, int))[0], wanted)


@promise("whole environments")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_in_a_step_leaves_the_child_without_an_episode():
    """What its parent's threads were playing cannot be known."""
    envs, _ = make("field, two threads")
    envs._turns._now = Now(None, type("Half", (), {"is_done": [True, False]})())
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            envs.step(np.ones(3, int))
        except ConfigError as error:
            envs.reset(seed=0)
            envs.step(np.ones(3, int))
            os._exit(0 if "call reset()" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_calls_of_several_threads_take_turns():
    envs, other = (pixelpong.make_vec(4, "field", num_threads=2, **SHORT) for _ in range(2))
    for each in (envs, other):
        each.reset(seed=2)

    def play(count):
        for _ in range(count):
            envs.step(np.full(4, 2))

    threads = [threading.Thread(target=play, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    for _ in range(200):
        other.step(np.full(4, 2))
    assert state_of(envs) == state_of(other)
