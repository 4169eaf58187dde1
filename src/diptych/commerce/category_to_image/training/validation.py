"""How good the model is now, on validation products: do categories find them."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.judging import judge
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training.trained import TrainedModel
from diptych.core.errors import MismatchError
from diptych.evaluation import evaluate

__all__ = ["CHOOSES", "Validation"]

CHOOSES = "mAP@10"
"""The measure by which the best epoch is chosen: category→product, divided by min(10, relevant products)."""

_MEASURES = (CHOOSES, "P@10")


class Validation:
    """Validation products, judged once and measured as often as asked.

    Args:
        catalogue: the products.
        features: their rows.
        categories: rows of all nodes.
        options: their setting and seed decide which category asks for which product, by label.

    Raises:
        MismatchError: the features are of other products.
        DataError: no validation product has a category.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        features: ProductFeatures,
        categories: CategoryFeatures,
        options: TrainOptions,
    ) -> None:
        if list(catalogue.ids) != list(features.ids):
            raise MismatchError(
                "the validation features are not of the validation products", "make them of these"
            )
        self._judged = judge(catalogue, options.setting, "label", options.seed)
        self._features = features
        nodes = self._judged.nodes
        self._categories = CategoryFeatures(
            [categories.texts[node] for node in nodes.tolist()],
            categories.text[nodes],
            None,
            categories.about,
        )

    def measure(self, model: TrainedModel) -> dict[str, float]:
        """mAP@10 and P@10 of categories that ask for products, in [0, 1]."""
        products = model.product_rows(self._features)
        if len(self._judged.products) < len(products):
            products = np.ascontiguousarray(products[self._judged.products])
        result = evaluate(products, model.category_rows(self._categories), self._judged.truth, _MEASURES)
        return {name: float(result.value(name, "t2i")) for name in _MEASURES}
