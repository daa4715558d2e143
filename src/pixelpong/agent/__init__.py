"""Agents: their files, the words that name them, and their games with explanations."""
