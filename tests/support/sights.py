"""What a player sees, for the tests: both forms, and pictures of games played at random."""

from __future__ import annotations

import numpy as np

from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.steps.compiling import kernel
from pixelpong.atari.steps.records import GAME
from pixelpong.kernels.blobs import make_view_scratch, make_view_sight
from pixelpong.kernels.viewing import (
    MAX_VIEW_INPUTS,
    VIEW_FIELDS,
    forget_view,
    observe_view,
    take_view,
)
from pixelpong.kernels.wandering import wander
from pixelpong.play.finding import make_wanderer
from pixelpong.sight.blobs import Sight
from pixelpong.sight.view import observe, see

SEEING = np.dtype([("game", GAME), *VIEW_FIELDS])
"""A stream with only what the kernels need."""


@kernel
def look(words, sight, scratch, streams, action, indices, start, forgets):
    """Look at a picture; return the end of the inputs."""
    if forgets:
        forget_view(streams[0])
    take_view(words, sight, scratch, streams[0])
    return observe_view(sight, scratch, streams[0], action, indices, start)


class Twins:
    """The definition and the compiled form, which must agree."""

    def __init__(self, sight: Sight):
        self.sight, self.view, self.before = sight, None, None
        self.compiled, self.scratch = make_view_sight(sight), make_view_scratch()
        self.streams = np.zeros(1, SEEING)

    def look(self, picture: np.ndarray, action: int = 0, *, forgets: bool = False) -> np.ndarray:
        """Both look at a picture; return the inputs that they agree on."""
        self.before = None if forgets else self.view
        self.view = see(self.sight, picture, self.before)
        wanted = observe(self.view, self.before, action)
        found = self.look_compiled(picture, action, forgets=forgets)
        assert found.tolist() == wanted.tolist()
        return wanted

    def look_compiled(self, picture, action=0, *, forgets=False) -> np.ndarray:
        """Only the compiled form looks; it writes nothing else."""
        start, words = 3, np.ascontiguousarray(picture).view(np.uint64)
        unused = np.uint32(0xFFFFFFFF)
        indices = np.full(start + MAX_VIEW_INPUTS + 1, unused)
        end = look(
            words, self.compiled, self.scratch, self.streams, action, indices, start, forgets
        )
        assert start < end <= start + MAX_VIEW_INPUTS
        assert {*indices[:start], *indices[end:]} == {unused}
        assert not self.scratch.marks.any()
        return indices[start:end]


def play_at_random(game: str, steps: int, seed: int = 77) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of some steps, [T, 210, 160], and whether an episode starts with each."""
    facts = cartridge(game)
    actions = np.random.default_rng(seed).choice(facts.actions, steps)
    pictures, are_first = np.zeros((steps, 210, 20), np.uint64), np.zeros(steps, np.bool_)
    codes = np.array(facts.codes)[actions]
    assert wander(make_wanderer(facts), seed, codes, 1, pictures, are_first) == steps
    return pictures.view(np.uint8), are_first


def paint(*boxes, background=0, rows=210) -> np.ndarray:
    """A picture with boxes of cells: (colour, first row, first column, rows, columns)."""
    picture = np.full((rows, 160), background, np.uint8)
    for colour, row, column, height, width in boxes:
        picture[2 * row : 2 * (row + height), 2 * column : 2 * (column + width)] = colour
    return picture


def plain_sight(player: int = 0, player_size: int = 0, *, is_by_row: bool = False) -> Sight:
    """A black background; colour 2c is of class c, and the others are of class 15."""
    classes = np.full(256, 15, np.uint8)
    classes[2:30:2] = range(1, 15)
    return Sight(np.zeros((210, 160), np.uint8), is_by_row, classes, player, player_size)
