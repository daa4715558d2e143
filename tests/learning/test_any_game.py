"""What is recorded of any game: rewards, ends, episodes, preferences; and the settings."""

from __future__ import annotations

import numpy as np
import pytest
from toys import toy_config

from pixelpong.config import OPTIONS
from pixelpong.config.presets import combine
from pixelpong.errors import ConfigError
from pixelpong.items import Item
from pixelpong.learn.ppo import RATE_BOUNDS, steer
from pixelpong.learners import make_learner
from pixelpong.play.player import Player
from pixelpong.play.scenes import find_scene, list_parts, scene_of
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng
from pixelpong.session import opened

ORIGINS = "file", "here"


@pytest.fixture(scope="module")
def player() -> Player:
    config = toy_config("atari", max_frames=None)
    return Player(config.protocol, "ppo", life_cost=0.25)


@pytest.fixture(scope="module")
def params():
    from pixelpong.play.networks import NETS

    return NETS["ppo"].init(scene_of("breakout"), make_rng(3, "params"), 8, "float64")


# --- what is played -----------------------------------------------------------------------------


def test_each_of_breakouts_five_lives_is_an_end_and_costs_and_a_brick_is_worth_one(player, params):
    result = player.play(Item("train", 5, 0, 0), params)
    (episode,), steps = result.episodes, result.sides[0].steps
    rewards, is_end = steps["reward"], steps["is_end"]
    assert (is_end.sum(), is_end[-1], len(steps)) == (5, True, episode.steps)
    assert set(rewards[is_end].tolist()) <= {-0.25, 0.75}, "a life, and a brick in the same step"
    assert set(rewards[~is_end].tolist()) == {0.0, 1.0}, "also for bricks that score more"
    assert episode.episode_return >= (rewards > 0).sum() > 0
    assert 4 * (episode.steps - 1) < result.frames == episode.frames <= 4 * episode.steps


def test_an_evaluated_game_follows_from_its_seed_and_its_index_and_opens_in_many_ways(
    player, params
):
    games = [player.play(Item("evaluate", 5, 0, index), params) for index in (0, 0, 1, 2, 3)]
    one, again, *others = (game.sides[0].indices.tobytes() for game in games)
    assert one == again
    assert len({one, *others}) == 4
    starts = [player.play(Item("train", 5, 0, index, steps=1), params) for index in range(40)]
    frames = [int(start.streams["game"]["episode_frames"][0]) for start in starts]
    assert len(set(frames)) > 10, "up to 29 frames without a press"


def test_preferences_are_part_of_the_policy_that_is_recorded(player, params):
    scene = scene_of("breakout")
    streams = np.zeros(1, scene.stream)
    streams["preferences"][0, 2] = 50.0
    result = player.play(Item("train", 5, 0, 0, steps=60, streams=streams), params)
    steps = result.sides[0].steps[:-1]
    assert (steps["action"] == 2).all()
    np.testing.assert_allclose(steps["log_probability"], 0, atol=1e-6)
    np.testing.assert_allclose(steps["entropy"], 0, atol=1e-6)


# --- what is learned ----------------------------------------------------------------------------


def test_a_quarter_of_the_games_explores_less_and_less_and_is_not_counted():
    config = toy_config("atari", num_envs=8, explore_share=0.25, anneal_steps=1000)
    learner = make_learner(config)
    sizes = []
    for steps in (0, 500, 1000):
        learner.progress.steps = steps
        preferences = np.array([item.streams["preferences"][0] for item in learner.items()])
        explores = preferences.any(axis=1)
        assert explores.tolist() == [steps < 1000] * 2 + [False] * 6
        assert not preferences[:, len(scene_of("breakout").actions) :].any()
        sizes.append(np.abs(preferences).sum())
    assert sizes[0] == pytest.approx(2 * sizes[1])
    assert sizes[2] == 0


def test_only_a_scene_says_which_games_explore_have_points_and_are_seen_in_many_inputs(
    tmp_path, monkeypatch
):
    for preset, facts in {"atari": (True, False), "fast": (False, True)}.items():
        explores, has_points = facts
        scene = make_learner(toy_config(preset)).scene
        streams = np.zeros(3, scene.stream)
        preferences = scene.preferences_of(streams)
        assert preferences.shape == (3, len(scene.actions) if explores else 0)
        preferences[:] = 1.0
        assert [scene.end(each, "builtin").explores for each in streams] == [explores] * 3
        steps = np.zeros((2, 3), [("reward", "f4"), ("action", "i1")])
        steps["reward"][1], steps["action"][0] = [0, 1, -1], 1
        assert scene.list_points(steps) == ([1, -1] if has_points else [])
        assert scene.count_ups(steps) == (3 if has_points else None)
    asked = []
    monkeypatch.setattr(
        "pixelpong.session.encode_small", lambda *given: asked.append(given[3]) or b""
    )
    for preset in ("atari", "fast"):
        config = toy_config(preset, save_agent_every=1)
        with opened(RunDirectory.create(tmp_path / preset, config), 0.0) as session:
            session.save()
            assert asked.pop() is (preset == "atari"), "saved as it begins"


def test_the_rate_is_steered_to_the_target_and_stays_between_its_bounds():
    low, high = RATE_BOUNDS
    assert [steer(1e-3, kl, 0.01) for kl in (0.016, 0.015, 0.01, 0.0067, 0.0066)] == [
        1e-3 / 1.3, 1e-3, 1e-3, 1e-3, 1e-3 * 1.3,
    ]  # fmt: skip
    assert (steer(low, 1.0, 0.01), steer(high, 0.0, 0.01)) == (low, high)


@pytest.mark.parametrize(
    ("action", "parts"),
    [(0, (0, 0, 0)), (1, (0, 0, 1)), (2, (0, 1, 0)), (3, (1, 0, 0)), (17, (2, 2, 1))],
)
def test_an_action_is_made_of_a_direction_across_one_up_or_down_and_the_button(action, parts):
    """ALE's noop, fire, up, right, and down-left-fire."""
    first = np.array([19, 22, 25])
    assert list_parts(tuple(range(18)))[action].tolist() == (first + parts).tolist()


def test_actions_that_share_a_part_share_its_output_and_no_two_have_all():
    names = list_parts(tuple(range(18)))
    assert len({tuple(each) for each in names.tolist()}) == 18
    assert scene_of("boxing").num_outputs == 18 + 1 + 8


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, it in OPTIONS.items() if it.games])
def test_an_option_of_one_kind_of_game_is_refused_for_the_other(name):
    option, default = OPTIONS[name], OPTIONS[name].default
    given = {name: "ppo" if name == "algorithm" else 5.0 if default is None else default}
    for game, kind in (("pong", "others"), ("breakout", "pong")):
        options = {"game": game, "algorithm": "ppo"} if game == "pong" else {"game": game}
        if option.games == kind:
            with pytest.raises(ConfigError, match=name):
                combine(None, {}, options | given, ORIGINS)
        else:
            combine(None, {}, options | given, ORIGINS)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"game": "brakeout"}, "did you mean breakout"),
        ({"game": "pitfall2"}, "cannot be played"),
        ({"game": "breakout", "preset": "fast"}, "The preset fast is for Pong"),
        ({"preset": "atari"}, "choose a --game"),
    ],
)
def test_a_game_or_a_preset_that_does_not_fit_is_refused_in_a_sentence(given, words):
    given = dict(given)
    with pytest.raises(ConfigError, match=words):
        combine(given.pop("preset", None), {}, given, ORIGINS)


def test_without_a_preset_the_game_chooses_it_and_the_steps_set_the_fall_of_the_rate():
    config = combine(None, {}, {"game": "breakout", "total_timesteps": 7000}, ORIGINS)
    assert (config.preset, config.anneal_steps, str(config.protocol)) == (
        "atari", 7000, "ALE/Breakout-v5",
    )  # fmt: skip
    given = {"game": "breakout", "total_timesteps": 7000, "anneal_steps": 90}
    assert combine(None, {}, given, ORIGINS).anneal_steps == 90
    assert combine(None, {}, {}, ORIGINS).preset == "fast"


def test_a_sight_goes_into_the_state_and_back():
    scene = find_scene("breakout")
    other = scene_of("breakout").with_arrays(scene.arrays())
    for name, value in vars(scene.sight).items():
        np.testing.assert_array_equal(getattr(other.sight, name), value, err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sight.background", np.zeros((210, 159), np.uint8)),
        ("sight.background", np.zeros((210, 160), np.int64)),
        ("sight.classes", np.full(256, 16, np.uint8)),
        ("sight.classes", np.zeros(256, np.uint8)),
        ("sight.player", np.array([16])),
        ("sight.player", np.array([-1])),
        ("sight.player_size", np.array([-1])),
    ],
)
def test_a_sight_that_would_lead_compiled_code_astray_is_refused(name, value):
    arrays = find_scene("breakout").arrays() | {name: value}
    with pytest.raises(ValueError, match="its sight has"):
        scene_of("breakout").with_arrays(arrays)


@pytest.mark.parametrize(
    "field", ["last_actions", "num_features", "num_small", "features", "position", "newest"]
)
def test_streams_that_would_lead_compiled_code_astray_are_refused(field):
    config = toy_config("atari")
    learner = make_learner(config)
    arrays, counters = learner.get_state()
    streams = arrays["streams"].copy()
    records = streams.view(learner.scene.stream)[:, 0]
    (records["game"] if field == "newest" else records)[field][:] = (
        -1 if field != "features" else 65000
    )
    with pytest.raises(Exception, match="out of range"):
        make_learner(config).set_state(arrays | {"streams": streams}, counters)
