"""Many games as stable-baselines3 takes them, and its own wrappers around one; `make peers`."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from classic import count_ends

import pixelpong
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.errors import ConfigError

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        importlib.util.find_spec("stable_baselines3") is None,
        reason="no stable-baselines3: make peers",
    ),
    # Theirs, on the way in.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]

SHORT = {"max_num_frames_per_episode": 200, "repeat_action_probability": 0.25}


def play_beside(size, steps, clips=True, **options):
    """The infos of ended games on `make_sb3`, each step compared with `make_vec`; and its lives."""
    ours = pixelpong.make_sb3(size, reward_clipping=clips, **options)
    both = {"autoreset_mode": "SameStep", "reward_clipping": False, "life_loss_info": False}
    plain = pixelpong.make_vec(size, **options | both)
    ours.seed(4)
    wanted, infos = plain.reset(seed=4)
    np.testing.assert_array_equal(ours.reset(), wanted)
    rng, told, lives = np.random.default_rng(0), [], infos["lives"]
    for _ in range(steps):
        actions = rng.integers(plain.single_action_space.n, size=size)
        wanted, rewards, over, cut, infos = plain.step(actions)
        seen, our_rewards, done, listed = ours.step(actions)
        np.testing.assert_array_equal(seen, wanted)
        assert our_rewards.dtype == np.float32
        np.testing.assert_array_equal(our_rewards, np.clip(rewards, -1, 1) if clips else rewards)
        is_lost = (infos["lives"] < lives) & (infos["lives"] > 0) & ~over & ~cut
        ends = over | cut | (is_lost if options.get("life_loss_info") else False)
        np.testing.assert_array_equal(done, ends)
        for i, info in enumerate(listed):
            assert ("terminal_observation" in info) == done[i]
            assert ("episode" in info) == bool(over[i] or cut[i])
            if done[i]:
                final = infos["final_obs"][i] if over[i] or cut[i] else wanted[i]
                np.testing.assert_array_equal(info["terminal_observation"], final)
                assert info["TimeLimit.truncated"] == (cut[i] and not over[i])
                told.append(info)
        lives = infos["lives"]
    return told


def test_its_games_are_those_of_make_vec():
    told = play_beside(3, 160, **SHORT)
    assert [info["episode"]["l"] for info in told] == [50] * 9
    assert all(info["TimeLimit.truncated"] for info in told)


def test_an_episodes_return_is_that_of_the_whole_game_before_rewards_are_clipped():
    """A lost life is an end for the agent, with the picture at which the game goes on."""
    told = play_beside(4, 900, game="space_invaders", life_loss_info=True)
    whole = [info["episode"] for info in told if "episode" in info]
    assert 0 < len(whole) < len(told)
    assert max(each["r"] for each in whole) > 100
    told = play_beside(2, 400, game="breakout", clips=False, noop_max=0)
    assert {info["episode"]["r"] for info in told} >= {2.0}


def test_its_tools_find_what_they_look_for():
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, is_vecenv_wrapped

    envs = pixelpong.make_sb3(2, actions="three", render_mode="rgb_array", **SHORT)
    assert envs.env_is_wrapped(Monitor) == [True, True]
    assert envs.get_attr("game", [1]) == ["pong"]
    agent = PPO("CnnPolicy", envs, n_steps=64, n_epochs=1, batch_size=64, seed=1, device="cpu")
    agent.learn(256)
    assert len(agent.ep_info_buffer) == 4
    assert envs.render().shape == (420, 160, 3)
    returns, lengths = evaluate_policy(agent, envs, n_eval_episodes=4, return_episode_rewards=True)
    assert (len(returns), set(lengths)) == (4, {50})
    assert not is_vecenv_wrapped(envs, VecMonitor)
    stacked = VecFrameStack(pixelpong.make_sb3(1, **SHORT), 2)
    with pytest.warns(UserWarning, match="already wrapped"):
        monitored = VecMonitor(stacked)
    monitored.reset()
    *_, infos = [monitored.step(np.zeros(1, int)) for _ in range(50)][-1]
    assert infos[0]["episode"]["l"] == 50


def test_the_episodes_of_each_game_are_in_a_file_that_its_tools_read(tmp_path):
    from stable_baselines3.common.monitor import get_monitor_files

    folder = tmp_path / "new" / "monitor"
    envs = pixelpong.make_sb3(2, monitor_dir=folder, **SHORT)
    envs.reset()
    told = []
    for _ in range(110):
        *_, infos = envs.step(np.ones(2, int))
        told += [info["episode"] for info in infos if "episode" in info]
    envs.close()
    assert [Path(it).name for it in sorted(get_monitor_files(str(folder)))] == [
        "0.monitor.csv", "1.monitor.csv"
    ]  # fmt: skip
    texts = [path.read_text("utf-8").splitlines()[1:] for path in sorted(folder.iterdir())]
    rows = [row for text in texts for row in csv.DictReader(text)]
    assert len(told) == 4
    for name in ("r", "l"):
        assert sorted(float(row[name]) for row in rows) == sorted(it[name] for it in told)
    with pytest.raises(ConfigError, match="already has the episodes of another training; give"):
        pixelpong.make_sb3(2, monitor_dir=folder, **SHORT)
    (tmp_path / "a file").touch()
    for odd in (tmp_path / "a file", object(), "\0"):
        with pytest.raises(ConfigError, match="make_sb3: monitor_dir .* cannot be written"):
            pixelpong.make_sb3(2, monitor_dir=odd, **SHORT)


def test_a_game_continues_from_the_state_of_another_one():
    envs = pixelpong.make_sb3(3, "ram", game="breakout", repeat_action_probability=0.25)
    envs.reset()
    for _ in range(20):
        envs.step(np.ones(3, int))
    (state,) = envs.env_method("clone_state", indices=[2])
    assert envs.env_method("restore_state", state, indices=[0, 1]) == [None, None]
    for _ in range(5):
        observations, *_ = envs.step(np.full(3, 2))
        assert (observations == observations[0]).all()
    envs.seed(1)
    envs.reset()
    envs.env_method("restore_state", state, include_rng=False)
    seen = [envs.step(np.full(3, 2 + step % 2))[0] for step in range(9)]
    assert not all((it == it[0]).all() for it in seen)


def test_what_games_that_share_an_environment_cannot_do_is_refused():
    envs = pixelpong.make_sb3(2, "field", **SHORT)
    for call, says in (
        (lambda: envs.set_attr("game", "breakout"), "cannot set game one by one"),
        (lambda: envs.env_method("reset"), "cannot call reset one by one"),
        (lambda: pixelpong.make_sb3(2, autoreset_mode="NextStep"), "itself sets autoreset_mode"),
        (lambda: pixelpong.make_sb3(2, frameskip=0), "make_sb3: frameskip must be"),
    ):
        with pytest.raises(ConfigError, match=says):
            call()
    envs.set_options({"reset_mask": [True]})
    with pytest.raises(ConfigError, match="reset.. has no options"):
        envs.reset()
    envs.close()


@pytest.mark.parametrize(("game", "frames"), [("pong", 6000), ("breakout", 2400)])
def test_its_atari_wrapper_gives_what_it_gives_of_ale_pys_environment(game, frames):
    """With no-ops, skipped frames, lives as episodes, the button, and clipped rewards."""
    from stable_baselines3.common.atari_wrappers import AtariWrapper

    rules = {"frameskip": 1, "repeat_action_probability": 0.25}
    ours = AtariWrapper(pixelpong.make_env(game=game, coins="ale", **rules))
    theirs = AtariWrapper(make_theirs(game, **rules))
    assert count_ends(ours, theirs, 3, frames // 4) > 0


def test_cleanrls_wrappers_give_what_they_give_of_ale_pys_environment():
    """In the order of its ``ppo_atari.py`` and ``dqn_atari.py``."""
    from stable_baselines3.common import atari_wrappers

    def make(env):
        env = gymnasium.wrappers.RecordEpisodeStatistics(env)
        env = atari_wrappers.NoopResetEnv(env, noop_max=30)
        env = atari_wrappers.MaxAndSkipEnv(env, skip=4)
        env = atari_wrappers.EpisodicLifeEnv(env)
        if "FIRE" in env.unwrapped.get_action_meanings():
            env = atari_wrappers.FireResetEnv(env)
        env = atari_wrappers.ClipRewardEnv(env)
        env = gymnasium.wrappers.ResizeObservation(env, (84, 84))
        env = gymnasium.wrappers.GrayscaleObservation(env)
        return gymnasium.wrappers.FrameStackObservation(env, 4)

    rules = {"frameskip": 1, "repeat_action_probability": 0.0}
    ours = make(pixelpong.make_env(game="breakout", **rules))
    theirs = make(make_theirs("breakout", **rules))
    assert ours.observation_space == theirs.observation_space
    # An episode's statistics have the time that it took.
    assert count_ends(ours, theirs, 3, 500, ignored=("episode",)) > 0
