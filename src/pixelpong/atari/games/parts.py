"""Which thread plays which games: parts with the same rules, each on a console of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.memory import Memory
from pixelpong.atari.games.rules import Rules, make_console, make_starts, switch_on
from pixelpong.atari.games.views import Screens, View
from pixelpong.atari.machine.record import WIDTH
from pixelpong.atari.steps.opening import MOST_AT_ONCE
from pixelpong.atari.steps.stepping import NEVER, Part


def make_parts(
    memory: Memory, rules: Sequence[Rules], view: View, num_threads: int, *, autoresets: int
) -> list[list[Part]]:
    """Divide the games with the same rules evenly among the threads.

    `rules` are those of each game.
    """
    parts: list[list[Part]] = [[] for _ in range(num_threads)]
    number = first = 0
    for each in dict.fromkeys(rules):
        which = np.array([i for i, other in enumerate(rules) if other == each])
        facts = each.cartridge
        seen = dataclasses.replace(view, palette=facts.palette, rows=facts.rows)
        for k in range(num_threads):
            # Neighbours go to different threads, because a batch of games is one of neighbours.
            share, thread = which[k::num_threads].copy(), (first + k) % num_threads
            if len(share):
                start = _make_start(each, seen)
                part = _make_part(memory, each, seen, start, share)
                parts[thread].append(part._replace(number=number, autoresets=autoresets))
                number += 1
        first += len(which)  # where the next rules' parts go if they have fewer games
    return parts


def _make_start(rules: Rules, view: View) -> NDArray[np.void]:
    """Make a machine from which starts are played, [1], set to draw what the view needs."""
    machine = switch_on(rules.cartridge, rules.flavour)
    if view.has_levels:
        machine["shades"] = view.levels
    return machine


def _make_part(
    memory: Memory, rules: Rules, view: View, start: NDArray[np.void], which: NDArray[np.int64]
) -> Part:
    """Make the data that a thread needs to play these games."""
    at = start.dtype.fields["picture"][1]  # type: ignore[index]
    console = make_console(
        rules,
        draws=view.draws,
        keeps_frames=view.keeps_frames,
        takes_two=view.takes_two,
        start=start,
    )
    first, second = (
        machine[at : at + view.rows * WIDTH].reshape(view.rows, WIDTH)
        for machine in console.machines
    )
    screens = Screens(memory.observed, memory.states, memory.frames, (first, second), console.drawn)
    num_frames = max(rules.most_frames, MOST_AT_ONCE)
    return Part(
        console,
        make_starts(rules.cartridge, rules.flavour, has_sticky_menu=rules.has_sticky_menu),
        row=np.zeros(rules.num_sides * (2 + num_frames)),
        number=0,
        which=which,
        autoresets=NEVER,
        pictures=(first, second),
        observed=view.observation.make_view(view, screens),
    )
