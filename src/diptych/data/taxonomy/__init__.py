"""Category trees, and the files in which shops and standards keep them."""

from diptych.data.taxonomy.declaration import (
    TAXONOMIES,
    Taxonomy,
    TaxonomyFormat,
    read_taxonomy,
    recognised_format,
)
from diptych.data.taxonomy.tree import MAX_LEVELS, SEPARATOR, CategoryTree

__all__ = [
    "MAX_LEVELS",
    "SEPARATOR",
    "TAXONOMIES",
    "CategoryTree",
    "Taxonomy",
    "TaxonomyFormat",
    "read_taxonomy",
    "recognised_format",
]
