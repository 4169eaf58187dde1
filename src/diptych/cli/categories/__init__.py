"""``diptych categories``: images for the nodes of a category tree, categories for products."""
