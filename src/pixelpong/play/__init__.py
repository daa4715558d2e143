"""Playing: a `worker` has a `player`, which seats the networks of `networks` at a console."""
