"""Category trees, and the files in which shops and standards keep them."""

from diptych.commerce.taxonomy.formats import TAXONOMIES, Taxonomy, TaxonomyFormat, read_taxonomy
from diptych.commerce.taxonomy.tree import SEPARATOR, CategoryTree

__all__ = ["SEPARATOR", "TAXONOMIES", "CategoryTree", "Taxonomy", "TaxonomyFormat", "read_taxonomy"]
