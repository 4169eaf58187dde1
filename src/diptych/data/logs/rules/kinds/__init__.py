"""One file per reason; each adds its declaration to ``RULES``."""
