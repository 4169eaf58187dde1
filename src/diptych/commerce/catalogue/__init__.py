"""The catalogue of a shop: products, their category tree, and which product is relevant to which category."""

from diptych.commerce.catalogue.catalogue import Catalogue

__all__ = ["Catalogue"]
