"""Pong, what the network sees of it, and the comparison of any cartridge with ALE."""
