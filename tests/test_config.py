"""Options: layers, presets, files, validation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixelpong.config import OPTIONS, Config, differences
from pixelpong.config.presets import combine, load_preset, read_toml
from pixelpong.config.protocols import find_protocol
from pixelpong.errors import ConfigError


def test_defaults_are_the_seeds_numbers():
    config = Config()
    assert config.hidden == 200
    assert config.batch_size == 10
    assert config.learning_rate == 1e-4
    assert config.decay_rate == 0.99
    assert config.gamma == 0.99


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("karpathy", {"batch_size": 10, "episodes": 8000, "environment": "Pong-v0"}),
        ("ray", {"batch_size": 4, "updates": 20, "environment": "ALE/Pong-v5"}),
        ("numpy", {"batch_size": 3, "episodes": 3, "verbose": True, "seed": 12288743}),
        ("classic", {"batch_size": 10, "updates": 100, "environment": "ALE/Pong-v5"}),
    ],
)
def test_presets_reproduce_the_seeds_settings(preset, expected):
    flat = vars(load_preset(preset))
    assert flat["preset"] == preset
    assert {name: flat[name] for name in expected} == expected
    assert (flat["learning_rate"], flat["gamma"], flat["hidden"]) == (1e-4, 0.99, 200)


def test_flat_form_and_configuration_are_inverse():
    config = load_preset("ray").updated({"sticky": 0.5, "until_return": 3}, "test")
    assert Config().updated(vars(config), "test") == config


def test_an_unknown_key_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"my file: .*'batch_sise'; did you mean batch_size\?"):
        Config().updated({"batch_sise": 3}, "my file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0), ("batch_size", 1.5), ("batch_size", True), ("batch_size", "10"),
        ("learning_rate", -1.0), ("learning_rate", float("nan")), ("learning_rate", float("inf")),
        ("sticky", 1.01), ("gamma", 1.0001), ("seed", -1), ("seed", None), ("workers", 0),
        ("environment", "Pong-v9"), ("engine", "processes"), ("until_return", 21.5),
        ("verbose", 1), ("dtype", "float16"), ("hidden", [200]), ("clip_coef", 0.0),
        ("updates", np.True_), ("updates", np.float32(1.0)), ("sticky", np.float32("nan")),
    ],
)  # fmt: skip
def test_a_value_out_of_range_says_what_was_expected_and_what_was_got(name, value):
    with pytest.raises(ConfigError, match=f"^here: expected {name} to be ") as caught:
        Config().updated({name: value}, "here")
    assert f"got {value!r}" in str(caught.value)
    assert caught.value.exit_code == 2


def test_numpys_numbers_are_numbers_and_become_pythons():
    given = {"updates": np.int64(3), "sticky": np.float32(0.5), "gamma": np.int8(1)}
    flat = vars(Config().updated(given, "here"))
    assert [repr(flat[name]) for name in given] == ["3", "0.5", "1.0"]


@pytest.mark.parametrize(
    ("preset", "content", "given", "wanted"),
    [
        (None, "", {}, {"preset": "fast", "algorithm": "ppo"}),
        (None, "preset = 'ray'\nhidden = 10", {}, {"preset": "ray", "batch_size": 4, "hidden": 10}),
        (None, "num_envs = 2", {"num_envs": 3}, {"preset": "fast", "num_envs": 3}),
        ("classic", "preset = 'ray'", {"preset": "classic"}, {"preset": "classic", "updates": 100}),
        ("classic", "until_return = 18", {}, {"until_return": 18.0, "updates": None}),
        (
            None,
            "until_return = 18\nupdates = 7",
            {"updates": 1},
            {"until_return": 18.0, "updates": 1, "total_timesteps": None},
        ),
    ],
)
def test_the_command_line_goes_over_the_file_over_the_preset(
    tmp_path, preset, content, given, wanted
):
    """A budget replaces the preset's; one on the command line is added to the file's."""
    (tmp_path / "mine.toml").write_text(content)
    content = read_toml(tmp_path / "mine.toml")
    flat = vars(combine(preset, content, given, ("mine.toml", "train")))
    assert {name: flat[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("preset", "content", "given", "words"),
    [
        (None, "", {"batch_size": 20}, "train: batch_size is an option of REINFORCE"),
        ("classic", "", {"num_envs": 8}, "train: num_envs is an option of PPO"),
        (None, "decay_rate = 0.9", {}, r"mine\.toml: decay_rate is an option of REINFORCE"),
        (
            None,
            "num_envs = 8",
            {"algorithm": "reinforce"},
            r"mine\.toml: num_envs is .* PPO, which",
        ),
        ("classic", "preset = 'fast'\nvf_coef = 3", {}, "vf_coef .*a preset with PPO"),
    ],
)
def test_an_option_of_the_other_algorithm_is_refused(tmp_path, preset, content, given, words):
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(ConfigError, match=words):
        combine(preset, read_toml(tmp_path / "mine.toml"), given, ("mine.toml", "train"))


def test_options_that_do_not_change_the_result_are_free():
    config = load_preset("classic")
    other = config.updated({"workers": 7, "engine": "serial", "updates": 5, "seed": 3}, "test")
    assert differences(config, other) == {"seed": (0, 3)}
    assert set(differences(config, other, with_free=True)) == {
        "seed", "workers", "engine", "updates",
    }  # fmt: skip


def test_an_option_is_free_only_where_the_parameters_cannot_depend_on_it():
    bound = {name for name, each in OPTIONS.items() if not each.is_free}
    assert bound == {
        "seed", "environment", "frame_skip", "sticky", "max_frames", "hidden", "dtype",
        "algorithm", "learning_rate", "gamma", "batch_size", "decay_rate",
        "num_envs", "num_steps", "update_epochs", "num_minibatches", "clip_coef", "gae_lambda",
        "gae_lambda_end", "ent_coef", "vf_coef", "anneal_from", "restart_after",
        "anneal_steps", "opponent",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"batch_size 10", "a TOML file at"), (b"\xff\xfe", "a TOML file at"), (None, "No such")],
)
def test_a_file_that_is_no_toml_is_one_line(tmp_path, content, words):
    if content is not None:
        (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        read_toml(tmp_path / "bad.toml")


NAMES = st.text(max_size=12) | st.sampled_from(list(OPTIONS))
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@given(st.dictionaries(NAMES, VALUES, max_size=3))
@pytest.mark.slow
def test_any_mapping_gives_a_configuration_or_a_declared_error(changes):
    try:
        config = Config().updated(changes, "drawn")
    except ConfigError as error:
        assert str(error).startswith("drawn: expected ")
    else:
        assert Config().updated(vars(config), "again") == config


def test_a_protocol_can_be_changed_in_part():
    card = find_protocol("Pong-v0", frame_skip=3)
    assert (card.frame_skips, card.sticky) == ((3, 3), 0.25)
