"""One file per setting."""
