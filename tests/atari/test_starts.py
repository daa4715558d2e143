"""A start, played by compiled code: what it depends on, what ALE counts of it, how it fails.

That starts are ALE's in memory and picture is tested in `test_cartridges`.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from machines import copy_console
from programs import load_ale

from pixelpong.atari.lockstep import Lockstep
from pixelpong.atari.machine import cartridges
from pixelpong.atari.machine.cartridge import Select
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import Game, load_game
from pixelpong.atari.machine.record import DRAW_NOTHING, MAX_LINES, PADDLE_TURN, WIDTH
from pixelpong.atari.machine.roms import read_rom
from pixelpong.atari.machine.starting import reset, start
from pixelpong.errors import EmulatorError

TIMERS = range(25, 100)
# What their starts depend on: nothing, the timer, the memory; in the last, only that of the
# cartridge, and in the one before, the timer's number shows only in the record.
FEW = {
    "breakout": "constant",
    "freeway": "timer",
    "montezuma_revenge": "timer",
    "seaquest": "memory",
    "elevator_action": "memory",
}
# SELECT is pressed: once, often, with another first press; frames of a mode; a menu.
COUNTED = {"pooyan": 1, "name_this_game": 134, "yars_revenge": 7, "berzerk": 20, "double_dunk": 13}


def few_and_all(few: list[str]) -> list:
    """Some games; in the soak all the others."""
    others = [name for name in cartridges.names() if name not in few]
    return [*few, *(pytest.param(name, marks=pytest.mark.soak) for name in others)]


def memories(game: Game, rng: np.random.Generator, count: int) -> list[bytes]:
    """Memories before a start: empty, full, random, and those after some play."""
    found, machine = [bytes(128), b"\xff" * 128, rng.bytes(128)], start(game)
    legal = np.array(game.cartridge.legal_actions, np.uint8)
    for _ in range(count):
        actions = rng.choice(legal, int(rng.integers(20, 900))).tobytes()
        game.play(machine, actions, DRAW_NOTHING)
        found.append(machine["ram"].tobytes())
    return found


def start_with(game: Game, timer: int, memory: bytes, extra: bytes) -> tuple[bytes, ...]:
    """All that the future and the first picture depend on, after a start."""
    machine = reset(game, 0, memory)
    machine["timer"], machine["extra_ram"] = timer, np.frombuffer(extra, np.uint8)
    game.start_game(machine)
    kept = machine.view(np.uint8)[: game.cartridge.kept_size].tobytes()
    return kept, *(machine[name].tobytes() for name in ("picture", "frames", "lives"))


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all(list(FEW)))
def test_a_start_depends_on_what_the_facts_say(name):
    """Every number that the timer may have, with several memories."""
    game, rng, starts = load_game(name), np.random.default_rng(8), defaultdict(set)
    for memory in memories(game, rng, 4):
        for timer in TIMERS:
            extra = rng.bytes(128) if game.cartridge.has_memory else bytes(128)
            starts[timer].add(start_with(game, timer, memory, extra))
    if len(set().union(*starts.values())) == 1:
        found = "constant"
    else:
        found = "timer" if all(len(each) == 1 for each in starts.values()) else "memory"
    assert game.cartridge.start == found == FEW.get(name, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_some_frames_of_a_start_are_counted_as_ale_counts_them(name):
    """`Lockstep` compares what it counts; here is what ALE says."""
    game, ale = load_game(name), load_ale(name)
    assert start(game)["frames"][0] == COUNTED[name] == ale.getEpisodeFrameNumber()
    assert not Lockstep(game).result.difference


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breakout", "elevator_action"])
def test_the_timer_starts_with_one_of_its_numbers(name):
    game = load_game(name)
    assert {reset(game, number, bytes(128))["timer"][0] for number in range(200)} <= set(TIMERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adventure", "air_raid"])
def test_the_first_start_of_a_european_game_explores_and_translates_nothing_again(name, tmp_path):
    """Although loading plays 60 frames of it as an American game."""
    copy_console(tmp_path)
    facts = cartridge(name)
    assert facts.max_lines != MAX_LINES
    game = Game(facts, read_rom(facts), tmp_path)
    made = set(tmp_path.iterdir())
    start(game)
    (added,) = set(tmp_path.iterdir()) - made
    assert added.suffix == ".machine"
    assert (
        added.stat().st_size < max(path.stat().st_size for path in tmp_path.glob("*.machine")) / 2
    )


@pytest.mark.slow
def test_a_game_that_select_never_chooses_is_one_line():
    impossible = Select(frames=2, until="xA5 == 256")
    game = load_game("flag_capture").with_facts(select=impossible)
    with pytest.raises(EmulatorError, match=r"failed: no press chose .*; start it again"):
        start(game)


@pytest.mark.slow
def test_a_start_plays_from_any_record_that_was_reset():
    """Nothing but its snapshot counts, so other code can start games in its own records."""
    game, rng = load_game("qbert"), np.random.default_rng(9)
    wanted = start(game, 3, bytes(128))
    machine, size = reset(game, 3, bytes(128)), game.cartridge.kept_size
    rubbish = np.frombuffer(rng.bytes(machine.nbytes), machine.dtype).copy()
    rubbish.view(np.uint8)[:size] = machine.view(np.uint8)[:size]
    rubbish["shades"], rubbish["turn"] = range(256), PADDLE_TURN
    game.start_game(rubbish)
    pixels = game.cartridge.rows * WIDTH
    assert np.array_equal(rubbish["picture"][0, :pixels], wanted["picture"][0, :pixels])
    for name in ("frames", "lives", "stop"):
        assert rubbish[name] == wanted[name]
    assert rubbish.view(np.uint8)[:size].tobytes() == wanted.view(np.uint8)[:size].tobytes()


def test_the_facts_of_a_start_are_known_words():
    for name in cartridges.names():
        assert cartridge(name).start in ("constant", "timer", "memory")
    assert cartridge("berzerk").coin_frames == 20


@pytest.mark.slow
def test_actions_may_stick_in_a_menu_which_then_takes_more_steps():
    """That the steps are ALE's is tested in `test_same_bytes`."""
    game = load_game("double_dunk")
    plain, sticky = start(game), reset(game, 0, bytes(128))
    sticky["sticks"][0, :3] = 1  # the first press down does not come
    game.start_game(sticky)
    assert (plain["acts"][0], sticky["acts"][0]) == (12, 16)
    assert sticky["frames"][0] == plain["frames"][0] + 4
    assert sticky["lives"][0] == plain["lives"][0]


@pytest.mark.slow
def test_a_menu_that_never_ends_is_one_line():
    game = load_game("double_dunk")
    machine = reset(game, 0, bytes(128))
    machine["sticks"] = 1
    with pytest.raises(EmulatorError, match="failed: no press chose .*; start it again"):
        game.start_game(machine)
