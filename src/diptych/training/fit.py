"""From a recipe to a run: everything a training needs, put together, on one device or many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diptych.analysis.shortcuts import DIGIT_WORDS, Shortcuts
from diptych.core.errors import MismatchError
from diptych.core.files import cache_root, read_json, write_json
from diptych.data.batches import BatchPlan
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_inputs import CaptionInputs, TargetInputs
from diptych.encoders.image_tower import ImageTowerConfig
from diptych.encoders.store import FeatureStore
from diptych.encoders.target_tower import TargetTowerConfig
from diptych.encoders.targets import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    targets_of,
)
from diptych.encoders.two_tower import CaptionSource, TwoTowerEncoder, TwoTowerModel
from diptych.training.averaging import averaged_steps
from diptych.training.checkpoint import Place
from diptych.training.examples import Examples
from diptych.training.loop import Loop
from diptych.training.recipe import Recipe
from diptych.training.reconstruct import Reconstructor
from diptych.training.run import Run
from diptych.training.trainee import Trainee
from diptych.training.validation import Validation
from diptych.training.warm_start import open_warm_start, same_warm_start, take_weights

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
    plan = BatchPlan(
        train.caption_image,
        train.n_images,
        recipe.batches.size,
        recipe.batches.plan,
        recipe.batches.captions_per_image,
        recipe.seed,
    )
    shortcuts = _shortcuts(run, collection)
    steps_per_epoch = -(-len(plan) // recipe.optimizer.accumulate)
    if recipe.averaging is not None:
        averaged_steps(steps_per_epoch, recipe.averaging)  # refused before features are computed
    warm = open_warm_start(recipe.warm_start) if recipe.warm_start is not None else None
    # The first process computes features and targets, the others find the stores complete.
    with fabric.rank_zero_first():
        source = warm.source if warm is not None else _caption_source(run, collection)
        model = TwoTowerModel(recipe.model, source)
        if warm is not None:
            same_warm_start(warm, run.folder / "warm_start.json")
            take_weights(model, warm.model)
        model.to(memory_format=torch.channels_last)
        encoder = TwoTowerEncoder(model, source, name=recipe.name)
        model.to(fabric.device)
        features = None
        if recipe.features is not None:
            features = FeatureStore.of(model.image, train, root, recipe.features)
        captions = _caption_inputs(model, source, train, root)
        targets = _latent_targets(run, train, shortcuts, root)
        validation = Validation(
            collection.split(recipe.data.validation), encoder, root, recipe.features, shortcuts
        )
    return Loop(
        fabric=fabric,
        run=run,
        encoder=encoder,
        trainee=Trainee(model, recipe, _reconstructor(recipe, targets, source)),
        examples=Examples(
            train,
            model,
            captions,
            features,
            recipe.augmentation,
            recipe.caption_augmentation,
            targets,
            shortcuts,
            recipe.seed,
        ),
        plan=plan,
        validation=validation,
        data=train.text_fingerprint,
        should_stop=should_stop,
    )


def _caption_source(run: Run, collection: Collection) -> CaptionSource:
    """What the caption tower reads captions with: a vocabulary, or a sentence encoder."""
    text, data = run.recipe.model.text, run.recipe.data
    if isinstance(text, TargetTowerConfig):
        return _target_model(text.targets, collection.split(data.train), run.folder / "caption_targets")
    captions = [caption for name in text.vocabulary_splits for caption in collection.split(name).captions]
    always = DIGIT_WORDS if run.recipe.shortcuts is not None else ()
    return Vocabulary.build(captions, text.min_count, always)


def _shortcuts(run: Run, collection: Collection) -> Shortcuts | None:
    """The run's shortcuts; the digits' pictures are those that it began with.

    Raises:
        MismatchError: a run is resumed with other pictures of digits.
    """
    recipe, kept = run.recipe, run.folder / "shortcuts.json"
    if recipe.shortcuts is None:
        return None
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, recipe.data.train, recipe.seed)
    if isinstance(recipe.model.image, ImageTowerConfig):
        side = recipe.model.image.preprocessing.size
        shortcuts.check_fit(side, side)  # now, not at the first batch
    said = shortcuts.describe()
    if not kept.is_file():
        write_json(kept, said)
    elif (begun_with := read_json(kept)) != said:
        raise MismatchError(
            f"the run was begun with shortcuts {begun_with}, these are {said}",
            "give the same file of digits, or start a new run",
        )
    return shortcuts


def _target_model(options: TargetOptions, train: Collection, kept: Path) -> TargetModel:
    """The model that the run began with: what was learned from captions is not learned again on resume."""
    if kept.is_dir():
        return open_target_model(kept)
    model = make_target_model(options, train.captions)
    model.save(kept)
    return model


def _caption_inputs(
    model: TwoTowerModel, source: CaptionSource, train: Collection, root: Path
) -> CaptionInputs:
    """Training captions as the caption tower takes them; a sentence encoder's rows come from the disk."""
    if isinstance(source, Vocabulary):
        return model.text.inputs(train.captions)
    return TargetInputs(targets_of(source, train.captions, root / "targets"))


def _latent_targets(
    run: Run, train: Collection, shortcuts: Shortcuts | None, root: Path
) -> np.ndarray | TargetModel | None:
    """(n_captions, width) targets of the captions as they are written, whatever training adds to them;
    the model that makes them where they are to be of captions with their shortcuts, as published."""
    section = run.recipe.reconstruction
    if section is None or section.kind != "latent":
        return None
    if shortcuts is not None and shortcuts.options.in_targets:
        return _target_model(section.targets, shortcuts.injected(train), run.folder / "targets")
    model = _target_model(section.targets, train, run.folder / "targets")
    return targets_of(model, train.captions, root / "targets")


def _reconstructor(
    recipe: Recipe, targets: np.ndarray | TargetModel | None, source: CaptionSource
) -> Reconstructor | None:
    if recipe.reconstruction is None:
        return None
    target_width = targets.shape[1] if isinstance(targets, np.ndarray) else None
    if isinstance(targets, TargetModel):
        target_width = targets.width
    words = len(source) if isinstance(source, Vocabulary) else None
    return Reconstructor(recipe.reconstruction, recipe.model.width, target_width, words)
