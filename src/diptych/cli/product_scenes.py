"""``diptych scenes --products``: generate the products of a shop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.cli.console import next_step, print_table, say
from diptych.cli.options import least_and_most
from diptych.cli.progress import progress

__all__ = ["PRODUCT_OPTIONS", "product_scenes"]

PRODUCT_OPTIONS = (
    "number",
    "levels",
    "without_pictures",
    "without_titles",
    "without_attributes",
    "without_categories",
    "in_two_places",
    "skew",
    "size",
    "dirt",
    "workers",
)
"""Options of ``diptych scenes`` that say something of products."""


def product_scenes(out: Path | None, *, number: int, levels: str | None, **options: Any) -> None:
    """Make products, and say what they are, what can be told of them, and what comes next."""
    from diptych.core.files import read_json
    from diptych.data.scenes import make_product_scenes, read_product_scenes
    from diptych.data.scenes.products import TRUTH

    if levels is not None:
        options["levels"] = least_and_most(levels, "--levels", "levels")
    with progress():
        folder = make_product_scenes(out, number, **options)
    say(read_product_scenes(folder).describe())
    truth = read_json(folder / TRUTH)
    counts, tree = truth["counts"], truth["tree"]
    say(
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another"
    )
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in truth["ideal"]["accuracy"]}
    models = {row["model"]: " + ".join(row["modalities"]) for row in truth["ideal"]["accuracy"]}
    rows = [(seen, at[model, 1], at[model, "most-specific"]) for model, seen in models.items()]
    print_table(
        "how often the best possible observer would know a product's category",
        ["who sees its", "most general", "most specific"],
        rows,
        numbers=["most general", "most specific"],
    )
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    name = "shop" if out is None else folder.name  # a folder of the cache has a fingerprint for a name
    next_step(f"diptych categories train {folder} --out runs/{name}")
