"""From the options of an environment to its spaces, its rules and its view."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pixelpong.atari.envs.options import EnvOptions
from pixelpong.atari.envs.plug import Plugs
from pixelpong.atari.games.opponents import Opponents
from pixelpong.atari.games.rules import FIRE, Rules
from pixelpong.atari.games.views import ATARI, Observation, View
from pixelpong.atari.machine.cartridge import Cartridge, Flavour
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.atari.sides import BUILTIN, SELF
from pixelpong.atari.steps.stepping import NEVER, NEXT_STEP, SAME_STEP

# When the next episode starts, for `Games`.
AUTORESETS = {
    AutoresetMode.DISABLED: NEVER,
    AutoresetMode.NEXT_STEP: NEXT_STEP,
    AutoresetMode.SAME_STEP: SAME_STEP,
}


def make_metadata(options: EnvOptions, mode: AutoresetMode) -> dict[str, Any]:
    """Make what Gymnasium asks of every environment."""
    fps = 60 / options.most_frames
    return {"render_modes": ["rgb_array"], "render_fps": fps, "autoreset_mode": mode}


def make_observation_space(view: View) -> gymnasium.spaces.Box:
    """Make the space of a game's observations."""
    kind = view.observation
    dtype: Any = kind.dtype
    return gymnasium.spaces.Box(kind.low, kind.high, view.shape, dtype)


def make_action_space(options: EnvOptions, count: int) -> gymnasium.spaces.Space[Any]:
    """Make the space of a game's `count` actions."""
    if options.continuous:
        low, high = np.array([0, -np.pi, 0], np.float32), np.array([1, np.pi, 1], np.float32)
        return gymnasium.spaces.Box(low, high)
    if options.opponent == SELF:
        return gymnasium.spaces.MultiDiscrete([count] * 2)
    return gymnasium.spaces.Discrete(count)


def make_rules(
    options: EnvOptions, facts: Cartridge, flavour: Flavour, moves: NDArray[np.int64]
) -> Rules:
    """Make the rules of a game; `moves` are the console's actions by index."""
    sticky = options.repeat_action_probability
    is_ale = options.coins_name != "pixelpong"
    if is_ale:  # it keeps the probability in single precision
        sticky = float(np.float32(sticky))
    return Rules(
        facts,
        options.frameskip,
        options.most_frames,
        options.max_num_frames_per_episode,
        sticky=(sticky, sticky),
        num_sides=1 if options.opponent == BUILTIN else 2,
        first_action=FIRE if options.use_fire_reset and FIRE in moves else 0,
        max_noops=options.noop_max,
        opens_as_on_macos=options.opens_as_on_macos,
        is_continuous=options.continuous,
        tosses_coins=is_ale and sticky > 0,
        wastes_coins=options.coins_name == "ale_env",
        counts_start=options.coins_name != "ale",  # AtariVectorEnv does not count them
        ends_at_lost_life=options.episodic_life,
        tells_lost_life=options.life_loss_info,
        clips_rewards=options.reward_clipping,
        flavour=flavour,
    )


def make_opponents(options: EnvOptions, plugs: Plugs) -> Opponents | None:
    """Make the opponents, unless the game itself or the caller plays the second side."""
    make = None
    if options.opponent not in (BUILTIN, SELF):
        make = plugs[options.all_games[0]].make_opponents
    return make and make(options.opponent, options.num_envs)


def make_view(options: EnvOptions, observation: Observation) -> View:
    """Make the view: what is observed of the games, and what is kept."""
    rows = max(options.cartridge(game).rows for game in options.all_games)
    keeps_frames = observation.reads_frames or options.render_mode is not None
    has_opponents = options.opponent not in (BUILTIN, SELF)
    return View(
        observation,
        keeps_frames=keeps_frames or has_opponents,
        shows_ram=options.ram_info,
        height=options.img_height,
        width=options.img_width,
        channels=1 if options.grayscale else 3,
        stack=options.stack_num,
        takes_two=observation is ATARI and options.maxpool,
        rows=rows,
    )


def paint(facts: Cartridge, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert a game's frame, [rows, 160], to colour; it is black below the game's own rows."""
    picture = PALETTES[facts.palette][frame]
    picture[facts.rows :] = 0
    return picture
