"""What a player sees of any game, as readable NumPy."""
