"""Words and colours for what an agent sees and decides; films, plots and the page share them.

The colours of each set differ in lightness by a sixth or more, so they can be told apart in a grey
print, and each is visible on white and on black.
"""

from __future__ import annotations

from pixelpong.items import DOWN, STAY, UP
from pixelpong.play.networks import APPEARED, STAYED, VANISHED

ACTION_NAMES = {STAY: "stay", UP: "up", DOWN: "down"}
# These are also the colours of saliency: a pixel favours up (blue) or down (orange).
ACTION_COLOURS = {STAY: "#b2b7bf", UP: "#2569bd", DOWN: "#e07b1a"}

PIXEL_NAMES = {APPEARED: "appeared", STAYED: "stayed", VANISHED: "vanished"}
PIXEL_COLOURS = {APPEARED: "#e8c532", STAYED: "#8a8f98", VANISHED: "#9449c0"}
