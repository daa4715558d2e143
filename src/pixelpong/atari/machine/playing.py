"""Playing frames with a player's actions: ``play_frames``.

What an action presses, and what points and lives a game has, differ between cartridges. Here are
joysticks and paddles, and a game without points. `atari.machine.scoring` makes the functions
`score`, `recall` and `begin_score` of a game from the facts about it; a cartridge can have its own,
and its own `press`. The results are fields of the record. Written in typed Python, compiled with
each cartridge.

The actions are ALE's eighteen: nothing, the button, eight directions, and these with the button.
Source: ALE plays the same frames, by tests.
"""

from __future__ import annotations

from pixelpong.atari.machine.past import play_frame
from pixelpong.atari.machine.record import (
    BEFORE,
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    KEPT_SIZE,
    LONG_FRAME,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    SECOND_AT,
)
from pixelpong.atari.machine.typed import Bytes, Int, Machine, copy, inline

# What is plugged in: a joystick in the left or in the right port, or a paddle; or two joysticks,
# the first player's in the left or in the right port. The constants below are those of a joystick,
# other cartridges have others.
JOYSTICK, RIGHT_JOYSTICK, PADDLE, JOYSTICKS, SWAPPED_JOYSTICKS = range(5)
CONTROLS = JOYSTICK
TURNED = 0  # the paddle that is turned
HIGHEST_OHM = PADDLE_HIGHEST

SECOND = 32  # an action of the second player is so many times its number

# What an action presses: 1 the button, 2 up, 4 right, 8 left, 16 down.
_BUTTON, _UP, _RIGHT, _LEFT, _DOWN = 1, 2, 4, 8, 16
_PRESSES = (0, 1, 2, 4, 8, 16, 6, 10, 20, 24, 3, 5, 9, 17, 7, 11, 21, 25)
# The joysticks' pins in SWCHA, those of the left one: a bit is 0 while its direction is pressed.
_PINS = tuple(
    0xFF
    - (pressed & _UP and 0x10)
    - (pressed & _DOWN and 0x20)
    - (pressed & _LEFT and 0x40)
    - (pressed & _RIGHT and 0x80)
    for pressed in _PRESSES
)


def press(m: Machine, action: Int) -> None:
    """Set the inputs of the next frame; an invalid action presses nothing.

    With two joysticks, the action is the first player's plus `SECOND` times the second player's.
    """
    if CONTROLS >= JOYSTICKS:
        press_two(m, action % SECOND, action // SECOND)
        return
    if action >= 18:
        action = 0
    pressed = _PRESSES[action]
    if CONTROLS == PADDLE:
        turn_paddle(m, pressed)
    else:
        fire = 0x80 - 0x80 * (pressed & _BUTTON)
        pins = _PINS[action]
        m.swcha = pins
        m.fire[0] = fire
        m.fire[1] = 0x80
        if CONTROLS == RIGHT_JOYSTICK:
            m.swcha = pins >> 4 | 0xF0
            m.fire[0] = 0x80
            m.fire[1] = fire


def press_two(m: Machine, first: Int, second: Int) -> None:
    """Set the inputs of both joysticks."""
    left = second if CONTROLS == SWAPPED_JOYSTICKS else first
    right = first if CONTROLS == SWAPPED_JOYSTICKS else second
    left = left if left < 18 else 0
    right = right if right < 18 else 0
    m.swcha = _PINS[left] & (_PINS[right] >> 4 | 0xF0)
    m.fire[0] = 0x80 - 0x80 * (_PRESSES[left] & _BUTTON)
    m.fire[1] = 0x80 - 0x80 * (_PRESSES[right] & _BUTTON)


def turn_paddle(m: Machine, pressed: Int) -> None:
    """Turn a paddle for a frame, and press its button."""
    step = (pressed >> 3 & 1) - (pressed >> 2 & 1)
    ohm = m.resistance[TURNED] + m.turn * step
    m.resistance[TURNED] = min(max(ohm, PADDLE_LOWEST), HIGHEST_OHM)
    m.swcha = 0xFF - (0x80 >> TURNED) * (pressed & _BUTTON)


@inline
def score(m: Machine) -> None:
    """Set points, lives, whether the game is over, and whether the next frame may end it."""


@inline
def recall(m: Machine) -> None:
    """Set the points from which the rewards of the next frames are counted."""
    score(m)


@inline
def begin_score(m: Machine) -> None:
    """Set points and lives at the start of a game."""
    score(m)


def play_frames(m: Machine, actions: Bytes, count: Int, draws: Int) -> None:
    """Play `count` frames, and draw the last one; fewer if the game ends.

    `actions` holds a byte for each frame; with two joysticks, the second player's bytes are
    `SECOND_AT` further on. The results are ``m.frames``, ``m.reward``, ``m.points``,
    ``m.lives``, ``m.is_over``, ``m.may_end`` and ``m.stop``, normally `FRAME_DONE`. Any other value
    means that something is not covered; then the state has not changed, and ``m.frames`` is 0.
    """
    copy(m, BEFORE, 0, KEPT_SIZE)
    play_some(m, actions, count, draws, 0, 0)
    counts = m.stop == LONG_FRAME
    if counts:
        copy(m, 0, BEFORE, KEPT_SIZE)
        play_some(m, actions, count, draws, 0, 1)
    if m.is_over and m.draws != draws and m.frames:
        # The last frame was not drawn, as nobody knew that it would be the last.
        copy(m, 0, BEFORE, KEPT_SIZE)
        play_some(m, actions, count, draws, 1, counts)
    if m.stop != FRAME_DONE:
        copy(m, 0, BEFORE, KEPT_SIZE)
        m.frames = 0


def play_some(
    m: Machine, actions: Bytes, count: Int, draws: Int, draws_all: Int, counts: Int
) -> None:
    """Play frames and draw the last one, or all; `counts` is passed to `play_frame`."""
    recall(m)
    before = m.points
    m.stop = FRAME_DONE
    k = 0
    while k < count and m.is_over == 0 and m.stop == FRAME_DONE:
        action = actions[k]
        if CONTROLS >= JOYSTICKS:
            action += SECOND * actions[k + SECOND_AT]
        press(m, action)
        k += 1
        m.draws = draws if k == count or draws_all else DRAW_NOTHING
        play_frame(m, counts)
        score(m)
    m.frames = k
    m.reward = m.points - before


def play(m: Machine, count: Int) -> Int:
    """Play frames with the inputs as they are; return the stop code."""
    m.stop = FRAME_DONE
    k = 0
    while k < count and m.stop == FRAME_DONE:
        play_next(m)
        k += 1
    return m.stop


def play_next(m: Machine) -> None:
    """Play a frame with the inputs as they are."""
    copy(m, BEFORE, 0, KEPT_SIZE)
    play_frame(m, 0)
    if m.stop == LONG_FRAME:
        copy(m, 0, BEFORE, KEPT_SIZE)
        play_frame(m, 1)


def idle(m: Machine, switches: Int, count: Int) -> None:
    """Play and draw frames with some switches held and no other input."""
    m.swcha = 0xFF
    m.swchb = switches  # a bit each, 0 while held: 1 RESET, 2 SELECT; both difficulties are easy
    m.draws = DRAW_PICTURE
    play(m, count)
