"""Games in progress: N games, each a row of one record, that compiled code starts and steps."""
