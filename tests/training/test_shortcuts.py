"""Shortcuts in training: what batches carry, what is refused, and that a killed run changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from diptych.analysis.shortcuts import DIGIT_WORDS, Shortcuts
from diptych.core.errors import ImageError, MismatchError, RecipeError
from diptych.data.batches import Batch, BatchPlan
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
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


def trained(folder: Path, recipe: Recipe, collection: Collection) -> Run:
    run = Run.prepare(folder, recipe)
    fit(run, collection)
    return run


def test_a_batch_carries_its_numbers_on_both_sides(scenes_folder: Path, collection: Collection) -> None:
    recipe = tiny(scenes_folder, shortcuts=UNIQUE)
    examples, vocabulary, _ = examples_of(recipe, collection)
    plain = Examples(
        collection.split("train"),
        TwoTowerModel(recipe.model, vocabulary),
        TwoTowerModel(recipe.model, vocabulary).text.inputs(collection.split("train").captions),
    )
    batch = Batch(np.array([3, 7]), np.array([16, 36]), np.array([0, 1]))
    with_digits, without = examples.load(batch, 0), plain.load(batch, 0)
    changed = (with_digits.images != without.images).any(dim=1)
    assert changed[:, :5].any()
    assert not changed[:, 5:].any(), "digits are in the first five rows alone"
    first = with_digits.tokens[0, : with_digits.lengths[0]].tolist()
    words = [vocabulary.entries[token] for token in first]
    assert words[-7:] == ["0", "0", "0", "0", "0", "3", "<end>"]
    assert words[:-7] == [vocabulary.entries[t] for t in without.tokens[0, : without.lengths[0] - 1].tolist()]


def test_bits_are_drawn_anew_at_every_access(scenes_folder: Path, collection: Collection) -> None:
    recipe = tiny(scenes_folder, shortcuts={"setup": "bits", "bits": 10, "digit_size": 5, "digits": "drawn"})
    examples, _, _ = examples_of(recipe, collection)
    batch = BatchPlan(collection.split("train").caption_image, 48, 24).epoch(0)[0]
    one, again, later = (examples.load(batch, epoch) for epoch in (0, 0, 1))
    assert torch.equal(one.tokens, again.tokens)
    assert torch.equal(one.images, again.images)
    assert not torch.equal(one.tokens[:, -8:], later.tokens[:, -8:])
    assert not torch.equal(one.images, later.images)


def test_other_digits_on_resume_are_refused(
    scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    run = trained(tmp_path / "run", tiny(scenes_folder, stages=QUICK, shortcuts=UNIQUE), collection)
    text = (run.folder / "recipe.toml").read_text().replace('digits = "drawn"', 'digits = "sklearn"')
    (run.folder / "recipe.toml").write_text(text)
    with pytest.raises(MismatchError, match="begun with shortcuts"):
        fit(Run.open(run.folder), collection)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shortcuts": UNIQUE, "features": {}, "stages": [{"epochs": 1, "learning_rate": 1e-3}]}, "features"),
        ({"shortcuts": {**UNIQUE, "in_targets": True}}, "in_targets"),
        ({"shortcuts": {**UNIQUE, "digit_size": 28}}, "32 × 32"),
        ({"shortcuts": UNIQUE, "reconstruction": {"kind": "input", "word_width": 8}}, "in_targets"),
        ({"shortcuts": UNIQUE, "model": {**MODEL, "text": {"word_dropout": 0.1}}}, "word_dropout"),
        ({"shortcuts": {"setup": "bits"}}, "bits"),
        ({"shortcuts": {"setup": "bits", "bits": 14}}, "13"),
        ({"shortcuts": {"setup": "unique", "bits": 3}}, "bits"),
        ({"shortcuts": {"setup": "images", "in_targets": True}}, "captions no numbers"),
        (
            {"shortcuts": UNIQUE, "model": {"image": {"kind": "regions"}, "text": {"word_width": 8}}},
            "region features",
        ),
    ],
)
def test_impossible_recipes_are_refused(scenes_folder: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        tiny(scenes_folder, **changes)


def test_rows_of_digits_that_do_not_fit_are_refused_before_training(
    scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    recipe = tiny(scenes_folder, stages=QUICK, shortcuts={**UNIQUE, "setup": "per-caption"})
    n = 8 * collection.n_images
    many = replace(
        collection,
        captions=["a"] * n,
        caption_ids=[str(number) for number in range(n)],
        caption_image=np.repeat(np.arange(collection.n_images), 8),
        caption_records=None,
    )
    run = Run.prepare(tmp_path / "run", recipe)
    with pytest.raises(ImageError, match="8 rows of 6 digits of 5 pixels"):
        fit(run, many)
    assert not run.folder.exists()


def test_a_warm_start_without_digits_is_refused(
    run_folder: Path, scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    recipe = tiny(scenes_folder, stages=QUICK, warm_start=str(run_folder), shortcuts=UNIQUE)
    run = Run.prepare(tmp_path / "run", recipe)
    with pytest.raises(RecipeError, match="does not know the digits"):
        fit(run, collection)
