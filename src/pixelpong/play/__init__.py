"""Playing: a `worker` has a `player`, which plays with networks from `networks` on a console."""
