"""Playing: a `worker` has a `player`, which seats the networks of `deciders` at a console."""
