"""Category-to-image retrieval: pictures for the nodes of a category tree, categories for products (thesis ch. 7).

Names are imported when they are used, so that the command line loads no library that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    name: f"diptych.{module}"
    for module, names in {
        "commerce.catalogue": "Catalogue Judged catalogue_of category_texts judge targets_of",
        "commerce.catalogue.making": "assign_splits",
        "commerce.category_to_image.evaluation": "ModelsEvaluation evaluate_given evaluate_models measure_ranker",
        "commerce.category_to_image.features": "CategoryFeatures FeatureMaker ProductFeatures learning_texts",
        "commerce.category_to_image.filling": "Calibration Filler calibrate candidate_nodes reliability_of",
        "commerce.category_to_image.loss": "category_product_loss",
        "commerce.category_to_image.model": "CategoryProductModel",
        "commerce.category_to_image.options": "TrainOptions",
        "commerce.category_to_image.picking": "Picks pick",
        "commerce.category_to_image.rankers": "RANKERS Ranker",
        "commerce.category_to_image.runs": "CategoryRun",
        "commerce.category_to_image.training": "TrainedModel train",
        "data.taxonomy": "CategoryTree read_taxonomy",
    }.items()
    for name in names.split()
}

__all__ = [
    "RANKERS",
    "Calibration",
    "Catalogue",
    "CategoryFeatures",
    "CategoryProductModel",
    "CategoryRun",
    "CategoryTree",
    "FeatureMaker",
    "Filler",
    "Judged",
    "ModelsEvaluation",
    "Picks",
    "ProductFeatures",
    "Ranker",
    "TrainOptions",
    "TrainedModel",
    "assign_splits",
    "calibrate",
    "candidate_nodes",
    "catalogue_of",
    "category_product_loss",
    "category_texts",
    "evaluate_given",
    "evaluate_models",
    "judge",
    "learning_texts",
    "measure_ranker",
    "pick",
    "read_taxonomy",
    "reliability_of",
    "targets_of",
    "train",
]

if TYPE_CHECKING:
    from diptych.commerce.catalogue import (
        Catalogue,
        Judged,
        catalogue_of,
        category_texts,
        judge,
        targets_of,
    )
    from diptych.commerce.catalogue.making import assign_splits
    from diptych.commerce.category_to_image.evaluation import (
        ModelsEvaluation,
        evaluate_given,
        evaluate_models,
        measure_ranker,
    )
    from diptych.commerce.category_to_image.features import (
        CategoryFeatures,
        FeatureMaker,
        ProductFeatures,
        learning_texts,
    )
    from diptych.commerce.category_to_image.filling import (
        Calibration,
        Filler,
        calibrate,
        candidate_nodes,
        reliability_of,
    )
    from diptych.commerce.category_to_image.loss import category_product_loss
    from diptych.commerce.category_to_image.model import CategoryProductModel
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.picking import Picks, pick
    from diptych.commerce.category_to_image.rankers import RANKERS, Ranker
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.training import TrainedModel, train
    from diptych.data.taxonomy import CategoryTree, read_taxonomy


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
