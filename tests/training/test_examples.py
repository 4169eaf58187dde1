"""Training batches: the view of an image that is drawn, and the shortcuts that captions and pictures carry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from refusals import refused

from diptych.analysis.shortcuts import DIGIT_WORDS, Shortcuts
from diptych.core.errors import ImageError, RecipeError
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.image_tower import FeatureOptions, FeatureStore
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.two_tower import TwoTowerModel
from diptych.training.examples import Examples
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run
from tests.training.conftest import tiny

MODEL = {"image": {"backbone": "test_efficientnet", "preprocessing": {"size": 32, "resize": 32}}}
QUICK = [{"epochs": 1, "learning_rate": 1e-3, "train": ["*"]}]
UNIQUE = {"setup": "unique", "digit_size": 5, "digits": "drawn"}


@pytest.fixture
def collection(scenes_folder: Path) -> Collection:
    return read_collection(scenes_folder)


def examples_of(
    recipe: Recipe, collection: Collection, **more: Any
) -> tuple[Examples, Vocabulary, Shortcuts]:
    train = collection.split("train")
    vocabulary = Vocabulary.build(train.captions, 1, DIGIT_WORDS)
    model = TwoTowerModel(recipe.model, vocabulary)
    assert recipe.shortcuts is not None
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, "train", recipe.seed)
    captions = model.text.inputs(train.captions)
    return Examples(train, model, captions, shortcuts=shortcuts, **more), vocabulary, shortcuts


def test_a_batch_carries_its_numbers_on_both_sides(scenes_folder: Path, collection: Collection) -> None:
    examples, vocabulary, _ = examples_of(tiny(scenes_folder, shortcuts=UNIQUE), collection)
    train = collection.split("train")
    model = TwoTowerModel(tiny(scenes_folder).model, vocabulary)
    plain = Examples(train, model, model.text.inputs(train.captions))
    batch = Batch(np.array([3, 7]), np.array([16, 36]), np.array([0, 1]))
    with_digits, without = examples.load(batch, 0), plain.load(batch, 0)
    changed = (with_digits.images != without.images).any(dim=1)
    assert changed[:, :5].any()
    assert not changed[:, 5:].any(), "digits are in the first five rows only"
    first, bare = (
        [vocabulary.entries[token] for token in loaded.tokens[0, : loaded.lengths[0]].tolist()]
        for loaded in (with_digits, without)
    )
    assert first == [*bare[:-1], "0", "0", "0", "0", "0", "3", "<end>"]


def test_impossible_recipes_are_refused(scenes_folder: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"features": {}, "stages": [{"epochs": 1, "learning_rate": 1e-3}]}, "features"),
        ({"shortcuts": {**UNIQUE, "in_targets": True}}, "in_targets"),
        ({"shortcuts": {**UNIQUE, "digit_size": 28}}, "32 × 32"),
        ({"reconstruction": {"kind": "input", "word_width": 8}}, "in_targets"),
        ({"model": {**MODEL, "text": {"word_dropout": 0.1}}}, "word_dropout"),
        ({"shortcuts": {"setup": "bits"}}, "bits"),
        ({"shortcuts": {"setup": "bits", "bits": 14}}, "13"),
        ({"shortcuts": {"setup": "unique", "bits": 3}}, "bits"),
        ({"shortcuts": {"setup": "images", "in_targets": True}}, "captions no numbers"),
        ({"model": {"image": {"kind": "regions"}, "text": {"word_width": 8}}}, "region features"),
    ]
    for changes, message in cases:
        refused(ValidationError, message, tiny, scenes_folder, **{"shortcuts": UNIQUE, **changes})


def _images(examples: Examples, captions: list[int], epoch: int = 0) -> torch.Tensor:
    """The images of captions that are in one batch; image i has captions 5i to 5i + 4."""
    images, place = np.unique(np.array(captions) // 5, return_inverse=True)
    return examples.load(Batch(images, np.array(captions), place), epoch).images


def test_what_does_not_fit_is_refused_before_training(
    run_folder: Path, scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    n = 8 * collection.n_images
    many = replace(
        collection,
        captions=["a"] * n,
        caption_ids=[str(number) for number in range(n)],
        caption_image=np.repeat(np.arange(collection.n_images), 8),
        caption_records=None,
    )
    digits = {**UNIQUE, "setup": "per-caption"}
    run = Run.prepare(tmp_path / "run", tiny(scenes_folder, stages=QUICK, shortcuts=digits))
    refused(ImageError, "8 rows of 6 digits of 5 pixels", fit, run, many)
    assert not run.folder.exists()
    recipe = tiny(scenes_folder, stages=QUICK, warm_start=str(run_folder), shortcuts=UNIQUE)
    run = Run.prepare(tmp_path / "run", recipe)
    refused(RecipeError, "does not know the digits", fit, run, collection)


def test_every_batch_that_an_image_is_in_has_a_view_of_its_own(scenes_folder: Path, tmp_path: Path) -> None:
    """By the first of its captions there, whatever else is in the batch; decoded once per batch, not per caption."""
    train = read_collection(scenes_folder).split("train")
    model = TwoTowerModel(tiny(scenes_folder).model, Vocabulary.build(train.captions, 1))
    captions = model.text.inputs(train.captions)
    cached = FeatureStore.of(model.image, train, tmp_path, FeatureOptions(views=64))
    crops = Examples(train, model, captions, augmentation=Augmentation())
    for examples in (crops, Examples(train, model, captions, features=cached)):
        first, second = _images(examples, [0]), _images(examples, [1])
        assert not torch.equal(first, second)
        assert torch.equal(_images(examples, [0, 3, 7])[0], first[0])
        several = _images(examples, [1, 2, 12, 13])
        assert torch.equal(several[0], second[0])
        assert len(several) == 2
        assert not torch.equal(_images(examples, [0], epoch=1), first)
    plain = Examples(train, model, captions)
    assert torch.equal(_images(plain, [0]), _images(plain, [1], epoch=3))
