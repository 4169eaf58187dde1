"""What a training begins with: fresh towers, those of another run as far as they fit, or a whole encoder."""

from __future__ import annotations

from pathlib import Path

import torch

from diptych.analysis.shortcuts import DIGIT_WORDS
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.target_tower import TargetTowerConfig
from diptych.encoders.targets import TargetModel, TargetOptions, make_target_model, open_target_model
from diptych.encoders.trainable import TrainableEncoder
from diptych.encoders.two_tower import CaptionSource, TwoTowerEncoder, TwoTowerModel
from diptych.training.fine_tune import check_digits_known, check_fine_tune, open_fine_tune
from diptych.training.run import Run
from diptych.training.warm_start import open_warm_start, same_start, take_weights

__all__ = ["beginning_of", "kept_target_model"]


def beginning_of(run: Run, collection: Collection) -> TrainableEncoder:
    """The encoder that a run trains, as it is before its first step, on the CPU.

    Args:
        run: which keeps the fingerprint of what it begins with, where it begins with something.
        collection: that a vocabulary, or a target model, is made from.

    Raises:
        MismatchError: a run is resumed whose beginning has changed meanwhile.
        RecipeError: the recipe asks for what the encoder it names does not have.
        UsageError: there is no encoder where the recipe says.
    """
    recipe = run.recipe
    if recipe.fine_tune is not None:
        encoder = open_fine_tune(recipe.fine_tune)
        check_fine_tune(recipe, encoder)
        same_start(encoder, "fine_tune", run.folder)
        torch.manual_seed(recipe.seed)  # however many draws the library took to open it
        return encoder
    warm = open_warm_start(recipe.warm_start) if recipe.warm_start is not None else None
    source = warm.source if warm is not None else _caption_source(run, collection)
    model = TwoTowerModel(recipe.model, source)
    if warm is not None:
        check_digits_known(recipe.shortcuts, warm.source, f"warm_start {recipe.warm_start}")
        same_start(warm, "warm_start", run.folder)
        take_weights(model, warm.model)
    return TwoTowerEncoder(model, source, name=recipe.name)


def _caption_source(run: Run, collection: Collection) -> CaptionSource:
    """What the caption tower reads captions with: a vocabulary, or a sentence encoder."""
    text, data = run.recipe.model.text, run.recipe.data
    if isinstance(text, TargetTowerConfig):
        return kept_target_model(text.targets, collection.split(data.train), run.folder / "caption_targets")
    captions = [caption for name in text.vocabulary_splits for caption in collection.split(name).captions]
    always = DIGIT_WORDS if run.recipe.shortcuts is not None else ()
    return Vocabulary.build(captions, text.min_count, always)


def kept_target_model(options: TargetOptions, train: Collection, kept: Path) -> TargetModel:
    """The model that the run began with: what was learned from captions is not learned again on resume."""
    if kept.is_dir():
        return open_target_model(kept)
    model = make_target_model(options, train.captions)
    model.save(kept)
    return model
