"""Error analysis (thesis section 7.6): how far off in the tree, seen and unseen, which siblings are confused."""

from diptych.commerce.category_to_image.errors.counting import ErrorCounts, count_errors, pooled
from diptych.commerce.category_to_image.errors.examples import choose_examples
from diptych.commerce.category_to_image.errors.kinship import KINSHIPS, kinship
from diptych.commerce.category_to_image.errors.siblings import SiblingPair, confused_siblings

__all__ = [
    "KINSHIPS",
    "ErrorCounts",
    "SiblingPair",
    "choose_examples",
    "confused_siblings",
    "count_errors",
    "kinship",
    "pooled",
]
