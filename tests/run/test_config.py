"""Options: layers, presets, files, validation."""

from __future__ import annotations

import ast
import functools
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from option_types import MODULE, written_types

import pixelpong
from pixelpong.config import BUDGET, OPTIONS, Config, differences
from pixelpong.config.presets import combine, load_preset, preset_names, read_toml
from pixelpong.errors import ConfigError

GOLDEN = Path(__file__).with_name("presets.json")
"""Every default, what each preset changes, and the options that a resume cannot change freely."""


def test_defaults_and_presets_are_the_recorded_ones():
    default = Config()
    found = {
        "defaults": vars(default),
        "presets": {
            name: {option: new for option, (_, new) in differences(
                default, load_preset(name), with_free=True).items()}
            for name in preset_names()
        },
        "bound": sorted(name for name, each in OPTIONS.items() if not each.is_free),
    }  # fmt: skip
    if os.environ.get("PIXELPONG_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(GOLDEN.read_text())


def test_the_types_for_editors_are_those_of_the_options():
    """Compared without white space, because a long line may be broken."""
    written = written_types()
    if os.environ.get("PIXELPONG_UPDATE_GOLDEN"):
        MODULE.write_text(written, "utf-8")
    found = MODULE.read_text("utf-8")
    assert ast.unparse(ast.parse(found)) == ast.unparse(ast.parse(written))


def wrong_values(option):
    """One step beyond each bound of its type, and what is of no type that it has."""
    kind = msgspec.inspect.type_info(option.type)
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else [kind]
    names = {type(each).__name__ for each in kinds}
    wrong = [[200], {}, 1 if "BoolType" in names else np.True_]
    if "NoneType" not in names:
        wrong.append(None)
    if "StrType" not in names:
        wrong += ["10", math.nan, math.inf, np.float32("nan"), 2**63]
    for each in kinds:
        for bound, value in (("ge", -1), ("le", 1), ("lt", 0)):
            if getattr(each, bound, None) is not None:
                wrong.append(getattr(each, bound) + value)
    return wrong


DEEP: list = functools.reduce(lambda inner, _: [inner], range(100_000), [])
HUGE = [10**400, -(10**400), 1 << 20_000, ["x" * 10_000], DEEP]
"""Whole numbers beyond all floats, one that Python refuses to write, what is nested without end."""


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_out_of_range_is_told_with_those_that_are_in_it(name):
    wrong = wrong_values(OPTIONS[name])
    for number, value in enumerate([*wrong, *HUGE]):
        with pytest.raises(ConfigError, match=f"^here: {name} must be .*, not ") as caught:
            Config().updated({name: value}, "here")
        assert number >= len(wrong) or f", not {value!r}" in str(caught.value)
        assert (len(str(caught.value)) < 500, caught.value.exit_code) == (True, 2)


def test_numpys_numbers_are_numbers_and_become_pythons():
    given = {"updates": np.int64(3), "sticky": np.float32(0.5), "gamma": np.int8(1)}
    flat = vars(Config().updated(given, "here"))
    assert [repr(flat[name]) for name in given] == ["3", "0.5", "1.0"]


def test_a_bound_of_the_machine_is_named_if_that_is_what_is_exceeded():
    with pytest.raises(ConfigError, match="at least 0 and less than 9,007,199,254,740,992, not 90"):
        Config().updated({"seed": 2**53}, "here")


@pytest.mark.parametrize("text", ["2.5e6", "2_500_000", "2500000", "2500000.0"])
def test_whole_numbers_may_be_written_as_the_field_does(text):
    assert OPTIONS["total_timesteps"].read(text) == 2_500_000
    assert type(Config().updated({"updates": 1e3}, "here").updates) is int


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        ({}, (100, None, None, 18.0)),
        ({"episodes": 5000}, (None, 5000, None, 18.0)),
        ({"updates": 7, "total_timesteps": 9}, (7, None, 9, 18.0)),
        ({"until_return": 20.0}, (100, None, None, 20.0)),
        ({"until_return": None}, (100, None, None, None)),
        ({"updates": None}, (None, None, None, 18.0)),
        ({"episodes": 3, "until_return": None}, (None, 3, None, None)),
    ],
)
def test_a_new_count_replaces_all_counts_and_a_new_target_the_target_alone(given, budget):
    old = Config(updates=100, until_return=18.0, seed=5)
    new = old.with_budget(given)
    assert tuple(getattr(new, name) for name in BUDGET) == budget
    assert new.seed == 5


def test_a_preset_is_a_file_a_name_and_a_word_about_it(tmp_path):
    """As the recipe in CONTRIBUTING.md says, followed in a copy: one file and one name."""
    package = Path(pixelpong.__file__).parent
    files = {path.stem for path in (package / "config/presets").glob("*.toml")}
    assert files == {*preset_names()}
    for page in ("docs/start.md", "docs/zh/start.md"):
        text = package.parents[1].joinpath(page).read_text("utf-8")
        assert {name for name in preset_names() if f"`{name}`" not in text} == set(), page
    copy = tmp_path / "pixelpong"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "config/presets/mine.toml").write_text("num_envs = 4\n")
    config = copy / "config/__init__.py"
    names = re.search(r"preset: Literal\[(.*?)\]", config.read_text("utf-8"), re.S)[1]
    config.write_text(config.read_text("utf-8").replace(names, f'{names.rstrip(", ")}, "mine"', 1))
    script = (
        "from pixelpong.config.presets import load_preset, preset_names\n"
        "print(preset_names()[-1], load_preset('mine').num_envs, load_preset('fast').num_envs)\n"
        "from pixelpong.faces.cli import main\nmain(['train', '--help'])\n"
    )
    told = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, text=True)
    assert told.splitlines()[0] == f"mine 4 {load_preset('fast').num_envs}"
    assert re.search(r"\bmine\b", told.partition("\n")[2])


LAYERS = [  # preset, file, command line
    (None, "", {}, {"preset": "fast", "algorithm": "ppo"}),
    (None, "preset = 'ray'\nhidden = 10", {}, {"preset": "ray", "batch_size": 4, "hidden": 10}),
    (None, "num_envs = 2", {"num_envs": 3}, {"preset": "fast", "num_envs": 3}),
    ("classic", "preset = 'ray'", {"preset": "classic"}, {"preset": "classic", "updates": 100}),
    ("classic", "until_return = 18", {}, {"until_return": 18.0, "updates": 100}),
    ("classic", "episodes = 5e3", {}, {"episodes": 5000, "updates": None}),
    (None, "until_return = 17\nupdates = 7", {"episodes": 9},
     {"until_return": 17.0, "updates": None, "episodes": 9, "total_timesteps": None}),
    (None, "", {"total_timesteps": 10}, {"until_return": 18.0, "total_timesteps": 10}),
    (None, "", {"until_return": 21}, {"until_return": 21.0, "total_timesteps": 5_000_000}),
    (None, "", {"until_return": None}, {"until_return": None, "total_timesteps": 5_000_000}),
    (None, "until_return = 'none'", {"updates": 3}, {"until_return": None, "updates": 3}),
    (None, "", {"total_timesteps": "none"}, {"until_return": 18.0, "total_timesteps": None}),
    (None, "decay_rate = 0.9", {}, r"mine\.toml: decay_rate is an option of REINFORCE"),
    (None, "num_envs = 8", {"algorithm": "reinforce"}, r"mine\.toml: num_envs is .* PPO, which"),
    ("classic", "preset = 'fast'\nvf_coef = 3", {}, "vf_coef .*a preset with PPO"),
    (None, "batch_size 10", {}, "cannot read"), (None, "\udcff", {}, "cannot read"),
    (None, "hidden = " + "[" * 20_000 + "]" * 20_000, {}, "cannot read"),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "content", "given", "wanted"), LAYERS)
def test_the_command_line_goes_over_the_file_over_the_preset(
    tmp_path, preset, content, given, wanted
):
    """A count replaces all earlier counts, and never the target; none is a word for each."""
    path = tmp_path / "mine.toml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))

    def read():
        return vars(combine(preset, read_toml(path), given, ("mine.toml", "train")))

    if isinstance(wanted, dict):
        flat = read()
        assert {name: flat[name] for name in wanted} == wanted
    else:
        with pytest.raises(ConfigError, match=wanted):
            read()
