"""Every game on every cartridge, with every difficulty, gives ale-py's bytes."""

from __future__ import annotations

import numpy as np
import pytest
from atari_vector import compare_one
from promises import promise

import pixelpong
from pixelpong.atari.machine.cartridges import cartridge, scored_names
from pixelpong.errors import ConfigError

pytestmark = promise("the bytes of ale-py")

STICKY = {"repeat_action_probability": 0.25}
ALL = [
    (name, mode, difficulty)
    for name in scored_names()
    for mode in cartridge(name).modes
    for difficulty in cartridge(name).difficulties
]
# A menu is walked; SELECT is pressed often, before another press, after a RESET, after frames of a
# mode; memory of the cartridge says what is chosen; a game is over when it starts; both switches.
FEW = [
    ("breakout", 44, 1), ("yars_revenge", 96, 1), ("gopher", 2, 1), ("berzerk", 18, 0),
    ("klax", 2, 0), ("demon_attack", 3, 1), ("double_dunk", 13, 0), ("pong", 1, 3),
    ("ms_pacman", 3, 0),
]  # fmt: skip


SOAK = [pytest.param(*it, (1, 2), 3000, marks=pytest.mark.soak) for it in ALL]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode", "difficulty", "seeds", "steps"), [*((*it, (1,), 500) for it in FEW), *SOAK]
)
def test_every_byte_of_a_flavour_is_the_same(name, mode, difficulty, seeds, steps):
    for seed in seeds:
        compared = compare_one(
            name, seed, episodes=20, steps=steps, mode=mode, difficulty=difficulty, **STICKY
        )
        assert compared.differences == []
        assert compared.ends == 20 or compared.steps == steps


def test_each_environment_of_many_has_its_own_flavour():
    options = {"observation": "ram", "noop_max": 0, "use_fire_reset": False, "num_threads": 2}
    modes, difficulties = [0, 4, 8, 0, 44], [0, 1, 1, 1, 0]
    many = pixelpong.make_vec(
        5, game="breakout", mode=modes, difficulty=difficulties, **options, **STICKY
    )
    alone = [
        pixelpong.make_vec(
            1, game="breakout", mode=mode, difficulty=difficulty, **options, **STICKY
        )
        for mode, difficulty in zip(modes, difficulties, strict=True)
    ]
    many.reset(seed=7)
    for i, one in enumerate(alone):
        one.reset(seed=7 + i)
    seen = []
    for actions in np.random.default_rng(1).integers(4, size=(60, 5)):
        observations = many.step(actions)[0]
        seen.append(observations.tobytes())
        each = [one.step(actions[i : i + 1])[0][0] for i, one in enumerate(alone)]
        np.testing.assert_array_equal(observations, each)
    assert len(set(map(bytes, observations))) == 5
    with pytest.raises(ConfigError, match="Row 1 of the state belongs to another game"):
        many.restore_state(tuple(array[[0, 0, 2, 3, 4]] for array in many.clone_state()))


def test_several_cartridges_have_their_first_games_unless_others_are_named():
    games, options = ["pooyan", "breakout"], {"full_action_space": True, "observation": "ram"}
    plain, same, other = (
        pixelpong.make_vec(games=games, mode=mode, **options)
        for mode in ([None, 0], [10, 0], [30, None])
    )
    first, second, third = (envs.reset(seed=3)[0] for envs in (plain, same, other))
    np.testing.assert_array_equal(first, second)
    assert (first[0] != third[0]).any()
    assert (first[1] == third[1]).all()
    same.restore_state(plain.clone_state())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "breakout", "mode": 3}, "mode must be 0, 4, .* or 44 in breakout, not 3"),
        ({"game": "breakout", "difficulty": 2}, "difficulty must be 0 or 1 in breakout, not 2"),
        ({"game": "skiing", "mode": 1}, "mode must be 0 in skiing, not 1"),
        ({"game": "breakout", "mode": [0, 4]}, r"or 3 of them, one for each .*, not \[0, 4\]"),
        ({"game": "breakout", "mode": "4"}, "mode must be a whole number"),
        ({"game": "pong", "mode": 1, "opponent": "self"}, "leave out mode or opponent"),
    ],
)
def test_other_flavours_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        pixelpong.make_vec(3, **options).reset(seed=0)
