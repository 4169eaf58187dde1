"""The control without word order goes through the same loop as every other caption tower."""

from __future__ import annotations

from pathlib import Path

from diptych.training.recipe import load_recipe


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
