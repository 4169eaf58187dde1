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
    "Ranker": f"{_HERE}.rankers",
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

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from diptych.commerce.catalogue import (
        Catalogue as Catalogue,
    )
    from diptych.commerce.catalogue import (
        Judged as Judged,
    )
    from diptych.commerce.catalogue import (
        catalogue_of as catalogue_of,
    )
    from diptych.commerce.catalogue import (
        category_texts as category_texts,
    )
    from diptych.commerce.catalogue import (
        judge as judge,
    )
    from diptych.commerce.catalogue import (
        targets_of as targets_of,
    )
    from diptych.commerce.catalogue.splits import assign_splits as assign_splits
    from diptych.commerce.category_to_image.evaluation import (
        ModelsEvaluation as ModelsEvaluation,
    )
    from diptych.commerce.category_to_image.evaluation import (
        evaluate_given as evaluate_given,
    )
    from diptych.commerce.category_to_image.evaluation import (
        evaluate_models as evaluate_models,
    )
    from diptych.commerce.category_to_image.evaluation import (
        measure_ranker as measure_ranker,
    )
    from diptych.commerce.category_to_image.features import (
        CategoryFeatures as CategoryFeatures,
    )
    from diptych.commerce.category_to_image.features import (
        FeatureMaker as FeatureMaker,
    )
    from diptych.commerce.category_to_image.features import (
        ProductFeatures as ProductFeatures,
    )
    from diptych.commerce.category_to_image.features import (
        learning_texts as learning_texts,
    )
    from diptych.commerce.category_to_image.filling import (
        Calibration as Calibration,
    )
    from diptych.commerce.category_to_image.filling import (
        Filler as Filler,
    )
    from diptych.commerce.category_to_image.filling import (
        calibrate as calibrate,
    )
    from diptych.commerce.category_to_image.filling import (
        candidate_nodes as candidate_nodes,
    )
    from diptych.commerce.category_to_image.filling import (
        reliability_of as reliability_of,
    )
    from diptych.commerce.category_to_image.loss import category_product_loss as category_product_loss
    from diptych.commerce.category_to_image.model import CategoryProductModel as CategoryProductModel
    from diptych.commerce.category_to_image.options import TrainOptions as TrainOptions
    from diptych.commerce.category_to_image.picking import Picks as Picks
    from diptych.commerce.category_to_image.picking import pick as pick
    from diptych.commerce.category_to_image.rankers import RANKERS as RANKERS
    from diptych.commerce.category_to_image.rankers import Ranker as Ranker
    from diptych.commerce.category_to_image.runs import CategoryRun as CategoryRun
    from diptych.commerce.category_to_image.training import TrainedModel as TrainedModel
    from diptych.commerce.category_to_image.training import train as train
    from diptych.data.taxonomy import CategoryTree as CategoryTree
    from diptych.data.taxonomy import read_taxonomy as read_taxonomy


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
