"""Agents: their files, the words that name them, their games and explanations of these."""
