"""Playing: a network, a game, and what comes of the two.

A `deciders` network looks at one field after another and writes down what it did; a `game` is an
emulator that it plays on, in compiled code if possible; `episodes` and `streams` are
what the classic and the fast mode ask for.
"""
