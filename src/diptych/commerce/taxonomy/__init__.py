"""Category trees, and the files in which shops and standards keep them."""

from diptych.commerce.taxonomy.declaration import (
    TAXONOMIES,
    Taxonomy,
    TaxonomyFormat,
    read_taxonomy,
    recognised_format,
)
from diptych.commerce.taxonomy.tree import SEPARATOR, CategoryTree

__all__ = [
    "SEPARATOR",
    "TAXONOMIES",
    "CategoryTree",
    "Taxonomy",
    "TaxonomyFormat",
    "read_taxonomy",
    "recognised_format",
]
