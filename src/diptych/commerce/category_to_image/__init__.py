"""Category-to-image retrieval: pictures for the nodes of a category tree, categories for products (thesis ch. 7).

Names are imported when they are used, so that the command line loads no library that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HERE = "diptych.commerce.category_to_image"
_HOMES = {
    "RANKERS": f"{_HERE}.rankers",
    "Calibration": f"{_HERE}.filling",
    "Catalogue": "diptych.commerce.catalogue",
    "CategoryFeatures": f"{_HERE}.features",
    "CategoryProductModel": f"{_HERE}.model",
    "CategoryRun": f"{_HERE}.runs",
    "CategoryTree": "diptych.data.taxonomy",
    "FeatureMaker": f"{_HERE}.features",
    "Filler": f"{_HERE}.filling",
    "Judged": "diptych.commerce.catalogue",
    "ModelsEvaluation": f"{_HERE}.evaluation",
    "Picks": f"{_HERE}.picking",
    "ProductFeatures": f"{_HERE}.features",
    "Ranker": f"{_HERE}.ranker",
    "TrainOptions": f"{_HERE}.options",
    "TrainedModel": f"{_HERE}.training",
    "assign_splits": "diptych.commerce.catalogue.splits",
    "calibrate": f"{_HERE}.filling",
    "candidate_nodes": f"{_HERE}.filling",
    "catalogue_of": "diptych.commerce.catalogue",
    "category_product_loss": f"{_HERE}.loss",
    "category_texts": "diptych.commerce.catalogue",
    "evaluate_given": f"{_HERE}.evaluation",
    "evaluate_models": f"{_HERE}.evaluation",
    "judge": "diptych.commerce.catalogue",
    "learning_texts": f"{_HERE}.features",
    "measure_ranker": f"{_HERE}.evaluation",
    "pick": f"{_HERE}.picking",
    "read_taxonomy": "diptych.data.taxonomy",
    "reliability_of": f"{_HERE}.filling",
    "targets_of": "diptych.commerce.catalogue",
    "train": f"{_HERE}.training",
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
    from diptych.commerce.catalogue.splits import assign_splits
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
    from diptych.commerce.category_to_image.ranker import Ranker
    from diptych.commerce.category_to_image.rankers import RANKERS
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
