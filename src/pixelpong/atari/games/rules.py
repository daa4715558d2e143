"""The rules of games, and consoles that play by them."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridge import CONTROLS, Cartridge, Flavour
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.playing import JOYSTICKS
from pixelpong.atari.machine.record import DRAW_OWN, SECOND_AT
from pixelpong.atari.machine.roms import read_rom
from pixelpong.atari.machine.starting import SHIFT, TIMERS, count_draws, filled_bytes, start
from pixelpong.atari.steps.episode import Console
from pixelpong.atari.steps.opening import MOST_AT_ONCE, Starts
from pixelpong.atari.steps.records import NOW, RULES, aligned_zeros
from pixelpong.notices import note

FIRE = 1  # in ALE's numbers
# The number of different starts, by what a start depends on.
_NUM_STARTS = {"constant": 1, "timer": TIMERS, "memory": 0}


@dataclass(frozen=True)
class Rules:
    """The rules of a game; the console plays 60 frames a second."""

    cartridge: Cartridge
    # These are named as in `RULES`, which says what they mean.
    fewest_frames: int
    most_frames: int
    max_frames: int
    sticky: tuple[float, float] = (0.0, 0.0)
    num_sides: int = 1  # 1: the console plays the left side
    first_action: int = 0
    max_noops: int = 0
    opens_as_on_macos: bool = False
    is_continuous: bool = False
    tosses_coins: bool = False
    wastes_coins: bool = False
    counts_start: bool = False
    ends_at_lost_life: bool = False
    tells_lost_life: bool = False
    clips_rewards: bool = False
    flavour: Flavour | None = None  # the game on the cartridge; None: the first one

    @property
    def has_sticky_menu(self) -> bool:
        """Whether coins decide what sticks in a menu before a game."""
        return self.cartridge.has_menu and self.tosses_coins


@functools.cache
def open_cartridge(facts: Cartridge) -> Game:
    """Load a cartridge's code, once per process; say so if it must be compiled."""
    return Game(facts, read_rom(facts), tell=note)


@functools.cache
def first_start(facts: Cartridge) -> NDArray[np.void]:
    """Return a machine at the first start of a game, [1] of its record; do not change it."""
    return start(open_cartridge(facts))


def switch_on(facts: Cartridge, flavour: Flavour | None = None) -> NDArray[np.void]:
    """Make a machine from which starts are played, [1] of its record."""
    machine = open_cartridge(facts).power_on(flavour)
    machine["timer_shift"] = SHIFT
    return machine


def make_console(
    rules: Rules,
    *,
    draws: int = DRAW_OWN,
    keeps_frames: bool = False,
    takes_two: bool = False,
    start: NDArray[np.void] | None = None,
) -> Console:
    """Make a console.

    Args:
        rules: the rules of its games.
        draws: what it draws, such as `DRAW_PICTURE`.
        keeps_frames: whether the newest frame is needed, also if a game ends within a step.
        takes_two: whether the pictures of the last two frames of a step are taken.
        start: [1], the machine at the start of a game, by default the first one; or, if starts are
            played, from `switch_on`.
    """
    start = first_start(rules.cartridge) if start is None else start
    size, at = start.itemsize, start.dtype.fields["picture"][1]  # type: ignore[index]
    begin = -at % 64  # pictures are read as vectors
    first, second = (
        aligned_zeros(64 + size, dtype=np.uint8)[begin : begin + size] for _ in range(2)
    )
    first[:] = second[:] = start.view(np.uint8)
    machines = first, second if takes_two else first
    record = _make_rules(rules)
    room = record["second_at"][0] + max(rules.most_frames, MOST_AT_ONCE)
    actions = aligned_zeros(room, dtype=np.uint8)
    record["draws"] = draws
    record["draws_all"] = keeps_frames and (rules.is_continuous or rules.ends_at_lost_life)
    record["takes_two"] = takes_two
    own = rules.cartridge.own_drawing
    return Console(
        record,
        machines,
        addresses=(machines[0].ctypes.data, machines[1].ctypes.data),
        start=start.view(np.uint8),
        actions=actions,
        actions_address=actions.ctypes.data,
        now=aligned_zeros(1, dtype=NOW),
        drawn=first.view(start.dtype)[own][0] if own else np.zeros((0, 0), np.uint64),
    )


def _make_rules(rules: Rules) -> NDArray[np.void]:
    """Convert rules to those for compiled code, [1] `RULES`, without what is drawn."""
    facts, game = rules.cartridge, open_cartridge(rules.cartridge)
    record = np.zeros(1, RULES)
    for field in dataclasses.fields(rules):
        if field.name in RULES.names:  # type: ignore[operator]
            record[field.name] = getattr(rules, field.name)
    record["play_frames"], record["start_game"] = game.address, game.start_address
    record["state_size"], record["idle"] = facts.kept_size, facts.codes[0]
    record["loading_draws"], record["filled_bytes"] = count_draws(facts), filled_bytes(facts)
    record["loading_frames"] = first_start(facts)["frames"]
    record["coin_frames"] = facts.coin_frames
    record["has_sticky_menu"] = rules.has_sticky_menu
    record["first_mode"] = facts.first_flavour.mode
    has_bytes_apart = CONTROLS[facts.controls].kind >= JOYSTICKS
    record["second_at"], record["second_shift"] = (SECOND_AT, 0) if has_bytes_apart else (0, 4)
    record["pays_second"] = facts.scoring is not None and facts.scoring.pays_second
    return record


def make_starts(
    facts: Cartridge, flavour: Flavour | None = None, *, has_sticky_menu: bool = False
) -> Starts:
    """Make what a thread needs to play the starts of games."""
    first = first_start(facts)
    is_known = flavour in (None, facts.first_flavour) and not has_sticky_menu
    count = _NUM_STARTS[facts.start if is_known else "memory"]
    return Starts(
        memory=first["ram"][0],
        machines=np.zeros((count, first.itemsize), np.uint8),
        is_known=np.zeros(count, np.bool_),
    )
