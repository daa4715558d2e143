"""Many trainings at once: every combination of seeds and options, and what came of them all."""
