"""Category-to-image retrieval: pictures for the nodes of a category tree, categories for products (thesis ch. 7)."""
