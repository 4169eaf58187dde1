"""Category trees, and the files in which shops and standards keep them."""

from diptych.data.taxonomy.tree import SEPARATOR, CategoryTree

__all__ = ["SEPARATOR", "CategoryTree"]
