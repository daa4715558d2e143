"""The game, and the parts of a frame that the network sees."""
