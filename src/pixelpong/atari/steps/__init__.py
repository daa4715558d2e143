"""Compiled steps of games, one call for many of them; see ``docs/concepts.md`` for the records."""
