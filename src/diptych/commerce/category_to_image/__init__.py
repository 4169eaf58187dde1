"""Category-to-image retrieval: pictures for the nodes of a category tree, categories for products (thesis ch. 7).

Names are imported when they are used, so that the command line loads no library that it does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "diptych.commerce.catalogue": "Catalogue Judged catalogue_of category_texts judge targets_of",
        "diptych.commerce.catalogue.making": "assign_splits",
        ".evaluation": "evaluate_models",
        ".features": "CategoryFeatures FeatureMaker ProductFeatures learning_texts",
        ".filling": "Calibration Filler calibrate candidate_nodes reliability_of",
        ".measuring": "measure_ranker",
        ".model": "CategoryProductModel category_product_loss",
        ".options": "TrainOptions",
        ".picking": "Picks pick",
        ".rankers": "RANKERS Ranker",
        ".results": "ModelsEvaluation",
        ".runs": "CategoryRun",
        ".trained": "TrainedModel",
        ".training": "train",
        "diptych.commerce.taxonomy": "CategoryTree read_taxonomy",
    },
)

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue as Catalogue
    from diptych.commerce.catalogue import Judged as Judged
    from diptych.commerce.catalogue import catalogue_of as catalogue_of
    from diptych.commerce.catalogue import category_texts as category_texts
    from diptych.commerce.catalogue import judge as judge
    from diptych.commerce.catalogue import targets_of as targets_of
    from diptych.commerce.catalogue.making import assign_splits as assign_splits
    from diptych.commerce.category_to_image.evaluation import evaluate_models as evaluate_models
    from diptych.commerce.category_to_image.features import CategoryFeatures as CategoryFeatures
    from diptych.commerce.category_to_image.features import FeatureMaker as FeatureMaker
    from diptych.commerce.category_to_image.features import ProductFeatures as ProductFeatures
    from diptych.commerce.category_to_image.features import learning_texts as learning_texts
    from diptych.commerce.category_to_image.filling import Calibration as Calibration
    from diptych.commerce.category_to_image.filling import Filler as Filler
    from diptych.commerce.category_to_image.filling import calibrate as calibrate
    from diptych.commerce.category_to_image.filling import candidate_nodes as candidate_nodes
    from diptych.commerce.category_to_image.filling import reliability_of as reliability_of
    from diptych.commerce.category_to_image.measuring import measure_ranker as measure_ranker
    from diptych.commerce.category_to_image.model import CategoryProductModel as CategoryProductModel
    from diptych.commerce.category_to_image.model import category_product_loss as category_product_loss
    from diptych.commerce.category_to_image.options import TrainOptions as TrainOptions
    from diptych.commerce.category_to_image.picking import Picks as Picks
    from diptych.commerce.category_to_image.picking import pick as pick
    from diptych.commerce.category_to_image.rankers import RANKERS as RANKERS
    from diptych.commerce.category_to_image.rankers import Ranker as Ranker
    from diptych.commerce.category_to_image.results import ModelsEvaluation as ModelsEvaluation
    from diptych.commerce.category_to_image.runs import CategoryRun as CategoryRun
    from diptych.commerce.category_to_image.trained import TrainedModel as TrainedModel
    from diptych.commerce.category_to_image.training import train as train
    from diptych.commerce.taxonomy import CategoryTree as CategoryTree
    from diptych.commerce.taxonomy import read_taxonomy as read_taxonomy
