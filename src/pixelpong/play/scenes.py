"""A scene: what a network sees of a game, what it can do there, and how the game is recorded.

There are two kinds. `PongScene` has Pong's own features (`pixelpong.pong.features`), its two sides
and its points. `ViewScene` has the view of the player's figure (`pixelpong.sight.view`), for any
game. The shapes of a network follow from the game alone; to see, a `ViewScene` also needs its
`Sight`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.rules import Rules, make_console, make_starts, switch_on
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.record import DRAW_PICTURE, WIDTH
from pixelpong.atari.steps.episode import Console
from pixelpong.atari.steps.opening import MOST_AT_ONCE
from pixelpong.atari.steps.records import CHANCE, aligned_zeros
from pixelpong.config.protocols import PONG, Protocol
from pixelpong.items import ACTIONS, NUM_PIXELS, UP, Episode
from pixelpong.kernels.any_game import Openings, ViewedScratch, play_viewed
from pixelpong.kernels.blobs import make_view_scratch, make_view_sight
from pixelpong.kernels.deciding import Layers
from pixelpong.kernels.observing import Geometry, Seen
from pixelpong.kernels.pong_game import GatedScratch, play_gated
from pixelpong.kernels.records import (
    MAX_ACTIONS,
    MAX_INPUTS,
    NUM_MARKS,
    STREAM,
    VIEW_STREAM,
    are_streams,
)
from pixelpong.kernels.viewing import MAX_VIEW_INPUTS, are_views
from pixelpong.play.finding import find_sight
from pixelpong.pong import features
from pixelpong.pong.field import FIELD_SIZE
from pixelpong.pong.modes import MAX_FRAMES
from pixelpong.pong.native import rules_of
from pixelpong.pong.preprocess import pack_field
from pixelpong.sight import view
from pixelpong.sight.blobs import NUM_CLASSES, Sight

MAX_NOOPS = 30  # an episode of a game other than Pong opens with fewer frames than this
_PICTURE_ROWS = 210  # the rows of a picture that are seen


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """The base of both kinds."""

    game: str
    actions: tuple[int, ...]  # in ALE's numbers
    num_inputs: int
    # [A, ·], the outputs that are added to an action's own, see `pixelpong.learn.ppo`.
    parts: NDArray[np.int64]
    sight: Sight | None = None  # None for Pong, and in a scene that cannot see yet

    stream: ClassVar[np.dtype[Any]]  # the record of a game in progress
    max_inputs: ClassVar[int]  # the most inputs that can be 1 at a step
    typical_inputs: ClassVar[int]  # a round number of those that are
    play_kernel: ClassVar[Callable[..., int]]  # the kernel that plays with the gated network
    sees_much: ClassVar[bool]  # whether a small file needs many rows, see `agent.file.encode_small`
    num_openings: ClassVar[int]  # random numbers per step that decide how an episode opens

    @property
    def can_see(self) -> bool:
        """Whether it has the sight that its networks need."""
        return self.game == PONG or self.sight is not None

    @property
    def num_outputs(self) -> int:
        """The outputs of a network: the actions, the value, the parts of actions."""
        return int(max(self.parts.max(initial=0), len(self.actions))) + 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sight as arrays for a file; empty for Pong."""
        return {}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene with the sight of a file; raise `ValueError` if it is not valid."""
        return self

    def make_console(self, protocol: Protocol, num_sides: int, *, is_endless: bool) -> Console:
        """Make a console by a protocol's rules, for whole games or for an endless stream."""
        raise NotImplementedError

    def make_scratch(self, layers: Layers, life_cost: float) -> Any:
        """Make the arrays that the gated network needs for its decisions."""
        raise NotImplementedError

    def draw(self, screen: NDArray[np.uint8], drawn: NDArray[np.uint64]) -> None:
        """Write a screen, palette indices, to `drawn` as the console would draw it."""
        raise NotImplementedError

    def make_drawn(self) -> NDArray[np.uint64]:
        """Return room for what a console draws."""
        raise NotImplementedError

    def are_streams(self, streams: NDArray[np.void]) -> bool:
        """Whether streams, [N], keep compiled code inside its arrays."""
        raise NotImplementedError

    def end(self, stream: np.void, opponent: str) -> Episode:
        """Return the episode that has just ended."""
        raise NotImplementedError

    def preferences_of(self, streams: NDArray[np.void]) -> NDArray[np.float64]:
        """Return a view of the streams' preferences for actions, [N, A]; [N, 0] if none explores.

        See `pixelpong.learn.ppo`.
        """
        return np.zeros((len(streams), 0))

    def list_points(self, steps: NDArray[np.void]) -> list[int]:
        """List the rewards of the points that ended in these steps; empty if a game has none."""
        return []

    def count_ups(self, steps: NDArray[np.void]) -> int | None:
        """Count the steps with the action UP; None if that says nothing about the game."""
        return None


class PongScene(Scene):
    """Pong, with its own features."""

    stream, max_inputs, typical_inputs, num_openings = STREAM, MAX_INPUTS, 100, 0
    sees_much = False
    play_kernel = staticmethod(play_gated)

    def make_console(self, protocol: Protocol, num_sides: int, *, is_endless: bool) -> Console:
        """Make a console by a protocol's rules; see `Scene`."""
        rules = rules_of(protocol, num_sides)
        if is_endless:
            # After 18 minutes the cartridge stops the game and cycles colours.
            rules = dataclasses.replace(rules, max_frames=min(rules.max_frames, MAX_FRAMES))
        return make_console(rules)

    def make_scratch(self, layers: Layers, life_cost: float) -> GatedScratch:
        """Make the arrays that the gated network needs for its decisions."""
        seen = Seen(
            marks=np.zeros((4, NUM_MARKS), np.uint16),
            num_before=aligned_zeros(1, dtype=np.int64),
            pixels=np.zeros(NUM_PIXELS, np.uint16),
        )
        geometry = Geometry(features.list_cells_of_pixels(), features.list_geometry())
        return GatedScratch(geometry, seen, layers)

    def make_drawn(self) -> NDArray[np.uint64]:
        """Return room for a field."""
        return np.zeros((FIELD_SIZE, 2), np.uint64)

    def draw(self, screen: NDArray[np.uint8], drawn: NDArray[np.uint64]) -> None:
        """Write the field of a screen to `drawn`."""
        drawn[:] = pack_field(screen)

    def are_streams(self, streams: NDArray[np.void]) -> bool:
        """Whether streams, [N], keep compiled code inside its arrays."""
        return are_streams(streams)

    def end(self, stream: np.void, opponent: str) -> Episode:
        """Return the episode that has just ended."""
        tally, game = stream["tally"], stream["game"]
        count = tally["points"]
        return Episode.of_points(
            steps=int(game["steps"]),
            frames=int(game["num_frames"]),
            entropy=float(tally["entropy"]),
            ups=int(tally["ups"]),
            ends=tuple(tally["ends"][:count].tolist()),
            rewards=tuple(tally["rewards"][:count].tolist()),
            opponent=opponent,
        )

    def list_points(self, steps: NDArray[np.void]) -> list[int]:
        """List the rewards of the points that ended in these steps."""
        rewards = steps["reward"]
        return [int(reward) for reward in rewards[rewards != 0]]

    def count_ups(self, steps: NDArray[np.void]) -> int:
        """Count the steps with the action UP."""
        return int((steps["action"] == ACTIONS.index(UP)).sum())


class ViewScene(Scene):
    """Any game, as the player's figure sees it."""

    stream, max_inputs, typical_inputs, num_openings = VIEW_STREAM, MAX_VIEW_INPUTS, 200, 1
    sees_much = True
    play_kernel = staticmethod(play_viewed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sight as arrays for a file."""
        assert self.sight is not None
        values = vars(self.sight).items()
        return {_PREFIX + name: np.atleast_1d(np.asarray(value)) for name, value in values}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Scene:
        """Return the scene with the sight of a file; raise `ValueError` if it is not valid."""
        fields = {it.name: arrays[_PREFIX + it.name] for it in dataclasses.fields(Sight)}
        return dataclasses.replace(self, sight=_read_sight(**fields))

    def make_console(self, protocol: Protocol, num_sides: int, *, is_endless: bool) -> Console:
        """Make a console by a protocol's rules, in a game for one."""
        assert num_sides == 1, "only Pong is played by two"
        low, high = protocol.frame_skips
        facts, sticky = cartridge(self.game), (protocol.sticky, protocol.sticky)
        rules = Rules(facts, low, high, protocol.max_frames, sticky, max_noops=MAX_NOOPS)
        start = switch_on(facts)
        console = make_console(rules, draws=DRAW_PICTURE, start=start)
        at = start.dtype.fields["picture"][1]  # type: ignore[index]
        picture = console.machines[0][at : at + _PICTURE_ROWS * WIDTH]
        return console._replace(drawn=picture.view(np.uint64).reshape(_PICTURE_ROWS, -1))

    def make_scratch(self, layers: Layers, life_cost: float) -> ViewedScratch:
        """Make the arrays that the gated network needs for its decisions."""
        assert self.sight is not None, "this scene has no sight"
        row = np.zeros(2 + MOST_AT_ONCE)
        openings = Openings(make_starts(cartridge(self.game)), np.zeros(1, CHANCE), row)
        return ViewedScratch(
            make_view_sight(self.sight),
            make_view_scratch(),
            layers,
            self.parts,
            openings,
            life_cost,
        )

    def make_drawn(self) -> NDArray[np.uint64]:
        """Return room for a picture."""
        return np.zeros((_PICTURE_ROWS, WIDTH // 8), np.uint64)

    def draw(self, screen: NDArray[np.uint8], drawn: NDArray[np.uint64]) -> None:
        """Write a screen to `drawn`."""
        drawn.view(np.uint8)[:] = screen[:_PICTURE_ROWS]

    def are_streams(self, streams: NDArray[np.void]) -> bool:
        """Whether streams, [N], keep compiled code inside its arrays."""
        actions, newest = streams["last_actions"], streams["game"]["newest"]
        is_known = (actions >= 0) & (actions < len(self.actions)) & np.isin(newest, (0, 1))[:, None]
        return bool(is_known.all()) and are_views(streams)

    def end(self, stream: np.void, opponent: str) -> Episode:
        """Return the episode that has just ended."""
        game = stream["game"]
        won, lost = game["points"].tolist()
        return Episode(
            steps=int(game["steps"]),
            frames=int(game["num_frames"]),
            entropy=float(stream["tally"]["entropy"]),
            episode_return=float(won - lost),
            opponent=opponent,
            explores=bool(stream["preferences"].any()),
        )

    def preferences_of(self, streams: NDArray[np.void]) -> NDArray[np.float64]:
        """Return a view of the streams' preferences for actions, [N, A]."""
        preferences: NDArray[np.float64] = streams["preferences"][:, : len(self.actions)]
        return preferences


_PREFIX = "sight."  # of the names of a sight's arrays in a file


def _read_sight(
    background: NDArray[Any],
    is_by_row: NDArray[Any],
    classes: NDArray[Any],
    player: NDArray[Any],
    player_size: NDArray[Any],
) -> Sight:
    """Make a sight of arrays from a file; raise `ValueError` if it would be unsafe for kernels."""
    shapes = background.shape, classes.shape, is_by_row.shape, player.shape, player_size.shape
    if shapes != ((_PICTURE_ROWS, WIDTH), (256,), (1,), (1,), (1,)):
        raise ValueError("its sight has the wrong shape")
    numbers = int(player[0]), int(player_size[0])
    is_sound = 0 <= numbers[0] <= NUM_CLASSES and 0 <= numbers[1] <= _PICTURE_ROWS * WIDTH
    types = background.dtype, classes.dtype
    if not is_sound or set(types) != {np.dtype("u1")} or not 1 <= classes.max() <= NUM_CLASSES:
        raise ValueError("its sight has numbers that are out of range")
    return Sight(background, bool(is_by_row[0]), classes, *numbers)


# The directions and the button of ALE's eighteen actions: left or right, up or down, fire.
_ACROSS = (0, 0, 0, 1, 2, 0, 1, 2, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2)
_UP_DOWN = (0, 0, 1, 0, 0, 2, 1, 1, 2, 2, 1, 0, 0, 2, 1, 1, 2, 2)
_FIRES = (0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
_NUM_PARTS = (3, 3, 2)


def list_parts(actions: tuple[int, ...]) -> NDArray[np.int64]:
    """List the outputs of each action's parts, [A, 3]: across, up or down, and the button.

    >>> list_parts((0, 1, 3)).tolist()
    [[4, 7, 10], [4, 7, 11], [5, 7, 10]]
    """
    first = np.cumsum([len(actions) + 1, *_NUM_PARTS[:-1]])
    numbers = np.array([(_ACROSS[it], _UP_DOWN[it], _FIRES[it]) for it in actions])
    parts: NDArray[np.int64] = numbers + first
    return parts


@functools.cache
def scene_of(game: str) -> Scene:
    """Return the scene of a game; it cannot see yet, unless the game is Pong."""
    if game == PONG:
        no_parts = np.zeros((len(ACTIONS), 0), np.int64)
        return PongScene(PONG, ACTIONS, features.NUM_INPUTS, no_parts)
    actions = cartridge(game).actions
    assert len(actions) <= MAX_ACTIONS
    num_inputs = 3 * view.NUM_FEATURES + len(actions)
    return ViewScene(game, actions, num_inputs, list_parts(actions))


@functools.cache
def find_scene(game: str) -> Scene:
    """Return a game's scene that can see, by what random play shows."""
    scene = scene_of(game)
    if game == PONG:
        return scene
    return dataclasses.replace(scene, sight=find_sight(cartridge(game)))
