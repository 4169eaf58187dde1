"""From a recipe to a run: everything a training needs, put together, on one device or many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diptych.analysis.shortcuts import DIGIT_WORDS, Shortcuts
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import cache_root, write_json
from diptych.core.reading import read_json
from diptych.data.batches import BatchPlan
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_inputs import CaptionInputs, TargetInputs
from diptych.encoders.dual_encoder import DualEncoder
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
from diptych.encoders.trainable import TrainableEncoder
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.encoders.two_tower_model import CaptionSource, TwoTowerModel
from diptych.training.averaging import averaged_steps
from diptych.training.checkpoint import Place
from diptych.training.examples import Examples
from diptych.training.fine_tune import check_digits_known, check_fine_tune, open_fine_tune
from diptych.training.loop import Loop
from diptych.training.recipe import Recipe
from diptych.training.reconstruct import Reconstructor
from diptych.training.run import Run
from diptych.training.trainee import Trainee
from diptych.training.validation import Validation

logger = logging.getLogger(__name__)


def open_warm_start(folder: str) -> TwoTowerEncoder:
    """The encoder of a run folder (its best) or of an encoder folder."""
    path = Path(folder)
    for place in (path / "best", path):
        if (place / "diptych.json").is_file():
            encoder = DualEncoder.load(place, device="cpu")
            if not isinstance(encoder, TwoTowerEncoder):
                raise UsageError(
                    f"warm_start {folder} holds a {type(encoder).__name__}, which cannot be trained on",
                    "give an encoder with towers of diptych's own, or set fine_tune instead of warm_start",
                )
            return encoder
    raise UsageError(
        f"warm_start {folder} holds no encoder",
        "give the folder of a run that has validated at least once, or of a saved encoder",
    )


def take_weights(model: TwoTowerModel, source: TwoTowerModel) -> list[str]:
    """Copy every weight that both have; gives the names that only ``model`` has, which stay fresh."""
    mine, theirs = model.config.text, source.config.text
    if (
        isinstance(mine, TargetTowerConfig)
        and isinstance(theirs, TargetTowerConfig)
        and mine.targets != theirs.targets
    ):
        raise MismatchError(
            f"the warm start's captions are vectors of {_said(theirs)}, the recipe's are of {_said(mine)}",
            "give both the same model.text.targets",
        )
    wanted, given = model.state_dict(), source.state_dict()
    shared = [name for name in wanted if name in given]
    for name in shared:
        if wanted[name].shape != given[name].shape:
            raise MismatchError(
                f"{name} has shape {tuple(given[name].shape)} in the warm start and "
                f"{tuple(wanted[name].shape)} in the recipe's model",
                "give both the same widths",
            )
    if not shared:
        raise MismatchError("the warm start and the recipe's model have no weight in common", "check both")
    model.load_state_dict({name: given[name] for name in shared}, strict=False)
    fresh = [name for name in wanted if name not in given]
    left = [name for name in given if name not in wanted]
    logger.info("warm start: %d tensors taken, %d fresh, %d left out", len(shared), len(fresh), len(left))
    return fresh


def _said(text: TargetTowerConfig) -> str:
    """Its target model in the words of a recipe."""
    return ", ".join(f"{key} = {value!r}" for key, value in text.targets.model_dump().items())


def same_start(encoder: DualEncoder, key: str, folder: Path) -> None:
    """Keep the fingerprint of what a run begins with in its ``folder``, or see that it is still the same."""
    kept = folder / f"{key}.json"
    found = encoder.fingerprint
    if not kept.is_file():
        write_json(kept, {"fingerprint": found})
        return
    begun_with = read_json(kept)["fingerprint"]
    if begun_with != found:
        raise MismatchError(
            f"the run was begun with the weights {begun_with}, {key} now holds {found}",
            "put the old encoder back, or start a new run",
        )


def beginning_of(run: Run, collection: Collection) -> TrainableEncoder:
    """The encoder that a run trains, as it is before its first step, on the CPU."""
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
    # The first process computes features and targets, the others find the stores complete.
    with fabric.rank_zero_first():
        encoder = beginning_of(run, collection)
        encoder.to(fabric.device)
        towers = encoder.towers
        if shortcuts is not None and recipe.fine_tune is not None:
            _, height, width = towers.image.prepare(train.item(0), 0).shape
            shortcuts.check_fit(width, height)
        features = None
        if recipe.features is not None and isinstance(encoder, TwoTowerEncoder):
            features = FeatureStore.of(encoder.model.image, train, root, recipe.features)
        captions = _caption_inputs(encoder, train, root)
        targets = _latent_targets(run, train, shortcuts, root)
        validation = Validation(
            collection.split(recipe.data.validation), encoder, root, recipe.features, shortcuts
        )
    return Loop(
        fabric=fabric,
        run=run,
        encoder=encoder,
        trainee=Trainee(towers, recipe, _reconstructor(recipe, targets, encoder), encoder.learned_options),
        examples=Examples(
            train,
            towers,
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


def _shortcuts(run: Run, collection: Collection) -> Shortcuts | None:
    """The run's shortcuts; the digits' pictures are those that it began with."""
    recipe, kept = run.recipe, run.folder / "shortcuts.json"
    if recipe.shortcuts is None:
        return None
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, recipe.data.train, recipe.seed)
    if recipe.fine_tune is None and isinstance(recipe.model.image, ImageTowerConfig):
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


def _caption_inputs(encoder: TrainableEncoder, train: Collection, root: Path) -> CaptionInputs:
    """Training captions as the caption tower takes them; a sentence encoder's rows come from the disk."""
    if isinstance(encoder, TwoTowerEncoder) and not isinstance(encoder.source, Vocabulary):
        return TargetInputs(targets_of(encoder.source, train.captions, root / "targets"))
    return encoder.towers.text.inputs(train.captions)


def _latent_targets(
    run: Run, train: Collection, shortcuts: Shortcuts | None, root: Path
) -> np.ndarray | TargetModel | None:
    """(n_captions, width) targets of the captions as they are written, whatever training adds to them;
    the model that makes them where they are to be of captions with their shortcuts, as published."""
    section = run.recipe.reconstruction
    if section is None or section.kind != "latent":
        return None
    if shortcuts is not None and shortcuts.options.in_targets:
        return kept_target_model(section.targets, shortcuts.injected(train), run.folder / "targets")
    model = kept_target_model(section.targets, train, run.folder / "targets")
    return targets_of(model, train.captions, root / "targets")


def _reconstructor(
    recipe: Recipe, targets: np.ndarray | TargetModel | None, encoder: TrainableEncoder
) -> Reconstructor | None:
    if recipe.reconstruction is None:
        return None
    target_width = targets.shape[1] if isinstance(targets, np.ndarray) else None
    if isinstance(targets, TargetModel):
        target_width = targets.width
    source = encoder.source if isinstance(encoder, TwoTowerEncoder) else None
    words = len(source) if isinstance(source, Vocabulary) else None
    return Reconstructor(recipe.reconstruction, encoder.width, target_width, words)
