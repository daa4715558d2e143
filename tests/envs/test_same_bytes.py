"""Every game gives the bytes of ale-py's AtariVectorEnv, sticky frames and all, in every option."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from atari_vector import SideBySide, choose_actions, compare, draw_options
from promises import promise

import pixelpong
from pixelpong.atari.cartridges import facts, scored_names

pytestmark = promise("the bytes of ale-py")

FEW = ("pong", "breakout", "seaquest")
"""A paddle, a paddle with lives, and a game whose starts depend on the game before."""
STICKY = {"repeat_action_probability": 0.25}
SAME_STEP = {"autoreset_mode": "SameStep"}


def refused(game, options):
    """Whether the combination is one that is refused, because it would not be the same."""
    line = facts()[game]
    is_menu = "coin_frames" in line and "start_actions" in line
    return is_menu and options.get("repeat_action_probability")


@pytest.mark.slow
@pytest.mark.parametrize("game", FEW)
@pytest.mark.parametrize("options", [STICKY, SAME_STEP, STICKY | SAME_STEP], ids=str)
def test_whole_games_and_the_next_ones_are_the_same(game, options):
    found = compare(game, 1, episodes=2, steps=2500, **options)
    assert found.differences == []
    assert (found.ends >= 2, found.rewarded > 0) == (True, True)


OPTIONS = {
    "one frame a step": {"frameskip": 1, "stack_num": 2},
    "two frames a step": {"frameskip": 2},
    "three frames a step, no maximum": {"frameskip": 3, "maxpool": False, "stack_num": 1},
    "seven frames a step": {"frameskip": 7, "repeat_action_probability": 0.5},
    "colours": {"grayscale": False, "img_height": 64, "img_width": 96},
    "colours without a maximum": {"grayscale": False, "maxpool": False},
    "pictures as they are": {"img_height": 210, "img_width": 160, "stack_num": 6},
    "all rows": {"img_height": 210, "img_width": 100},
    "all actions": {"full_action_space": True},
    "whole rewards": {"reward_clipping": False},
    "no frames without a press": {"noop_max": 0},
    "one frame without a press": {"noop_max": 1},
    "many frames without a press": {"noop_max": 200},
    "no button at the start": {"use_fire_reset": False, "noop_max": 0},
    "lives as episodes": {"episodic_life": True},
    "lives as episodes in the same step": {"episodic_life": True, **SAME_STEP},
    "lost lives told": {"life_loss_info": True},
    "lost lives told in the same step": {"life_loss_info": True, **SAME_STEP},
    "lost lives told as episodes": {"life_loss_info": True, "episodic_life": True},
    "cut off after a step": {"max_num_frames_per_episode": 40},
    "cut off within a step": {"max_num_frames_per_episode": 42, **SAME_STEP},
    "cut off at once": {"max_num_frames_per_episode": 1, "noop_max": 0},
    "all cores": {"num_threads": 0, "num_envs": 5},
    "one after another": {"num_threads": 1, "num_envs": 3},
    "a core for each thread": {"thread_affinity_offset": 0},
    "a stick turned": {"continuous": True},
    "a stick turned a little": {"continuous": True, "continuous_action_threshold": 0.2},
    "always the held action": {"repeat_action_probability": 1.0},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "game"), [*zip(OPTIONS, itertools.cycle(["breakout", "seaquest"]), strict=False)]
)
def test_in_every_option_every_byte_is_the_same(game, what):
    """In one of two games; in all games under the marker soak."""
    options = STICKY | OPTIONS[what]
    found = compare(game, 3, episodes=20, steps=300, **options)
    assert found.differences == []
    assert found.steps >= 30
    if "max_num_frames_per_episode" in options:
        assert found.cuts >= 20
    if "life_loss_info" in options or "episodic_life" in options:
        assert found.ends >= 3


@pytest.mark.slow
@pytest.mark.parametrize("game", FEW)
@pytest.mark.parametrize("options", [{}, SAME_STEP, {"episodic_life": True}], ids=str)
def test_some_games_are_reset_by_masks_with_seeds_and_without(game, options):
    both = SideBySide(game, 4, **STICKY | options)
    both.reset(seed=np.array([5, 0, 2**31 - 2, 77]))
    rng = np.random.default_rng(0)
    for step, actions in zip(range(250), choose_actions(both.theirs, 9), strict=False):
        both.step(actions)
        if step % 40 == 39:
            mask = rng.random(4) < 0.5
            seeds = rng.integers(2**31, size=mask.sum()) if step % 80 == 39 else None
            both.reset(seeds, mask)
    both.reset()
    both.reset(seed=3)
    both.step(actions)
    assert both.found.differences == []
    both.close()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, SAME_STEP], ids=str)
def test_results_of_some_games_at_a_time_are_those_of_all_games(options):
    """Each game's own results, one after another, whichever games come together."""
    size, steps = 6, 300
    rng = np.random.default_rng(2)
    orders = rng.integers(4, size=(size, 2 * steps * size))
    streams = []
    for make in (theirs_in_batches, ours_in_batches):
        envs = make(size, 2, **STICKY | options)
        stream = [[] for _ in range(size)]
        results = envs.reset(seed=4)
        for _ in range(steps):
            *arrays, infos = results
            ids = infos["env_id"]
            for k, i in enumerate(ids.tolist()):
                row = [it[k].tobytes() for it in arrays]
                row += [infos[name][k] for name in ("lives", "frame_number")]
                if len(arrays) > 1 and (arrays[2][k] or arrays[3][k]) and options:
                    row.append(infos["final_obs"][k].tobytes())
                stream[i].append(row)
            actions = np.array([orders[i, len(stream[i])] for i in ids.tolist()])
            results = envs.step(actions)
        streams.append(stream)
        envs.close()
    fewest = [min(map(len, pair)) for pair in zip(*streams, strict=True)]
    assert min(fewest) > 20
    for theirs, ours, count in zip(*streams, fewest, strict=True):
        assert ours[:count] == theirs[:count]


def theirs_in_batches(size, batch_size, **options):
    return AtariVectorEnv("breakout", size, batch_size=batch_size, num_threads=1, **options)


def ours_in_batches(size, batch_size, **options):
    return pixelpong.make_vec(size, game="breakout", batch_size=batch_size, **options)


# --- all games -------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("game", scored_names())
@pytest.mark.parametrize("seed", [0, 12345, 2**31 - 9])
@pytest.mark.parametrize(
    "options", [{}, STICKY, SAME_STEP, STICKY | SAME_STEP], ids=lambda it: str(sorted(it))
)
def test_five_whole_games_of_every_game_are_the_same(game, seed, options):
    """As ``benchmarks/same_bytes.py`` compares them."""
    if refused(game, options):
        pytest.skip("refused with sticky frames")
    assert compare(game, seed, episodes=5, steps=10_000, **options).differences == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("game", scored_names())
def test_options_drawn_by_lot_are_the_same(game):
    """Any of the options together, in every game."""
    rng = np.random.default_rng(scored_names().index(game))
    for _ in range(6):
        options, seed = draw_options(rng), int(rng.integers(2**31))
        if not refused(game, options):
            found = compare(game, seed, episodes=8, steps=800, **options)
            assert found.differences == [], options


# --- the comparison itself -------------------------------------------------------------------


class Altered:
    """An environment of which one value of one result is another."""

    def __init__(self, envs, change):
        self._envs, self._change = envs, change

    def __getattr__(self, name):
        return getattr(self._envs, name)

    def step(self, actions):
        results = list(self._envs.step(actions))
        self._change(results)
        return tuple(results)


def flip(name):
    def change(results):
        place = results[-1] if isinstance(name, str) else results
        place[name] = place[name].copy()
        place[name].reshape(-1)[-1] ^= True

    return change


def retype(results):
    results[1] = results[1].astype(np.int64)


def forget(results):
    del results[-1]["lives"]


CHANGES = {
    **{str(name): flip(name) for name in (0, 1, 2, 3, "env_id", "lives", "frame_number")},
    "episode_frame_number": flip("episode_frame_number"), "a type": retype, "a key": forget,
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_one_value_that_is_another_is_found(what):
    both = SideBySide("pong", 2)
    both.reset(seed=0)
    both.step(np.array([0, 2]))
    assert both.found.differences == []
    both.ours = Altered(both.ours, CHANGES[what])
    both.step(np.array([0, 2]))
    assert len(both.found.differences) == 1
    assert both.found.differences[0].startswith("step 2: ")
    both.close()


def test_last_observations_are_compared_in_the_games_that_ended():
    both = SideBySide("pong", 2, max_num_frames_per_episode=8, **SAME_STEP)
    both.reset(seed=0)
    both.step(np.array([0, 2]))
    both.ours = Altered(both.ours, flip("final_obs"))
    both.step(np.array([0, 2]))
    assert "final_obs of games [1], 1 values" in both.found.differences[0]
    both.close()


def test_the_actions_are_random_held_and_fired():
    envs = SideBySide("pong", 8)
    actions = np.array(list(itertools.islice(choose_actions(envs.theirs, 0), 600)))
    assert set(actions.flat) == set(range(6))
    is_held = (actions[1:] == actions[:-1]).mean()
    assert 0.3 < is_held < 0.7
    assert 0.2 < (actions == 1).mean() < 0.5
    envs.close()
