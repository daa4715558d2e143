"""The page with all runs and the games, served to a browser on this machine; it is read-only."""
