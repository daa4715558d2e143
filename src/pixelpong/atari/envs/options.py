"""The options of environments, their allowed values and combinations."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.plug import Plugs, find_observations
from pixelpong.atari.games.opponents import Opponents
from pixelpong.atari.games.pictures import check_size
from pixelpong.atari.games.views import OBSERVATIONS
from pixelpong.atari.machine.cartridge import Cartridge, Flavour
from pixelpong.atari.machine.cartridges import cartridge, facts, names_for_two
from pixelpong.atari.machine.record import MOST_ROWS, WIDTH
from pixelpong.atari.sides import BUILTIN, SELF
from pixelpong.errors import ConfigError, list_words, must_be
from pixelpong.schema import Count, Meta, Setting

Threads = Annotated[int, Meta(ge=0, le=4096)] | None  # 0, like None: one for each core
Autoreset = Literal["NextStep", "SameStep", "Disabled"]  # the values of `AutoresetMode`
CoinsName = Literal["ale", "ale_linux", "ale_env", "pixelpong"]
Numbers = int | Sequence[int] | None  # one for all environments, or one for each
Affinity = Annotated[int, Meta(ge=-1)]
Noops = Annotated[int, Meta(ge=0, le=10_000)]
Height = Annotated[int, Meta(ge=1, le=MOST_ROWS)]
Width = Annotated[int, Meta(ge=1, le=WIDTH)]
Stack = Annotated[int, Meta(ge=1, le=64)]


class EnvOptions:
    """The checked options of an environment: an attribute for each option of `VectorEnv`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the value of an option."""

    def __init__(self, options: dict[str, Any]) -> None:
        vars(self).update(options)

    def cartridge(self, game: str) -> Cartridge:
        """Return the facts about a game's cartridge, for one player or for two."""
        return cartridge(game, is_for_two=self.opponent == SELF)

    @property
    def all_games(self) -> tuple[str, ...]:
        """The game of each environment, [N]."""
        games: tuple[str, ...] = self.games or (self.game,) * self.num_envs
        return games

    @property
    def all_flavours(self) -> tuple[Flavour, ...]:
        """The game on the cartridge and the difficulty of each environment, [N]."""
        size = len(self.all_games)
        modes, difficulties = (
            it if isinstance(it, tuple) else (it,) * size for it in (self.mode, self.difficulty)
        )
        return tuple(
            Flavour(
                first.mode if mode is None else mode, first.difficulty if hard is None else hard
            )
            for first, mode, hard in zip(
                [self.cartridge(game).first_flavour for game in self.all_games],
                modes,
                difficulties,
                strict=True,
            )
        )

    @property
    def coins_name(self) -> CoinsName:
        """Whose coins decide what sticks; those of ``"ale_linux"`` are ``"ale"``'s."""
        is_like_ale = self.max_frameskip is None and self.opponent == BUILTIN
        name: CoinsName = self.coins or ("ale" if is_like_ale else "pixelpong")
        return "ale" if name == "ale_linux" else name

    @property
    def opens_as_on_macos(self) -> bool:
        """Whether the numbers of opening frames are those of ale-py on a Mac."""
        is_theirs = self.coins != "ale_linux" and self.coins_name == "ale"
        return is_theirs and sys.platform == "darwin"

    @property
    def has_all_actions(self) -> bool:
        """Whether all actions of the console can be chosen."""
        return bool(self.full_action_space or self.continuous)

    @property
    def most_frames(self) -> int:
        """The most frames of a step."""
        return max(self.frameskip, self.max_frameskip or 0)


_FLAVOUR = ("mode", "difficulty")
_LISTS = ("games", *_FLAVOUR)  # the options of which each environment may have its own
# Options that only affect the observation "atari", with their defaults.
_OF_ATARI = {"img_height": 84, "img_width": 84, "grayscale": True, "stack_num": 4, "maxpool": True}
_MOST_STICKY = 0.7  # with more, the walk through a menu might take more than MOST_ACTS steps
# Options that do not affect the future of a game.
_FREE = (
    "num_envs", "num_threads", "thread_affinity_offset", "batch_size", "copy", "reward_clipping",
    "opponent", "games", "ram_info", *_FLAVOUR,
)  # fmt: skip


def check_options(
    options: dict[str, Any],
    types: dict[str, Any],
    maker: Maker,
    plugs: Plugs,
    default_game: str | None,
) -> EnvOptions:
    """Refuse options that are out of range, or have no effect with the others.

    `types` are those of the options alone, from the signature of `VectorEnv`.
    """
    options = options | {"game": _choose_game(options, maker, default_game)}
    types = {name: types[name] for name in options if name not in _LISTS}
    types |= {"game": str, "actions": str | None, "autoreset_mode": Autoreset}
    own = [plug.observations for plug in plugs.values()]
    types["observation"] = Literal[tuple(name for each in (OBSERVATIONS, *own) for name in each)]
    if sets := [name for plug in plugs.values() for name in plug.action_sets]:
        types["actions"] = Literal[tuple(sets)] | None
    games = _read_games(options["games"], maker)
    alone = {name: check_option(name, types[name], options[name], maker) for name in types}
    if games:
        alone["num_envs"] = _count(games, alone)
    flavours = {name: _read_numbers(name, options[name], alone, maker) for name in _FLAVOUR}
    checked = EnvOptions({**alone, "games": games, **flavours})
    for game in dict.fromkeys(checked.all_games):
        _check_game(checked, game, maker, plugs)
    _check_together(checked, plugs)
    _check_flavours(checked, maker)
    if checked.continuous and checked.opponent != BUILTIN:
        what = "Continuous actions are for a game without an opponent"
        raise EnvError(f"{what}; {maker.leave_out('continuous', 'opponent')}.")
    if checked.continuous_action_threshold != 0.5 and not checked.continuous:
        what = "continuous_action_threshold has no effect without continuous actions"
        other = ", or choose continuous=True" if checked.opponent == BUILTIN else ""
        raise EnvError(f"{what}; leave it out{other}.")
    if checked.observation != "atari":
        for name, default in _OF_ATARI.items():
            if getattr(checked, name) != default:
                what = f"{name} has no effect with observation={checked.observation!r}"
                raise EnvError(f"{what}; leave it out.")
    fewest, most = checked.frameskip, checked.max_frameskip
    if most is not None and most < fewest:
        allowed = f"at least {maker.spell('frameskip')}, {fewest}"
        raise EnvError(must_be(maker.spell("max_frameskip"), allowed, most))
    if checked.batch_size > checked.num_envs:
        allowed = f"at most num_envs, {checked.num_envs}"
        raise EnvError(must_be("batch_size", allowed, checked.batch_size))
    if checked.coins in ("ale", "ale_linux", "ale_env"):
        if checked.opponent != BUILTIN:
            advice = maker.leave_out("coins", "opponent")
            raise EnvError(f"ale-py's coins are not for an opponent; {advice}.")
        if most is not None and not maker.draws_frames:
            what = "ale-py's coins with a range of frames to a step are for make_env alone"
            raise EnvError(f"{what}; give coins='pixelpong'.")
    return checked


def check_option(name: str, type_: Any, value: Any, maker: Maker) -> Any:
    """Check the value of an option alone."""
    value, word = getattr(value, "value", value), maker.spell(name)  # of an enum, its value
    if name == "frameskip" and not isinstance(value, int | np.integer):  # 4.0 is refused, as theirs
        advice = "for a range, give max_frameskip as well" if np.ndim(value) else ""
        raise EnvError(f"{maker.name}: {must_be(word, 'a whole number', repr(value), advice)}")
    try:
        return Setting(word, type_).check(value, maker.name)
    except ConfigError as error:
        raise EnvError(str(error)) from error


def _read_games(games: Any, maker: Maker) -> tuple[str, ...]:
    """Read the names in `games`; there are none if it was not given."""
    if games is None:
        return ()
    if not isinstance(games, str) and isinstance(games, Iterable):
        names = tuple(games)
        if names and all(isinstance(name, str) for name in names):
            return names
    raise EnvError(f"{maker.name}: {must_be('games', 'a list of names', repr(games))}")


def _read_numbers(
    name: str, value: Any, options: dict[str, Any], maker: Maker
) -> int | tuple[int, ...] | None:
    """Read a mode or a difficulty: a number, or as many as there are environments."""
    is_list = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
    numbers = tuple(
        check_option(name, Count | None, it, maker) for it in (value if is_list else [value])
    )
    if not is_list:
        return numbers[0]
    if len(numbers) != options["num_envs"]:
        allowed = f"a number, or {options['num_envs']} of them, one for each environment"
        raise EnvError(must_be(name, allowed, value))
    return numbers


def _check_flavours(options: EnvOptions, maker: Maker) -> None:
    """Refuse games that are not on the cartridge, and difficulties that change nothing."""
    for game, flavour in dict.fromkeys(zip(options.all_games, options.all_flavours, strict=True)):
        facts = options.cartridge(game)
        for name, number, known in (
            ("mode", flavour.mode, facts.modes),
            ("difficulty", flavour.difficulty, facts.difficulties),
        ):
            if number not in known:
                allowed = f"{list_words(list(map(str, known)), 'or')} in {game}"
                raise EnvError(f"{maker.name}: {must_be(name, allowed, number)}")
    has_flavours = options.opponent == BUILTIN or {*options.all_games} <= {*names_for_two()}
    for name in _FLAVOUR:
        if getattr(options, name) is not None and not has_flavours:
            what = f"{name} is for a game without an opponent"
            raise EnvError(f"{what}; {maker.leave_out(name, 'opponent')}.")


def _choose_game(options: dict[str, Any], maker: Maker, default: str | None) -> Any:
    """Return the game, or the default; if `games` names all games, it is not used."""
    game, games = options["game"], options["games"]
    if game is not None and games is not None:
        raise EnvError("games names all games. Leave out game.")
    if game is None and games is None and default is None:
        raise EnvError(f"{maker.name}: game must be a name of ale-py's, such as 'breakout'.")
    return default or "" if game is None else game


def _count(games: tuple[str, ...], options: dict[str, Any]) -> int:
    """Count the environments: one for each game."""
    if options["num_envs"] not in (1, len(games)):
        allowed = f"{len(games)}, the number of games, or left out"
        raise EnvError(must_be("num_envs", allowed, options["num_envs"]))
    return len(games)


def _check_together(options: EnvOptions, plugs: Plugs) -> None:
    """Refuse games whose actions or pictures are too different for one environment."""
    games = dict.fromkeys(options.all_games)
    all_facts = [options.cartridge(game) for game in games]
    if len({find_observations(plugs, game)[options.observation] for game in games}) > 1:
        what = f"{options.observation!r} is another observation in each of the games"
        raise EnvError(f"{what}; choose one that every game has, such as 'atari'.")
    if options.opponent not in (BUILTIN, SELF) and len(games) > 1:
        raise EnvError("An opponent plays one game; give the others an environment of their own.")
    sets = {f.legal_actions if options.full_action_space else f.actions for f in all_facts}
    if len(set(map(len, sets))) > 1 and not options.continuous:
        raise EnvError(
            "The games have different numbers of actions; choose full_action_space=True, and leave "
            "out games that do not have all eighteen."
        )
    kind = find_observations(plugs, options.all_games[0])[options.observation]
    if kind.reads_frames and len({facts.rows for facts in all_facts}) > 1:
        what = "The games have pictures of different sizes"
        raise EnvError(f"{what}; choose the observation 'atari' or 'ram'.")


def _check_game(options: EnvOptions, game: str, maker: Maker, plugs: Plugs) -> None:
    """Refuse a game that cannot be played, and options that it does not support."""
    facts = options.cartridge(game)  # raises an EmulatorError if there is no such game
    if options.img_height > facts.rows:
        allowed = f"at most {facts.rows}, the rows of {game}"
        raise EnvError(must_be("img_height", allowed, options.img_height))
    try:
        check_size(options.img_height, options.img_width, facts.rows)
    except ConfigError as error:
        raise EnvError(str(error)) from error
    if facts.counted_frames:
        _check_played_start(options, game, maker)
    _check_own(options, game, maker, plugs)


def _check_own(options: EnvOptions, game: str, maker: Maker, plugs: Plugs) -> None:
    """Refuse options that need a `Plug` that this game does not have."""
    plug, facts = plugs.get(game), options.cartridge(game)
    known = find_observations(plugs, game)
    if options.observation not in known:
        names = list_words([repr(name) for name in known], "or")
        raise EnvError(f"{game} has no observation {options.observation!r}; use {names}.")
    _check_second(options, game, maker, plugs)
    if options.actions is None:
        return
    chosen = plug.action_sets.get(options.actions) if plug else None
    if chosen is None:
        raise EnvError(f"{game} has no actions by name; {maker.leave_out('actions')}.")
    if options.has_all_actions and len(chosen) < len(facts.actions):
        name = "continuous" if options.continuous else "full_action_space"
        raise EnvError(f"{name} has all actions; {maker.leave_out(name, 'actions')}.")


def _check_second(options: EnvOptions, game: str, maker: Maker, plugs: Plugs) -> None:
    """Refuse a second player that a game does not have."""
    with_opponents = [name for name, plug in plugs.items() if plug.for_two]
    if options.opponent == BUILTIN or game in with_opponents:
        return
    if game not in names_for_two():
        games = list_words([*with_opponents, *names_for_two()], "or")
        advice = f"choose {games}" if "opponent" in maker.own else maker.leave_out("opponent")
        raise EnvError(f"{game} has no second player; {advice}.")
    if options.opponent != SELF:
        what = f"No agent plays {game} against another one"
        raise EnvError(f"{what}; choose opponent={SELF!r}, or {maker.leave_out('opponent')}.")


def _check_played_start(options: EnvOptions, game: str, maker: Maker) -> None:
    """Refuse options that would change a start in which ALE plays frames as in a step."""
    facts = options.cartridge(game)
    sticky, word = options.repeat_action_probability, maker.spell("repeat_action_probability")
    if facts.has_menu and sticky > _MOST_STICKY:
        what = f"at most {_MOST_STICKY} in {game}, where frames stick in a menu before a game, too"
        raise EnvError(must_be(word, what, sticky))
    limit, least = options.max_num_frames_per_episode, facts.counted_frames
    if limit < least and options.coins_name != "ale":  # AtariVectorEnv counts from the start on
        allowed = f"at least {least} in {game}, which plays so many frames before a game"
        raise EnvError(must_be(maker.spell("max_num_frames_per_episode"), allowed, limit))


def hash_rules(options: EnvOptions, opponents: Opponents | None) -> list[bytes]:
    """Hash for each game all that its future depends on, except its state.

    That is its options, the facts about its cartridge, the game on it, and those who play the
    second side.
    """
    opponent = (opponents.fingerprint if opponents else options.opponent).encode()
    values = vars(options) | {"coins": options.coins_name}
    if options.opens_as_on_macos:
        values |= {"opening": "macos"}
    rules = {name: value for name, value in values.items() if name not in _FREE}
    hashes = {}
    each = list(zip(options.all_games, options.all_flavours, strict=True))
    for game, flavour in dict.fromkeys(each):
        line = {name: it for name, it in facts()[game].items() if name != "two"}
        if options.opponent == SELF:
            line |= facts()[game].get("two", {})
        of_game = {"game": game, "flavour": flavour, "facts": line}
        text = json.dumps([rules | of_game], sort_keys=True)
        hashes[game, flavour] = hashlib.sha256(text.encode() + b"\0" + opponent).digest()
    return [hashes[it] for it in each]
