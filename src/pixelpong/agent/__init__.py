"""An agent: its file, its network, the words that name it, its games and their explanation."""
