"""Every game gives ale-py's bytes, sticky frames and all, in every option: many games and one.

Many are compared with AtariVectorEnv, one with the game's own environment in Gymnasium.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from atari_vector import (
    OneSideBySide,
    SideBySide,
    choose_actions,
    compare,
    compare_one,
    draw_options,
    draw_options_of_one,
    is_refused,
)
from promises import promise

import pixelpong
from pixelpong.atari.machine.cartridges import cartridge, scored_names

pytestmark = promise("the bytes of ale-py")

FEW = ("pong", "breakout", "seaquest")
"""A paddle, a paddle with lives, and a game whose starts depend on the game before."""
STICKY = {"repeat_action_probability": 0.25}
SAME_STEP = {"autoreset_mode": "SameStep"}
WITH_A_START = [it for it in scored_names() if cartridge(it).select or cartridge(it).coin_frames]
"""The games whose start plays frames that ale-py counts."""


def spread(games, others):
    """Each of the others with each game: daily with one of the games in turn, nightly with all."""
    pairs = itertools.product(enumerate(games), enumerate(others))
    return [
        pytest.param(game, other, marks=() if k % len(games) == i else pytest.mark.soak)
        for (i, game), (k, other) in pairs
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("game", "options"), spread(FEW, [STICKY, SAME_STEP, STICKY | SAME_STEP]))
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
@pytest.mark.parametrize(("game", "options"), spread(FEW, [SAME_STEP, {"episodic_life": True}, {}]))
def test_some_games_are_reset_by_masks_with_seeds_and_without(game, options):
    both = SideBySide(game, 3, **STICKY | options)
    both.reset(seed=np.array([5, 2**31 - 2, 77]))
    rng = np.random.default_rng(0)
    chosen = choose_actions(both.theirs.single_action_space, 3, 9)
    masks = iter(np.array([[1, 0, 1], [0, 1, 1], [0, 1, 0], [1, 0, 0]], bool))
    for step, actions in zip(range(160), chosen, strict=False):
        both.step(actions)
        if step % 40 == 39:
            mask = next(masks)
            seeds = rng.integers(2**31, size=mask.sum()) if step % 80 == 39 else None
            both.reset(seeds, mask)
    both.reset()
    both.reset(seed=3)
    both.step(actions)
    assert both.found.differences == []
    both.close()


OF_PONG = {
    "the defaults": ({}, 1100),
    "cut off within a step": ({"max_num_frames_per_episode": 30, "frameskip": 4}, 40),
    "cut off after a step": ({"max_num_frames_per_episode": 40, "noop_max": 0}, 40),
    "all actions, in colour": ({"full_action_space": True, "grayscale": False}, 120),
    "one frame a step": ({"frameskip": 1, "stack_num": 2, "use_fire_reset": False}, 120),
    "no maximum, another size": ({"maxpool": False, "img_height": 100, "img_width": 61}, 120),
    "the frames themselves": ({"img_height": 210, "img_width": 160, "stack_num": 1}, 60),
    "points in the opening frames": ({"noop_max": 300, "max_num_frames_per_episode": 8}, 30),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", OF_PONG)
def test_without_sticky_frames_pong_gives_the_same_bytes(what):
    """The first point comes after some 250 frames."""
    options, steps = OF_PONG[what]
    found = compare("pong", 5, episodes=10_000, steps=steps, **options)
    assert (found.differences, found.steps) == ([], 2 * steps)
    assert found.ends > 0 or "max_num_frames_per_episode" not in options
    assert found.ends > 0 or steps < 1000


def test_opening_frames_go_on_in_another_game():
    """A game without a press ends after 3,056 frames, and these seeds draw more."""
    both = SideBySide("pong", 2, noop_max=3500)
    _, infos = both.ours.reset(seed=np.array([4, 8]))
    assert (infos["frame_number"] > 3056).all()
    assert (infos["episode_frame_number"] < 400).all()
    both.reset(seed=np.array([4, 8]))
    for _ in range(3):
        both.step(np.zeros(2, int))
    assert both.found.differences == []
    both.close()


def test_a_lost_life_hides_a_cut_off_in_the_same_step():
    """The limit is reached in the step in which a life is lost, which is reported as an end."""
    options = {"life_loss_info": True, "noop_max": 0, "use_fire_reset": False}
    found = play_fire(**options)
    assert (found.differences, found.lives_lost, found.cuts) == ([], 1, 0)
    limit = 4 * found.steps
    found = play_fire(**options, max_num_frames_per_episode=limit)
    assert (found.differences, 4 * found.steps) == ([], limit)
    assert (found.lives_lost, found.ends, found.cuts) == (1, 1, 0)
    assert play_fire(**options, max_num_frames_per_episode=limit - 4).cuts == 1


def play_fire(**options):
    """Press the button in Breakout until an episode ends, beside AtariVectorEnv."""
    both = SideBySide("breakout", 1, **options)
    both.reset(seed=0)
    while not (both.found.ends or both.found.differences):
        both.step(np.array([1]))
    both.close()
    return both.found


# --- one game --------------------------------------------------------------------------------


CUTS = {"later": (400, 0.0), "at once": (1, 0.25), "as the start ends": (None, 0.0)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "what"),
    [
        pytest.param(game, what, marks=() if what == "later" or is_daily else pytest.mark.soak)
        for game in WITH_A_START
        for is_daily in [game == WITH_A_START[0] or cartridge(game).coin_frames > 0]
        for what in CUTS
    ],
)
def test_one_game_is_cut_off_at_the_frame_at_which_ale_py_cuts_it_off(game, what):
    """The frames that its start plays are frames of the episode."""
    given, sticky = CUTS[what]
    limit = given or cartridge(game).counted_frames
    options = {"max_num_frames_per_episode": limit, "repeat_action_probability": sticky}
    if limit and not is_refused(game, options, is_alone=True):
        found = compare_one(game, 1, episodes=2, steps=600, by_id=given == 400, **options)
        assert found.differences == []
        assert found.cuts == 2 or game == "double_dunk"


@pytest.mark.slow
@pytest.mark.parametrize("sticky", [0.25, 0.7])
def test_sticky_frames_change_a_menu_before_a_game_as_in_ale_py(sticky):
    """Also the start that loading includes, whose frames and coins count."""
    options = {"repeat_action_probability": sticky, "max_num_frames_per_episode": 400}
    for seed in range(3):
        found = compare("double_dunk", seed, episodes=3, steps=300, **options)
        alone = compare_one("double_dunk", seed, episodes=2, steps=200, mode=5 * seed, **options)
        assert found.differences == alone.differences == []
        assert found.cuts >= 3
        assert alone.cuts >= 1


ONE = {
    "the defaults of its id": {"by_id": True},
    "one frame a step": {"frameskip": 1, "repeat_action_probability": 0.25},
    "seven frames a step": {"frameskip": 7, "repeat_action_probability": 0.5},
    "all actions": {"full_action_space": True, "render_mode": "rgb_array"},
    "a stick turned": {"continuous": True},
    "a stick turned a little": {"continuous": True, "continuous_action_threshold": 0.1},
    "frames by ale-py's word": {"obs_type": "rgb"},
    "grey frames, by its id": {"obs_type": "grayscale", "by_id": True},
    "the memory": {"obs_type": "ram", "repeat_action_probability": 0.25},
    "the memory, by its id, with pictures": {
        "obs_type": "ram",
        "render_mode": "rgb_array",
        "by_id": True,
    },
    "cut off after a step": {"max_num_frames_per_episode": 40},
    "cut off within a step": {"max_num_frames_per_episode": 42, "frameskip": 5},
    "cut off at once, by its id": {"max_num_frames_per_episode": 1, "by_id": True},
}


@pytest.mark.slow
@pytest.mark.parametrize(("game", "what"), spread(FEW, ONE))
def test_one_game_is_ale_pys_single_environment_in_every_option(game, what):
    found = compare_one(game, 4, episodes=6, steps=150, **ONE[what])
    assert found.differences == []
    assert found.steps >= 6
    if "max_num_frames_per_episode" in ONE[what]:
        assert found.cuts == 6


@pytest.mark.slow
@pytest.mark.parametrize("game", ["skiing", "lost_luggage"])
def test_a_direction_that_a_game_does_not_have_is_no_action_as_in_ale_py(game):
    """In `AtariVectorEnv`, such a step never returns."""
    found = compare_one(game, 4, episodes=2, steps=150, continuous=True)
    assert found.differences == []
    assert found.steps >= 6
    envs = pixelpong.make_vec(2, game=game, continuous=True)
    envs.reset(seed=0)
    envs.step(np.array([[1, np.pi / 2, 1], [1, 3, 0]], np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("radius", [1.5, 100.0])
def test_continuous_actions_outside_their_space_are_played_as_by_ale_py(radius):
    both = SideBySide("breakout", 2, continuous=True, repeat_action_probability=0.25)
    alone = OneSideBySide("breakout", continuous=True, repeat_action_probability=0.25)
    both.reset(seed=0)
    alone.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.uniform([-radius, -4, -0.5], [radius, 4, 1.5], (2, 3)).astype(np.float32)
        both.step(actions)
        if alone.step(actions[0]):
            alone.reset()
    assert both.found.differences == alone.found.differences == []
    both.close()
    alone.close()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, SAME_STEP], ids=str)
def test_results_of_some_games_at_a_time_are_those_of_all_games(options):
    """Each game's own results, one after another, whichever games come together."""
    size, steps = 4, 300
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
    if is_refused(game, options):
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
        if not is_refused(game, options):
            found = compare(game, seed, episodes=8, steps=800, **options)
            assert found.differences == [], options


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("game", scored_names())
def test_one_game_with_options_drawn_by_lot_is_ale_pys(game):
    """The limits among them are small, so all games are cut off."""
    rng = np.random.default_rng(1000 + scored_names().index(game))
    for _ in range(8):
        options, seed = draw_options_of_one(rng), int(rng.integers(2**31))
        if not is_refused(game, options, is_alone=True):
            found = compare_one(game, seed, episodes=8, steps=800, **options)
            assert found.differences == [], options
    for limit in (200, 600):
        options = {"max_num_frames_per_episode": limit, "repeat_action_probability": 0.0}
        found = compare_one(game, 1, episodes=3, steps=500, **options)
        assert (found.differences, found.ends) == ([], 3)
