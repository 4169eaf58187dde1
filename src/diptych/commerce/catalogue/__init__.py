"""The catalogue of a shop: products, their category tree, and which product is relevant to which category."""

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.judging import judge
from diptych.commerce.catalogue.making import AttributeForm, catalogue_of
from diptych.commerce.catalogue.relevance import Judged, Relevance
from diptych.commerce.catalogue.settings import SETTINGS, Setting, targets_of
from diptych.commerce.catalogue.texts import CategoryText, category_texts

__all__ = [
    "SETTINGS",
    "AttributeForm",
    "Catalogue",
    "CategoryText",
    "Judged",
    "Relevance",
    "Setting",
    "catalogue_of",
    "category_texts",
    "judge",
    "targets_of",
]
