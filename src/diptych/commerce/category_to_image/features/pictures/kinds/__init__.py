"""A kind of picture encoder per file."""
