"""A small shop of generated products and a model trained on it, for tests of what runs are used for."""

from __future__ import annotations

from pathlib import Path

__all__ = ["trained_shop"]


def trained_shop(folder: Path) -> tuple[Path, Path]:
    """The shop's folder and the run's: 80 products, some without a picture, a title, a category."""
    from diptych.cli.categories.train import train
    from diptych.data.scenes.products import make_product_scenes

    shop, run = folder / "shop", folder / "run"
    make_product_scenes(
        shop, n_products=80, levels=(2, 3), without_picture=0.1, without_title=0.05, without_category=0.1
    )
    train(
        shop,
        run,
        model="clip-ita",
        text_encoder="lsa:16",
        options=["epochs=6", "hidden=32", "width=16", "batch_size=16"],
    )
    return shop, run
