"""One file per way of splitting products."""
