"""Training of category–product models on rows of frozen encoders, and what comes of it."""

from diptych.commerce.category_to_image.training.train import train
from diptych.commerce.category_to_image.training.trained import TrainedModel

__all__ = ["TrainedModel", "train"]
