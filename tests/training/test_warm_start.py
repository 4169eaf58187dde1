from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from diptych.core.errors import MismatchError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run

from ..encoders.tiny_pretrained import transformers_folder
from .conftest import tiny


def trained(folder: Path, recipe: Recipe) -> Run:
    run = Run.prepare(folder, recipe)
    fit(run, read_collection(str(recipe.data.path)), accelerator="cpu", features_root=folder.parent / "f")
    return run


def projected(recipe: Recipe, folder: Path, **changes: object) -> Recipe:
    """The second stage of ConVSE: a projection on top of a finished base model, which stays as it is."""
    values = recipe.model_dump()
    values["model"] |= {"width": 8, "projection": {"base": 16, "hidden": 12}}
    values |= {
        "warm_start": str(folder),
        "stages": [{"epochs": 1, "learning_rate": 1e-3, "train": ["*.projection.*"]}],
    }
    return Recipe.model_validate({**values, **changes})


@pytest.fixture(scope="module")
def base(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of :func:`cached_recipe`'s model, for one epoch."""
    stages = [{"epochs": 1, "learning_rate": 1e-3}]
    return trained(
        tmp_path_factory.mktemp("warm") / "base", tiny(scenes_folder, features={"views": 2}, stages=stages)
    )


@pytest.mark.parametrize("place", ["", "best"])
def test_a_projection_grows_on_a_finished_run(
    base: Run, cached_recipe: Recipe, tmp_path: Path, place: str
) -> None:
    grown = trained(tmp_path / "grown", projected(cached_recipe, base.folder / place))
    before, after = (load_file(run.best / "model.safetensors") for run in (base, grown))
    new = after.keys() - before.keys()
    assert new == {
        f"{tower}.projection.{name}"
        for tower in ("image", "text")
        for name in ("0.weight", "2.weight", "2.bias")
    }
    for name in before:
        assert np.array_equal(before[name], after[name]), name
    assert (base.best / "vocabulary.json").read_text() == (grown.best / "vocabulary.json").read_text()


def test_another_warm_start_on_resume_is_refused(base: Run, cached_recipe: Recipe, tmp_path: Path) -> None:
    best = Path(shutil.copytree(base.best, tmp_path / "best"))
    recipe = projected(cached_recipe, best)
    grown = trained(tmp_path / "grown", recipe)
    weights = load_file(best / "model.safetensors")
    save_file({name: np.asarray(value + 1) for name, value in weights.items()}, best / "model.safetensors")
    with pytest.raises(MismatchError, match="was begun with warm_start = "):
        fit(grown, read_collection(str(recipe.data.path)), accelerator="cpu", features_root=tmp_path / "f")


def test_other_widths_are_named(base: Run, cached_recipe: Recipe, tmp_path: Path) -> None:
    values = cached_recipe.model_dump() | {"warm_start": str(base.folder)}
    values["model"]["width"] = 32
    with pytest.raises(MismatchError, match=r"has shape \(.*16.*\) in the warm start and \(.*32.*\)"):
        trained(tmp_path / "grown", Recipe.model_validate(values))


def test_a_folder_without_an_encoder_is_named(cached_recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no encoder"):
        trained(tmp_path / "grown", projected(cached_recipe, tmp_path))


def test_an_encoder_of_another_library_is_named(cached_recipe: Recipe, tmp_path: Path) -> None:
    DualEncoder.load(transformers_folder("clip", tmp_path / "clip")).save(tmp_path / "other")
    with pytest.raises(UsageError, match="holds a .*, which cannot be trained on"):
        trained(tmp_path / "grown", projected(cached_recipe, tmp_path / "other"))
