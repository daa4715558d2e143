"""Which thread plays which games: parts with the same cartridge, each on a console of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.memory import Memory
from pixelpong.atari.games.pictures import View, make_shrinking
from pixelpong.atari.games.rules import Rules, load_any, make_console, make_start, make_starts
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.atari.machine.record import WIDTH
from pixelpong.atari.steps.opening import MOST_AT_ONCE
from pixelpong.atari.steps.records import aligned_zeros
from pixelpong.atari.steps.stepping import NEVER, AtariView, FieldView, FrameView, NoView, Part
from pixelpong.pong.preprocess import IS_ACTIVE


def make_parts(
    memory: Memory, rules: Sequence[Rules], view: View, num_threads: int, *, autoresets: int
) -> list[list[Part]]:
    """The parts that each thread plays; of each cartridge's games, all threads get as many.

    `rules` are those of each game.
    """
    parts: list[list[Part]] = [[] for _ in range(num_threads)]
    number = first = 0
    for each in dict.fromkeys(rules):
        which = np.array([i for i, other in enumerate(rules) if other == each])
        facts = load_any(each.game).cartridge
        seen = dataclasses.replace(view, palette=facts.palette, rows=facts.rows)
        for k in range(num_threads):
            # Neighbours go to different threads, because a batch of games is one of neighbours.
            share, thread = which[k::num_threads].copy(), (first + k) % num_threads
            if len(share):
                start = _make_start(each, seen)
                part = _make_part(memory, each, seen, start, share)
                parts[thread].append(part._replace(number=number, autoresets=autoresets))
                number += 1
        first += len(which)  # where the next cartridge's parts go if it has fewer games
    return parts


def _make_start(rules: Rules, view: View) -> NDArray[np.void]:
    """A machine from which games start, [1] its record, set to draw what the view needs."""
    machine = make_start(rules)
    if view.has_levels:
        machine["shades"] = view.levels
        machine["picture"] = view.levels[0][machine["picture"]]
    return machine


def _make_part(
    memory: Memory, rules: Rules, view: View, start: NDArray[np.void], which: NDArray[np.int64]
) -> Part:
    """Make the data that a thread needs to play these games."""
    at = start.dtype.fields["picture"][1]  # type: ignore[index]
    console = make_console(
        rules,
        has_pictures=view.has_pictures,
        keeps_frames=view.keeps_frames,
        takes_two=view.takes_two,
        start=start,
    )
    first, second = (
        machine[at : at + view.rows * WIDTH].reshape(view.rows, WIDTH)
        for machine in console.machines
    )
    observed: Any = NoView()
    if view.observation == "atari":
        observed = _make_atari(memory, view, (first, second))
    elif view.observation == "frame":
        palette = PALETTES[view.palette]
        observed = FrameView(memory.frames, memory.frames.view(np.uint64), palette)
    elif view.observation in ("field", "pixels"):
        pictures = (first, second) if view.has_pictures else (first[:0], second[:0])
        observed = FieldView(memory.fields, console.field, IS_ACTIVE, pictures)
    else:
        assert view.observation == "nothing", view.observation
    num_frames = max(rules.frame_skips[1], MOST_AT_ONCE)
    return Part(
        console,
        make_starts(rules, start),
        row=np.zeros(rules.num_sides * (2 + num_frames)),
        number=0,
        which=which,
        autoresets=NEVER,
        pictures=(first, second),
        observed=observed,
    )


def _make_atari(
    memory: Memory, view: View, pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]]
) -> AtariView:
    """Make the arrays for the observation "atari"."""
    shrinking = make_shrinking(view.height, view.width, view.rows)
    first, second = (picture[None] for picture in pictures)
    levels = view.levels[:0]
    if not view.has_levels:
        levels = view.levels
        shape = view.channels, view.rows, WIDTH
        first, second = (aligned_zeros(*shape, dtype=np.uint8) for _ in range(2))
    return AtariView(
        pictures,
        memory.stacks,
        memory.kept,
        levels,
        planes=(first, second),
        shrink=shrinking.address,
        scratch=aligned_zeros(shrinking.scratch_size, dtype=np.float32),
        small=aligned_zeros(view.height, view.width, dtype=np.uint8),
    )
