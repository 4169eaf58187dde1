"""A kind of untrained ranker, as it is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diptych.commerce.category_to_image.features.rows import Modality, ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.registry import Registry


@dataclass(frozen=True)
class RankerKind:
    """A way to order products for categories without training.

    Attributes:
        name: what it is called wherever models are named.
        description: one line.
        citation: where it is from.
        modalities: what it sees of a product.
        make: from the products that will be ordered.
    """

    name: str
    description: str
    citation: str
    modalities: tuple[Modality, ...]
    make: Callable[[ProductFeatures], Ranker]


RANKERS: Registry[RankerKind] = Registry("ranker", "diptych.commerce.category_to_image.rankers.kinds")


def make_ranker(name: str, products: ProductFeatures) -> Ranker:
    """The ranker of that name, for these products."""
    return RANKERS.get(name).make(products)
