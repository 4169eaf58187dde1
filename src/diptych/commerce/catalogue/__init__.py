"""The catalogue of a shop: products, their category tree, and which product is relevant to which category."""

from diptych.commerce.catalogue.catalogue import (
    SETTINGS,
    AttributeForm,
    Catalogue,
    CategoryText,
    Judged,
    Relevance,
    catalogue_of,
    category_texts,
    judge,
    targets_of,
)

__all__ = [
    "SETTINGS",
    "AttributeForm",
    "Catalogue",
    "CategoryText",
    "Judged",
    "Relevance",
    "catalogue_of",
    "category_texts",
    "judge",
    "targets_of",
]
