"""Models of the tiny shop, trained for two epochs and measured: what tables, pages and commands are tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation, evaluate_models
from diptych.commerce.category_to_image.features import FeatureMaker, TrainOptions, learning_texts
from diptych.metrics import Bootstrap

SMALL = TrainOptions(epochs=2, hidden=8, width=4, batch_size=8)


def shop_and_maker(folder: Path) -> tuple[Catalogue, FeatureMaker]:
    """The shop's pictures in ``folder``, and encoders that learned from its training products."""
    shop = tiny_catalogue(folder / "pictures")
    return shop, FeatureMaker.of(
        "grid", "lsa:8", learn_from=learning_texts(shop.split("train")), cache=folder / "cache"
    )


def evaluated(shop: Catalogue, maker: FeatureMaker, out: Path, **options: Any) -> ModelsEvaluation:
    """Four models in all settings with two seeds; the shop's test products are those of ``test`` and ``val``."""
    said: dict[str, Any] = {
        "models": ("bm25", "sentence", "clip-i", "clip-ita"),
        "seeds": (0, 1),
        "options": SMALL,
        "bootstrap": Bootstrap(50),
        **options,
    }
    rows = [row for row, name in enumerate(shop.splits) if name != "train"]
    return evaluate_models(shop.split("train"), None, shop.subset(rows), maker, out, **said)
