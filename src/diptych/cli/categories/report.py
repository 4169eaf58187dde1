"""``diptych report`` of what ``diptych categories`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.categories.evaluated import held_out
from diptych.cli.categories.sources import CatalogueSource
from diptych.cli.console import say
from diptych.core.errors import DiptychError, StorageError, UsageError
from diptych.core.files import read_json

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation


def is_of_categories(folder: Path) -> bool:
    """Whether ``diptych categories`` wrote the folder."""
    if (folder / "category_run.json").is_file() or (folder / "picks.json").is_file():
        return True
    said: Any = read_json(folder / "evaluation.json") if (folder / "evaluation.json").is_file() else None
    return isinstance(said, dict) and said.get("kind") == "categories"


def write_categories_report(folder: Path, target: Path) -> Path:
    """The page of an evaluation, with pictures where its products are still there."""
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.report.categories_evaluation import write_categories_page

    if (folder / "category_run.json").is_file():
        raise UsageError(
            f"{folder} is a model of categories, which has no page before it is measured",
            f"measure it: diptych categories evaluate DATA --run {folder} --out EVALUATION",
        )
    if (folder / "picks.json").is_file():
        sheet = folder / "tree.html"
        raise UsageError(
            f"{folder} holds pictures for categories",
            f"their page is {sheet}"
            if sheet.is_file()
            else "give the diptych categories pick that made it again",
        )
    found = ModelsEvaluation.open(folder)
    return write_categories_page(target, found, _products(found))


def _products(found: ModelsEvaluation) -> Catalogue | None:
    """The products that were ranked; None, and why, where they are no longer what they were."""
    from diptych.commerce.category_to_image.runs import CategoryRun

    about = found.about
    try:
        whole = CatalogueSource.from_dict(about["source"]).catalogue()
        run = about.get("run")
        part = whole.split("test") if run is None else held_out(CategoryRun.open(run).splits, whole)[0]
    except KeyError:
        raise StorageError(f"{found.folder} does not say what data it is of", "evaluate again") from None
    except DiptychError as error:
        say(f"no pictures: {error}")
        return None
    if part.fingerprint != found.protocol.test:
        say("no pictures: the products are not those that were ranked any more")
        return None
    return part
