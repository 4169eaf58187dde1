"""``diptych report`` of what ``diptych categories`` writes."""

from __future__ import annotations

from pathlib import Path

from diptych.cli.console import say
from diptych.core.errors import DiptychError, UsageError


def is_of_categories(folder: Path) -> bool:
    """Return whether ``diptych categories`` wrote the folder."""
    markers = ("category_run.json", "picks.json", "category_evaluation.json")
    return any((folder / marker).is_file() for marker in markers)


def write_categories_report(folder: Path, target: Path) -> Path:
    """Write the page of an evaluation, with images where its products are still there."""
    from diptych.commerce.category_to_image.application import evaluated_products
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.report.categories import evaluation_page

    if (folder / "category_run.json").is_file():
        fix = f"measure it: diptych categories evaluate DATA --run {folder} --out EVALUATION"
        raise UsageError(f"{folder} is a model of categories, which has no page before it is measured", fix)
    if (folder / "picks.json").is_file():
        page = folder / "tree.html"
        fix = f"their page is {page}" if page.is_file() else "repeat the diptych categories pick"
        raise UsageError(f"{folder} holds images for categories", fix)
    found, products = ModelsEvaluation.open(folder), None
    try:
        products = evaluated_products(found)
    except DiptychError as error:
        say(f"no images: {error}")
    return evaluation_page(found, products).save(target)
