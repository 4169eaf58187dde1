"""Shops: catalogues, pictures for categories, purchase intent from logs."""
