"""Milestones of a run: the agent at earlier updates, a small file each.

They are close together at first, when the agent learns most, and then further and further apart:
there are fourteen after a thousand updates. With them you can watch the agent learn, or choose how
strong an agent you play.
"""

from __future__ import annotations


def is_due(update: int, every: int) -> bool:
    """Whether there is a milestone at this update: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

    If `every` is 0, there are none.

    >>> [update for update in range(130) if is_due(update, every=10)]
    [0, 10, 20, 30, 40, 60, 80, 120]
    """
    if every == 0 or update % every:
        return False
    number = update // every
    unit = 1 << max(0, number.bit_length() - 2)
    return number % unit == 0
