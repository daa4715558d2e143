"""The protocol card, by measurement: frame skip, sticky actions, what is between observations.

Nothing on it is copied from the configuration. What it plays is what a training plays, with
the coins that a training tosses; beside it goes a second emulator, frame by frame and without
coins. Each step is played again there with the action before held for none, one, two … of its
frames, until state and picture come out the same: so one sees how many frames the step had and
how often the coin held the action.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.doctor.picture import (
    look_at_actions,
    look_at_colours,
    look_at_first_frame,
    own_rows,
)
from pixelpong.doctor.records import FAILURE, NOTE, OK, Case, Check, trouble
from pixelpong.env import Emulator, make_emulator
from pixelpong.env.pong import PongEmulator
from pixelpong.protocols import Protocol, find_protocol
from pixelpong.seeding import make_rng
from pixelpong.trajectory import DOWN, STAY, UP

STEPS, QUICK_STEPS = 3000, 150
TIME_SHARE, QUICK_SECONDS = 1 / 6, 0.4
"""A card is measured over so many steps, or on a slow machine for such a part of the time left."""

MAX_FRAMES = 4
"""With more frames a step, a paddle reaches the edge within one, and no coin can be told."""

SIGMAS = 5.0
"""So many deviations off, a probability is another one: by chance, once in two million."""

_MIDDLE = (80, 148)
"""Rows within which a paddle is far enough from both edges for the next step."""

_EPISODE_STEPS = 400


@dataclass
class Measured:
    """What was counted.

    Attributes:
        frames: number of frames of a step → steps.
        held: frames at which the action before was held although another was asked for.
        tossed: frames at which it was asked for another one.
        strange: steps that no number of held frames explains, or whose picture is another one.
        steps: all of them.
    """

    frames: Counter[int] = field(default_factory=Counter)
    held: int = 0
    tossed: int = 0
    strange: int = 0
    steps: int = 0


def check_card(case: Case) -> Iterator[Check]:
    """The protocol card, as measured."""
    protocol = case.config.environment.protocol
    if protocol.name == "Catch-v0":
        text = "Catch-v0 is the toy of the tests: it has no emulator, and nothing to measure"
        yield Check("frame_skip", NOTE, text)
        return
    name = case.config.engine.emulator
    emulator = make_emulator(protocol, name)
    alone = PongEmulator(find_protocol(protocol.name, 1, 0.0), name)
    steps, seconds = STEPS, max(QUICK_SECONDS, TIME_SHARE * case.seconds_left())
    if case.is_quick:
        steps, seconds = QUICK_STEPS, QUICK_SECONDS
    measured = measure(emulator, alone, steps, seconds)
    yield judge_frame_skip(protocol, measured)
    yield judge_sticky(protocol, measured)
    yield judge_gap(protocol, measured)
    yield look_at_colours(alone)
    yield look_at_first_frame(alone)
    yield look_at_actions(alone)


def measure(emulator: Emulator, alone: Emulator, max_steps: int, max_seconds: float) -> Measured:
    """Play, and explain each step with a second emulator.

    Args:
        emulator: as a training has it.
        alone: one frame a step, no coins.
        max_steps: that are played.
        max_seconds: or for so long.
    """
    measured, rng, held = Measured(), make_rng(0, "bench", 9), STAY
    width, end = 1 + emulator.protocol.max_frame_skip, time.monotonic() + max_seconds
    while measured.steps < max_steps and time.monotonic() < end:
        if measured.steps % _EPISODE_STEPS == 0 or emulator.is_over:
            emulator.reset()
            held = STAY
        wanted = _choose(emulator.screen, held)
        before, frames_before = emulator.get_state(), emulator.num_frames
        emulator.step(wanted, rng.random(width).tolist())
        measured.steps += 1
        num_frames = emulator.num_frames - frames_before
        measured.frames[num_frames] += 1
        num_held = _explain(emulator, alone, before, (held, wanted), num_frames)
        if num_held is None:
            measured.strange += 1
        elif wanted != held:
            measured.held += num_held
            measured.tossed += min(num_held + 1, num_frames)
        if num_held != num_frames:
            held = wanted
    return measured


def _choose(screen: NDArray[np.uint8], held: int) -> int:
    """Up and down in turn, so that each step can tell of the coin; away from the edges."""
    rows = own_rows(screen)
    if len(rows):
        if rows.mean() < _MIDDLE[0]:
            return DOWN
        if rows.mean() > _MIDDLE[1]:
            return UP
    return DOWN if held == UP else UP


def _explain(
    emulator: Emulator, alone: Emulator, before: bytes, actions: tuple[int, int], num_frames: int
) -> int | None:
    """For how many frames the action before was held; None where no number explains it."""
    held, wanted = actions
    after = emulator.get_state()
    for num_held in range(min(num_frames, MAX_FRAMES) + 1 if held != wanted else 1):
        alone.set_state(before)
        for frame in range(num_frames):
            alone.step(held if frame < num_held else wanted, [0.0, 1.0])
        if alone.get_state() == after and (alone.screen == emulator.screen).all():
            return num_held
    return None


def judge_frame_skip(protocol: Protocol, measured: Measured) -> Check:
    """Whether each step has as many frames as it should."""
    low, high = protocol.frame_skips
    found = sorted(measured.frames)
    by_frames = {str(n): measured.frames[n] for n in found}
    facts: dict[str, Any] = {"expected": [low, high], "steps_by_frames": by_frames}
    counted = ", ".join(f"{n} in {count:,}" for n, count in by_frames.items())
    wanted = f"{_frames(low, high)} a step"
    if not found or found[0] < low or found[-1] > high:
        advice = "take the versions of constraints.txt; returns do not compare otherwise"
        return trouble(FAILURE, "frame_skip", wanted, counted or "none", advice, facts=facts)
    return Check("frame_skip", OK, f"{wanted} ({counted} steps of {protocol.name})", facts)


def judge_sticky(protocol: Protocol, measured: Measured) -> Check:
    """Whether the action before is held as often as it should be."""
    held, tossed = measured.held, measured.tossed
    facts: dict[str, Any] = {"expected": protocol.sticky, "tossed": tossed, "held": held}
    if protocol.max_frame_skip > MAX_FRAMES:
        text = f"not measured: with more than {MAX_FRAMES} frames a step no coin can be told"
        return Check("sticky", NOTE, text, facts)
    if not tossed:
        advice = "run it again when less is at work here"
        return trouble(NOTE, "sticky", "time for some steps", "none", advice, facts=facts)
    low, high = wilson_interval(held, tossed, 1.96)
    widest = wilson_interval(held, tossed, SIGMAS)
    facts |= {"measured": held / tossed, "ci95": [low, high]}
    got = f"{held / tossed:.3f} (95 % interval {low:.3f} to {high:.3f}, {tossed:,} frames)"
    if not widest[0] - 1e-9 <= protocol.sticky <= widest[1] + 1e-9:
        wanted = f"an action held with probability {protocol.sticky:g}"
        advice = "take the versions of constraints.txt; returns do not compare otherwise"
        return trouble(FAILURE, "sticky", wanted, got, advice, facts=facts)
    return Check("sticky", OK, f"an action is held with probability {got}", facts)


def judge_gap(protocol: Protocol, measured: Measured) -> Check:
    """Whether what is seen is the last frame of each step, and nothing in between is hidden."""
    facts: dict[str, Any] = {"steps": measured.steps, "unexplained": measured.strange}
    if measured.strange and protocol.max_frame_skip <= MAX_FRAMES:
        wanted = "each step to be its frames and no more, seen at the last of them"
        got = f"{measured.strange:,} of {measured.steps:,} steps that are something else"
        advice = "take the versions of constraints.txt; returns do not compare otherwise"
        return trouble(FAILURE, "frame_gap", wanted, got, advice, facts=facts)
    gaps = sorted(measured.frames)
    facts |= {"frames_between": gaps}
    text = f"{_frames(gaps[0], gaps[-1])} from one observation to the next" if gaps else "no step"
    if not measured.strange:
        text += ", each the picture of a step's last frame"
    return Check("frame_gap", OK, text, facts)


def _frames(low: int, high: int) -> str:
    """
    >>> _frames(1, 1), _frames(2, 4)
    ('1 frame', '2 to 4 frames')
    """
    return f"{low} frame{'s' * (low > 1)}" if low == high else f"{low} to {high} frames"


def wilson_interval(hits: int, trials: int, z: float) -> tuple[float, float]:
    """Interval of a probability, z deviations to each side.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.

    >>> low, high = wilson_interval(25, 100, 1.96)
    >>> round(low, 3), round(high, 3)
    (0.175, 0.343)
    """
    p, square = hits / trials, z * z
    middle = (p + square / (2 * trials)) / (1 + square / trials)
    half = z / (1 + square / trials) * math.sqrt(p * (1 - p) / trials + square / (4 * trials**2))
    return max(0.0, middle - half), min(1.0, middle + half)
