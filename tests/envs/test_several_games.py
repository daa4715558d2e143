"""Several games in one environment: each is the same as alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pixelpong
from pixelpong.atari.envs.errors import EnvError

GAMES = ("breakout", "pong", "air_raid", "breakout", "seaquest")  # air_raid is European
OPTIONS = {"full_action_space": True, "repeat_action_probability": 0.25, "img_height": 50}


@pytest.mark.parametrize("num_threads", [1, 2, 8])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_each_game_is_the_same_as_alone(num_threads, mode):
    options = OPTIONS | {"autoreset_mode": mode, "max_num_frames_per_episode": 90}
    several = pixelpong.make_vec(games=GAMES, num_threads=num_threads, **options)
    alone = [pixelpong.make_vec(1, game=game, num_threads=1, **options) for game in GAMES]
    assert (several.num_envs, several.single_action_space.n) == (5, 18)
    seen = several.reset(seed=7)[0]
    for i, envs in enumerate(alone):
        np.testing.assert_array_equal(envs.reset(seed=7 + i)[0][0], seen[i])
    rng, state = np.random.default_rng(0), None
    for step in range(60):
        actions = rng.integers(18, size=5)
        if step == 30:
            state = several.clone_state()
            several.step(actions)
            several.restore_state(state)
            several = pickle.loads(pickle.dumps(several))
        *results, infos = several.step(actions)
        for i, envs in enumerate(alone):
            *own, own_infos = envs.step(actions[i : i + 1])
            for ours, theirs in zip(results, own, strict=True):
                np.testing.assert_array_equal(ours[i], theirs[0])
            for name in own_infos.keys() - {"env_id"}:
                np.testing.assert_array_equal(infos[name][i], own_infos[name][0])


def test_several_games_in_batches_and_in_colour():
    options = {"full_action_space": True, "num_threads": 2}
    frames = pixelpong.make_vec(games=["breakout", "pong"], render_mode="rgb_array", **options)
    frames.reset(seed=0)
    assert [picture.shape for picture in frames.render()] == [(210, 160, 3)] * 2
    whole = pixelpong.make_vec(games=GAMES, **options)
    parts = pixelpong.make_vec(games=GAMES, batch_size=2, **options)
    first, then = whole.reset(seed=1)[0], whole.step(np.full(5, 3))[0]
    (seen, infos), steps = parts.reset(seed=1), np.zeros(5, int)
    while steps.min() == 0:
        for picture, i in zip(seen, infos["env_id"], strict=True):
            np.testing.assert_array_equal(picture, (first, then)[steps[i]][i])
            steps[i] += 1
        seen, *_, infos = parts.step(np.full(2, 3))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"games": ["breakout", "pong"]}, "different numbers of actions; choose full_action_space"),
        ({"games": ["skiing", "pong"], "full_action_space": True}, "different numbers of actions"),
        ({"games": "breakout"}, "games must be a list of names"),
        ({"games": ["pong", 3]}, "games must be a list of names"),
        ({"games": ["pong"] * 3, "num_envs": 2}, "num_envs must be 3, the number of games"),
        ({"games": ["breakout"] * 3, "game": "breakout"}, "Leave out game"),
        (
            {"games": ["pong", "adventure"], "full_action_space": True, "observation": "frame"},
            "pictures of different sizes",
        ),
        ({"games": ["pong", "breakout"], "actions": "two"}, "breakout has no actions by name"),
    ],
)
def test_games_that_do_not_fit_together_are_refused(options, says):
    with pytest.raises(EnvError, match=says):
        pixelpong.make_vec(**options)
