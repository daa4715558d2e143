"""A whole game in a real Chromium, played by a script with a person's delays: minutes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from pages import wait_for
from test_browser_play import BEGUN, SCORE, TITLE
from web_client import serving

pytestmark = [pytest.mark.browser, pytest.mark.soak]

DELAY = 200
"""Milliseconds after which the script sees the ball."""

NOISE = 10
"""Rows by which it misjudges the ball, at most."""

# Points to play, and where to keep a picture of each.
POINTS = int(os.environ.get("PIXELPONG_POINTS", "10"))

WATCH = """(() => {
  const canvas = document.querySelector(".play-canvas"), context = canvas.getContext("2d");
  window.seen = [];
  const look = (now) => {
    const { data } = context.getImageData(0, 34, 160, 160);
    let ball = null;
    for (let place = 0; place < 160 * 160 && !ball; place++)
      if (data[4 * place] === 236 && data[4 * place + 1] === 236)
        ball = [place % 160, 34 + Math.floor(place / 160)];
    window.seen.push([now, ball]);
    if (window.seen.length > 200) window.seen.shift();
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""
"""Write down where the ball is in each picture."""

RECALL = """(delay) => {
  const old = window.seen.filter(([when]) => when <= performance.now() - delay);
  return [old.at(-1)?.[1] ?? null, old.at(-4)?.[1] ?? null];
}"""
"""Where the ball was, and where it was three pictures before."""


class Person:
    """Moves the mouse to where the ball was."""

    def __init__(self, page):
        self.page, self.rng = page, random.Random(0)
        self.offset, self.was_coming = 0.0, False

    def look_and_move(self):
        ball, before = self.page.evaluate(RECALL, DELAY)
        is_coming = bool(ball and before and ball[0] < before[0])
        if is_coming and not self.was_coming:
            self.offset = self.rng.uniform(-NOISE, NOISE)
        self.was_coming = is_coming
        row = ball[1] + 2 + self.offset if is_coming else 113
        box = self.page.locator(".play-canvas").bounding_box()
        self.page.mouse.move(box["x"] + 60, box["y"] + row / 210 * box["height"])


@pytest.mark.timeout(3600)
def test_a_person_does_not_beat_the_champion(open_page, tmp_path):
    pictures = Path(os.environ.get("PIXELPONG_PICTURES", tmp_path))
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#play/package/champion")
        wait_for(page, f"{TITLE} === 'Ready?'")
        page.evaluate(WATCH)
        page.keyboard.press("Space")
        wait_for(page, BEGUN)
        person, points, deadline = Person(page), [0, 0], time.monotonic() + 1800
        while sum(points) < POINTS and time.monotonic() < deadline:
            person.look_and_move()
            if page.evaluate(TITLE) == "Your serve":
                page.keyboard.press("Space")
            now = [int(word) for word in page.evaluate(SCORE).split(" : ")]
            if now != points:
                points = now
                page.screenshot(path=str(pictures / f"points-{sum(points):02}.png"))
                print(points)
    assert sum(points) >= POINTS
    assert points[0] < points[1], points
