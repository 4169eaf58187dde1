"""Features of products and categories: frozen encoders, run once, kept on disk under the name of their content."""

from diptych.commerce.category_to_image.features.maker import FeatureMaker, learning_texts
from diptych.commerce.category_to_image.features.rows import (
    MODALITIES,
    CategoryFeatures,
    Modality,
    ProductFeatures,
)

__all__ = [
    "MODALITIES",
    "CategoryFeatures",
    "FeatureMaker",
    "Modality",
    "ProductFeatures",
    "learning_texts",
]
