"""Tournaments: every pair of players on both sides, points, ratings."""
