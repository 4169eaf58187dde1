"""One file per verb of ``diptych intent``."""

from diptych.cli.intent.app import intent

__all__ = ["intent"]
