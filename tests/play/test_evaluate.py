"""Evaluation: no episode is left out, the interval is a bootstrap's."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import pixelpong
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.config import Config
from pixelpong.config.protocols import find_protocol
from pixelpong.engines import Engine
from pixelpong.errors import ConfigError, Interrupted
from pixelpong.evaluation import (
    bootstrap_interval,
    configure_play,
    describe_games,
    evaluate_params,
    play_games,
)
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.play.worker import make_worker
from pixelpong.run.lines import Evaluation


@pytest.fixture
def play(toy):
    engine = Engine(lambda: make_worker(toy))
    params = ReinforceLearner(toy).params

    def go(**changes):
        options = {"seed": 0, "episodes": 12, "is_greedy": False, **changes}
        return describe_games(play_games(engine, params, **options), options["seed"])

    return go


def test_an_evaluation_has_every_return(play):
    told = []
    result = play(tell=told.append)
    assert len(result.returns) == 12
    assert result.mean_return == pytest.approx(np.mean(result.returns))
    assert result.std == pytest.approx(np.std(result.returns, ddof=1))
    assert result.ci95[0] <= result.mean_return <= result.ci95[1]
    assert told == [*range(1, 13)], "how far it is"
    one = play(episodes=1)
    assert (one.std, one.ci95) == (0.0, (one.mean_return, one.mean_return))


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_parameters_are_evaluated_on_the_engine_of_the_configuration(toy, play, engine):
    params, told = ReinforceLearner(toy).params, []
    config = toy.updated({"engine": engine, "workers": 2}, "test")
    games = {"seed": 3, "episodes": 5}
    result = evaluate_params(config, params, **games, is_greedy=True, tell=told.append)
    assert result == play(**games, is_greedy=True) != play(**games)
    assert told == [1, 2, 3, 4, 5]


def test_an_evaluation_of_parameters_can_be_stopped(toy):
    params = ReinforceLearner(toy).params
    with pytest.raises(Interrupted):
        evaluate_params(toy, params, seed=0, episodes=9, is_greedy=True, should_stop=lambda: True)


def test_an_agents_games_are_by_its_own_protocol_unless_an_environment_is_named():
    own = find_protocol("Pong-v0", None, 0.5, 240)
    assert configure_play("ppo", own, {}).protocol == own
    config = configure_play("ppo", own, {"max_frames": 99, "workers": 2})
    assert config.protocol == find_protocol("Pong-v0", None, 0.5, 99)
    assert (config.algorithm, config.workers) == ("ppo", 2)
    named = configure_play("ppo", own, {"environment": "ALE/Pong-v5"})
    assert named.protocol == Config().protocol
    with pytest.raises(ConfigError, match="evaluate does not take the option hidden. It takes env"):
        configure_play("ppo", own, {"hidden": 3})


def test_a_game_of_an_evaluation_depends_on_seed_and_place_alone(play):
    """No bias towards short episodes: number 3 is the same whether 4 or 12 are asked for."""
    result = play()
    assert play() == result
    assert play(episodes=4).returns == result.returns[:4]
    assert play(seed=2).returns != result.returns
    assert play(is_greedy=True).returns != result.returns


@pytest.mark.slow
def test_the_interval_covers_the_true_mean_about_95_times_in_100():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        low, high = bootstrap_interval(rng.normal(3.0, 2.0, size=60), rng)
        hits += low <= 3.0 <= high
    assert 0.90 <= hits / 300 <= 0.98


RULES = "ALE/Pong-v5 with frame skip 2, sticky 0.6, at most 400 frames"


def test_an_evaluation_names_the_rules_that_were_played(toy_runs, call, report):
    words = ["evaluate", toy_runs["fast"], "--episodes", 2, "--engine", "serial"]
    rules = ["--sticky", 0.6, "--frame-skip", 2, "--max-frames", 400]
    assert f"greedy play on {RULES}, seed 0\n" in call(*words, *rules)[1]
    told = report(*words, *rules)
    assert (told["protocol"], told["environment"]) == (RULES, "ALE/Pong-v5")
    assert (told["frame_skip"], told["sticky"], told["max_frames"]) == ([2, 2], 0.6, 400)
    assert "greedy play on ALE/Pong-v5 with at most 300 frames, seed 0\n" in call(*words)[1]
    other = call(*words, "--environment", "Pong-v0", "--max-frames", 300)[1]
    assert "greedy play on Pong-v0 with at most 300 frames" in other


def test_whatever_shows_a_run_or_its_agent_names_its_rules(make_run, call, capsys):
    own = {"frame_skip": 2, "sticky": 0.6, "max_frames": 400}
    train(run := make_run(updates=2, evaluate_every=1, evaluate_episodes=2, **own))
    (line, *_), (kept, *_) = run.evaluations.read(), run.evaluations.read(Evaluation)
    assert line["protocol"] == kept.protocol == RULES
    assert (line["frame_skip"], line["sticky"], line["max_frames"]) == ([2, 2], 0.6, 400)
    assert f" on {RULES}\n" in repr(pixelpong.Run(run.path))
    assert f" on {RULES}, update " in repr(pixelpong.Policy.load(run.path))
    assert f"{RULES}\n" in call("runs", run.path)[1]
    found = pixelpong.runs(run.path).to_dict()
    assert found["protocol"] == found["greedy"]["protocol"] == RULES
    assert f"preset classic, {RULES}, seed" in call("resume", run.path, "--updates", 3)[1]


def test_an_exported_agent_is_named_after_its_run(make_run, call, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    train(make_run("runs/v1.5", updates=1))
    for word, name in (("latest", "v1.5"), ("v1.5@1", "v1.5"), ("club", "club")):
        code, out, _ = call("export", word)
        assert (code, out.split(":")[0]) == (0, f"{name}.safetensors")
    assert pixelpong.export(pixelpong.Run("latest")).facts["file"] == "v1.5.safetensors"


@pytest.mark.slow
def test_an_agent_plays_the_same_in_gymnasiums_own_environment_again(report, call, monkeypatch):
    """Cut off, for its game lasts 8,000 steps; who looks at nothing has lost 20 points then."""
    monkeypatch.setattr(
        "pixelpong.atari.envs.gym.make_theirs", lambda game: TimeLimit(make_theirs(game), 1000)
    )
    words = ["evaluate", "champion", "--in-gymnasium"]
    told = report(*words, "--episodes", "1", "--seed", "3", "--sampled")
    assert (told["in_gymnasium"], told["environment"]) == (True, "ALE/Pong-v5")
    assert told["mean_return"] > 1
    again = pixelpong.evaluate("champion", 1, seed=3, sampled=True, in_gymnasium=True)
    assert list(again.returns) == told["returns"]
    code, _, err = call(*words, "--sticky", "0")
    assert code == 2
    assert "Gymnasium's game takes no options. Leave out sticky." in err


class TheirEnvironment:
    """Stands in for Gymnasium's: two steps a game; it writes down the seeds and the actions."""

    def __init__(self):
        self.seeds, self.actions = [], []

    def reset(self, *, seed):
        self.seeds.append(seed)
        self.actions.append([])
        return self.draw(), {}

    def step(self, action):
        self.actions[-1].append(action)
        is_over = len(self.actions[-1]) == 2
        return self.draw(), -1.0 if is_over else 0.0, is_over, False, {}

    def draw(self):
        rng = np.random.default_rng(0)
        return rng.choice(np.array([109, 236], np.uint8), (210, 160, 3))

    def close(self):
        pass


def test_games_in_gymnasium_have_seeds_of_their_own_and_leave_the_policy_alone(monkeypatch):
    env = TheirEnvironment()
    monkeypatch.setattr("pixelpong.atari.envs.gym.make_theirs", lambda game: env)
    policy = pixelpong.Policy.load("club")
    policy.act(env.draw())
    before = policy._memory
    found = pixelpong.evaluate(policy, 4, seed=3, in_gymnasium=True)
    assert policy._memory is before
    assert (found.returns, found.mean_steps) == ((-1.0,) * 4, 2.0)
    assert len({*env.seeds}) == 4
    pixelpong.evaluate(policy, 2, seed=3, in_gymnasium=True, sampled=True)
    pixelpong.evaluate(policy, 2, seed=4, in_gymnasium=True)
    assert env.seeds[4:6] == env.seeds[:2]
    assert len({*env.seeds}) == 6


def test_the_interval_leaves_out_two_and_a_half_per_cent_at_either_end():
    """Worked out: of 16 coins 2.5 % is at 4 heads, of which 5 % is at 5 and 1 % at 3.

    P(at most 3) = 1.1 %, P(at most 4) = 3.8 %. Of many values the mean is normal.
    """
    coins = [0.0] * 8 + [1.0] * 8
    assert bootstrap_interval(coins, np.random.default_rng(0)) == (4 / 16, 12 / 16)
    values = np.random.default_rng(1).normal(3.0, 2.0, size=1000)
    low, high = bootstrap_interval(values, np.random.default_rng(2))
    reach = 1.959964 * values.std() / np.sqrt(1000)  # of 94 % it is 1.881, of 96 % 2.054
    assert values.mean() - low == pytest.approx(reach, rel=0.03)
    assert high - values.mean() == pytest.approx(reach, rel=0.03)


def test_sampled_games_are_other_games_than_greedy_ones():
    greedy, sampled = (
        pixelpong.evaluate("club", 4, seed=3, max_frames=3000, sampled=sampled)
        for sampled in (False, True)
    )
    assert greedy.returns != sampled.returns


def test_an_agent_plays_by_the_rules_by_which_it_was_trained(make_run):
    run = make_run(updates=1, frame_skip=3, sticky=0.5, max_frames=240)
    train(run)
    found = pixelpong.evaluate(str(run.path), 1).to_dict()
    rules = {"frame_skip": [3, 3], "sticky": 0.5, "max_frames": 240, "mean_steps": 80}
    assert found | rules == found
