"""Many runs at once: all combinations of seeds and options, and their results."""
