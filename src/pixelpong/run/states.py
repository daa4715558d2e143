"""The states of a run, by name. They are listed in help texts, so nothing is imported here."""

from __future__ import annotations

TRAINING, WON, STOPPED = "training", "won", "stopped"
INTERRUPTED, FAILED, DAMAGED = "interrupted", "failed", "damaged"

STATES = {
    TRAINING: "a process is at work on it",
    WON: "a verdict has confirmed its target return",
    STOPPED: "its budget is spent",
    INTERRUPTED: "it was stopped or killed, and can go on",
    FAILED: "it ended with an error",
    DAMAGED: "it cannot be read",
}

SORTS = ("age", "name", "return", "seed", "size", "state", "steps")
"""The orders of a list of runs: newest, strongest, largest, longest first."""
