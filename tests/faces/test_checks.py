"""Python's arguments have the bounds of the command line's, because both read the annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

import pixelpong
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.faces import api
from pixelpong.faces.checks import checked
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


def test_what_is_within_bounds_arrives_as_the_annotation_has_it():
    found = probe("a", Path("b"), count=np.int64(3), share=1, out="x.png", which=7, has=True, z=1)
    wanted = {"words": ("a", Path("b")), "count": 3, "share": 1.0, "out": Path("x.png")}
    assert found == wanted | {"side": "left", "which": 7, "has": True, "others": {"z": 1}}
    assert (type(found["share"]), type(found["count"])) == (float, int)
    assert probe()["share"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": -1}, "expected count to be a whole number of at least 0, got -1"),
        ({"count": 1.5}, "expected count to be a whole number of at least 0, got 1.5"),
        ({"share": float("nan")}, "expected share to be a number from 0 to 1, got nan"),
        ({"side": "lft"}, "got 'lft'; did you mean left?"),
        ({"which": None}, "expected which to be a whole number or a word, got None"),
        ({"which": 1.5}, "expected which to be a whole number or a word, got 1.5"),
        ({"out": 3}, "expected out to be a path or None, got 3"),
        ({"has": "yes"}, "expected has to be true or false, got 'yes'"),
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
        for flag in (it for it in own if it.choices or it.kind in (int, float, bool)):
            tried += 1
            with pytest.raises(ConfigError, match=f"{name}: expected {flag.name}"):
                getattr(api, name)(**{flag.name: "neither"})
    assert tried > 15


@pytest.mark.parametrize(
    "wrong",
    [{"speed": 0}, {"episode": -1}, {"seconds": -1}, {"seed": 1.5}, {"overlay": "no"}],
)
def test_a_replay_has_the_bounds_of_a_film(wrong):
    with pytest.raises(ConfigError, match=f"replay: expected {next(iter(wrong))} "):
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
        with pytest.raises(PixelpongError, match="expected (agent|what) to be a word or a path"):
            function(word)
