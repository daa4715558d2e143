"""An agent: its file, its network looked into, what there is to show of a run."""
