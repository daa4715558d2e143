"""The console's memory and grey frames: as observations, in the infos, by ale-py's words."""

from __future__ import annotations

import fake_sb3
import numpy as np
import pytest
from atari_vector import compare_one
from test_makers import HAS_SB3, MAKERS

import pixelpong
from pixelpong.atari.envs.single import OBS_TYPES
from pixelpong.atari.games.views import OBSERVATIONS
from pixelpong.atari.machine.palette import GREYS, PALETTES

GAMES = ("pong", "breakout", "seaquest", "air_raid", "berzerk")
"""Paddles, joysticks, a European game, starts that play frames and one that ALE counts."""
SHORT = {"max_num_frames_per_episode": 60, "repeat_action_probability": 0.25, "noop_max": 5}


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("obs_type", OBS_TYPES)
def test_each_obs_type_is_ale_pys(game, obs_type):
    """Spaces, observations and the memory in our infos, over the ends of episodes."""
    found = compare_one(game, 2, episodes=5, steps=200, obs_type=obs_type,
                        max_num_frames_per_episode=150)  # fmt: skip
    assert (found.differences, found.ends) == ([], 5)


@pytest.mark.parametrize("name", OBSERVATIONS)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_memory_in_the_infos_is_what_the_observation_shows(name, mode):
    options = SHORT | {"game": "breakout", "autoreset_mode": mode}
    told = pixelpong.make_vec(3, name, ram_info=True, num_threads=2, **options)
    shown = pixelpong.make_vec(3, "ram", num_threads=1, **options)
    silent = pixelpong.make_vec(3, name, num_threads=1, **options)
    infos, rams = told.reset(seed=3)[-1], shown.reset(seed=3)[0]
    assert "ram" not in silent.reset(seed=3)[-1]
    kept = []
    for step in range(40):
        ram = infos["ram"]
        assert (ram.dtype, ram.shape, ram.flags.c_contiguous) == (np.uint8, (3, 128), True)
        np.testing.assert_array_equal(ram, rams, f"step {step}")
        kept.append((ram, ram.copy()))
        actions = np.array([step % 4, 2, 3])
        (*results, infos), (rams, *_) = told.step(actions), shown.step(actions)
        for ours, theirs in zip(results, silent.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert all(np.array_equal(*pair) for pair in kept)  # no step changes what an earlier one gave


def test_the_memory_is_that_of_the_step_whose_results_are_received():
    whole = pixelpong.make_vec(3, ram_info=True, **SHORT)
    parts = pixelpong.make_vec(3, ram_info=True, batch_size=2, **SHORT)
    ahead = pixelpong.make_vec(3, ram_info=True, **SHORT)
    rams = [whole.reset(seed=1)[-1]["ram"]] + [whole.step([2, 3, 2])[-1]["ram"] for _ in range(4)]
    ahead.reset(seed=1)
    for _ in range(4):
        ahead.send(np.array([2, 3, 2]))
    for ram in rams[1:]:
        np.testing.assert_array_equal(ahead.recv()[-1]["ram"], ram)
    infos, steps = parts.reset(seed=1)[-1], np.zeros(3, int)
    while True:
        for i, ram in zip(infos["env_id"], infos["ram"], strict=True):
            np.testing.assert_array_equal(ram, rams[steps[i]][i])
            steps[i] += 1
        if steps.max() == len(rams):
            break
        infos = parts.step(np.array([2, 3, 2])[infos["env_id"]])[-1]


@pytest.mark.parametrize("maker", MAKERS)
def test_every_maker_tells_and_shows_the_memory(maker, monkeypatch):
    make = MAKERS[maker]
    if maker == "make_sb3" and not HAS_SB3:
        make = fake_sb3.load(monkeypatch).make_sb3
    told, shown = (make(**it) for it in ({"ram_info": True}, {"observation": "ram"}))
    for _ in range(2):  # from the same seed
        rams = [read_rams(envs, maker, 20) for envs in (told, shown)]
        np.testing.assert_array_equal(*rams)
    assert len({ram.tobytes() for ram in rams[0]}) > 10


def read_rams(envs, maker, steps):
    """The memory after each step: from the info, or else from the observation."""
    if maker == "make_sb3":
        envs.seed(4)
        results = [(envs.reset(), envs.reset_infos)]
        results += [(it[0], it[-1]) for it in (envs.step(np.array([2])) for _ in range(steps))]
        results = [(seen[0], info) for seen, (info,) in results]
    else:
        action = {"make_env": 2, "make_two": {"right": 2, "left": 3}}.get(maker, np.array([2]))
        results = [envs.reset(seed=4)]
        results += [(it[0], it[-1]) for it in (envs.step(action) for _ in range(steps))]
        if maker == "make_two":  # both sides have the same
            results = [(seen["left"], infos["right"]) for seen, infos in results]
    return [np.ravel(info.get("ram", seen)) for seen, info in results]


@pytest.mark.parametrize("game", ["pong", "breakout", "air_raid"])
def test_grey_frames_are_those_in_colour_looked_up(game):
    """A colour has one level of grey; some European ones have several."""
    palette = "PAL" if game == "air_raid" else "NTSC"
    pairs = {(*c, g) for c, g in zip(PALETTES[palette].tolist(), GREYS[palette], strict=True)}
    grey, colour = (pixelpong.make_vec(2, it, game=game) for it in ("grayscale", "frame"))
    seen, frames = grey.reset(seed=1)[0], colour.reset(seed=1)[0]
    for step in range(6):
        both = np.concatenate([frames, seen[..., None]], axis=-1)
        assert {*map(tuple, both.reshape(-1, 4).tolist())} <= pairs
        assert len(np.unique(seen)) > 2
        seen, frames = (envs.step([step % 3, 2])[0] for envs in (grey, colour))


def test_games_with_pictures_of_several_sizes_show_their_memory_together():
    games = ["air_raid", "seaquest"]
    both = pixelpong.make_vec(games=games, observation="ram", full_action_space=True)
    alone = [
        pixelpong.make_vec(1, "ram", game=game, full_action_space=True).reset(seed=2 + i)[0][0]
        for i, game in enumerate(games)
    ]
    np.testing.assert_array_equal(both.reset(seed=2)[0], alone)
    for name in ("frame", "grayscale"):
        with pytest.raises(pixelpong.PixelpongError, match="choose the observation 'atari' or 'r"):
            pixelpong.make_vec(games=games, observation=name, full_action_space=True)
