"""Shops: catalogues, images for categories, purchase intent from logs."""
