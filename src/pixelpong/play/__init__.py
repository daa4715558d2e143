"""Playing: a `worker` has a `player`, which plays the networks of `networks` on a console."""
