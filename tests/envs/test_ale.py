"""`env.ale` next to ale-py's `ALEInterface`: one frame at a time, states, memory and settings."""

from __future__ import annotations

import copy
import pickle

import ale_py
import numpy as np
import pytest

import pixelpong
from pixelpong.atari.action import Action
from pixelpong.atari.envs.ale_state import AleState
from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.errors import ConfigError

STICKY = {"frameskip": 4, "repeat_action_probability": 0.25}
GAMES = ("breakout", "pong", "assault", "seaquest", "skiing", "name_this_game")


def make_both(game, seed=5, **options):
    options = STICKY | options
    ours, theirs = (
        pixelpong.make_env(game=game, coins="ale", **options),
        make_theirs(game, **options),
    )
    ours.reset(seed=seed)
    theirs.reset(seed=seed)
    return ours, theirs


def ask(ale):
    """What is seen of a game, except its picture."""
    return (
        ale.lives(), ale.game_over(), ale.game_over(with_truncation=False), ale.game_truncated(),
        ale.getFrameNumber(), ale.getEpisodeFrameNumber(), ale.getRAM().tobytes(),
    )  # fmt: skip


def same(ours, theirs, moment):
    assert ask(ours) == ask(theirs), moment


def act(both, actions, strength=1.0, first=0):
    """Act in both; compare rewards, what is seen, and pictures after the frame `first`."""
    for moment, action in enumerate(actions):
        rewards = [ale.act(int(action), strength) for ale in both]
        assert rewards[0] == rewards[1], moment
        same(*both, moment)
        if moment >= first:
            np.testing.assert_array_equal(both[0].getScreenRGB(), both[1].getScreenRGB())


def draw(rng, count):
    """Actions of the console, each held for a while."""
    return np.repeat(rng.integers(18, size=count // 6 + 1), 6)[:count]


@pytest.mark.parametrize("game", GAMES)
def test_frames_are_ale_pys_also_between_steps_over_the_end_and_in_the_next_game(game):
    """All 18 actions, which some games do not have; coins are drawn after the end as well."""
    envs = make_both(game, max_num_frames_per_episode=600)
    both = envs[0].ale, envs[1].unwrapped.ale
    rng = np.random.default_rng(2)
    for _ in range(2):
        act(both, draw(rng, 260))
        for _ in range(30):
            (our, *ours, info), (their, *theirs, their_info) = (env.step(1) for env in envs)
            np.testing.assert_array_equal(our, their)
            assert ours == theirs
            assert info | their_info == info
        act(both, draw(rng, 260))
        assert both[1].game_over()
        for ale in both:
            ale.reset_game()
        same(*both, "the next game")


@pytest.mark.soak
@pytest.mark.parametrize("game", scored_names())
def test_frames_of_every_game_are_ale_pys(game):
    try:
        envs = make_both(game)
    except EnvError as error:
        pytest.skip(str(error))
    both = envs[0].ale, envs[1].unwrapped.ale
    rng = np.random.default_rng(2)
    act(both, draw(rng, 900))
    states = [ale.cloneState() for ale in both]
    act(both, draw(rng, 60))
    for ale, state in zip(both, states, strict=True):
        ale.restoreState(state)
    same(*both, "restored")
    act(both, draw(rng, 600), first=1)
    for ale in both:
        ale.reset_game()
    act(both, draw(rng, 100))


@pytest.mark.parametrize("strength", [0.0, 0.3, -0.7, 1.0, 2.5])
@pytest.mark.parametrize("game", ["breakout", "assault"])
def test_a_paddle_turns_as_far_as_in_ale_py(game, strength):
    envs = make_both(game, continuous=True)
    act((envs[0].ale, envs[1].unwrapped.ale), draw(np.random.default_rng(7), 150), strength)


@pytest.mark.parametrize("game", ["breakout", "assault", "seaquest"])
@pytest.mark.parametrize("include_rng", [False, True])
def test_a_state_goes_on_as_in_ale_py(game, include_rng):
    """Without the generator, other frames are sticky; the held action is never restored."""
    envs = make_both(game)
    both = envs[0].ale, envs[1].unwrapped.ale
    rng = np.random.default_rng(1)
    act(both, draw(rng, 200))
    states = [ale.cloneState(include_rng=include_rng) for ale in both]
    act(both, draw(rng, 77))
    for ale, state in zip(both, states, strict=True):
        for name in ("FrameNumber", "EpisodeFrameNumber", "CurrentMode", "Difficulty"):
            assert getattr(state, f"get{name}")() == getattr(states[1], f"get{name}")()
        assert not state.equals(ale.cloneState(include_rng=include_rng))
        ale.restoreState(state)
        assert state == ale.cloneState(include_rng=include_rng)
        assert state.equals(ale.cloneState(include_rng=include_rng))
    same(*both, "restored")
    act(both, draw(rng, 300), first=1)
    for ale in both:
        ale.reset_game()
    act(both, draw(rng, 40))


def test_a_system_state_has_the_generator():
    ale = make_both("breakout")[0].ale
    state, without = ale.cloneSystemState(), ale.cloneState()
    futures = []
    for start in (state, state, without):
        (ale.restoreSystemState if start is state else ale.restoreState)(start)
        ale.setRAM(0, 1)  # whatever came before
        for action in (1, *[3, 4] * 60):
            ale.act(action)
        futures.append(ale.getRAM().tobytes())
    assert futures[0] == futures[1] != futures[2]


@pytest.mark.parametrize("include_rng", [False, True])
def test_a_state_survives_bytes_and_pickle_and_other_environments(include_rng):
    env, other = make_both("breakout")[0], make_both("breakout", seed=9)[0]
    for action in (1, 2, 3) * 9:
        env.step(action)
    state = env.clone_state(include_rng=include_rng)
    for again in (
        AleState.read(state.serialize()), pickle.loads(pickle.dumps(state)), copy.deepcopy(state),
    ):  # fmt: skip
        assert again == state
        assert hash(again) == hash(state)
        assert (again.flavour, again.lacks) == (state.flavour, state.lacks)
        other.restore_state(again)
        assert other.clone_state(include_rng=include_rng) == state
        assert other.clone_state(include_rng=include_rng).serialize() == state.serialize()
        other.step(0)
        assert other.clone_state(include_rng=include_rng) != state


def test_a_whole_state_has_the_same_sticky_frames_again_and_one_without_has_not():
    env = make_both("breakout", repeat_action_probability=0.5)[0]
    futures = {True: set(), False: set()}
    for include_rng in futures:
        state = env.clone_state(include_rng=include_rng)
        for _ in range(4):
            env.restore_state(state)
            seen = b"".join(env.step(action)[0].tobytes() for action in (1, *[2, 3] * 20))
            futures[include_rng].add(seen)
    assert (len(futures[True]), len(futures[False])) == (1, 4)


def test_a_state_without_a_generator_is_refused_by_many_games_and_odd_bytes_by_all():
    env = make_both("breakout")[0]
    envs = pixelpong.make_vec(1, game="breakout")
    with pytest.raises(EnvError, match="has no generator; continue from it with restore_state"):
        envs.restore_state(env.ale.cloneState())
    for odd in (b"", b"odd", env.clone_state().serialize()[:-90], None, pickle.dumps(1)):
        with pytest.raises(ConfigError, match="what serialize"):
            AleState.read(odd)
    before = env.clone_state()
    for odd in (None, (), env.clone_state()[:-1], make_both("pong")[0].ale.cloneState()):
        with pytest.raises(ConfigError):
            env.ale.restoreState(odd)
    assert env.clone_state() == before


@pytest.mark.parametrize("game", ["breakout", "seaquest", "assault"])
def test_memory_that_was_written_acts_as_in_ale_py(game):
    envs = make_both(game)
    both = envs[0].ale, envs[1].unwrapped.ale
    rng = np.random.default_rng(4)
    for _ in range(40):
        act(both, draw(rng, 9))
        address, value = int(rng.integers(128)), int(rng.integers(256))
        for ale in both:
            ale.setRAM(address, value)
        same(*both, (address, value))
        assert both[0].getRAM()[address] == value


def test_memory_is_written_only_where_it_is():
    ale = make_both("breakout")[0].ale
    before = ale.getRAM()
    for address, value in ((128, 0), (-1, 0), (0, 256), (0, -1), (0.5, 0), (0, None)):
        with pytest.raises(EnvError, match="setRAM: (address|value) must be from 0 to"):
            ale.setRAM(address, value)
    np.testing.assert_array_equal(ale.getRAM(), before)
    assert make_both("breakout")[0].unwrapped.ale.setRAM(np.int64(3), np.uint8(4)) is None


KEYS = {
    "getInt": ("frame_skip", "max_num_frames_per_episode", "random_seed", "reward_min",
               "reward_max", "system_random_seed", "paddle_min", "paddle_max", "fragsize", "freq",
               "tiafreq", "volume", "max_num_frames", "sound", "repeat_action_probability"),
    "getFloat": ("repeat_action_probability", "frame_skip", "palette"),
    "getBool": ("sound", "display_screen", "color_averaging", "sound_obs", "send_rgb", "clipvol",
                "truncate_on_loss_of_life", "run_length_encoding", "restricted_action_set"),
    "getString": ("palette", "record_screen_dir", "record_sound_filename", "rom_file", "cpu",
                  "random_seed", "repeat_action_probability", "sound", "sound_obs"),
}  # fmt: skip


@pytest.mark.parametrize("game", ["breakout", "pong", "assault", "blackjack"])
@pytest.mark.parametrize("seed", [0, 3])
def test_settings_are_ale_pys(game, seed):
    ours, theirs = make_both(
        game, seed, repeat_action_probability=0.1, max_num_frames_per_episode=77
    )
    both = ours.ale, theirs.unwrapped.ale
    for method, keys in KEYS.items():
        for key in keys:
            our, their = (getattr(ale, method)(key) for ale in both)
            assert (our, type(our)) == (their, type(their)), (method, key)
    assert both[0].getAvailableModes() == both[1].getAvailableModes()


@pytest.mark.slow
def test_available_games_on_a_cartridge_are_ale_pys():
    """All that can be played here, which in most cartridges are all."""
    num_equal = 0
    for game in scored_names():
        ours = pixelpong.make_env(game=game, repeat_action_probability=0.0).ale
        theirs = make_theirs(game).unwrapped.ale
        for name in ("getAvailableModes", "getAvailableDifficulties"):
            our, their = (getattr(ale, name)() for ale in (ours, theirs))
            assert {*our} <= {*their, 0}, game  # it plays 0 without being asked
            num_equal += our == their
        assert ours.getInt("paddle_max") == theirs.getInt("paddle_max")
    assert num_equal >= 2 * len(scored_names()) - 3  # Adventure, Backgammon, Video Cube


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("getInt", ["frameskip"], "unknown setting 'frameskip'; did you mean frame_skip"),
        (
            "setFloat",
            ["repeat_action_probability", 0.5],
            "0.25 .+ give repeat_action_probability to",
        ),
        ("setInt", ["frame_skip", 4], "stays 1 .+ give frameskip to make_env"),
        ("setInt", ["random_seed", 4], "give seed to reset"),
        ("setBool", ["sound", True], "There is no sound; leave out sound"),
        ("setBool", ["display_screen", True], "show what render"),
        ("setString", ["record_screen_dir", "x"], "leave it out"),
        ("setString", ["rom_file", "x"], "give game to make_env"),
        ("setMode", [4], "mode stays 0 .+ give mode to make_env"),
        ("setMode", [3], "mode must be one of .+ not 3"),
        ("setDifficulty", [1], "difficulty stays 0 .+ give difficulty to make_env"),
        ("loadROM", ["pong.bin"], "has one game: make another one"),
        ("saveScreenPNG", ["x.png"], r"getScreenRGB\(\) to a library"),
        ("getAudio", [], "There is no sound"),
        ("getAudioSize", [], "There is no sound"),
        ("isSupportedROM", ["nothing.bin"], "is not a file"),
        ("act", [18], "from 0 to 17, not 18"),
        ("act", [-1], "from 0 to 17"),
        ("act", ["UP"], "from 0 to 17"),
        ("act", [3, 0.5], "paddle_strength stays 1 .+ give continuous=True"),
        ("act", [3, float("nan")], "paddle_strength must be at most"),
    ],
)
def test_what_cannot_be_done_here_is_refused_and_says_what_to_do(method, given, says):
    ale = make_both("breakout")[0].ale
    before = ask(ale)
    with pytest.raises(EnvError, match=says):
        getattr(ale, method)(*given)
    assert ask(ale) == before


def test_what_changes_nothing_is_accepted():
    env = make_both("breakout", frameskip=1)[0]
    ale = env.ale
    ale.setFloat("repeat_action_probability", 0.25)
    ale.setInt("frame_skip", 1)
    ale.setBool("display_screen", False)
    ale.setString("palette", "standard")
    ale.setMode(0)
    ale.setDifficulty(0)
    ale.setLoggerMode(ale_py.LoggerMode.Error)
    assert ale.act(ale_py.Action.FIRE) == ale.act(Action.FIRE) == ale.act(np.int64(1)) == 0
    assert ale.getFrameNumber() == 3


def test_every_method_of_ale_pys_interface_is_there():
    names = {name for name in dir(ale_py.ALEInterface) if not name.startswith("_")}
    assert names <= {*dir(pixelpong.make_env(game="breakout").ale)}
    assert {it for it in dir(ale_py.ALEState) if not it.startswith("_")} <= {*dir(AleState)}


def test_a_rom_is_known_by_its_content(tmp_path):
    ale = make_both("breakout")[0].ale
    assert ale.isSupportedROM(ale.getString("rom_file")) == "breakout"
    (tmp_path / "breakout.bin").write_bytes(bytes(4096))
    assert ale.isSupportedROM(tmp_path / "breakout.bin") is None


def test_without_an_episode_nothing_is_played():
    for env, says in (
        (pixelpong.make_env(game="breakout"), "No episode is in progress"),
        (pixelpong.make_env(opponent="club"), "without an opponent"),
    ):
        with pytest.raises(EnvError, match=says):
            env.ale.act(1)
    env = pixelpong.make_env(game="breakout")
    with pytest.raises(EnvError, match="No episode"):
        env.ale.setRAM(0, 0)
    env.ale.reset_game()
    env.ale.act(1)
    assert env.ale.getEpisodeFrameNumber() == 1


def test_frames_of_our_own_coins_continue_with_steps():
    """Pong by default; a state has the seed of its coins."""
    env = pixelpong.make_env(sticky=0.5)
    env.reset(seed=3)
    state = env.ale.cloneState(include_rng=True)
    futures = []
    for _ in range(2):
        env.ale.restoreState(state)
        for k in range(150):
            env.ale.act(3 if k % 7 < 3 else 4)
        futures.append(env.step(2)[0].tobytes())
    assert futures[0] == futures[1]
