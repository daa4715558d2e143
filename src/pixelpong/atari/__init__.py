"""An Atari 2600: the hardware that Pong runs on."""
