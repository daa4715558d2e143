"""ALE behind the console's contract: frames, states as records, states of older versions."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import ale_py
import gymnasium
import numpy as np
import pytest
from machines import made_up_state

from pixelpong.atari.check import fault_in
from pixelpong.atari.machine import DRAW_NOTHING, DRAW_PICTURE
from pixelpong.env import ale as ale_module
from pixelpong.env import ale_state
from pixelpong.env.ale import AleConsole, read_old_snapshot
from pixelpong.env.rom import ROM_SIZE, read_rom, rom_path
from pixelpong.errors import EmulatorError

LEFT_POINTS, RIGHT_POINTS = 13, 14
BALL_ROW, PADDLE_ROW = 0x36, 0x33

OLD_SNAPSHOTS = {
    "of a game's start": (
        "0000000000000000251eb4418847",
        (0, 0), "2bfb5e589c00c16f1b2cbfdf2ee093085fa700488904cf22a32b00b778ecfa2e",
    ),
    "of a rally": (
        "03000000800c0000251ef0e8dcf5000001000200080009000c000d00f71afb1aff1a031b071b0b1b0f1b131b"
        "171b1f1b231b271b2f1b9f1ba31ba71bb31bbb1bc31bcb1be71bef1bf71bbf1cc31ce81ce91cea1c321d331d"
        "341d351d361d371d381d391d3a1d3b1d3c1d3d1d3e1d3f1d401d411d921d931d941d951db21d111e121e131e"
        "141ed40905800c800c02c70d0000c003013f03000248b9486248ffff62c0d9cf3555671efc38383838c8c8c8"
        "c80e0e0e0e22222222b2fab1fa88feffffff",
        (2, 3200), "72446b98466d4fc7df9fd67d72beb035581951c693c74043c7c4c6de109761e8",
    ),
    "of the last point": (
        "0300000014370000251e7aa7b660000001000200080009000c000d00f71afb1aff1a031b071b0b1b0f1b131b"
        "171b1f1b231b271b2f1b9f1ba31ba71bb31bbb1bc31bcb1be71bf71bff1bbf1cc31ce71ce81ce91cea1c321d"
        "331d341d351d361d371d381d391d3a1d3b1d3c1d3d1d3e1d3f1d401d411db21d0d1e0e1e0f1e101e111e121e"
        "131e141e32fb0414371437015b38003f0e14043f04000256cd56615701ff61c0ded4b455f19f2eef38383838"
        "c8c8c8c80e0e0e0e222222229cfffffffff0ffffff",
        (2, 14100), "35aabb27519c8cd17f994b3893ac6d41fcf7de7262c77ebb25cafcdcd384405b",
    ),
}  # fmt: skip
"""Taken by the package's version of ALE alone: snapshot; held action, frames; what came of it."""


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
    changed = state.copy()
    changed["ram"][0, [LEFT_POINTS, RIGHT_POINTS]] = left, right
    return changed


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


def test_frames_rewards_and_ends_equal_gymnasiums(console):
    env = gymnasium.make(
        "ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0, obs_type="grayscale",
        disable_env_checker=True,
    )  # fmt: skip
    env.reset()
    console.reset()
    ale = env.unwrapped.ale
    for action in random_actions(np.random.default_rng(0), 1000):
        _, reward, is_over, _, _ = env.step(action)
        assert console.run(bytes([action]), DRAW_PICTURE) == (reward, is_over, 1)
        assert np.array_equal(console.picture, ale.getScreen())
    env.close()


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


def test_no_number_of_frames_ends_a_game(console):
    assert console._ale.getInt("max_num_frames_per_episode") == 0


def test_a_state_has_the_same_future_in_another_console_whatever_that_one_did(console, other):
    rng = np.random.default_rng(5)
    console.reset()
    for k in range(40):
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


FUTURES = """
import hashlib, sys
import numpy as np
from pixelpong.atari.machine import DRAW_PICTURE, STATE
from pixelpong.env.ale import AleConsole

console = AleConsole()
for line in sys.stdin:
    console.set_state(np.frombuffer(bytes.fromhex(line), STATE))
    digest = hashlib.sha256()
    for k in range(60):
        done = console.run(bytes([k * k % 6]), DRAW_PICTURE)
        digest.update(repr(done).encode() + console.picture.tobytes())
    print(hashlib.sha256(digest.digest() + console.get_state().tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_a_state_has_the_same_future_in_another_process(console):
    rng, states, futures = np.random.default_rng(6), [], []
    console.reset()
    for _ in range(12):
        follow(console, rng, 150)
        state = console.get_state()
        states.append(state.tobytes().hex())
        digest = hashlib.sha256()
        for k in range(60):
            done = console.run(bytes([k * k % 6]), DRAW_PICTURE)
            digest.update(repr(done).encode() + console.picture.tobytes())
        end = console.get_state().tobytes()
        futures.append(hashlib.sha256(digest.digest() + end).hexdigest())
    done = subprocess.run(
        [sys.executable, "-c", FUTURES],
        input="\n".join(states), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == futures


def test_whatever_a_record_holds_is_what_ale_gives_back(console):
    """Pong's registers hardly vary between two frames; here each one takes all its values."""
    console.reset()
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
        ("timer_shift", 4, "a timer that counts"),
        ("timer_set", 1 << 24, "timer_set outside"),
        ("resistance", 408_824, "a paddle"),
        ("tia", 0xFF, "tia with bits"),
        ("collisions", 0x2000, "collisions with bits"),
        ("emptied", 0, "paddles that VBLANK empties and does not"),
    ],
)
def test_a_record_that_is_no_state_is_refused_and_changes_nothing(console, field, value, words):
    state = console.get_state()
    wrong = state.copy()
    wrong[field] = value
    assert words in fault_in(wrong)
    with pytest.raises(EmulatorError, match=f"expected a state of the console, got {words}"):
        console.set_state(wrong)
    assert console.get_state().tobytes() == state.tobytes()


def test_a_state_that_leads_the_processor_astray_harms_no_later_game(console, other, capfd):
    """ALE gives such a frame up, and would take the next one for the rest of it."""
    other.reset()
    start = other.get_state()
    future = play(other, b"\x02\x03" * 10)
    lost = 0
    rng = np.random.default_rng(8)
    for _ in range(20):
        console.set_state(made_up_state(rng))
        console.run(b"\x00\x00", DRAW_NOTHING)
        lost += not ale_state.is_between_frames(console._ale.cloneState().serialize())
        console.set_state(start)
        assert play(console, b"\x02\x03" * 10) == future
    assert lost > 3
    console.set_state(made_up_state(rng))
    console.run(b"\x00\x00", DRAW_NOTHING)
    console.reset()
    assert play(console, b"\x02\x03" * 10) == future


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
    ale = ale_py.ALEInterface()
    ale.loadROM(rom_path())
    ale.setMode(1)
    ale.reset_game()
    with pytest.raises(EmulatorError, match="numbers that Pong never has"):
        ale_state.read_state(ale.cloneState().serialize())


@pytest.mark.parametrize("name", OLD_SNAPSHOTS)
def test_an_old_snapshot_plays_on_to_the_same_bits(console, name):
    snapshot, (held, frames), wanted = OLD_SNAPSHOTS[name]
    action, num_frames, record = read_old_snapshot(bytes.fromhex(snapshot))
    assert (action, num_frames) == (held, frames)
    console.set_state(record)
    assert console.get_state().tobytes() == record.tobytes()
    digest, is_over = hashlib.sha256(), False
    for k in range(60):
        if not is_over:
            reward, is_over, _ = console.run(
                bytes([[0, 2, 3, 1, 4, 5][k * k % 6]] * 4), DRAW_PICTURE
            )
            digest.update(bytes([reward + 1]) + console.picture.tobytes())
    assert digest.hexdigest() == wanted
    assert is_over == (name == "of the last point")


def test_an_old_snapshot_with_one_wrong_byte_is_refused():
    snapshot = bytearray.fromhex(OLD_SNAPSHOTS["of a rally"][0])
    for place in range(8, len(snapshot)):
        snapshot[place] ^= 1
        with pytest.raises(EmulatorError, match="expected a snapshot"):
            read_old_snapshot(bytes(snapshot))
        snapshot[place] ^= 1
    snapshot[0] = 9
    for wrong in (snapshot, b"", b"abc", b"\0" * 30, b"\xff" * 500):
        with pytest.raises(EmulatorError, match="expected a snapshot"):
            read_old_snapshot(bytes(wrong))


def test_the_rom_is_found_without_loading_ale_py():
    script = (
        "import sys; from pixelpong.env.rom import read_rom\n"
        "print(len(read_rom()), 'ale_py' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(ROM_SIZE), "False"]
    assert rom_path().read_bytes() == read_rom()


@pytest.mark.parametrize(
    "content", [None, b"", b"no game", bytes(ROM_SIZE), bytes(range(256)) * 16]
)
def test_another_rom_is_one_line(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "pong.bin").write_bytes(content)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    for use in (read_rom, AleConsole):
        with pytest.raises(
            EmulatorError, match="expected Pong's ROM in the folder in ALE_ROMS_DIR"
        ):
            use()


def test_the_bare_emulator_is_timed():
    steps, seconds = ale_module.run_bare(0.05, np.random.default_rng(0))
    assert steps >= 1000 or seconds >= 0.05
