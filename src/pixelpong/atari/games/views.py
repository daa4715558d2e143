"""What is observed of games: the kinds of observation, each a value, and their options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pixelpong.atari.games.pictures import make_shrinking
from pixelpong.atari.machine.palette import GREYS, PALETTES
from pixelpong.atari.machine.record import DRAW_NOTHING, DRAW_PICTURE, ROWS, WIDTH
from pixelpong.atari.steps.records import aligned_zeros
from pixelpong.atari.steps.stepping import (
    RAM_SIZE,
    AtariView,
    FrameView,
    GreyView,
    NoView,
    Pictures,
    RamView,
    step_atari,
    step_frame,
    step_grayscale,
    step_nothing,
    step_ram,
)

Arrays = tuple[NDArray[Any], ...]


class Screens(NamedTuple):
    """What a thread's kernel looks at, and where it keeps what it has seen."""

    arrays: Arrays  # from `Observation.make_arrays`, of all games
    states: NDArray[np.uint8]  # [N, ·], the states of their consoles
    frames: NDArray[np.uint8]  # [N, rows, 160], the newest frames if they are kept
    pictures: Pictures  # of the console's two machines
    drawn: NDArray[np.uint64]  # what the console draws in the cartridge's own form


@dataclass(frozen=True, eq=False)
class Observation:
    """A kind of observation: its space, and how compiled code makes it."""

    name: str
    step: Any  # the kernel, from `make_step`
    # The space: the smallest and the largest value, the shape of one game's, the type of a number.
    low: float
    high: float
    shape: Callable[[View], tuple[int, ...]]
    dtype: DTypeLike
    # What a thread's calls of the kernel need, ``Part.observed``.
    make_view: Callable[[View, Screens], Any]
    draws: int = DRAW_PICTURE  # what the console draws for it
    reads_frames: bool = False  # whether it is made of the newest frames, so that they are kept
    # What it keeps of each game between two steps: arrays [N, …]. The first is a ring,
    # [N, length, …], in which ``newest`` of `GAME` is the newest entry.
    make_arrays: Callable[[int, View], Arrays] = lambda size, view: ()
    # Whether such arrays, which a program has given, keep compiled code inside its memory.
    are_sound: Callable[[Arrays], bool] = lambda arrays: True
    horizontal_axis: int | None = 1  # the axis of its array that runs across the screen


@dataclass(frozen=True)
class View:
    """What is observed of games, and what of them is kept."""

    observation: Observation
    keeps_frames: bool = False  # whether the newest frames are kept
    shows_ram: bool = False  # whether the results contain the consoles' memory
    # These are only for "atari".
    height: int = 84
    width: int = 84
    channels: int = 1  # 1: grey, 3: colour
    stack: int = 4  # number of pictures
    takes_two: bool = False  # whether a picture is the maximum of two frames
    # Facts about the game's picture; of several games, the most rows.
    rows: int = ROWS
    palette: str = "NTSC"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one game's observation."""
        return self.observation.shape(self)

    @property
    def kernel_shape(self) -> tuple[int, int]:
        """The same for kernels, which take all but the first axis as one."""
        first, *rest = self.shape
        return first, math.prod(rest)

    @property
    def draws(self) -> int:
        """What the console draws; what a cartridge draws in its own form may come with pictures."""
        return self.observation.draws | (DRAW_PICTURE if self.keeps_frames else DRAW_NOTHING)

    @property
    def has_levels(self) -> bool:
        """Whether the console draws the levels of a single channel instead of palette indices."""
        return self.observation is ATARI and self.channels == 1 and not self.keeps_frames

    @property
    def levels(self) -> NDArray[np.uint8]:
        """The level of each palette index, [channels, 256]."""
        if self.channels == 1:
            return GREYS[self.palette][None]
        return np.ascontiguousarray(PALETTES[self.palette].T)


def _atari_shape(view: View) -> tuple[int, ...]:
    colours = () if view.channels == 1 else (view.channels,)
    return view.stack, view.height, view.width, *colours


def _make_atari_arrays(size: int, view: View) -> Arrays:
    """Make the stacks of reduced pictures, and room for the newest picture."""
    stacks = np.zeros((size, *view.kernel_shape), np.uint8)
    return stacks, np.zeros((size, view.channels, view.rows, WIDTH), np.uint8)


def _make_atari_view(view: View, screens: Screens) -> AtariView:
    """Make the arrays for the observation "atari"."""
    shrinking = make_shrinking(view.height, view.width, view.rows)
    first, second = (picture[None] for picture in screens.pictures)
    levels = view.levels[:0]
    if not view.has_levels:
        levels = view.levels
        shape = view.channels, view.rows, WIDTH
        first, second = (aligned_zeros(*shape, dtype=np.uint8) for _ in range(2))
    stacks, kept = screens.arrays
    return AtariView(
        screens.pictures,
        stacks,
        kept,
        levels,
        planes=(first, second),
        shrink=shrinking.address,
        scratch=aligned_zeros(shrinking.scratch_size, dtype=np.float32),
        small=aligned_zeros(view.height, view.width, dtype=np.uint8),
    )


def _make_frame_view(view: View, screens: Screens) -> FrameView:
    """Make the arrays for the observation "frame"."""
    frames = screens.frames
    return FrameView(frames, frames.view(np.uint64), PALETTES[view.palette])


ATARI = Observation(
    "atari",
    step_atari,
    low=0,
    high=255,
    shape=_atari_shape,
    dtype=np.uint8,
    make_view=_make_atari_view,
    make_arrays=_make_atari_arrays,
    horizontal_axis=2,
)
FRAME = Observation(
    "frame",
    step_frame,
    low=0,
    high=255,
    shape=lambda view: (view.rows, WIDTH, 3),
    dtype=np.uint8,
    make_view=_make_frame_view,
    reads_frames=True,
)
GRAYSCALE = Observation(
    "grayscale",
    step_grayscale,
    low=0,
    high=255,
    shape=lambda view: (view.rows, WIDTH),
    dtype=np.uint8,
    make_view=lambda view, screens: GreyView(screens.frames, GREYS[view.palette]),
    reads_frames=True,
)
RAM = Observation(
    "ram",
    step_ram,
    low=0,
    high=255,
    shape=lambda view: (RAM_SIZE,),
    dtype=np.uint8,
    make_view=lambda view, screens: RamView(screens.states),
    draws=DRAW_NOTHING,
    horizontal_axis=None,
)
NOTHING = Observation(
    "nothing",
    step_nothing,
    low=0,
    high=0,
    shape=lambda view: (0, 0),
    dtype=np.uint8,
    make_view=lambda view, screens: NoView(),
    draws=DRAW_NOTHING,
)
OBSERVATIONS = {each.name: each for each in (ATARI, FRAME, GRAYSCALE, RAM)}
"""The observations that every game has."""
