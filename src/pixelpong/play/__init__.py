"""Playing: a network on a game.

A network of `deciders` sees one field after another and records its steps. A `game` is an emulator
that it plays on, in compiled code if possible. `episodes` and `streams` serve the classic and the
fast mode.
"""
