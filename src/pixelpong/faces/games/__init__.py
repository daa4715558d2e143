"""Pong for a person against an agent, in the browser."""
