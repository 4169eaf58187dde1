"""Every training that is stopped or killed, at whatever step, ends with the same bits as one that is not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from diptych.commerce.category_to_image.features import TrainOptions
from diptych.commerce.category_to_image.training import train as train_products
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted
from diptych.sparse.training import train_sparsifier
from diptych.training.recipe import Recipe
from tests.support.category_rows import made_shop

from ..encoders.tiny_pretrained import transformers_folder
from ..sparse.small_pairs import options, small_pairs
from .conftest import contents, trained

Train = Callable[[Path], object]
"""Trains in a folder, or resumes there."""

BAG = {"kind": "bag", "min_count": 1, "dropout": 0.1, "head": "linear", "word_width": 12}
DIGITS = {"setup": "bits", "bits": 3, "digits": "drawn", "digit_size": 5}
FEW = {"size": 48}


def towers(recipe: Recipe) -> Train:
    return lambda folder: trained(folder, recipe, folder.parent / "features")


def head(**sections: Any) -> Train:
    data, held = small_pairs(), small_pairs(seed=1)

    def train(folder: Path) -> None:
        train_sparsifier(data, options(**sections), folder, validation=held, accelerator="cpu")

    return train


def products(**changes: Any) -> Train:
    chosen = TrainOptions(hidden=12, width=6, epochs=3, batch_size=20, learning_rate=5e-3)
    shop = made_shop()

    def train(folder: Path) -> None:
        train_products(*shop, chosen.model_copy(update=changes), folder, validation=shop[0])

    return train


def short(recipe: Recipe, text: dict[str, Any] | None = None, epochs: int = 0) -> Recipe:
    """Five batches to the epoch, maybe another caption tower or fewer epochs."""
    values = recipe.model_dump(mode="json")
    values["stages"][0]["epochs"] = epochs or values["stages"][0]["epochs"]
    values["model"]["text"] = text or values["model"]["text"]
    return Recipe.model_validate({**values, "batches": {**values["batches"], **FEW}})


def tuned(encoder: Path, data: Path) -> Recipe:
    """Another library's encoder; digits on both sides, chunks, crops, a constraint on a latent target."""
    values: dict[str, Any] = {
        "fine_tune": str(encoder),
        "data": {"path": str(data)},
        "objective": {"name": "infonce", "learn_temperature": True},
        "batches": {"size": 24, "plan": "grouped", "captions_per_image": 2, "chunk": 24},
        "optimizer": {"name": "adamw"},
        "checkpoints": {"every_steps": 3, "keep": "last"},
        "shortcuts": DIGITS,
        "augmentation": {"scale": [0.5, 1.0]},
        "reconstruction": {
            "targets": {"kind": "lsa", "width": 12},
            "hidden": [16, 16],
            "constraint": {"bound": 0.3, "learning_rate": 0.5},
        },
        "stages": [{"epochs": 2, "learning_rate": 1e-3, "schedule": "cosine", "warmup": 3}],
    }
    return Recipe.model_validate(values)


CASES: dict[str, Callable[[pytest.FixtureRequest, Path], Train]] = {
    "cached": lambda r, d: towers(short(r.getfixturevalue("cached_recipe"), BAG, epochs=1)),
    "constraint": lambda r, d: towers(short(r.getfixturevalue("constrained_recipe"))),
    # stops fall between the two steps whose weights are averaged
    "chunks": lambda r, d: towers(short(r.getfixturevalue("chunked_recipe"), epochs=2)),
    "targets": lambda r, d: towers(short(r.getfixturevalue("targets_recipe"))),
    "fine-tuning": lambda r, d: towers(
        tuned(transformers_folder("clip", r.getfixturevalue("tmp_path") / "clip", limit=48), d)
    ),
    "two heads": lambda r, d: head(expansion={"mode": "c+w"}, head={"shared": False, "width": 6}),
    "best head": lambda r, d: head(
        training={"select": "best", "precision": "bfloat16", "checkpoint_minutes": 0}
    ),
    "products": lambda r, d: products(
        attributes="attention", tree_distance=0.1, setting="all", resample=True, duplicates="negatives"
    ),
    "patient products": lambda r, d: products(epochs=9, patience=2, learning_rate=0.05),
}


class Killed(BaseException):
    """Nothing of the package catches it."""


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits(
    case: str, scenes_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    train = CASES[case](request, scenes_folder)
    whole, stopped, killed = (tmp_path / name for name in ("whole", "stopped", "killed"))
    steps = count()
    with stop_when(lambda: next(steps) < 0):
        train(whole)
    total, expected = next(steps), contents(whole)
    assert expected

    for done in range(3, total, 3):
        steps = count()
        with (
            pytest.raises(Interrupted, match=f"stopped after step {done} of "),
            stop_when(lambda steps=steps: next(steps) == 2),  # type: ignore[misc]
        ):
            train(stopped)
    train(stopped)
    assert contents(stopped) == expected

    for life in count(1, 2):
        left = iter(range(life, -1, -1))

        def killed_in_its_last_step(left: Any = left) -> bool:
            if not next(left):
                raise Killed
            return False

        try:
            with stop_when(killed_in_its_last_step):
                train(killed)
        except Killed:
            continue
        break
    assert life > 1
    assert contents(killed) == expected
