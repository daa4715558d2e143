"""The page: a server that shows runs, and the game on it."""
