"""Every public call of every environment that the package makes is done or not done.

An interrupt comes at bytecodes all over the call, in ever smaller steps where a call that was not
done becomes one that was, and there at each one. What the environment does afterwards must be what
it does without the call, or after it.
"""

from __future__ import annotations

import fake_sb3
import numpy as np
import pytest
from environments import SHORT, with_every_observation
from interrupts import Interrupts
from promises import promise

import pixelpong
from pixelpong.atari.envs.ale import Ale
from pixelpong.atari.envs.errors import EnvOrderError
from pixelpong.atari.envs.single import SingleEnv
from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.envs import ale_options
from pixelpong.envs.two import TwoPlayerEnv

pytestmark = promise("whole environments")

PLAIN = SHORT | {"num_threads": 1}
# make_vec: number of games, observation, options.
SENT = with_every_observation({
    "whole": (3, "field", {}),
    "threads": (3, "field", {"num_threads": 2}),
    "one array": (2, "frame", {"copy": False}),
    "in the same step": (3, "pixels", {"autoreset_mode": "SameStep"}),
    "own resets": (2, "field", {"autoreset_mode": "Disabled"}),
    "opponent": (2, "field", {"opponent": "club"}),
    "several games": (3, "atari", {"games": ["breakout", "seaquest", "pong"], "img_height": 20,
                                   "img_width": 20, "full_action_space": True}),
    "batches": (4, "field", {"batch_size": 2}),
    "batches in the same step": (5, "field", {"batch_size": 2, "autoreset_mode": "SameStep",
                                              "num_threads": 2}),
})  # fmt: skip
VEC_CALLS = (
    "step", "send", "recv", "reset", "mask", "restore_state", "some states", "render",
    "clone_state",
)  # fmt: skip
# See test_batches.
REFUSED_IN_BATCHES = ("mask", "restore_state", "some states", "clone_state")
SINGLE_CALLS = (
    "step", "reset", "restore_state", "render", "clone_state", "get_action_meanings",
    "get_keys_to_action",
)  # fmt: skip
# The calls of `env.ale` that play or change something, with what they are given.
ALE_CALLS = {
    "act": [3], "setRAM": [70, 9], "reset_game": [], "restoreState": ["elsewhere"],
    "restoreSystemState": ["elsewhere"], "cloneState": [], "cloneSystemState": [],
}  # fmt: skip
# The others read: settings, pictures, memory, counts; and `set…` refuses.
ALE_READS = ("get", "set", "is", "game_", "lives", "loadROM", "saveScreenPNG")
SINGLES = {
    "pong": {"observation": "field", "sticky": 0.25},
    "a drawn number of frames": ale_options("Breakout-v0") | {"obs_type": "grayscale"},
}
TWOS = {"pong": {"observation": "pixels"}, "boxing": {}}
TWO_CALLS = ("step", "reset", "render", "state")
SB3_CALLS = ("step_wait", "reset", "get_images", "get_attr")
# Calls that play nothing and change nothing that a later call shows.
IDLE = {"close", "close_extras", "xla", "step_async", "set_attr", "env_method", "env_is_wrapped"}


def flat(it):
    if isinstance(it, dict):
        return {name: flat(each) for name, each in it.items() if name != "t"}
    if isinstance(it, tuple | list):
        return [flat(each) for each in it]
    return (it.dtype.str, it.shape, it.tobytes()) if isinstance(it, np.ndarray) else it


class Vec:
    def __init__(self, kind):
        self.size, self.observation, self.options = SENT[kind]
        self.count = self.options.get("batch_size", self.size)

    def make(self, call):
        envs = pixelpong.make_vec(
            self.size, self.observation, render_mode="rgb_array", **PLAIN | self.options
        )
        envs.reset(seed=4)
        for step in range(9 if self.count == self.size else 14):
            envs.step(np.full(self.count, step % 6))
        if call == "recv":
            envs.send(np.full(self.count, 3))
        if call in ("restore_state", "some states"):
            start = envs.clone_state()
            envs.step(np.full(self.count, 2))
            self.elsewhere = envs.clone_state()
            envs.restore_state(start)
        return envs

    def call(self, envs, name):
        if name in ("step", "send"):
            getattr(envs, name)(np.full(self.count, 3))
        elif name == "mask":
            envs.reset(options={"reset_mask": np.arange(self.size) == 0})
        elif name == "reset":
            envs.reset(seed=9)
        elif name == "restore_state":
            envs.restore_state(self.elsewhere)
        elif name == "some states":
            first = tuple(array[:1] for array in self.elsewhere)
            envs.restore_state(first, games=[0], include_rng=False)
        else:
            getattr(envs, name)()

    def play_on(self, envs):
        seen = []
        for _ in range(3):
            try:
                seen.append(flat(envs.recv()))
            except EnvOrderError:
                break
        seen.append(flat(envs.render()))
        for step in range(8):
            try:
                seen.append(flat(envs.step(np.full(self.count, step % 4))))
            except EnvOrderError as error:
                seen.append(str(error))
        return seen


class Single:
    def __init__(self, kind):
        options = {name: it for name, it in SINGLES[kind].items() if not name.startswith("max_")}
        self.options = options | {"max_frames": 40, "render_mode": "rgb_array"}

    def make(self, call):
        env = pixelpong.make_env(**self.options)
        env.reset(seed=1)
        for _ in range(3):
            env.step(2)
        self.elsewhere = env.clone_state()
        env.step(3)
        env.step(2)
        return env

    def call(self, env, name):
        given = {"step": [3], "restore_state": [self.elsewhere]}.get(name, [])
        getattr(env, name)(*given, **({"seed": 9} if name == "reset" else {}))

    def play_on(self, env):
        seen = [flat(env.render()), int(env.np_random.integers(2**40)), env.np_random_seed]
        return [*seen, *(flat(env.step(3)) for _ in range(4))]


class OfAle(Single):
    def call(self, env, name):
        given = [self.elsewhere if it == "elsewhere" else it for it in ALE_CALLS[name]]
        getattr(env.ale, name)(*given)


class Two:
    def __init__(self, game):
        self.options = {"game": game} | TWOS[game] | SHORT | {"render_mode": "rgb_array"}

    def make(self, call):
        env = pixelpong.make_two(**self.options)
        env.reset(seed=1)
        for _ in range(3):
            env.step(self.order(env, 2, 3))
        return env

    def order(self, env, *actions):
        return dict(zip(env.possible_agents, actions, strict=True))

    def call(self, env, name):
        given = [self.order(env, 3, 3)] if name == "step" else []
        getattr(env, name)(*given, **({"seed": 9} if name == "reset" else {}))

    def play_on(self, env):
        seen = [flat(env.state()), flat(env.render()), env.agents]
        return [*seen, *(flat(env.step(self.order(env, 1, 2))) for _ in range(4))]


class Sb3:
    def __init__(self, module):
        self.make_it = module.make_sb3

    def make(self, call):
        envs = self.make_it(2, "field", render_mode="rgb_array", **PLAIN)
        envs.seed(3)
        envs.reset()
        for step in range(7):
            envs.step(np.full(2, step % 4))
        if call == "reset":
            envs.seed(8)
        envs.step_async(np.full(2, 3))
        return envs

    def call(self, envs, name):
        getattr(envs, name)(*(["games"] if name == "get_attr" else []))

    def play_on(self, envs):
        seen = [flat(envs.get_images())]
        seen += [flat(envs.step(np.full(2, step % 4))) for step in range(11)]
        seen.append(flat(envs.reset()))
        return [*seen, *(flat(envs.step(np.full(2, 2))) for _ in range(2))]


def public_calls(cls):
    """The public methods that the package itself gives to a class."""
    own = [each for each in cls.__mro__ if each.__module__.startswith(("pixelpong", "our_"))]
    return {
        name
        for each in own
        for name, value in vars(each).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type)
    }


def check(face, call):
    undisturbed = face.play_on(face.make(call))
    done = face.make(call)
    with Interrupts(10**9) as counted:
        face.call(done, call)
    total, wanted = counted.number - counted.left, face.play_on(done)
    results = {}

    def interrupt(number):
        envs = face.make(call)
        try:
            with Interrupts(number) as counted:
                face.call(envs, call)
        except KeyboardInterrupt:
            pass
        else:  # a thread that does not have to wait needs fewer bytecodes
            assert counted.left > 0, f"bytecode {number} of {total} of {call}: lost"
        seen = face.play_on(envs)
        assert seen in (undisturbed, wanted), f"bytecode {number} of {total} of {call}"
        results[number] = seen == wanted

    for number in (*range(1, total, max(1, total // 16)), 2 * total):  # the last one: not at all
        interrupt(number)
    if undisturbed != wanted:
        assert set(results.values()) == {True, False}
        before = max(number for number, is_done in results.items() if not is_done)
        after = min(number for number, is_done in results.items() if is_done and number > before)
        while after - before > 8:
            middle = (before + after) // 2
            interrupt(middle)
            before, after = (before, middle) if results[middle] else (middle, after)
        for number in range(before + 1, after):
            interrupt(number)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (kind, call)
        for kind, (*_, options) in SENT.items()
        for call in VEC_CALLS
        if not ("batch_size" in options and call in REFUSED_IN_BATCHES)
    ],
)
def test_a_call_of_make_vec_is_done_or_not_done(kind, call):
    check(Vec(kind), call)


@pytest.mark.parametrize("call", SINGLE_CALLS)
@pytest.mark.parametrize("kind", SINGLES)
def test_a_call_of_make_env_is_done_or_not_done(kind, call):
    check(Single(kind), call)


@pytest.mark.parametrize("call", ALE_CALLS)
@pytest.mark.parametrize("kind", SINGLES)
def test_a_call_of_its_ale_is_done_or_not_done(kind, call):
    check(OfAle(kind), call)


@pytest.mark.parametrize("call", TWO_CALLS)
@pytest.mark.parametrize("game", TWOS)
def test_a_call_of_make_two_is_done_or_not_done(game, call):
    check(Two(game), call)


@pytest.mark.parametrize("call", SB3_CALLS)
def test_a_call_of_make_sb3_is_done_or_not_done(call, monkeypatch):
    check(Sb3(fake_sb3.load(monkeypatch)), call)


def test_each_maker_and_each_public_call_is_interrupted(monkeypatch):
    makers = {name for name in pixelpong.__all__ if name.startswith("make_")}
    assert makers == {"make_vec", "make_env", "make_two", "make_sb3"}
    sb3 = fake_sb3.load(monkeypatch).StableBaselinesEnv
    for cls, calls in (
        (VectorEnv, VEC_CALLS), (SingleEnv, SINGLE_CALLS), (TwoPlayerEnv, TWO_CALLS),
        (sb3, SB3_CALLS),
    ):  # fmt: skip
        missing = public_calls(cls) - set(calls) - IDLE
        assert not missing, f"{cls.__name__}: no interrupt in {missing}"
    missing = public_calls(Ale) - ALE_CALLS.keys()
    assert {name for name in missing if not name.startswith(ALE_READS)} == set()
