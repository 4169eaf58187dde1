"""The control without word order goes through the same loop as every other caption tower."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from diptych.data.readers import read_collection
from diptych.encoders.caption_tower import BagTower
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth
from diptych.training.recipe import Recipe, load_recipe

from .test_fit import trained

BAG = {"kind": "bag", "min_count": 1, "dropout": 0.1}


def with_bag(recipe: Recipe, **text: object) -> Recipe:
    values = recipe.model_dump(mode="json")
    values["model"]["text"] = {**BAG, **text}
    return Recipe.model_validate(values)


def test_trained_it_knows_words_and_not_their_order(recipe: Recipe, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", with_bag(recipe), tmp_path)
    losses = [line["loss"] for line in run.metrics() if "loss" in line]
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])
    encoder = DualEncoder.load(run.best, device="cpu")
    assert isinstance(encoder, TwoTowerEncoder)
    assert isinstance(encoder.model.text, BagTower)
    test = read_collection(str(recipe.data.path)).split("test")
    encoded = encode_collection(encoder, test, tmp_path / "embeddings", "test")
    draw = random.Random(0)
    shuffled = [" ".join(draw.sample(words, len(words))) for words in map(str.split, test.captions)]
    assert shuffled != list(test.captions)
    rows = encoder.encode_texts(shuffled, batch_size=7)
    assert np.array_equal(rows, encoded.texts.rows[:])
    assert len(np.unique(rows, axis=0)) > 50
    # So nothing that is measured can change.
    images, truth = encoded.images.rows[:], GroundTruth.from_caption_image(test.caption_image, test.n_images)
    clean = evaluate(images, encoded.texts.rows[:], truth)
    assert evaluate(images, rows, truth).values() == clean.values()


def test_the_recipe_differs_from_the_one_it_controls_for_in_the_tower_alone() -> None:
    control = load_recipe("bag-of-words").model_dump()
    other = load_recipe(Path(__file__).parents[2] / "recipes" / "flickr8k.toml").model_dump()
    assert control["model"].pop("text")["kind"] == "bag"
    assert other["model"].pop("text")["kind"] == "gru"
    assert control["model"]["image"].pop("weights") is not None
    assert other["model"]["image"].pop("weights") is None
    for text in ("name", "description"):
        assert control.pop(text) != other.pop(text)
    assert control == other
