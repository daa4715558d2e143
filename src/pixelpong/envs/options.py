"""The options of `pixelpong.make_vec`, their allowed values and combinations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

from pixelpong.atari.machine import ROWS, WIDTH
from pixelpong.config import Option
from pixelpong.config.protocols import FrameLimit, FrameSkip
from pixelpong.errors import ConfigError, did_you_mean, must_be, unknown
from pixelpong.schema import Meta, Number, Share

Observation = Literal["atari", "pixels", "frame", "field"]
Actions = Literal["six", "three", "two"]
Autoreset = Literal["NextStep", "SameStep", "Disabled"]  # the values of `AutoresetMode`
Waits = Annotated[int, Meta(ge=0, le=10_000)]
Height = Annotated[int, Meta(ge=1, le=ROWS)]
Width = Annotated[int, Meta(ge=1, le=WIDTH)]
Stack = Annotated[int, Meta(ge=1, le=64)]


@dataclass(frozen=True)
class EnvOptions:
    """The options of an environment, described in `PongVectorEnv`."""

    num_envs: Number
    observation: Observation
    actions: Actions
    opponent: str
    num_threads: Number | None
    copy: bool
    render_mode: Literal["rgb_array"] | None
    autoreset_mode: Autoreset
    frameskip: FrameSkip
    max_frameskip: FrameSkip | None
    repeat_action_probability: Share
    max_num_frames_per_episode: FrameLimit
    noop_max: Waits
    use_fire_reset: bool
    reward_clipping: bool
    full_action_space: bool
    img_height: Height
    img_width: Width
    grayscale: bool
    stack_num: Stack
    maxpool: bool

    @property
    def most_frames(self) -> int:
        """The most frames of a step."""
        return max(self.frameskip, self.max_frameskip or 0)


# Options of AtariVectorEnv that have no effect on Pong, with the only accepted values.
_UNUSED = {
    "batch_size": 0, "thread_affinity_offset": -1, "continuous": False,
    "continuous_action_threshold": 0.5, "episodic_life": False, "life_loss_info": False,
}  # fmt: skip
# Options that only affect the observation "atari", with their defaults.
_OF_ATARI = {"img_height": 84, "img_width": 84, "grayscale": True, "stack_num": 4, "maxpool": True}
# Options that do not affect the future of a game.
_FREE = ("num_envs", "num_threads", "copy", "reward_clipping", "opponent")


def check_options(options: dict[str, Any], unused: dict[str, Any], maker: str) -> EnvOptions:
    """Refuse options that are unknown, out of range, or have no effect with the others.

    `unused` holds the options that are not in `EnvOptions`; `maker` is the name of the called
    function.
    """
    types = get_type_hints(EnvOptions, include_extras=True)
    for name, value in unused.items():
        if name not in _UNUSED:
            advice = did_you_mean(name, types, "see help(pixelpong.make_vec)")
            raise ConfigError(f"{maker}: {unknown('option', name, advice)}")
        if value != _UNUSED[name]:
            raise ConfigError(f"Pong has no use for {name}; leave it out.")
    checked = EnvOptions(
        **{
            name: Option(name, types[name], None).check(getattr(value, "value", value), maker)
            for name, value in options.items()
        }
    )
    if checked.full_action_space and checked.actions != "six":
        raise ConfigError("full_action_space has all actions. Leave out one of the two options.")
    if checked.observation != "atari":
        for name, default in _OF_ATARI.items():
            if getattr(checked, name) != default:
                what = f"{name} changes only the observation 'atari'"
                raise ConfigError(f"{what}, not {checked.observation!r}; leave it out.")
    fewest, most = checked.frameskip, checked.max_frameskip
    if most is not None and most < fewest:
        raise ConfigError(must_be("max_frameskip", f"at least frameskip, {fewest}", most))
    return checked


def hash_rules(options: EnvOptions, opponent: bytes) -> bytes:
    """Hash all that a game's future depends on, except its state; `opponent` names the opponent."""
    values = dataclasses.asdict(options)
    rules = {name: value for name, value in values.items() if name not in _FREE}
    text = json.dumps(rules, sort_keys=True)
    return hashlib.sha256(text.encode() + b"\0" + opponent).digest()
