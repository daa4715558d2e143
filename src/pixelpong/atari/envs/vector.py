"""Many Atari games as one environment; a step of all games is one compiled call per thread.

    actions -> `ActionReader` -> `Orders` -> `Turns`, a round of the threads -> the kernel `step`
            -> `Results`, which wait in `Pending` -> `step`, `recv`

A game is a row in a few arrays, so a state is a copy of them. Ctrl-C may come at any moment. Before
its step begins, a call changes only data that is recomputed from the state. A step begins with one
assignment, which replaces `Pending` too; then it is played to its end, if need be by the next call.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Literal, get_type_hints

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from pixelpong.atari.envs import making
from pixelpong.atari.envs.actions import ActionReader, find_cartridge
from pixelpong.atari.envs.ale_vector import VectorAle
from pixelpong.atari.envs.coins import BLOCK, Coins
from pixelpong.atari.envs.errors import EnvError, EnvOrderError, EnvValueError
from pixelpong.atari.envs.inputs import read_mask, read_seeds
from pixelpong.atari.envs.maker import MAKE_VEC
from pixelpong.atari.envs.options import (
    Affinity,
    Autoreset,
    CoinsName,
    Height,
    Noops,
    Numbers,
    Stack,
    Threads,
    Width,
    check_options,
    hash_rules,
)
from pixelpong.atari.envs.pending import Part, Pending, Step, give
from pixelpong.atari.envs.plug import ActionsName, ObservationName, Plugs, find_observations
from pixelpong.atari.envs.states import States
from pixelpong.atari.games.games import Games
from pixelpong.atari.games.turns import Workers
from pixelpong.atari.sides import BUILTIN, SELF
from pixelpong.atari.steps.stepping import LEAVE, RESET, SKIP, Results
from pixelpong.machine import count_cores
from pixelpong.schema import Count, FrameLimit, FrameSkip, Number, Share


class VectorEnv(
    States,
    gymnasium.vector.VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]],
    Generic[ObservationName, ActionsName],
):
    """Many Atari games, as a replacement for ale-py's ``AtariVectorEnv``.

    The options have the same names and defaults; the same seed and actions give the same bytes.

    Args:
        num_envs: number of games.
        observation: ``"atari"``, [4, 84, 84] uint8, the last four pictures, each the maximum of two
            grey frames, reduced in size; ``"frame"``, [rows, 160, 3] uint8; ``"grayscale"``, the
            same in grey, [rows, 160]; ``"ram"``, the console's memory, [128] uint8; or one that the
            game brings.
        game: the cartridge, by ale-py's name, such as ``"ms_pacman"``; by default `default_game`.
        games: instead of `num_envs` and `game`, the game of each environment.
        mode, difficulty: the game on the cartridge and the console's switches, by ale-py's numbers;
            one for all environments, or a list with one for each. `pixelpong.games` lists them.
        actions: a choice of actions that the game brings, by name; by default all that the game
            uses.
        opponent: who plays the second side, if the game brings one: ``"builtin"``; ``"self"``:
            actions [N, 2] play both sides, and ``infos["second_rewards"]`` are the second one's;
            or the name of a player that it brings.
        coins: what decides which frames are sticky. ``"ale"``: ale-py's generator, the default;
            numbers of opening frames are drawn as ale-py's build for this system draws them.
            ``"ale_linux"``: the same, but as on Linux and Windows everywhere.
            ``"ale_env"``: as in ale-py's single environments. ``"pixelpong"``: the generators of
            `pixelpong.evaluate`; the default with an opponent or `max_frameskip`, for which only
            `pixelpong.make_env` has ale-py's.
        num_threads: number of threads; 0 or None: one per core. It does not affect the results.
        thread_affinity_offset: the core of the first thread, the caller's, which stays free; the
            others stay on the cores after it, and after the last from the first on. −1: all free.
        batch_size: number of games whose results `recv` returns; 0: all of them.
        copy: False reuses one array; each step overwrites the observations of the last one.
        render_mode: ``"rgb_array"`` for `render`, or None.
        autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
        frameskip, max_frameskip: frames per step, drawn from this range if both are given.
        repeat_action_probability: the probability that a frame keeps the held action.
        max_num_frames_per_episode: frames after which an episode is cut off. Frames that some games
            play before their start count unless the coins are ``"ale"``, as in ale-py.
        noop_max: an episode starts with fewer than this many frames without a press, which do not
            count. If a game ends in them, they continue in another one.
        use_fire_reset: press the button in the first frame of an episode, if the game uses it.
        episodic_life: a lost life ends the episode, and the next one starts with a new game.
        life_loss_info: a lost life is reported as an end, but the game goes on.
        ram_info: ``infos["ram"]`` is the consoles' memory, [N, 128] uint8, when lives are read.
        reward_clipping: limit rewards to −1, 0 and 1.
        full_action_space: use all actions of the console.
        continuous: actions [N, 3] float32: radius, angle and button. A radius or a button beyond
            `continuous_action_threshold` counts; a paddle turns in proportion to the radius.
        img_height, img_width, grayscale, stack_num, maxpool: only for ``"atari"``.

    Raises:
        ConfigError: an option is unknown, its value out of range, or it would change nothing.
        EmulatorError: there is no such game, it is not covered, or its ROM is not installed.

    >>> envs = VectorEnv(3, game="breakout", num_threads=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 2, 3]))
    >>> observations.shape, rewards.tolist()
    ((3, 4, 84, 84), [0, 0, 0])
    """

    plugs: ClassVar[Plugs] = {}  # what games bring, by game
    default_game: ClassVar[str | None] = None

    def __init__(  # noqa: PLR0913 - most are AtariVectorEnv's
        self,
        num_envs: Number = 1,
        observation: ObservationName = "atari",  # type: ignore[assignment]
        *,
        game: str | None = None,
        games: Sequence[str] | None = None,
        mode: Numbers = None,
        difficulty: Numbers = None,
        actions: ActionsName | None = None,
        opponent: str = BUILTIN,
        coins: CoinsName | None = None,
        num_threads: Threads = None,
        thread_affinity_offset: Affinity = -1,
        batch_size: Count = 0,
        copy: bool = True,
        render_mode: Literal["rgb_array"] | None = None,
        autoreset_mode: Autoreset | AutoresetMode = "NextStep",
        frameskip: FrameSkip = 4,
        max_frameskip: FrameSkip | None = None,
        repeat_action_probability: Share = 0.0,
        max_num_frames_per_episode: FrameLimit = 108_000,
        noop_max: Noops = 30,
        use_fire_reset: bool = True,
        episodic_life: bool = False,
        life_loss_info: bool = False,
        ram_info: bool = False,
        reward_clipping: bool = True,
        full_action_space: bool = False,
        continuous: bool = False,
        continuous_action_threshold: Share = 0.5,
        img_height: Height = 84,
        img_width: Width = 84,
        grayscale: bool = True,
        stack_num: Stack = 4,
        maxpool: bool = True,
        **unknown_options: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "unknown_options")}
        maker = unknown_options.pop("_maker", MAKE_VEC)  # the called function, for messages
        for name in unknown_options:
            raise maker.unknown_option(name, given)
        types = get_type_hints(VectorEnv.__init__, include_extras=True)
        options = check_options(given, types, maker, self.plugs, self.default_game)
        self._options, self.num_envs = options, options.num_envs
        self.observation = options.observation
        self.game = None if options.games else options.game
        self.game_names = options.all_games
        self.autoreset_mode = AutoresetMode(options.autoreset_mode)
        self.render_mode = options.render_mode
        self.metadata = making.make_metadata(options, self.autoreset_mode)
        self._actions = ActionReader(options, self.plugs)
        kinds = find_observations(self.plugs, options.all_games[0])
        self._view = making.make_view(options, kinds[options.observation])
        self._make_spaces()
        self._make_games()

    def _make_spaces(self) -> None:
        self.single_observation_space = making.make_observation_space(self._view)
        self.single_action_space = making.make_action_space(self._options, self._actions.count)
        self.batch_size = size = self._options.batch_size or self.num_envs
        self.observation_space = batch_space(self.single_observation_space, size)
        self.action_space = batch_space(self.single_action_space, size)

    def _make_games(self) -> None:
        """Make the games and the arrays of their next orders."""
        options, size, mode = self._options, self.num_envs, self.autoreset_mode
        tables = np.broadcast_to(self._actions.tables, (size, self._actions.count))
        facts = [find_cartridge(options, game, self.plugs) for game in options.all_games]
        flavours, opponents = options.all_flavours, making.make_opponents(options, self.plugs)
        self._games = games = Games(
            size,
            list(map(functools.partial(making.make_rules, options), facts, flavours, tables)),
            self._view,
            workers=Workers(options.num_threads or count_cores(), options.thread_affinity_offset),
            num_uniforms=BLOCK if options.coins_name == "pixelpong" else 1,
            autoresets=making.AUTORESETS[mode],
            rules_hashes=hash_rules(options, opponents),
            opponents=opponents,
        )
        self.games, self._orders, self._turns = games.rows, games.orders, games.turns
        self._moves = self._orders.moves
        is_random = options.repeat_action_probability > 0 or options.max_frameskip is not None
        is_ours = options.coins_name == "pixelpong"
        self._coins = Coins(games) if is_ours and (is_random or opponents) else None
        self._all = np.arange(size, dtype=np.int32)
        self._has_batches = self.batch_size < size
        self._observations, self._final = self._empty(0), self._empty(0)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode in all games, or in those marked by ``options["reset_mask"]``, [N] bool.

        `seed` is one number, from which the games' seeds are consecutive, or one number for each
        game that is reset. A seed starts its first episode; without one, the next episode starts.
        Results that were not received are forgotten; if there are any, all games must be reset.
        """
        return self._reset(seed, options)

    def _reset(self, seed: Any, options: Any, *kept: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start episodes, and replace what is kept beside the games if it is given."""
        with self._turns.lock:
            self._turns.settle()
            mask = read_mask(options, self.num_envs, is_first=not self._is_seeded)
            if self._has_batches and not mask.all():
                raise EnvValueError("With batch_size < num_envs, reset() starts all games.")
            if self._pending.waiting and not mask.all():
                raise EnvOrderError("Results wait: call recv() before you reset some of the games.")
            which = np.flatnonzero(mask)
            if seed is None and not self._is_seeded:
                seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
            is_split = self._options.coins == "ale_env"
            seeds = -1 if seed is None else read_seeds(seed, len(which), is_split=is_split)
            self._orders.seeds[which] = seeds
            self._moves[:, 0] = np.where(mask, RESET, LEAVE)
            self._orders.slots[:] = self._all
            begun = Pending(self._all, kept=kept[0] if kept else self._pending.kept)
            results = self._make_results(begun, self.num_envs)
            parts, rest = begun.add(results, None).take(self.batch_size)
            self._begin(results, rest)
            step = self._collect(parts)
            return step[0], step[-1]

    def step(self, actions: NDArray[Any]) -> Step:
        """Play a step of each game with an action, [N] indices; with ``opponent="self"`` [N, 2].

        Returns the observations, the rewards [N] int32, whether each episode is over and whether
        the frame limit cut it off, [N] bool each, and infos. With a `batch_size` of B, the actions
        are for the games that were received last, and results come for the next ones, [B] each.
        As in ale-py, results of an earlier `send` come first.
        """
        return self._step(actions)

    def _step(self, actions: NDArray[Any], count: int = 0, *kept: Any) -> Step:
        """Play a step, of `count` frames unless it is 0; replace what is kept if it is given."""
        with self._turns.lock:
            results, pending = self._order(actions, count)
            if kept:
                pending = pending._replace(kept=kept[0])
            parts, rest = pending.take(self.batch_size)
            # If earlier results come first, nobody has to wait for this step.
            self._begin(results, rest, is_sent=parts[-1].results is not results)
            return self._collect(parts)

    def send(self, actions: NDArray[Any]) -> None:
        """Begin a step, as `step` plays it, in other threads; `recv` returns its results.

        Without a `batch_size`, further steps may be sent before; `recv` returns one after another.
        """
        with self._turns.lock:
            self._begin(*self._order(actions), is_sent=True)

    def recv(self) -> Step:
        """Return the results of what was sent; with a `batch_size`, of the next games."""
        with self._turns.lock:
            pending = self._pending
            if self._has_batches and pending.received is not None:
                raise EnvOrderError("The games that were received wait: call send() before recv().")
            parts, rest = pending.take(self.batch_size)
            if parts[-1].results is pending.waiting[-1].results:  # which may not be there yet
                self._turns.settle()
            self._turns.note(rest)
            return self._collect(parts)

    def xla(self) -> Any:
        """Refuse: there are no functions for JAX here, as ale-py's environment has."""
        raise EnvError("There are no functions for JAX: use step(), or send() and recv().")

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return the newest frames, [rows, 160, 3] uint8 each, if `render_mode` is ``"rgb_array"``.

        A game has 210 rows, a European one 250. Of several games, all frames have the most rows of
        any game; those below a game's own are black.
        """
        with self._turns.lock:
            self._turns.settle()
            if not self.render_mode:
                return None
            facts = map(self._options.cartridge, self._options.all_games)
            return tuple(map(making.paint, facts, self._games.frames))

    def _observe(self) -> NDArray[Any]:
        """Return the newest observations again, [N, …]."""
        with self._turns.lock:
            self._turns.settle()
            self._moves[:, 0] = LEAVE
            results = self._make_results(self._pending, self.num_envs)
            self._begin(results, self._pending)
            return self._collect((Part(self._all, results),))[0]

    @property
    def ale(self) -> VectorAle:
        """What programs ask of the attribute ``ale`` of ale-py's `AtariVectorEnv`."""
        return VectorAle(self)

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        with self._turns.lock:
            self._turns.close()

    @property
    def _is_seeded(self) -> bool:
        return bool(self.games["episode"][0] >= 0)

    @property
    def _pending(self) -> Pending:
        return self._turns.noted or Pending(self._all)

    def _keep(self, kept: Any) -> None:
        """Replace what the environment keeps beside its games."""
        with self._turns.lock:
            self._turns.note(self._pending._replace(kept=kept))

    def _play_frame(self, move: int, turn: int) -> Step:
        """Play a frame of the only game with a console's action, as ALE does.

        After the end of an episode, nothing is played, but the frame takes its coins.
        """
        with self._turns.lock:
            self._turns.settle()
            self._require_episode()
            results = self._make_results(self._pending, 1)
            parts, rest = self._pending.add(results, self._all).take(1)
            if self._coins:
                self._coins.draw()
            self._moves[0] = move, turn
            self._orders.counts[:], self._orders.seeds[:] = 1, -1
            self._begin(results, rest)
            return self._collect(parts)

    def _require_episode(self) -> None:
        if not self._is_seeded:
            raise EnvOrderError("No episode is in progress: call reset() before step().")

    def _order(self, actions: NDArray[Any], count: int = 0) -> tuple[Results, Pending]:
        """Write the orders for a step; return where its results go, and what is then pending."""
        self._turns.settle()
        pending = self._pending
        results = self._make_results(pending, self.batch_size)
        begun = pending.add(results, None if self._has_batches else self._all)
        self._require_episode()
        moves = self._actions.read(actions, self.action_space.shape, begun.waiting[-1].games)
        if self.autoreset_mode == AutoresetMode.DISABLED and not self.games["is_on"].all():
            raise EnvOrderError("An episode has ended: call reset() before step().")
        if self._coins:
            self._coins.draw()
        if self._has_batches:
            which = begun.waiting[-1].games
            self._moves[:, 0] = SKIP
            self._moves[which, : moves.ndim] = moves.reshape(len(moves), -1)
            self._orders.slots[which] = np.arange(len(which))
        elif moves.ndim == 1:
            self._moves[:, 0] = moves
        else:
            self._moves[:] = moves
        self._games.let_opponents_decide()
        self._orders.counts[:], self._orders.seeds[:] = count, -1
        return results, begun

    def _make_results(self, pending: Pending, size: int) -> Results:
        """Make the arrays for a step of `size` games; waiting results keep theirs."""
        if self._options.copy or pending.waiting or len(self._observations) != size:
            self._observations = self._empty(size)
        has_final = self.autoreset_mode == AutoresetMode.SAME_STEP
        if has_final and (pending.waiting or len(self._final) != size):
            self._final = self._empty(size)
        return self._games.make_results(self._observations, self._final)

    def _begin(self, results: Results, pending: Pending, *, is_sent: bool = False) -> None:
        if self.closed:
            raise EnvOrderError("The environment is closed; make a new one.")
        self._games.begin(results, pending, is_sent=is_sent)

    def _collect(self, parts: tuple[Part, ...]) -> Step:
        return give(parts, has_second=self._options.opponent == SELF)

    def _empty(self, size: int) -> NDArray[Any]:
        return np.empty((size, *self._view.shape), self._view.observation.dtype)
