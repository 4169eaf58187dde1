"""Product scenes: a generated shop, with planted effects, so that what each modality can tell is known.

``facets`` says what can be true of a product and what each modality tells of it; ``tree`` grows the categories,
``product`` draws what is true and what is told and writes it, ``truth`` counts, and ``make`` puts it into files.
"""

from diptych.commerce.scenes.products.facets import (
    DATASET,
    MODALITIES,
    PRODUCTS,
    TRUTH,
    VERSION,
    Effects,
    Telling,
)
from diptych.commerce.scenes.products.make import (
    N_PRODUCTS,
    make_product_scenes,
    product_scenes,
    read_product_scenes,
)

__all__ = [
    "DATASET",
    "MODALITIES",
    "N_PRODUCTS",
    "PRODUCTS",
    "TRUTH",
    "VERSION",
    "Effects",
    "Telling",
    "make_product_scenes",
    "product_scenes",
    "read_product_scenes",
]
