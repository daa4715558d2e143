"""Words and colours for what an agent sees and decides; films, plots and the page share them.

The colours of each set differ in lightness by a sixth or more, so they can be told apart in a grey
print, and each is visible on white and on black.
"""

from __future__ import annotations

import numpy as np

from pixelpong.atari.action import ACTION_NAMES as ALE_NAMES
from pixelpong.config.protocols import PONG
from pixelpong.items import DOWN, STAY, UP
from pixelpong.play.networks import APPEARED, STAYED, VANISHED
from pixelpong.play.scenes import Scene
from pixelpong.sight.blobs import NUM_CLASSES, Sight

ACTION_NAMES = {STAY: "stay", UP: "up", DOWN: "down"}
# These are also the colours of saliency: a pixel favours up (blue) or down (orange).
ACTION_COLOURS = {STAY: "#b2b7bf", UP: "#2569bd", DOWN: "#e07b1a"}

# In games other than Pong, a cell favours the most probable action or the others.
FOR_COLOUR, AGAINST_COLOUR = ACTION_COLOURS[UP], ACTION_COLOURS[DOWN]

PIXEL_NAMES = {APPEARED: "appeared", STAYED: "stayed", VANISHED: "vanished"}
PIXEL_COLOURS = {APPEARED: "#e8c532", STAYED: "#8a8f98", VANISHED: "#9449c0"}

_GREY, _LEAST_BRIGHTNESS = 0x0A, 4  # of eight steps


def name_actions(scene: Scene) -> list[str]:
    """Return the names of a scene's actions: in Pong ours, in other games ALE's."""
    if scene.game == PONG:
        return [ACTION_NAMES[action] for action in scene.actions]
    return [ALE_NAMES[action].lower() for action in scene.actions]


def colour_cells(sight: Sight) -> list[int]:
    """Return a palette index for each class of cells, 1 … 15, for display on black.

    It is the class's own colour, made brighter if it is dark; the class of all other colours is
    grey.
    """
    colours = []
    for kind in range(1, NUM_CLASSES + 1):
        own = np.flatnonzero(sight.classes == kind)
        hue, brightness = divmod(int(own[0]) >> 1, 8) if len(own) == 1 else (0, _GREY >> 1)
        colours.append(2 * (8 * hue + max(brightness, _LEAST_BRIGHTNESS)))
    return colours
