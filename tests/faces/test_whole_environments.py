"""An environment is whole whatever happens: an interrupt, an odd state, a fork, the last reference.

`make test` runs the states once more with bounds checked, as `test_bounds` does.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from promises import promise
from waiting import wait_until

import pixelpong
from pixelpong.errors import ConfigError, EmulatorError

ENVS = str(Path(pixelpong.__file__).parent / "faces" / "envs")
SHORT = {"repeat_action_probability": 0.25, "max_num_frames_per_episode": 40, "noop_max": 6}
KINDS = {
    "field, two threads": (3, "field", {"num_threads": 2}),
    "atari, one thread": (1, "atari", {"num_threads": 1, "img_height": 20, "img_width": 20}),
    "in the same step": (3, "pixels", {"num_threads": 3, "autoreset_mode": "SameStep"}),
    "an opponent": (2, "field", {"num_threads": 2, "opponent": "club"}),
    "one array of observations": (2, "frame", {"num_threads": 2, "copy": False}),
}


def make(kind):
    """An environment in the middle of its games, and the same one again."""
    size, observation, options = KINDS[kind]
    each = [pixelpong.make_vec(size, observation, **SHORT | options) for _ in range(2)]
    for envs in each:
        envs.reset(seed=4)
        for step in range(9):  # the next one ends the episodes
            envs.step(np.full(size, step % 6))
    return each


def state_of(envs):
    return [each.tobytes() for each in envs.clone_state()]


class Interrupts:
    """While inside, raises KeyboardInterrupt at one bytecode of an environment, by its number."""

    def __init__(self, number):
        self.left, self.number = number, number

    def _trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(ENVS):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._trace

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)


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
        kept.append(weakref.ref(envs.places))
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
    envs._turns._round = type("Half", (), {"is_done": [True, False]})()
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
    for thread in threads:
        thread.join()
    for _ in range(200):
        other.step(np.full(4, 2))
    assert state_of(envs) == state_of(other)


# --- states -------------------------------------------------------------------------------------


def odd_states(state):
    """States as no environment has them."""
    rules, places, consoles, streams, fields, *others = state
    for name, value in {
        "newest": [-1, 64, 2**40], "num_frames": [-1, 109_000], "steps": [-1, 2**62],
        "seed": [-1], "episode": [-2, 2**40], "held": [-1, 16], "is_on": [2, -1],
        "total_frames": [-1, 2**63 - 1], "may_end": [2], "points": [-1],
    }.items():  # fmt: skip
        for each in value:
            odd = places.copy()
            odd[name][-1] = each
            yield rules, odd, consoles, streams, fields, *others
    for row in (0, 79):
        odd = fields.copy()
        odd[-1, 1, row, 1] |= np.uint64(1 << 16)
        yield rules, places, consoles, streams, odd, *others
    if len(streams):
        for set_it in (
            lambda it: it["memory"]["newest"].__setitem__(0, 2),
            lambda it: it["sides"]["last_action"].__setitem__((0, 0), 3),
            lambda it: it["sides"]["last_action"].__setitem__((0, 1), -1),
            lambda it: it["fields"].__setitem__((0, 0, 79, 1), 2**63),
        ):
            odd = streams.copy()
            set_it(odd)
            yield rules, places, consoles, odd, fields, *others
    for number, each in enumerate(state):
        if each.size:
            shorter = each[:, :-1] if each.ndim > 1 and number else each[:-1]
            for odd in (shorter, each.view(np.uint8)[..., :0]):
                yield *state[:number], odd, *state[number + 1 :]
    yield state[:-1]
    yield (*state, state[-1])
    yield None
    yield "state"
    yield tuple(None for _ in state)
    yield tuple(each[:0] for each in state)
    yield tuple(np.repeat(each, 2, axis=0) for each in state)


@promise("bounds")
@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_state_is_refused_and_nothing_has_changed(kind):
    envs, other = make(kind)
    before, count = state_of(envs), 0
    for odd in odd_states(envs.clone_state()):
        with pytest.raises(ConfigError) as refusal:
            envs.restore_state(odd)
        assert "\n" not in str(refusal.value)
        assert state_of(envs) == before
        count += 1
    assert count > 30
    size = envs.num_envs
    for ours, theirs in zip(*(it.step(np.ones(size, int)) for it in (envs, other)), strict=True):
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)


@promise("bounds")
def test_games_with_other_options_exchange_no_states():
    """One by one, each option that a game's future depends on."""
    base = {"num_envs": 2, "observation": "atari", "num_threads": 1}
    envs = pixelpong.make_vec(**base)
    envs.reset(seed=0)
    state = envs.clone_state()
    for options in (
        {"stack_num": 8}, {"observation": "pixels"}, {"frameskip": 3}, {"max_frameskip": 5},
        {"repeat_action_probability": 0.5}, {"max_num_frames_per_episode": 400}, {"noop_max": 3},
        {"use_fire_reset": False}, {"full_action_space": True}, {"actions": "two"},
        {"img_height": 50}, {"grayscale": False}, {"maxpool": False}, {"opponent": "club"},
        {"opponent": "self"}, {"autoreset_mode": "SameStep"}, {"render_mode": "rgb_array"},
    ):  # fmt: skip
        with pytest.raises(ConfigError, match="of games with other options"):
            pixelpong.make_vec(**base | options).restore_state(state)
    first, second = (pixelpong.make_vec(1, "field", opponent=it) for it in ("club", "strong"))
    first.reset(seed=0)
    with pytest.raises(ConfigError, match="the same opponent"):
        second.restore_state(first.clone_state())
    free = {"num_threads": 2, "copy": False, "reward_clipping": False}
    pixelpong.make_vec(**base | free).restore_state(state)


@promise("bounds")
def test_a_state_may_be_repeated_and_any_console_is_safe():
    one = pixelpong.make_vec(1, "field", num_threads=1)
    one.reset(seed=0)
    state = tuple(np.repeat(each, 3, axis=0) for each in one.clone_state())
    envs = pixelpong.make_vec(3, "field", num_threads=1)
    envs.restore_state(state)
    seen, *_ = envs.step(np.full(3, 2))
    np.testing.assert_array_equal(seen, np.repeat(one.step(np.full(1, 2))[0], 3, axis=0))
    rng, failed = np.random.default_rng(0), 0
    for _ in range(200):
        state[2][:] = rng.integers(256, size=state[2].shape)
        envs.restore_state(state)
        try:
            envs.step(np.full(3, 2))
        except EmulatorError:
            failed += 1
            envs.step(np.full(3, 2))  # those that failed begin anew
    assert failed > 0


@promise("bounds")
def test_one_game_refuses_what_is_not_its_state():
    env, other = pixelpong.make_env("field"), pixelpong.make_env("field", frame_skip=2)
    env.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(ConfigError, match="other options"):
        env.restore_state(other.clone_state())
    env.restore_state(env.clone_state())
