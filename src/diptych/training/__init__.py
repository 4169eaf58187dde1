"""Training: recipe, loop, checkpoints, the run folder, scoring."""

from diptych.training.recipe import Recipe, load_recipe
from diptych.training.run import Run

__all__ = ["Recipe", "Run", "load_recipe"]
