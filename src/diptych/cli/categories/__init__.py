"""One file per verb of ``diptych categories``."""

from diptych.cli.categories.app import categories

__all__ = ["categories"]
