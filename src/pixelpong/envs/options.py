"""The options of `pixelpong.make_vec`, their allowed values and combinations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np

from pixelpong.atari.cartridges import cartridge, facts, not_scored
from pixelpong.atari.machine import MOST_ROWS, WIDTH
from pixelpong.config import Option
from pixelpong.config.protocols import FrameLimit, FrameSkip
from pixelpong.envs.errors import EnvError
from pixelpong.errors import ConfigError, did_you_mean, must_be, unknown
from pixelpong.games.console import PONG
from pixelpong.games.pictures import check_size
from pixelpong.items import BUILTIN
from pixelpong.schema import Count, Meta, Number, Share

Observation = Literal["atari", "pixels", "frame", "field"]
Actions = Literal["six", "three", "two"]
Threads = Annotated[int, Meta(ge=0, le=4096)] | None  # 0, like None: one for each core
Autoreset = Literal["NextStep", "SameStep", "Disabled"]  # the values of `AutoresetMode`
CoinsName = Literal["ale", "ale_env", "pixelpong"]
Noops = Annotated[int, Meta(ge=0, le=10_000)]
Height = Annotated[int, Meta(ge=1, le=MOST_ROWS)]
Width = Annotated[int, Meta(ge=1, le=WIDTH)]
Stack = Annotated[int, Meta(ge=1, le=64)]


@dataclass(frozen=True)
class EnvOptions:
    """The options of an environment, described in `VectorEnv`."""

    num_envs: Number
    observation: Observation
    game: str
    games: tuple[str, ...]
    actions: Actions | None
    opponent: str
    coins: CoinsName | None
    num_threads: Threads
    thread_affinity_offset: Annotated[int, Meta(ge=-1)]
    batch_size: Count
    copy: bool
    render_mode: Literal["rgb_array"] | None
    autoreset_mode: Autoreset
    frameskip: FrameSkip
    max_frameskip: FrameSkip | None
    repeat_action_probability: Share
    max_num_frames_per_episode: FrameLimit
    noop_max: Noops
    use_fire_reset: bool
    episodic_life: bool
    life_loss_info: bool
    reward_clipping: bool
    full_action_space: bool
    continuous: bool
    continuous_action_threshold: Share
    img_height: Height
    img_width: Width
    grayscale: bool
    stack_num: Stack
    maxpool: bool

    @property
    def all_games(self) -> tuple[str, ...]:
        """The game of each environment, [N]."""
        return self.games or (self.game,) * self.num_envs

    @property
    def coins_name(self) -> CoinsName:
        """Whose coins decide what sticks."""
        is_like_ale = self.max_frameskip is None and self.opponent == BUILTIN
        return self.coins or ("ale" if is_like_ale else "pixelpong")

    @property
    def has_all_actions(self) -> bool:
        """Whether all actions of the console can be chosen."""
        return self.full_action_space or self.continuous

    @property
    def most_frames(self) -> int:
        """The most frames of a step."""
        return max(self.frameskip, self.max_frameskip or 0)


# Options that only affect the observation "atari", with their defaults.
_OF_ATARI = {"img_height": 84, "img_width": 84, "grayscale": True, "stack_num": 4, "maxpool": True}
# Options that do not affect the future of a game.
_FREE = (
    "num_envs", "num_threads", "thread_affinity_offset", "batch_size", "copy", "reward_clipping",
    "opponent", "games",
)  # fmt: skip


def check_options(options: dict[str, Any], maker: str) -> EnvOptions:
    """Refuse options that are out of range, or have no effect with the others.

    `maker` is the name of the called function.
    """
    types = get_type_hints(EnvOptions, include_extras=True)
    del types["games"]
    games = _read_games(options["games"], maker)
    alone = {name: _check(name, types[name], options[name], maker) for name in types}
    if games:
        alone["num_envs"] = _count(games, alone)
    checked = EnvOptions(**alone, games=games)
    for game in dict.fromkeys(checked.all_games):
        _check_game(checked, game)
    _check_together(checked)
    if checked.has_all_actions and checked.actions not in (None, "six"):
        name = "continuous" if checked.continuous else "full_action_space"
        raise EnvError(f"{name} has all actions. Leave out one of the two options.")
    if checked.continuous and checked.opponent != BUILTIN:
        raise EnvError("continuous is for a game without an opponent. Leave out one of the two.")
    if checked.continuous_action_threshold != 0.5 and not checked.continuous:
        what = "continuous_action_threshold changes only continuous actions"
        raise EnvError(f"{what}; leave it out, or choose continuous=True.")
    if checked.observation != "atari":
        for name, default in _OF_ATARI.items():
            if getattr(checked, name) != default:
                what = f"{name} changes only the observation 'atari'"
                raise EnvError(f"{what}, not {checked.observation!r}; leave it out.")
    fewest, most = checked.frameskip, checked.max_frameskip
    if most is not None and most < fewest:
        raise EnvError(must_be("max_frameskip", f"at least frameskip, {fewest}", most))
    if checked.batch_size > checked.num_envs:
        allowed = f"at most num_envs, {checked.num_envs}"
        raise EnvError(must_be("batch_size", allowed, checked.batch_size))
    if checked.coins in ("ale", "ale_env") and (most is not None or checked.opponent != BUILTIN):
        other = "max_frameskip" if most is not None else "opponent"
        raise EnvError(f"ale-py has nothing like {other}; with it, leave out coins.")
    return checked


def _check(name: str, type_: Any, value: Any, maker: str) -> Any:
    """Check the value of an option alone."""
    value = getattr(value, "value", value)  # of an enum
    if name == "frameskip" and not isinstance(value, int | np.integer):  # 4.0 is refused, as theirs
        raise EnvError(f"{maker}: {must_be(name, 'a whole number', repr(value))}")
    try:
        return Option(name, type_, None).check(value, maker)
    except ConfigError as error:
        raise EnvError(str(error)) from error


def _read_games(games: Any, maker: str) -> tuple[str, ...]:
    if games is None:
        return ()
    is_list = isinstance(games, Iterable) and not isinstance(games, str)
    names = tuple(games) if is_list else (games,)
    if not is_list or not all(isinstance(name, str) for name in names):
        raise EnvError(f"{maker}: {must_be('games', 'a list of names', repr(games))}")
    return names


def _count(games: tuple[str, ...], options: dict[str, Any]) -> int:
    """The number of environments, which is that of the games."""
    if options["num_envs"] not in (1, len(games)):
        allowed = f"{len(games)}, the number of games, or left out"
        raise EnvError(must_be("num_envs", allowed, options["num_envs"]))
    if options["game"] != PONG:
        raise EnvError("games names all games. Leave out game.")
    return len(games)


def _check_together(options: EnvOptions) -> None:
    """Refuse games whose actions or pictures are too different for one environment."""
    all_facts = [cartridge(game) for game in dict.fromkeys(options.all_games)]
    sets = {f.legal_actions if options.has_all_actions else f.actions for f in all_facts}
    if len(set(map(len, sets))) > 1:
        raise EnvError(
            "The games have different numbers of actions; choose full_action_space=True, and leave "
            "out games that do not have all eighteen."
        )
    if options.observation != "atari" and len({facts.rows for facts in all_facts}) > 1:
        what = "The games have pictures of different sizes"
        raise EnvError(f"{what}; choose the observation 'atari'.")


def _check_game(options: EnvOptions, game: str) -> None:
    """Refuse a game that cannot be played, and what belongs to Pong alone in another game."""
    facts = cartridge(game)  # raises an EmulatorError if there is no such game
    if facts.scoring is None:
        reason = not_scored()[game]
        raise EnvError(f"The points of {game} are not covered: {reason}. Choose another game.")
    if options.img_height > facts.rows:
        allowed = f"at most {facts.rows}, the rows of {game}"
        raise EnvError(must_be("img_height", allowed, options.img_height))
    try:
        check_size(options.img_height, options.img_width, facts.rows)
    except ConfigError as error:
        raise EnvError(str(error)) from error
    if options.continuous and len(facts.legal_actions) < 18:
        raise EnvError(f"{game} has no continuous actions; leave out continuous.")
    if facts.coin_frames and facts.start_actions and options.repeat_action_probability > 0:
        raise EnvError(
            f"In {game}, sticky frames would already change the menu before a game, which "
            "is not covered; leave out repeat_action_probability."
        )
    if game == PONG:
        return
    of_pong = {"opponent": BUILTIN, "actions": None}
    for name, default in of_pong.items():
        if getattr(options, name) != default:
            raise EnvError(f"{name} is for Pong alone; leave it out for {game}.")
    if options.observation in ("pixels", "field"):
        raise EnvError(
            f"The observation {options.observation!r} is for Pong alone; "
            f"use 'atari' or 'frame' for {game}."
        )


def add_own(given: dict[str, Any], own: dict[str, Any], maker: str) -> dict[str, Any]:
    """Add a maker's own options to the given ones, which must not have them."""
    for name in own.keys() & given.keys():
        raise EnvError(f"{maker} itself sets {name}. Leave it out.")
    return given | own


def unknown_option(name: str, maker: str) -> EnvError:
    """Make the error for an option that does not exist."""
    names = get_type_hints(EnvOptions)
    advice = did_you_mean(name, names, "see help(pixelpong.make_vec)")
    return EnvError(f"{maker}: {unknown('option', name, advice)}")


def hash_rules(options: EnvOptions, opponent: bytes) -> list[bytes]:
    """Hash for each game all that its future depends on, except its state.

    That is its options, the facts about its cartridge and the opponent, which `opponent` names.
    """
    values = dataclasses.asdict(options) | {"coins": options.coins_name}
    rules = {name: value for name, value in values.items() if name not in _FREE}
    hashes = {}
    for game in dict.fromkeys(options.all_games):
        text = json.dumps([rules | {"game": game, "facts": facts()[game]}], sort_keys=True)
        hashes[game] = hashlib.sha256(text.encode() + b"\0" + opponent).digest()
    return [hashes[game] for game in options.all_games]
