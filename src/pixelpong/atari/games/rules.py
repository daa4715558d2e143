"""The rules of games, and consoles that play by them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.compiled import load_game as load_cartridge
from pixelpong.atari.machine.record import DRAW_PICTURE
from pixelpong.atari.machine.starting import SHIFT, TIMERS, count_draws, filled_bytes
from pixelpong.atari.machine.starting import start as start_game
from pixelpong.atari.steps.episode import Console
from pixelpong.atari.steps.opening import MOST_AT_ONCE, Starts
from pixelpong.atari.steps.records import NOW, RULES, aligned_zeros
from pixelpong.config.protocols import Protocol
from pixelpong.errors import note
from pixelpong.items import STAY
from pixelpong.pong.cartridge import SERVE
from pixelpong.pong.field import DRAW_FIELD, FIELD_SIZE, PONG_MACHINE
from pixelpong.pong.modes import MODE
from pixelpong.pong.native import load_game, start_of

PONG = "pong"
FIRE = 1  # in Gymnasium's numbers
# The number of different starts, by what a start depends on.
_NUM_STARTS = {"constant": 1, "timer": TIMERS, "memory": 0}


@dataclass(frozen=True)
class Rules:
    """The rules of a game; the console plays 60 frames a second."""

    frame_skips: tuple[int, int]  # the fewest and the most frames of a step
    max_frames: int  # the number of frames after which an episode is cut off
    # The probability that a frame keeps the held action: right side, left side.
    sticky: tuple[float, float] = (0.0, 0.0)
    num_sides: int = 1  # 1: the console plays the left side
    mode: int = 0  # number of Pong's game on the cartridge, see `NativeGame.switch_on`
    game: str = PONG  # the name of the cartridge
    fires_first: bool = False  # the button is pressed in the first frame of an episode
    max_noops: int = 0  # an episode starts with fewer frames without a press than this
    is_continuous: bool = False  # whether each action says how far it turns a paddle
    tosses_coins: bool = False  # whether the game's own generator decides what sticks
    wastes_coins: bool = False  # coins of the frames that a game's last step does not play are used
    counts_start: bool = False  # frames that the start of a game plays count for `max_frames`
    ends_at_lost_life: bool = False
    tells_lost_life: bool = False  # a lost life is reported like an end
    clips_rewards: bool = False


def rules_of(protocol: Protocol, num_sides: int = 1) -> Rules:
    """The rules of a protocol, for one or two sides."""
    sticky, mode = (protocol.sticky, protocol.sticky), MODE if num_sides == 2 else 0
    return Rules(protocol.frame_skips, protocol.max_frames, sticky, num_sides, mode)


@functools.cache
def load_any(name: str) -> Game:
    """Load a game by its cartridge's name, once per process."""
    if name == PONG:
        return load_game()
    return load_cartridge(name, note)


@functools.cache
def _first_start(name: str) -> NDArray[np.void]:
    """A machine at the first start, which loading a cartridge includes; do not change it."""
    return start_game(load_any(name))


def make_start(rules: Rules) -> NDArray[np.void]:
    """A machine at the start of a game; or switched on, if starts are played: [1] its record."""
    game = load_any(rules.game)
    if rules.game == PONG:
        return start_of(load_game(), rules.mode).copy()
    machine: Any = game.power_on()
    machine["timer_shift"] = SHIFT
    return machine


def make_console(
    rules: Rules,
    *,
    has_pictures: bool = False,
    keeps_frames: bool = False,
    takes_two: bool = False,
    start: NDArray[np.void] | None = None,
) -> Console:
    """Make a console.

    Args:
        rules: the rules of its games.
        has_pictures: whether it draws pictures; otherwise it draws fields.
        keeps_frames: whether the newest frame is needed, also if a game ends within a step.
        takes_two: whether the pictures of the last two frames of a step are taken.
        start: [1], from `make_start`, perhaps changed.
    """
    game = load_any(rules.game)
    start = make_start(rules) if start is None else start
    size, at = start.itemsize, start.dtype.fields["picture"][1]  # type: ignore[index]
    begin = -at % 64  # pictures are read as vectors
    first, second = (
        aligned_zeros(64 + size, dtype=np.uint8)[begin : begin + size] for _ in range(2)
    )
    first[:] = second[:] = start.view(np.uint8)
    machines = first, second if takes_two else first
    actions = aligned_zeros(max(rules.frame_skips[1], MOST_AT_ONCE), dtype=np.uint8)
    is_pong = rules.game == PONG
    field = (
        first.view(PONG_MACHINE)["field"][0] if is_pong else np.zeros((FIELD_SIZE, 2), np.uint64)
    )
    record = _make_rules(rules, game)
    record["draws"] = DRAW_PICTURE if has_pictures else DRAW_FIELD
    record["draws_all"] = keeps_frames and (rules.is_continuous or rules.ends_at_lost_life)
    record["takes_two"] = takes_two
    return Console(
        record,
        machines,
        addresses=(machines[0].ctypes.data, machines[1].ctypes.data),
        start=start.view(np.uint8),
        actions=actions,
        actions_address=actions.ctypes.data,
        now=aligned_zeros(1, dtype=NOW),
        field=field,
    )


def _make_rules(rules: Rules, game: Game) -> NDArray[np.void]:
    """The rules for compiled code, [1] `RULES`, except what is drawn."""
    record, facts = np.zeros(1, RULES), game.cartridge
    record["play_frames"], record["state_size"] = game.address, facts.kept_size
    if rules.game != PONG:
        record["start_game"] = game.start_address
        record["loading_draws"] = count_draws(facts)
        record["loading_frames"] = _first_start(rules.game)["frames"]
        record["filled_bytes"] = filled_bytes(facts)
        record["coin_frames"] = facts.coin_frames
    record["fewest_frames"], record["most_frames"] = rules.frame_skips
    record["max_frames"], record["sticky"] = rules.max_frames, rules.sticky
    record["first_action"] = FIRE if rules.fires_first else 0
    record["max_noops"], record["num_sides"] = rules.max_noops, rules.num_sides
    for name in (
        "is_continuous", "tosses_coins", "wastes_coins", "counts_start", "ends_at_lost_life",
        "tells_lost_life", "clips_rewards",
    ):  # fmt: skip
        record[name] = getattr(rules, name)
    record["idle"] = SERVE if rules.num_sides == 2 else STAY
    return record


def make_starts(rules: Rules, start: NDArray[np.void]) -> Starts:
    """What a thread needs to start games; `start` is from `make_start`."""
    game, is_pong = load_any(rules.game), rules.game == PONG
    count = 0 if is_pong else _NUM_STARTS[game.cartridge.start]
    memory = np.zeros(0, np.uint8) if is_pong else _first_start(rules.game)["ram"][0]
    return Starts(
        memory=memory,
        machines=np.zeros((count, start.itemsize), np.uint8),
        is_known=np.zeros(count, np.bool_),
    )
