"""Pong's cartridge ("Video Olympics", Atari 1977): facts about this one game.

`pixelpong.atari` knows the console but no game. This module holds the facts about Pong: code that
is reachable only through indirect jumps, where the points are, which knob belongs to whom, and
loops that can mostly be skipped. The cartridge's own code is not here; it is read from the ROM in
ale-py, on the user's machine. The functions are typed Python (`pixelpong.atari.machine.typed`).

**What is skipped, and why that is allowed.** Three quarters of all instructions are the loop that
draws the field: 91 rounds of two lines each. Every round checks whether a player, a missile or the
ball has a pixel there, fetches three bytes of playfield, writes all of this to the TIA, and reads
two paddles. If the checks and the bytes give the same results as in the previous round, the round
writes only what the TIA already has. It draws nothing new, takes the same branches and so the same
152 cycles, and leaves the processor in the same state, except for the row's number. At the start of
the loop, `find_changing_rounds` finds the rounds in which a result changes; the others do not run.
A delayed write appears one round later, so the round after such a change runs too. So does the
round that finds a paddle charged.

Two more loops are shortened. The one that clears the registers after a picture stops once they are
clear. The one that draws the points is skipped if the picture is not needed. Tests compare every
frame with ALE, which skips nothing.
"""

from __future__ import annotations

from pixelpong.atari.machine.objects import shows_playfield_alone
from pixelpong.atari.machine.record import (
    DRAW_PICTURE,
    MAX_LINES,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    TOP,
)
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import (
    Int,
    Machine,
    Wide,
    inline,
    lowest_bit,
    make_table,
    rounds_that_meet,
    wide,
)
from pixelpong.pong.field import FIELD_TOP

ENTRIES = (0x386, 0x3F5)  # offsets of code reached by jumps through memory
LEFT_POINTS, RIGHT_POINTS = 13, 14  # addresses in memory: the opponent's points, the agent's points
LAST_POINT = 21
MODE = 22  # address of the game's number minus 1
LEFT_PADDLE, RIGHT_PADDLE = 0, 1  # indices in `resistance`; the console numbers them in reverse
BALL_ROW = 54  # address of the ball's row; it is 0 while the ball is out of play
LEFT_BUTTON, RIGHT_BUTTON = 63, 64  # addresses; not 0 if a button was released in the last frame

# Added to STAY, UP or DOWN in the two-player game to serve if it is this side's turn. While the
# ball is out of play, the button is pressed in every second frame, because only a new press counts.
# While the ball is in play, the button is not pressed, because that would change the ball.
SERVE = 8

# Gymnasium's action for each of ALE's eighteen: up and down do nothing.
CODES = (0, 1, 0, 2, 3, 0, 2, 3, 2, 3, 1, 4, 5, 1, 4, 5, 4, 5)

# The actions of one side of two for these six; each serves when it may.
DUEL_CODES = (SERVE, SERVE, SERVE + 2, SERVE + 3, SERVE + 2, SERVE + 3)

# For each of Gymnasium's actions: whether the button is pressed, and which way the paddle moves. An
# action has four bits; values other than 0 to 5 and the three with `SERVE` do nothing.
_FIRES = make_table(16, 0, {1: 1, 4: 1, 5: 1})
_RAISES = make_table(16, 0, {2: 1, 4: 1, SERVE + 2: 1})
_LOWERS = make_table(16, 0, {3: 1, 5: 1, SERVE + 3: 1})
_SERVES = make_table(16, 0, {SERVE: 1, SERVE + 2: 1, SERVE + 3: 1})

# Code added in front of three loops. Each loop waits for the next line (WSYNC) once per round. `t`
# is the cycle in the frame.
HINTS = {
    # Clear the drawing registers: Y lines, one per round. A round has 24 cycles of stores, with 2
    # before them and 3 for WSYNC, so it ends in the same line if it starts by cycle 47. After the
    # wait, the loop counts and branches, so the next round starts in cycle 5.
    0x5B8: (
        "if y > 1 and t % 76 <= 47 and t + 76 * y < END and m.ram[MODE] < 13 and is_cleared(m): "
        "t = (t // 76 + y - 1) * 76 + 5; y = 1"
    ),
    # Draw the points: 5 rows (Y) of four lines each. X counts the lines; the last of 20 still runs.
    0x58B: (
        "if x == 1 and y == 0 and m.ram[MODE] < 13 and t + 76 * 20 < END "
        "and points_are_unseen(m, t): "
        "x = 20; y = 4; t += 19 * 76"
    ),
    # Draw the field: 91 rounds of two lines each. X is the row, from 0x26 to 220.
    0x5E0: (
        "if t + 76 * (220 - x) < END:\n"
        " if x == 0x26: find_changing_rounds(m)\n"
        " r = count_equal_rounds(m, x, t)\n"
        " x += 2 * r; t += 152 * r"
    ),
}
END = 76 * MAX_LINES  # after this cycle, a frame ends in the middle of a loop

# The loop of the field: the row in X at the start, the number of rounds, and the cycles per round.
_FIRST_ROW, _ROUNDS, _ROUND_CYCLES = 0x26, 91, 152
# The cycles in a round's second line at which each paddle has been read. Before the first read, the
# loop writes GRP0 (3), checks whether a missile is on (13) and fetches the side (3); a read takes
# 4. Between the reads it skips a branch (2) and stores the row (3). If the first paddle is charged,
# it takes the branch instead (3), which is two cycles less.
_READ_FIRST, _READ_SECOND = 23, 32


@inline
def points_are_unseen(m: Machine, t: Int) -> Int:
    """Return whether the rows with the points may be skipped: undrawn, without collisions.

    In an artificial state these rows may come so late that they reach into the field.
    """
    if m.draws and t + 76 * 20 >= 76 * (TOP + FIELD_TOP):
        return 0
    return m.draws & DRAW_PICTURE == 0 and shows_playfield_alone(m)


def is_cleared(m: Machine) -> Int:
    """Return whether the loop that clears the playfield, players and so on is done."""
    shapes = m.tia[PF0] | m.tia[PF1] | m.tia[PF2] | m.tia[ENAM0] | m.tia[ENAM1]
    return shapes == 0 and shows_playfield_alone(m)


def find_changing_rounds(m: Machine) -> None:
    """Set ``m.rounds``; bit k means that round k of the field's loop must run."""
    if m.ram[MODE] >= 13:  # these games have a different loop here
        m.rounds = (wide(1) << _ROUNDS) - 1
        return
    missile0 = 0 if m.tia[RESMP0] else m.ram[0x27]
    missile1 = 0 if m.tia[RESMP1] else m.ram[0x28]
    # The rows of each object, from its first row and the mask of its height. A hidden missile is
    # always on.
    player1 = rounds_that_meet(_FIRST_ROW - m.ram[0x33], 2, m.ram[0x26])
    player0 = rounds_that_meet(_FIRST_ROW + 2 - m.ram[0x32], 2, m.ram[0x25])
    ball = rounds_that_meet(_FIRST_ROW + 2 - m.ram[0x36], 2, 0xFC)
    bar1 = rounds_that_meet(_FIRST_ROW - m.ram[0x34], 2, missile0)
    bar0 = rounds_that_meet(_FIRST_ROW + 2 - m.ram[0x35], 2, missile1)
    players = player0 ^ player0 << 1 | player1 ^ player1 << 1
    others = ball ^ ball << 1 | bar0 ^ bar0 << 1 | bar1 ^ bar1 << 1
    # The ball and delayed writes appear one round later.
    delayed = players | others if m.tia[VDELP0] | m.tia[VDELP1] else others
    changes = players | others | delayed << 1 | changing_playfield_rounds(m)
    m.rounds = changes | 3 | wide(1) << (_ROUNDS - 1)


def changing_playfield_rounds(m: Machine) -> Wide:
    """Return the rounds in which a new row of the playfield, eight lines high, starts."""
    # They follow from the addresses of the row's three bytes, which stay the same for whole games.
    a = m.ram[0x1B] | m.ram[0x1C] << 8
    b = m.ram[0x1D] | m.ram[0x1E] << 8
    c = m.ram[0x1F] | m.ram[0x20] << 8
    if a & b & c & 0x1000 == 0:  # the data is not in the cartridge, so all rounds run
        return (wide(1) << _ROUNDS) - 1
    if a != m.playfield_at[0] or b != m.playfield_at[1] or c != m.playfield_at[2]:
        m.playfield_at[0] = a
        m.playfield_at[1] = b
        m.playfield_at[2] = c
        m.playfield_rounds = compare_playfield_rows(a, b, c)
    return m.playfield_rounds


def compare_playfield_rows(a: Int, b: Int, c: Int) -> Wide:
    """Compute the rounds that `changing_playfield_rounds` stores."""
    rounds = wide(0)
    for row in range(5, 28):
        # Reading a byte from the next page takes one more cycle.
        crosses = max(max(a & 255, b & 255), c & 255) + row > 255
        if crosses or differs(a + row) or differs(b + row) or differs(c + row):
            rounds |= wide(1) << (8 * row - _FIRST_ROW >> 1)
    return rounds


@inline
def differs(address: Int) -> Int:
    """Return whether a byte of the cartridge differs from the previous one."""
    return rom[address & 0x7FF] != rom[address - 1 & 0x7FF]  # type: ignore[name-defined]


def count_equal_rounds(m: Machine, row: Int, t: Int) -> Int:
    """Count the rounds, starting at `row`, that repeat the previous round.

    The paddles' values that these rounds would have stored are stored, so the rounds are done.
    """
    until_change = lowest_bit(m.rounds) - (row - _FIRST_ROW >> 1)
    count = until_change
    line = t // 76 * 76  # the line in which the previous round read the paddles
    first = m.ram[0] & 1
    left = m.emptied_until + m.charged[first] - line - _READ_FIRST
    if m.charged[first] == 0:  # without resistance the paddle is never empty
        left = -1
    if left >= 0:
        count = min(count, left // _ROUND_CYCLES)
    left_second = m.emptied_until + m.charged[2 + first] - line - _READ_SECOND
    if m.charged[2 + first] == 0:
        left_second = -3
    if left_second >= -2:  # the second read comes two cycles earlier if the first is charged
        count = min(count, max(left_second, 0) // _ROUND_CYCLES)
    if count == until_change:  # that round runs next
        m.rounds &= m.rounds - 1
    if count:
        m.old_grp[0] = m.tia[GRP0]
        m.old_grp[1] = m.tia[GRP1]
        m.old_enabl = m.tia[ENABL]
        if left >= 0:
            m.ram[4] = row + 2 * count
        if left_second >= 0:
            m.ram[5] = row + 2 * count
    return count


@inline
def turn(m: Machine, paddle: Int, action: Int) -> None:
    """Turn a knob for one frame, according to an action."""
    turned = m.resistance[paddle] + m.turn * (_LOWERS[action] - _RAISES[action])
    m.resistance[paddle] = min(max(turned, PADDLE_LOWEST), PADDLE_HIGHEST)


@inline
def serves(m: Machine, action: Int, button: Int) -> Int:
    """Return whether to press the button to serve, see `SERVE`."""
    return _SERVES[action] & (m.ram[BALL_ROW] == 0) & (m.ram[button] != 0)


@inline
def press(m: Machine, action: Int) -> None:
    """Turn the knobs and press the buttons of both sides for one frame.

    An action is Gymnasium's number for the right side; its upper four bits are for the left side,
    if a person or a second agent plays it.
    """
    right = action & 15
    left = action >> 4
    turn(m, RIGHT_PADDLE, right)
    turn(m, LEFT_PADDLE, left)
    fires_right = _FIRES[right] | serves(m, right, RIGHT_BUTTON)
    fires_left = _FIRES[left] | serves(m, left, LEFT_BUTTON)
    m.swcha = 0xFF - 0x40 * fires_right - 0x80 * fires_left


@inline
def score(m: Machine) -> None:
    """Set the points, right minus left, and whether a side has reached the last point."""
    left = m.ram[LEFT_POINTS]
    right = m.ram[RIGHT_POINTS]
    m.points = right - left
    m.is_over = left == LAST_POINT or right == LAST_POINT
    m.may_end = max(left, right) == LAST_POINT - 1
