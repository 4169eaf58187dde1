"""One file per verb; ``main`` is the command ``diptych``."""

from diptych.cli.app import main

__all__ = ["main"]
