"""Pong for two in the browser: a person against an agent, or against another person."""
