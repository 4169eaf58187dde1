"""Training: recipe, loop, checkpoints, the run folder, scoring; names are imported when they are used."""

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.training.recipe import Recipe as Recipe
    from diptych.training.recipe import load_recipe as load_recipe
    from diptych.training.run import Run as Run
