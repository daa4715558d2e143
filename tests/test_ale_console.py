"""ALE behind the console's contract: frames, and states as records."""

from __future__ import annotations

import ale_py
import numpy as np
import pytest
from machines import made_up_state

from pixelpong.atari.machine import DRAW_NOTHING, DRAW_PICTURE
from pixelpong.env import ale, ale_state, native
from pixelpong.env.ale import AleConsole
from pixelpong.env.cartridge import LEFT_POINTS, RIGHT_POINTS
from pixelpong.env.rom import rom_path
from pixelpong.errors import EmulatorError

BALL_ROW, PADDLE_ROW = 0x36, 0x33


@pytest.fixture(scope="module")
def console() -> AleConsole:
    return AleConsole()


@pytest.fixture(scope="module")
def other() -> AleConsole:
    return AleConsole()


def play(console: AleConsole, actions: bytes) -> list:
    """What a game shows and pays, frame by frame, with the state after each."""
    seen = []
    for action in actions:
        done = console.run(bytes([action]), DRAW_PICTURE)
        seen.append((done, console.picture.tobytes(), console.get_state().tobytes()))
    return seen


def follow(console: AleConsole, rng: np.random.Generator, frames: int) -> None:
    """Play on, mostly after the ball: rallies, and points for both sides."""
    for _ in range(frames // 4):
        ram = console.get_state()["ram"][0]
        action = 2 if ram[BALL_ROW] < int(ram[PADDLE_ROW]) + int(rng.integers(0, 12)) else 3
        if rng.random() < 0.1:
            action = int(rng.integers(0, 6))
        if console.run(bytes([action] * 4), DRAW_NOTHING)[1]:
            console.reset()


def with_points(state: np.ndarray, left: int, right: int) -> np.ndarray:
    state["ram"][0, [LEFT_POINTS, RIGHT_POINTS]] = left, right
    return state


def random_actions(rng: np.random.Generator, count: int) -> bytes:
    return bytes(rng.integers(0, 6, count).tolist())


def test_every_game_starts_in_the_same_state_with_the_same_picture(console, other):
    console.reset()
    start, picture = console.get_state().tobytes(), console.picture.copy()
    console.run(b"\x02" * 50, DRAW_PICTURE)
    console.reset()
    assert console.get_state().tobytes() == start == AleConsole().get_state().tobytes()
    assert np.array_equal(console.picture, picture)
    assert set(np.unique(picture[35:195])) == {138, 210, 228}


def test_many_frames_in_one_call_are_the_same_as_one_by_one(console, other):
    actions = random_actions(np.random.default_rng(1), 400)
    for each in (console, other):
        each.reset()
    reward, is_over, frames = console.run(actions, DRAW_PICTURE)
    seen = play(other, actions)
    assert (reward, is_over, frames) == (sum(done[0] for done, *_ in seen), False, 400)
    assert (console.picture.tobytes(), console.get_state().tobytes()) == seen[-1][1:]


def test_the_picture_stays_where_nothing_is_drawn(console):
    console.reset()
    picture = console.picture.copy()
    console.run(b"\x00" * 3, DRAW_NOTHING)
    assert np.array_equal(console.picture, picture)
    console.run(b"\x00", DRAW_PICTURE)
    assert not np.array_equal(console.picture, picture)


@pytest.mark.slow
@pytest.mark.parametrize("points", [(20, 3), (0, 20)])
def test_a_game_ends_in_the_frame_of_the_twenty_first_point(console, other, points):
    console.reset()
    follow(console, np.random.default_rng(4), 900)
    console.set_state(with_points(console.get_state(), *points))
    other.set_state(console.get_state())
    seen = []
    while not (seen and seen[-1][0][1]):
        console.run(b"", DRAW_NOTHING)
        follow_once = 2 + len(seen) // 7 % 2
        seen += play(console, bytes([follow_once]))
    reward, is_over, frames = seen[-1][0]
    assert (abs(reward), is_over, frames) == (1, True, 1)
    assert 21 in console.get_state()["ram"][0, [LEFT_POINTS, RIGHT_POINTS]]
    done = other.run(bytes(2 + k // 7 % 2 for k in range(len(seen) + 50)), DRAW_PICTURE)
    assert done == (sum(each[0][0] for each in seen), True, len(seen))
    assert other.picture.tobytes() == seen[-1][1]


def test_after_the_end_no_frame_is_played(console):
    console.set_state(with_points(console.get_state(), 21, 5))
    state = console.get_state()
    assert console.run(b"\x02\x03", DRAW_PICTURE) == (0, True, 0)
    assert console.get_state().tobytes() == state.tobytes()


def test_a_game_that_lasts_too_long_is_over_for_the_cartridge_and_not_for_ale(console):
    """After 65,210 frames (18 minutes) no more points are won, and the colours change.

    Cell 9 counts 256 frames each; cell 16 is 255 while a game is on.
    """
    console.reset()
    console.run(b"\x02" * 300, DRAW_NOTHING)
    state = console.get_state()
    assert state["ram"][0, 16] == 255
    state["ram"][0, 9] = 255
    console.set_state(state)
    assert console.run(b"\x02\x03" * 150, DRAW_PICTURE)[1:] == (False, 300)
    state = console.get_state()
    assert state["ram"][0, 16] == 0
    colours = set(np.unique(console.picture[35:194]).tolist())
    assert 50 in colours <= {30, 50, 72, 216}  # of play: 14, 34, 56 and 200
    assert console.run(b"\x02\x03" * 1000, DRAW_NOTHING) == (0, False, 2000)


def test_no_number_of_frames_ends_a_game(console):
    assert console._ale.getInt("max_num_frames_per_episode") == 0


@pytest.mark.slow
def test_a_state_has_the_same_future_in_another_console_whatever_that_one_did(console, other):
    rng = np.random.default_rng(5)
    console.reset()
    for k in range(24):
        follow(console, rng, int(rng.integers(4, 200)))
        state = console.get_state()
        if k % 4 == 3:
            state = with_points(state, 20, 20)
            console.set_state(state)
        other.run(random_actions(rng, int(rng.integers(1, 90))), DRAW_PICTURE)
        if k % 5 == 4:
            other.set_state(with_points(other.get_state(), 0, 21))
        other.set_state(state)
        assert other.get_state().tobytes() == console.get_state().tobytes() == state.tobytes()
        actions = random_actions(rng, 60)
        assert play(other, actions) == play(console, actions)
        if console.run(b"", DRAW_NOTHING)[1]:
            console.reset()


def test_whatever_a_record_holds_is_what_ale_gives_back(console):
    """Pong's registers hardly vary between two frames; here each one takes all its values."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        record = made_up_state(rng)
        console.set_state(record)
        assert console.get_state().tobytes() == record.tobytes()


def test_paddles_are_read_the_other_way_round(console):
    console.reset()
    console.run(b"\x02" * 3, DRAW_NOTHING)  # RIGHT: less resistance
    assert console.get_state()["resistance"][0].tolist() == [408_823, 408_823 - 69_000, 0, 0]
    for action, end in ((2, 27_450), (3, 790_196)):
        console.run(bytes([action] * 60), DRAW_NOTHING)
        assert console.get_state()["resistance"][0, 1] == end


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("pc", 0x800, "pc with bits"),
        ("cycle", 76, "cycle outside"),
        ("p", 0, "p with bits"),
        ("position", 160, "position outside"),
        ("timer_shift", 4, "a timer with a rate"),
        ("timer_set", 1 << 24, "timer_set outside"),
        ("resistance", 408_824, "a paddle in a position"),
        ("resistance", 408_823 - 23_000, "a third or fourth paddle"),
        ("resistance", 408_823, "one of the game for two"),
        ("tia", 0xFF, "tia with bits"),
        ("emptied", 0, "emptied that differs from VBLANK"),
        ("collisions", 0x2000, "collisions with bits"),
    ],
)
def test_a_record_that_is_no_state_is_refused_and_changes_nothing(console, field, value, words):
    state = console.get_state()
    wrong = state.copy()
    wrong[field] = value
    with pytest.raises(EmulatorError, match=f"expected a state of the console, got {words}"):
        console.set_state(wrong)
    assert console.get_state().tobytes() == state.tobytes()


@pytest.mark.slow
def test_a_state_that_leads_the_processor_astray_harms_no_later_game(console, other, capfd):
    """ALE gives such a frame up, and would take the next one for the rest of it."""
    other.reset()
    start = other.get_state()
    future = play(other, b"\2\3" * 10)
    lost, rng = 0, np.random.default_rng(8)
    for go_on in [console.reset, *[lambda: console.set_state(start)] * 10]:
        console.set_state(made_up_state(rng))
        console.run(b"\0\0", DRAW_NOTHING)
        lost += not ale_state.is_between_frames(console._ale.cloneState().serialize())
        go_on()
        assert play(console, b"\2\3" * 10) == future
    assert lost > 1


def test_a_state_of_another_layout_is_refused(console):
    console.reset()
    data = console._ale.cloneState().serialize()
    for other_data in (b"", b"abc", data[:-4], data + b"1234", b"\xff" * len(data)):
        with pytest.raises(EmulatorError, match="expected a state of Pong as ale-py 0.12.1 writes"):
            ale_state.read_state(other_data)
    for name in (b"System", b"M6502Low", b"M6532", b"TIA", b"Cartridge2K"):
        with pytest.raises(EmulatorError, match="other parts, at byte"):
            ale_state.read_state(data.replace(name, name.lower(), 1))


def test_no_single_number_of_a_state_is_misread(console):
    """Changed, it is refused, or part of the record, or one that does not matter."""
    console.reset()
    console.run(b"\x02" * 100, DRAW_NOTHING)
    data = console._ale.cloneState().serialize()
    record = ale_state.read_state(data).tobytes()
    unused, outcomes = set(), {"refused": 0, "another record": 0}
    for run in ale_state._runs_in(data):
        for name, which in run.names.items():
            for place in range(which.start, which.stop):
                changed = bytearray(data)
                changed[run.place + 4 * place] ^= 1
                try:
                    is_same = ale_state.read_state(bytes(changed)).tobytes() == record
                except EmulatorError:
                    outcomes["refused"] += 1
                    continue
                if is_same:
                    unused.add(name)
                else:
                    outcomes["another record"] += 1
    assert unused == {
        "frames", "episode_frames", "opcode", "timer_ran_out", "clocks", "hmove_clock", "sound",
        "reward",
    }  # fmt: skip
    assert min(outcomes.values()) > 30


def test_a_game_in_another_mode_is_refused():
    interface = ale_py.ALEInterface()
    interface.loadROM(rom_path())
    interface.setMode(1)
    interface.reset_game()
    with pytest.raises(EmulatorError, match="numbers that Pong never has"):
        ale_state.read_state(interface.cloneState().serialize())


@pytest.mark.slow
@pytest.mark.parametrize("module", [ale, native])
def test_the_bare_emulator_is_timed(module):
    steps, seconds = module.run_bare(0.05, np.random.default_rng(0))
    assert steps >= 1000
    assert seconds >= 0.05
