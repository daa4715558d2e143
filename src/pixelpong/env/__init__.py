"""The game, and what the network sees of a frame."""
