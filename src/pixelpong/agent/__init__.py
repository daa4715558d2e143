"""An agent: its file, its network, the choice of a replay, and its explanation of the replay."""
