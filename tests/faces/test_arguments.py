"""Python's arguments have the bounds of the command line's, because both read the annotations."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

import pixelpong
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.faces import api
from pixelpong.faces.arguments import Argument, Help, checked, command, parameters_of
from pixelpong.faces.cli import COMMANDS, flags_of
from pixelpong.faces.policy import Policy
from pixelpong.schema import Count, Meta


@checked
def probe(
    *words: str | Path,
    count: Count = 0,
    share: Annotated[float, Meta(ge=0, le=1)] | None = None,
    side: Literal["left", "right"] = "left",
    which: int | str = "best",
    out: Path | None = None,
    has: bool = False,
    **others: object,
) -> dict[str, object]:
    """What it was given."""
    return {**locals()}


@command
def greet(
    name: Annotated[str | Path, Argument("Whom to greet.")],
    *,
    times: Annotated[Count, Help("How often.", short="-t")] = 1,
    style: Annotated[int, Meta(le=3), Help("How warmly.", is_advanced=True)] = 0,
    more: int = 0,
    **others: object,
) -> str:
    """Greet somebody.

    Without a word too many.
    """
    return f"{name} {times} {style} {more} {others}"


def test_a_command_line_has_the_parameters_that_are_marked_for_it():
    name, times, style = parameters_of(greet)
    assert (name.name, name.default) == ("name", inspect.Parameter.empty)
    assert isinstance(name.help, Argument)
    assert (times.type, times.default, times.help) == (Count, 1, Help("How often.", "-t"))
    assert (style.type, style.help.is_advanced) == (Annotated[int, Meta(le=3)], True)
    assert not any(isinstance(it.help, Argument) for it in (times, style))
    for command_name in COMMANDS:
        marked = parameters_of(getattr(api, command_name))
        assert sum(isinstance(it.help, Argument) for it in marked) <= 1
        assert not {it.name for it in marked} & {*COMMANDS[command_name]}, "one help for each"


def test_help_shows_each_argument_and_no_marks():
    assert inspect.getdoc(greet) == (
        "Greet somebody.\n\nArgs:\n    name: Whom to greet.\n    times: How often.\n"
        "    style: How warmly.\n\nWithout a word too many."
    )
    shown = str(inspect.signature(greet))
    assert "times: int = 1, style: int = 0, more: int = 0" in shown
    assert greet("you", times=2, z=1) == "you 2 0 0 {'z': 1}"


def test_what_is_within_bounds_arrives_as_the_annotation_has_it():
    found = probe("a", Path("b"), count=np.int64(3), share=1, out="x.png", which=7, has=True, z=1)
    wanted = {"words": ("a", Path("b")), "count": 3, "share": 1.0, "out": Path("x.png")}
    assert found == wanted | {"side": "left", "which": 7, "has": True, "others": {"z": 1}}
    assert (type(found["share"]), type(found["count"])) == (float, int)
    assert probe()["share"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": -1}, "count must be a whole number of at least 0, not -1"),
        ({"count": 1.5}, "count must be a whole number of at least 0, not 1.5"),
        ({"share": float("nan")}, "share must be a number from 0 to 1, not nan"),
        ({"side": "lft"}, "side must be left or right, not 'lft'; did you mean left?"),
        ({"which": None}, "which must be a whole number or text, not None"),
        ({"which": 1.5}, "which must be a whole number or text, not 1.5"),
        ({"out": 3}, "out must be a path or None, not 3"),
        ({"has": "yes"}, "has must be true or false, not 'yes'"),
    ],
)
def test_what_is_not_is_one_line_that_names_the_function(given, said):
    with pytest.raises(ConfigError) as error:
        probe(**given)
    assert str(error.value).startswith("probe: ")
    assert said in str(error.value)


def test_no_function_accepts_in_python_what_its_command_refuses():
    """Each public function, each of its own options that is a number or a choice."""
    tried = 0
    for name in COMMANDS.keys() - {"train", "resume"}:
        others = {"json", "debug", *COMMANDS[name]}
        own = [it for it in flags_of(name) if it.name not in others]
        for flag in (it for it in own if it.choices or it.base_type in (int, float, bool)):
            tried += 1
            with pytest.raises(ConfigError, match=f"{name}: {flag.name} must be "):
                getattr(api, name)(**{flag.name: "neither"})
    assert tried > 15


@pytest.mark.parametrize(
    "wrong",
    [{"speed": 0}, {"episode": -1}, {"seconds": -1}, {"seed": 1.5}, {"overlay": "no"}],
)
def test_a_replay_has_the_bounds_of_a_film(wrong):
    with pytest.raises(ConfigError, match=f"Policy.replay: {next(iter(wrong))} must be "):
        Policy.load("beginner").replay(**wrong)


def test_a_state_of_another_number_of_episodes_is_refused():
    policy, frames = Policy.load("beginner"), np.zeros((4, 210, 160, 3), np.uint8)
    _, state = policy.predict(frames)
    for more in {"state": state[:2]}, {"state": state, "episode_start": np.zeros(3, np.bool_)}:
        with pytest.raises(ConfigError, match="There are 4 frames"):
            policy.predict(frames, **more)


@pytest.mark.parametrize("word", [7, True, b"club", [], {"a": 1}])
def test_what_names_no_agent_is_refused(word):
    for function in (pixelpong.evaluate, pixelpong.record, pixelpong.export, Policy.load):
        with pytest.raises(PixelpongError, match="(agent|what) must be text, a path( or|,) a Run"):
            function(word)
