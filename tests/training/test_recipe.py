from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refused

from diptych.core.errors import RecipeError, UnknownNameError, UsageError
from diptych.training.recipe import collection_of, load_recipe, parse_recipe, recipe_names
from diptych.training.sections import Data

MINIMAL = "[[stages]]\nepochs = 1\nlearning_rate = 0.1\n"


SHUFFLED = "[reconstruction]\ntargets = { shuffled = true }\n"


def test_what_is_wrong_is_named_in_one_line() -> None:
    for text, message in (
        (MINIMAL + "colour = 3", "unknown key 'stages.0.colour'"),
        ("nmae = 'x'\n" + MINIMAL, "unknown key 'nmae'.*known there: .*name"),
        (
            MINIMAL + "[model.image]\nbackbon = 'x'",
            "unknown key 'model.image.backbon'.*known there: .*backbone",
        ),
        ("seed = 'x'\n" + MINIMAL, "seed: Input should be a valid integer"),
        ("[[stages]]\nepochs = 0\nlearning_rate = 1", "stages.0.epochs: Input should be greater"),
        ("name = 'x'", "stages: Field required"),
        (MINIMAL + "[model.text]\nkind = 'targets'\ntargets = { shuffled = true }", "cannot be shuffled"),
        (MINIMAL + SHUFFLED + "[shortcuts]\nsetup = 'unique'\nin_targets = true", "cannot be shuffled"),
        ("name = ", "is not TOML"),
        (MINIMAL + "[objective]\ntemperature = 1", "objective has no name"),
        (MINIMAL + "[objective]\nname = 'triplet'\nmargn = 1", "'triplet' has no option 'margn'.*margin=0.2"),
        (MINIMAL + "[objective]\nname = 'triplet'\nmargin = '0.2'", "'margin' of .* is '0.2'.*a number"),
        (
            MINIMAL + "[objective]\nname = 'mvn'\n[model]\nsimilarity = 'order'",
            "'mvn' scores images.*'order'",
        ),
        (MINIMAL + "[optimizer]\nweight_decay = 0.1", "weight_decay 0.1 does nothing with adam"),
        ("[data]\npath = 'x'\nscenes = {}\n" + MINIMAL, "either path or scenes"),
        ("[features]\nviews = 1\n" + MINIMAL + "train = ['*']", "stage 1 trains the backbone"),
        ("[features]\n[augmentation]\n" + MINIMAL, "set features.views instead"),
        ("fine_tune = 'a'\n[model]\nwidth = 8\n" + MINIMAL, r"leave the section \[model\] out"),
        ("fine_tune = 'a'\n[features]\nviews = 1\n" + MINIMAL, r"leave \[features\] out"),
        ("fine_tune = 'a'\nwarm_start = 'b'\n" + MINIMAL, "two beginnings"),
    ):
        error = refused(RecipeError, message, parse_recipe, text, "r.toml")
        assert "\n" not in str(error)
        assert error.exit_code == 2


def test_overrides_reach_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(MINIMAL)
    overrides = {"stages.0.epochs": 7, "batches.size": 9, "objective.name": "triplet", "data.path": "x"}
    recipe = load_recipe(file, overrides)
    assert (recipe.stages[0].epochs, recipe.batches.size) == (7, 9)
    assert (recipe.objective, recipe.data.path) == ({"name": "triplet"}, "x")
    refused(RecipeError, "has no place for 'stages.4.epochs'", load_recipe, file, {"stages.4.epochs": 7})
    refused(RecipeError, "unknown key 'batches.sise'", load_recipe, file, {"batches.sise": 7})
    refused(UnknownNameError, "unknown recipe 'scens'.*did you mean 'scenes'", load_recipe, "scens")


def test_the_recipe_differs_from_the_one_it_controls_for_in_the_tower_only() -> None:
    control = load_recipe("bag-of-words").model_dump()
    other = load_recipe(Path(__file__).parents[2] / "recipes" / "flickr8k.toml").model_dump()
    assert control["model"].pop("text")["kind"] == "bag"
    assert other["model"].pop("text")["kind"] == "gru"
    assert control["model"]["image"].pop("weights") is not None
    assert other["model"]["image"].pop("weights") is None
    for text in ("name", "description"):
        assert control.pop(text) != other.pop(text)
    assert control == other


def test_fewer_images_to_train_on_are_among_those_of_more(scenes_folder: Path) -> None:
    whole = collection_of(Data(path=str(scenes_folder)))
    few, more = (collection_of(Data(path=str(scenes_folder), images=count)) for count in (5, 9))
    assert set(few.split("train").image_ids) < set(more.split("train").image_ids)
    assert [few.split("train").n_images, more.split("train").n_images] == [5, 9]
    assert few.split("test").image_ids == whole.split("test").image_ids
    assert few.split("val").captions == whole.split("val").captions
    with pytest.raises(UsageError, match="data.images 99999 of"):
        collection_of(Data(path=str(scenes_folder), images=99999))


def test_every_recipe_can_be_read_and_survives_toml() -> None:
    files = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert files
    for file in files:
        load_recipe(file)
        comment = file.read_text(encoding="utf-8").split("\n\n")[0]
        assert "diptych train" in comment, f"{file.name} does not begin with its command"
        assert "expect" in comment, f"{file.name} does not say the number to expect"
    for name in recipe_names():
        recipe = load_recipe(name)
        assert parse_recipe(recipe.to_toml(), name) == recipe
    tuned = load_recipe("clip", {"fine_tune": "somewhere", "data.path": "elsewhere"})
    (stage,) = tuned.stages
    assert (stage.epochs, stage.learning_rate, stage.warmup, stage.train) == (5, 2e-5, 100, ("*",))
    assert (tuned.batches.size, tuned.optimizer.name, tuned.optimizer.clip) == (256, "adamw", 2.0)
