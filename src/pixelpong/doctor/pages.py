"""Which page of the documentation helps with what; addresses are relative to its folder.

A test holds each of them to a page, and a heading on it, that exist.
"""

from __future__ import annotations

DAMAGED = "reliability.md#promises"
OTHER_MACHINE = "reliability.md#not-promised"
CLUSTER = "cluster.md"
SPEED = "scaling.md"

HERE = "howto/doctor.md"
"""The page on this command."""

FINDINGS = (
    "Too early to tell",
    "Not a number",
    "Loss spikes",
    "Entropy gone",
    "One action only",
    "Dead units",
    "Steps too large",
    "No progress",
    "Slow",
    "Workers lost",
)
"""Titles of `pixelpong.report.health` that are no praise; each has its heading on `HERE`."""


def of_finding(title: str) -> str:
    """The page on a finding of `pixelpong.report.health`.

    >>> of_finding("Entropy gone")
    'howto/doctor.md#entropy-gone'
    """
    return f"{HERE}#{title.lower().replace(' ', '-')}"
