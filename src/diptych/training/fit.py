"""From a recipe to a trained run, on one device or several."""

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.shortcuts.codes import DIGIT_WORDS
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import MismatchError, RecipeError, UsageError
from diptych.core.files import cache_root, recover_folder
from diptych.data.batches import BatchPlan
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import TargetTowerConfig
from diptych.encoders.dual_encoder import DualEncoder, TrainableEncoder
from diptych.encoders.image_tower import ImageTowerConfig
from diptych.encoders.inputs import pick_device
from diptych.encoders.targets.contract import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    targets_of,
)
from diptych.encoders.tower import CaptionInputs, TargetInputs
from diptych.encoders.two_tower import CaptionSource, TwoTowerEncoder, TwoTowerModel
from diptych.objectives import Objective
from diptych.objectives.declaration import as_objective, name_of
from diptych.training.averaging import averaged_steps
from diptych.training.checkpoint import Place
from diptych.training.examples import Examples
from diptych.training.features import FeatureStore
from diptych.training.fine_tune import check_digits_known, check_fine_tune, open_fine_tune
from diptych.training.recipe import Recipe
from diptych.training.run import Run
from diptych.training.towers import TowerTask, Validation
from diptych.training.trainee import Reconstructor, Trainee
from diptych.training.trainer import Saving, Trainer, multiplies_bfloat16

logger: logging.Logger = logging.getLogger(__name__)


def open_warm_start(folder: str) -> TwoTowerEncoder:
    """Return the encoder of a run folder (its best) or of an encoder folder."""
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
            f"the warm start's captions are vectors of {_described(theirs)}, the recipe's are of {_described(mine)}",
            "give both the same model.text.targets",
        )
    expected, given = model.state_dict(), source.state_dict()
    shared = [name for name in expected if name in given]
    for name in shared:
        if expected[name].shape != given[name].shape:
            raise MismatchError(
                f"{name} has shape {tuple(given[name].shape)} in the warm start and "
                f"{tuple(expected[name].shape)} in the recipe's model",
                "give both the same widths",
            )
    if not shared:
        raise MismatchError("the warm start and the recipe's model have no weight in common", "check both")
    model.load_state_dict({name: given[name] for name in shared}, strict=False)
    fresh = [name for name in expected if name not in given]
    left = [name for name in given if name not in expected]
    logger.info("warm start: %d tensors taken, %d fresh, %d left out", len(shared), len(fresh), len(left))
    return fresh


def _described(text: TargetTowerConfig) -> str:
    return ", ".join(f"{key} = {value!r}" for key, value in text.targets.model_dump().items())


class Beginning(NamedTuple):
    """The encoder that a run trains, on the CPU, and what the run was begun with."""

    encoder: TrainableEncoder
    begun_with: dict[str, str]


def begin_encoder(run: Run, collection: Collection, encoder: DualEncoder | None = None) -> Beginning:
    """Return the encoder that a run trains, as it is before the first step: a copy of ``encoder`` where it is given."""
    recipe = run.recipe
    if recipe.fine_tune is not None:
        if encoder is None or encoder.loaded_from == recipe.fine_tune:
            tuned = check_fine_tune(recipe, open_fine_tune(recipe.fine_tune))
        else:
            tuned = copy.deepcopy(check_fine_tune(recipe, encoder))
        begun_with = {"fine_tune": tuned.fingerprint}
        torch.manual_seed(recipe.seed)  # however many draws the library took to open it
        return Beginning(tuned, begun_with)
    warm = open_warm_start(recipe.warm_start) if recipe.warm_start is not None else None
    source = warm.source if warm is not None else _caption_source(run, collection)
    model = TwoTowerModel(recipe.model, source)
    begun_with = {}
    if warm is not None:
        check_digits_known(recipe.shortcuts, warm.source, f"warm_start {recipe.warm_start}")
        begun_with["warm_start"] = warm.fingerprint
        take_weights(model, warm.model)
    return Beginning(TwoTowerEncoder(model, source, name=recipe.name), begun_with)


def _caption_source(run: Run, collection: Collection) -> CaptionSource:
    text, data = run.recipe.model.text, run.recipe.data
    if isinstance(text, TargetTowerConfig):
        return _target_model(run, text.targets, collection.split(data.train), "caption_targets")
    captions = [caption for name in text.vocabulary_splits for caption in collection.split(name).captions]
    always = DIGIT_WORDS if run.recipe.shortcuts is not None else ()
    return Vocabulary.build(captions, text.min_count, always)


def _target_model(run: Run, options: TargetOptions, train: Collection, name: str) -> TargetModel:
    """Return the model that the run began with: what was learned from captions is not learned again on resume."""
    kept = run.folder / name
    if run.begun and kept.is_dir():
        return open_target_model(kept)
    model = make_target_model(options, train.captions)
    run.keep(lambda: model.save(kept))
    return model


def fit(
    run: Run,
    collection: Collection,
    *,
    objective: Callable[..., Tensor] | None = None,
    encoder: DualEncoder | None = None,
    devices: int = 1,
    accelerator: str = "auto",
    features_root: Path | None = None,
) -> Place:
    """Train a run from where it stands to its end.

    A new run holds its folder from its first step on: what fails before leaves the folder free.

    Args:
        run: a new run, or one that was interrupted; it resumes from its checkpoint.
        collection: with the splits that the recipe names.
        objective: trained with instead of the recipe's: an :class:`~diptych.objectives.Objective`, or any
            callable that takes scores (n_images, n_texts) and positives, a boolean tensor of that shape, and
            returns a scalar tensor. Parameters of a module are trained with the towers.
        encoder: a copy of it is fine-tuned instead of opening the one that the recipe names.
        devices: processes that share each batch; the loss is that of the whole batch.
        accelerator: ``cpu``, ``cuda``, ``mps`` or ``auto``.
        features_root: where cached features live; ``features`` in the cache folder when not given.

    Returns:
        Where the training ended.

    Raises:
        Interrupted: a stop was requested (:func:`diptych.core.context.stop_when`); nothing is lost.
        NumericalError: the loss is NaN or infinite.
        MismatchError: the run was begun on other data, from another encoder or with another objective.
        UsageError: another process trains the run, or its backbone cannot be loaded.
        StorageError: the disk is full; the last checkpoint is whole.
    """
    from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    run.precision = _precision(run.recipe.precision, accelerator)
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        precision=run.precision,
    )
    fabric.launch()
    with _threads(run.recipe.threads), run.held() if fabric.is_global_zero else nullcontext():
        root = features_root or cache_root() / "features"
        task = prepared_task(fabric, run, collection, objective, root, encoder)
        saving = Saving(steps=run.recipe.checkpoints.every_steps)
        given = objective is not None or encoder is not None
        command = "the same call" if given else f"diptych train --resume {run.folder}"
        recover_folder(run.best)
        place = Trainer(task, run, fabric, saving, f"resume with: {command}").train()
        if fabric.is_global_zero:
            numbers = {"step": place.step, "epoch": place.epoch, "best": place.best}
            run.finish(keep_checkpoint=True, **numbers, best_epoch=place.best_epoch)
        fabric.barrier()
    return place


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _precision(requested: str, accelerator: str) -> str:
    if requested != "auto":
        return requested
    device = torch.device("cpu") if accelerator == "cpu" else pick_device(None)
    return "bf16-mixed" if multiplies_bfloat16(device) else "32-true"


def prepared_task(
    fabric: Any,
    run: Run,
    collection: Collection,
    objective: Callable[..., Tensor] | None,
    root: Path,
    given: DualEncoder | None = None,
) -> TowerTask:
    """Put a run's task together and begin the run; arguments as of :func:`fit`, ``given`` is its encoder."""
    recipe = run.recipe
    torch.manual_seed(recipe.seed)
    train = collection.split(recipe.data.train)
    train.require_captions("training")
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
        encoder, begun_with = begin_encoder(run, collection, given)
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
        trainee = Trainee(
            towers,
            _objective(recipe, objective, encoder),
            _reconstructor(recipe, targets, encoder),
        )
        if fabric.is_global_zero:
            run.begin(
                {
                    "data": train.text_fingerprint,
                    **begun_with,
                    **({} if shortcuts is None else {"shortcuts": shortcuts.describe()}),
                    **({} if objective is None else {"objective": name_of(objective)}),
                }
            )
    return TowerTask(
        run=run,
        encoder=encoder,
        trainee=trainee,
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
    )


def _objective(recipe: Recipe, given: Callable[..., Tensor] | None, encoder: TrainableEncoder) -> Objective:
    if given is None:
        return recipe.make_objective(encoder.learned_options)
    objective = as_objective(given)
    if objective.needs_within and encoder.scoring != "cosine":
        raise RecipeError(
            f"objective {name_of(given)} scores images with images, which the encoder's similarity "
            f"{encoder.scoring!r} is not made for",
            "choose another objective",
        )
    return objective


def _shortcuts(run: Run, collection: Collection) -> Shortcuts | None:
    recipe = run.recipe
    if recipe.shortcuts is None:
        return None
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, recipe.data.train, recipe.seed)
    if recipe.fine_tune is None and isinstance(recipe.model.image, ImageTowerConfig):
        side = recipe.model.image.preprocessing.size
        shortcuts.check_fit(side, side)  # now, not at the first batch
    return shortcuts


def _caption_inputs(encoder: TrainableEncoder, train: Collection, root: Path) -> CaptionInputs:
    if isinstance(encoder, TwoTowerEncoder) and not isinstance(encoder.source, Vocabulary):
        return TargetInputs(targets_of(encoder.source, train.captions, root / "targets"))
    return encoder.towers.text.inputs(train.captions)


def _latent_targets(
    run: Run, train: Collection, shortcuts: Shortcuts | None, root: Path
) -> np.ndarray | TargetModel | None:
    """Return (n_captions, width) targets of the captions as they are written, whatever training adds to them;
    the model that makes them where they are to be of captions with their shortcuts, as published."""
    section = run.recipe.reconstruction
    if section is None or section.kind != "latent":
        return None
    if shortcuts is not None and shortcuts.options.in_targets:
        return _target_model(run, section.targets, shortcuts.injected(train), "targets")
    model = _target_model(run, section.targets, train, "targets")
    targets = targets_of(model, train.captions, root / "targets")
    order = np.random.default_rng(run.recipe.seed).permutation(len(targets))
    return targets[order] if section.targets.shuffled else targets


def _reconstructor(
    recipe: Recipe, targets: np.ndarray | TargetModel | None, encoder: TrainableEncoder
) -> Reconstructor | None:
    if recipe.reconstruction is None:
        return None
    if targets is not None:
        target_width = targets.width if isinstance(targets, TargetModel) else targets.shape[1]
        return Reconstructor(recipe.reconstruction, encoder.width, target_width)
    words: Any = encoder.source if isinstance(encoder, TwoTowerEncoder) else ()
    return Reconstructor(recipe.reconstruction, encoder.width, words=len(words))
