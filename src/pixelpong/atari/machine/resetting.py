"""Playing the start of a game after a reset of the console: ``start_game``.

All games start in the same way, except for numbers, which are constants of the cartridge: some
frames pass, RESET is held, SELECT is pressed until the game ``m.mode`` of the cartridge is chosen,
RESET is held again, and some actions start the game. `atari.machine.starting` makes a machine that
was just reset. Written in typed Python, compiled with each cartridge.
"""

from __future__ import annotations

from pixelpong.atari.machine.playing import begin_score, play_next, press
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    MOST_ACTS,
    NOT_CHOSEN,
)
from pixelpong.atari.machine.typed import Int, Machine, inline

# The console's switches: none held, RESET held, SELECT held. The picture is in colour.
NO_SWITCH, RESET, SELECT = 0x3F, 0x3E, 0x3D
DIFFICULTIES = 0xC0  # the switches of the left and the right side; they stay as they are

IDLE_FRAMES = 60  # number of idle frames after switching on
RESET_FRAMES = 4  # fewest frames with RESET before and after a game is chosen
MOST_PRESSES = 400  # most presses of SELECT; no cartridge has as many games

# Facts of the cartridge. First the steps before and after the choice of a game: the action, the
# switches that are held, and the number of frames.
FIRST_STEPS = ((0, RESET, RESET_FRAMES),)
NUM_FIRST_STEPS = len(FIRST_STEPS)
STEPS = ((0, RESET, RESET_FRAMES), (0, RESET, RESET_FRAMES))
NUM_STEPS = len(STEPS)
COUNTED_FRAMES = 0  # frames of these steps that ALE counts as frames of the game
START_DRAWS = DRAW_PICTURE  # what the last of these frames draws
FIRST_PRESS = 0  # frames of a press of SELECT before the others
PRESS = 0  # frames of each other press


def start_game(m: Machine) -> None:
    """Run a freshly reset machine up to the start of a game, and draw the last frame.

    The results are ``m.frames``, the frames that ALE counts as frames of the game; ``m.lives``; and
    ``m.stop``, normally `FRAME_DONE`. Any other value means that something is not covered, or that
    SELECT never chose the game.
    """
    m.frames = COUNTED_FRAMES
    m.stop = FRAME_DONE
    m.draws = DRAW_NOTHING
    hold(m, 0, NO_SWITCH, IDLE_FRAMES)
    for k in range(NUM_FIRST_STEPS):
        hold(m, FIRST_STEPS[k][0], FIRST_STEPS[k][1], FIRST_STEPS[k][2])
    choose_game(m)
    m.acts = m.held = 0
    walk_menu(m)
    for k in range(NUM_STEPS):
        count = STEPS[k][2]
        if k == NUM_STEPS - 1:
            hold(m, STEPS[k][0], STEPS[k][1], count - 1)
            m.draws = START_DRAWS
            count = 1
        hold(m, STEPS[k][0], STEPS[k][1], count)
    m.swchb = m.swchb & DIFFICULTIES | NO_SWITCH
    m.is_over = 0
    begin_score(m)


def hold(m: Machine, action: Int, switches: Int, count: Int) -> None:
    """Play frames with an action and switches held, until the machine stops."""
    m.swchb = m.swchb & DIFFICULTIES | switches
    k = 0
    while k < count and m.stop == FRAME_DONE:
        press(m, action)
        play_next(m)
        k += 1


def choose_game(m: Machine) -> None:
    """Press SELECT until memory shows that the right game on the cartridge is chosen."""
    if FIRST_PRESS:
        press_select(m, FIRST_PRESS)
    presses = 0
    while m.stop == FRAME_DONE and is_chosen(m) == 0:
        if presses == MOST_PRESSES:
            m.stop = NOT_CHOSEN
            return
        press_select(m, PRESS)
        presses += 1


@inline
def is_chosen(m: Machine) -> Int:
    """Return whether memory shows that the right game is chosen; facts of the cartridge say it."""
    return 1


@inline
def walk_menu(m: Machine) -> None:
    """Choose a game in a menu of the cartridge; facts of the cartridge say how."""


def act(m: Machine, action: Int) -> None:
    """Play a frame as in a step of ALE, which it counts, and in which the last action may stick."""
    if m.acts == MOST_ACTS:
        m.stop = NOT_CHOSEN
        return
    if m.sticks[m.acts] == 0:
        m.held = action
    m.acts += 1
    m.frames += 1
    hold(m, m.held, NO_SWITCH, 1)


def tap(m: Machine, action: Int) -> None:
    """Press an action for a step, and release it for a step."""
    act(m, action)
    act(m, 0)


def reset_menu(m: Machine, count: Int) -> None:
    """Hold RESET for some frames; what was held before does not stick."""
    hold(m, 0, RESET, count)
    m.held = 0


def press_select(m: Machine, count: Int) -> None:
    """Hold SELECT for some frames, then release it for one frame, which ALE counts."""
    hold(m, 0, SELECT, count)
    hold(m, 0, NO_SWITCH, 1)
    m.frames += 1
