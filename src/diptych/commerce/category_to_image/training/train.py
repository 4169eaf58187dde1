"""Train: from a catalogue and rows of its products and categories to a ranker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training.identity import (
    check_encoders,
    encoder_marks,
    missing_pictures,
)
from diptych.commerce.category_to_image.training.journal import Journal
from diptych.commerce.category_to_image.training.loop import Loop
from diptych.commerce.category_to_image.training.pairs import Pairs
from diptych.commerce.category_to_image.training.trained import TrainedModel, model_of
from diptych.commerce.category_to_image.training.validation import Validation
from diptych.core.errors import DataError, MismatchError
from diptych.core.fingerprint import fingerprint_lists

__all__ = ["train"]


def train(
    catalogue: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    out: Path | str | None = None,
    *,
    validation: tuple[Catalogue, ProductFeatures] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainedModel:
    """Train the heads of one model; frozen encoders have made the rows.

    Products without a category are not trained on; ``about`` of the result counts them. The same catalogue, rows,
    options and versions give the same bits on one thread of a CPU, stopped and resumed or not.

    Args:
        catalogue: the products to train on.
        features: their rows, in the same order.
        categories: rows of all nodes of ``catalogue.tree``, in node order.
        options: what to train and how.
        out: a folder for what a training that was stopped or killed goes on from, its metrics and the model; the
            same call goes on, or gives the model that is there. Without it everything is in memory.
        validation: products by whose mAP@10 (category→product) the best epoch is chosen; without them the last is.
        should_stop: asked before every step.

    Raises:
        Interrupted: ``should_stop`` said so; with ``out`` nothing is lost.
        MismatchError: features of other products, categories or encoders; or ``out`` was begun with something else.
        DataError: fewer than two products with a category, or all in one.
        NumericalError: a row that is not finite, named; or a loss that is not.
        StorageError: the state cannot be written; what was there before is whole.
    """
    _check(catalogue, features, categories, options)
    if validation is not None and validation[0].tree.fingerprint != catalogue.tree.fingerprint:
        raise MismatchError("the validation products are of another category tree", "split one catalogue")
    encoders = encoder_marks(features.about, options.modalities)
    request: dict[str, Any] = {
        "options": options.model_dump(mode="json"),
        "encoders": encoders,
        "products": catalogue.fingerprint,
        "query texts": fingerprint_lists(categories.texts),
        "validation": None if validation is None else validation[0].fingerprint,
    }
    looked_at = (features, *(() if validation is None else validation[1:]))
    missing = missing_pictures(part.pictured for part in looked_at)
    if missing and "image" in options.modalities:
        request["products without a picture"] = missing
    with Journal.begun(out, request) as journal:
        made = journal.model()
        if made is not None:
            return made
        pairs = Pairs(catalogue, categories.texts, options)
        judged = None if validation is None else Validation(*validation, categories, options)
        widths = {one: features.width(one) for one in options.modalities}
        model = model_of(options, widths, int(categories.text.shape[1]))
        loop = Loop(model, options, encoders, pairs, features, categories, judged, journal, should_stop)
        return loop.run()


def _check(
    catalogue: Catalogue, features: ProductFeatures, categories: CategoryFeatures, options: TrainOptions
) -> None:
    if len(features) != len(catalogue) or list(features.ids) != list(catalogue.ids):
        raise MismatchError(
            f"features of {len(features):,} products, {len(catalogue):,} in the catalogue, or in another order",
            "make the features of this very catalogue",
        )
    if len(categories) != len(catalogue.tree):
        raise MismatchError(
            f"rows of {len(categories):,} categories, the tree has {len(catalogue.tree):,}",
            "give the rows of all nodes, in node order",
        )
    check_encoders(encoder_marks(features.about, ("title",)), categories.about, ("title",))
    for one in options.modalities:
        if not np.any(features.present(one)):
            raise DataError(f"no product has a row of {one}", f"train a model without {one}")
