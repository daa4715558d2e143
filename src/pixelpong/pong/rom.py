"""Pong's ROM, which is behind every result of this project."""

from __future__ import annotations

from pathlib import Path

from pixelpong.atari.machine import roms
from pixelpong.atari.machine.cartridges import cartridge


def rom_path() -> Path:
    """The path where the ROM should be; it is not opened."""
    return roms.rom_path("pong")


def read_rom() -> bytes:
    """Read the ROM, [2048] bytes."""
    return roms.read_rom(cartridge("pong"), rom_path())
