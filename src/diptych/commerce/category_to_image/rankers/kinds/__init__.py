"""A kind of untrained ranker per file."""
