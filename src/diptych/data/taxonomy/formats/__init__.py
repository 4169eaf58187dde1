"""One file per format of taxonomy files; each adds its declaration to ``TAXONOMIES``."""
