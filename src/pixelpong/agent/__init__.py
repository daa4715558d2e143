"""An agent: its file, its network, the choice of a replay, and what the agent makes of it."""
