"""Who plays the second side of a game for two, in environments and elsewhere."""

BUILTIN = "builtin"  # the game itself
SELF = "self"  # whoever plays the first side
