"""Tournaments: every pair of players on both sides, ratings, intransitive triples."""
