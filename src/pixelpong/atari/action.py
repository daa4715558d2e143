"""The console's eighteen actions, with ale-py's names and numbers."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """An action of the console: a direction of the stick, with the button or without.

    ``ale_py.Action`` has the same names and values.

    >>> Action.UPFIRE.name, Action.UPFIRE.value, Action.UPFIRE == 10
    ('UPFIRE', 10, True)
    """

    NOOP = 0
    FIRE = 1
    UP = 2
    RIGHT = 3
    LEFT = 4
    DOWN = 5
    UPRIGHT = 6
    UPLEFT = 7
    DOWNRIGHT = 8
    DOWNLEFT = 9
    UPFIRE = 10
    RIGHTFIRE = 11
    LEFTFIRE = 12
    DOWNFIRE = 13
    UPRIGHTFIRE = 14
    UPLEFTFIRE = 15
    DOWNRIGHTFIRE = 16
    DOWNLEFTFIRE = 17


ACTION_NAMES = tuple(action.name for action in Action)
"""By the console's number of an action."""
