"""Games for two players: every frame is multi-agent-ale-py's, and each player has its reward."""

from __future__ import annotations

import json

import numpy as np
import pytest
from two_players import RECORD, ConsoleOfTwo, flavours_of, hash_game, play_both

import pixelpong
from pixelpong.atari.machine.cartridge import Flavour
from pixelpong.atari.machine.cartridges import cartridge, names_for_two
from pixelpong.envs.two import TwoPlayerEnv
from pixelpong.errors import ConfigError, PixelpongError

ALL = [(name, flavour) for name in names_for_two() for flavour in flavours_of(name)]
HARD = [
    (name, Flavour(flavours_of(name)[-1].mode, cartridge(name, is_for_two=True).difficulties[-1]))
    for name in names_for_two()
]
FEW = [("boxing", Flavour(2)), ("mario_bros", Flavour(2)), ("entombed", Flavour(3))]
CASES = [*((*it, 600, 3) for it in FEW), *(
    pytest.param(*it, 20_000, seed, marks=pytest.mark.soak) for it in ALL + HARD for seed in (1, 2)
)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "flavour", "frames", "seed"), CASES)
def test_every_frame_of_two_players_is_that_of_multi_agent_ale_py(name, flavour, frames, seed):
    """Memory, both rewards and the end after every frame, and every 16th picture."""
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the games for two")
    play_both(name, flavour, seed, frames)


@pytest.mark.slow
@pytest.mark.parametrize("name", names_for_two())
def test_a_game_is_the_one_that_multi_agent_ale_py_played(name):
    line = json.loads(RECORD.read_text("utf-8"))[name]
    memory, timer = bytes.fromhex(line.pop("memory")), line.pop("timer")
    console = ConsoleOfTwo(name, flavours_of(name)[0], memory, timer)
    assert hash_game(console) == line


def test_every_cartridge_for_two_is_in_the_record():
    assert [*json.loads(RECORD.read_text("utf-8"))] == names_for_two()


OPTIONS = {"noop_max": 0, "use_fire_reset": False, "reward_clipping": False}


def test_the_environment_plays_what_the_console_plays_with_the_same_actions():
    """Both actions reach their players, also in a step of several frames."""
    env = TwoPlayerEnv("ram", game="joust", frameskip=3, **OPTIONS)
    same = pixelpong.make_vec(1, "ram", game="joust", opponent="self", frameskip=1, **OPTIONS)
    seen, _ = env.reset(seed=4)
    np.testing.assert_array_equal(seen["first_0"], same.reset(seed=4)[0][0])
    rng, returns = np.random.default_rng(2), np.zeros(2)
    for _ in range(150):
        moves = rng.integers(18, size=2)
        seen, rewards, ends, _, _ = env.step(dict(zip(env.possible_agents, moves, strict=True)))
        paid = np.zeros(2)
        for _ in range(3):
            memory, first, over, _, infos = same.step(moves[None])
            paid += first[0], infos["second_rewards"][0]
        assert [*rewards.values()] == paid.tolist()
        assert [*ends.values()] == [over[0]] * 2
        for agent in env.possible_agents:
            np.testing.assert_array_equal(seen[agent], memory[0])
        returns += paid
    assert (returns > 0).all(), "each has its own points"


def test_a_sticky_frame_keeps_each_players_own_action():
    options = {"game": "boxing", "opponent": "self", "repeat_action_probability": 0.5, **OPTIONS}
    envs = pixelpong.make_vec(1, "ram", **options)
    envs.reset(seed=1)
    held = []
    for moves in np.random.default_rng(1).integers(18, size=(40, 2)):
        envs.step(moves[None])
        held.append(envs.games["held"][0].tolist() == moves.tolist())
    assert 5 < sum(held) < 40


def test_rewards_of_a_zero_sum_game_are_opposite_and_both_are_clipped():
    env = TwoPlayerEnv("ram", game="joust")
    env.reset(seed=4)
    rng, seen = np.random.default_rng(2), set()
    for _ in range(150):
        seen |= {
            *env.step(dict(zip(env.agents, rng.integers(18, size=2), strict=True)))[1].values()
        }
    assert seen == {0.0, 1.0}
    boxing = TwoPlayerEnv("ram", game="boxing")
    boxing.reset(seed=1)
    for _ in range(300):
        rewards = boxing.step({"first_0": int(rng.integers(18)), "second_0": 0})[1]
        assert rewards["first_0"] == -rewards["second_0"]


def test_another_mode_is_another_game():
    first, second = (TwoPlayerEnv("ram", game="tennis", mode=mode) for mode in (2, 4))
    assert (first.reset(seed=1)[0]["first_0"] != second.reset(seed=1)[0]["first_0"]).any()


def test_one_player_plays_the_same_cartridge_as_before():
    alone, two = cartridge("boxing"), cartridge("boxing", is_for_two=True)
    assert (alone.controls, two.controls) == ("joystick", "joysticks")
    assert cartridge("seaquest", is_for_two=True).controls == "joystick"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "breakout"}, "breakout has no second player; choose pong, boxing, .* or wizard_"),
        ({"game": "warlords"}, "warlords cannot be played exactly: it is for two players"),
        ({"game": "boxin"}, "did you mean boxing"),
        ({"game": "boxing", "mode": 1}, "make_two: mode must be 2 in boxing, not 1"),
        ({"game": "boxing", "difficulty": 4}, "difficulty must be 0, 1, 2 or 3 in boxing"),
        ({"game": "boxing", "observation": "field"}, "boxing has no observation 'field'"),
        ({"mode": 1}, "mode is for a game without an opponent; leave out mode"),
    ],
)
def test_what_no_two_can_play_is_refused(options, message):
    with pytest.raises(PixelpongError, match=message) as caught:
        TwoPlayerEnv(**options)
    assert "\n" not in str(caught.value)


def test_an_agent_as_opponent_and_a_game_for_two_alone_are_refused_elsewhere():
    with pytest.raises(ConfigError, match="No agent plays boxing against another one; choose opp"):
        pixelpong.make_vec(game="boxing", opponent="club")
    with pytest.raises(PixelpongError, match="joust cannot be played exactly: it is for two"):
        pixelpong.make_vec(game="joust")


def test_unknown_actions_name_the_agents():
    env = TwoPlayerEnv("ram", game="boxing")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="must be those of first_0 and second_0, not right"):
        env.step({"right": 0})
