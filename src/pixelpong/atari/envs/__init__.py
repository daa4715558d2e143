"""Environments with the rules of ale-py's: many games, one game, and for stable-baselines3."""
