"""Floor 6, the studies: the papers as data, and their tables beside your own numbers."""
