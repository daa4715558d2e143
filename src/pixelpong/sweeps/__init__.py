"""Sweeps: runs with all combinations of seeds and options, and their results."""
