"""Games in progress: N of them, each a row of one record, which are begun and played a step on."""
