"""From a recipe to a run: everything a training needs, put together, on one device or many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from diptych.core.files import cache_root
from diptych.data.batches import BatchPlan
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.store import FeatureStore
from diptych.encoders.two_tower import TwoTowerEncoder, TwoTowerModel
from diptych.training.checkpoint import Place
from diptych.training.examples import Examples
from diptych.training.loop import Loop
from diptych.training.recipe import Recipe
from diptych.training.run import Run
from diptych.training.trainee import Trainee
from diptych.training.validation import Validation

__all__ = ["fit"]


def fit(
    run: Run,
    collection: Collection,
    *,
    devices: int = 1,
    accelerator: str = "auto",
    features_root: Path | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Place:
    """Train a run from where it stands to its end.

    Args:
        run: a new run, or one that was interrupted; it continues from its checkpoint.
        collection: with the splits that the recipe names.
        devices: processes that share each batch; the loss is that of the whole batch.
        accelerator: ``cpu``, ``cuda``, ``mps`` or ``auto``.
        features_root: where cached features live; ``features`` in the cache folder when not given.
        should_stop: asked after every step; when true, the state is saved and Interrupted raised.

    Returns:
        Where the training ended.

    Raises:
        Interrupted: ``should_stop`` said so; nothing is lost.
        NumericalError: the loss is NaN or infinite.
        MismatchError: the run was begun on other data.
        StorageError: the disk is full; the last checkpoint is whole.
    """
    from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        precision=run.recipe.precision,
    )
    fabric.launch()
    return _prepared(fabric, run, collection, features_root or cache_root() / "features", should_stop).go()


def _prepared(
    fabric: Any, run: Run, collection: Collection, root: Path, should_stop: Callable[[], bool]
) -> Loop:
    recipe = run.recipe
    torch.manual_seed(recipe.seed)
    train = collection.split(recipe.data.train)
    vocabulary = _vocabulary(recipe, collection)
    model = TwoTowerModel(recipe.model, vocabulary)
    model.to(memory_format=torch.channels_last)
    encoder = TwoTowerEncoder(model, vocabulary, name=recipe.name)
    features = None
    # The first process computes features, the others find the store complete.
    with fabric.rank_zero_first():
        model.to(fabric.device)
        if recipe.features is not None:
            features = FeatureStore.of(model.image, train, root, recipe.features)
        validation = Validation(collection.split(recipe.data.validation), encoder, root, recipe.features)
    return Loop(
        fabric=fabric,
        run=run,
        encoder=encoder,
        trainee=Trainee(model, recipe),
        examples=Examples(train, recipe.model, vocabulary, features, recipe.augmentation, recipe.seed),
        plan=BatchPlan(
            train.caption_image,
            train.n_images,
            recipe.batches.size,
            recipe.batches.plan,
            recipe.batches.captions_per_image,
            recipe.seed,
        ),
        validation=validation,
        data=train.text_fingerprint,
        should_stop=should_stop,
    )


def _vocabulary(recipe: Recipe, collection: Collection) -> Vocabulary:
    text = recipe.model.text
    captions = [caption for name in text.vocabulary_splits for caption in collection.split(name).captions]
    return Vocabulary.build(captions, text.min_count)
