"""How other machines join: a token that can be typed, and codes for the cameras of phones."""

from __future__ import annotations

import io
import os

import segno

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none of them looks like another one
NUM_LETTERS = 8  # 31⁸ tokens: at a thousand guesses a second, thirteen years for half of them


def make_token() -> str:
    """Make a secret that is short enough to be typed."""
    number, letters = int.from_bytes(os.urandom(16)), ""
    for _ in range(NUM_LETTERS):
        number, letter = divmod(number, len(LETTERS))
        letters += LETTERS[letter]
    return letters


def draw_in_text(address: str) -> str:
    """Draw an address as a QR code for a terminal, some 40 columns wide."""
    text = io.StringIO()
    segno.make_qr(address, error="l").terminal(out=text, compact=True)
    return text.getvalue()


def draw_picture(address: str) -> bytes:
    """Draw an address as a QR code, an SVG file."""
    file = io.BytesIO()
    segno.make_qr(address, error="l").save(file, kind="svg", light="white", scale=8)
    return file.getvalue()
