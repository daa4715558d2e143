"""Teaches a program to play Atari Pong from its screen, with policy gradients.

    pixelpong train                      a new run, from nothing
    pixelpong resume runs/classic-001    go on, to the same bits as without the break

`pixelpong.train` is the map of the code. Importing this package loads nothing but this file.
"""

__version__ = "0.1.0"
