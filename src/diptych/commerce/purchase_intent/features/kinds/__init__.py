"""One file per member."""
