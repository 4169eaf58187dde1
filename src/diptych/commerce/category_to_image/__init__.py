"""Category-to-image retrieval: images for the nodes of a category tree, categories for products (thesis ch. 7)."""

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation as ModelsEvaluation
    from diptych.commerce.category_to_image.evaluation import evaluate_models as evaluate_models
    from diptych.commerce.category_to_image.features import FeatureMaker as FeatureMaker
    from diptych.commerce.category_to_image.features import TrainOptions as TrainOptions
    from diptych.commerce.category_to_image.model import CategoryProductModel as CategoryProductModel
    from diptych.commerce.category_to_image.model import category_product_loss as category_product_loss
    from diptych.commerce.category_to_image.picking import Picks as Picks
    from diptych.commerce.category_to_image.picking import pick as pick
    from diptych.commerce.category_to_image.rankers import RANKERS as RANKERS
    from diptych.commerce.category_to_image.rankers import measure_ranker as measure_ranker
    from diptych.commerce.category_to_image.run import CategoryRun as CategoryRun
    from diptych.commerce.category_to_image.training import TrainedModel as TrainedModel
    from diptych.commerce.category_to_image.training import train as train
