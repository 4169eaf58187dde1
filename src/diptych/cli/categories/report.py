"""``diptych report`` of what ``diptych categories`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.categories.sources import VALIDATION, CatalogueSource, described, validation_part
from diptych.cli.console import say
from diptych.core.errors import DiptychError, StorageError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.runs import CategoryRun


def evaluated_models(
    catalogue: Catalogue,
    out: Path,
    *,
    image_encoder: str | None,
    image_options: dict[str, Any] | None,
    text_encoder: str,
    **said: Any,
) -> tuple[ModelsEvaluation, Catalogue]:
    """Train on the split ``train``, choose epochs by the validation split if there is one, rank the split ``test``."""
    from diptych.commerce.category_to_image.evaluation import evaluate_models
    from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts

    sizes = catalogue.split_sizes
    for name in ("train", "test"):
        if name not in sizes:
            raise UsageError(
                f"{catalogue.name} has no split called {name}, only {', '.join(sizes)}",
                "make one with --split-by product",
            )
    train, test = catalogue.split("train"), catalogue.split("test")
    maker = FeatureMaker.of(
        image_encoder,
        text_encoder,
        learn_from=learning_texts(train) if text_encoder.partition(":")[0] == "lsa" else (),
        image_options=image_options,
    )
    validation = validation_part(catalogue)
    return evaluate_models(train, validation, test, maker, out, missing="none", **said), test


def evaluated_run(
    folder: Path, catalogue: Catalogue, out: Path, **said: Any
) -> tuple[ModelsEvaluation, Catalogue]:
    """A run on the products that it has not seen: its own test split, or products of elsewhere."""
    from diptych.commerce.category_to_image.evaluation import evaluate_given
    from diptych.commerce.category_to_image.evaluation.evaluate import chosen_settings
    from diptych.commerce.category_to_image.runs import CategoryRun

    run = CategoryRun.open(folder)
    test, note = held_out(run.splits, catalogue)
    seen = None
    if run.about["catalogue"] == catalogue.fingerprint:
        seen = _seen(run, catalogue, chosen_settings(said["settings"]))
    about = {**said.pop("about"), "run": str(folder.resolve()), "notes": [*catalogue.notes, *note]}
    categories = _texts(run.options.query, test)
    found = evaluate_given(
        run.model,
        test,
        run.features(test),
        run.category_features(categories),
        out,
        given=f"{run.about['model']} trained on {run.options.setting} categories",
        query=run.options.query,
        seen=seen,
        about=about,
        **said,
    )
    return found, test


def _texts(query: Any, test: Catalogue) -> list[str]:
    from diptych.commerce.catalogue import category_texts

    return category_texts(test.tree, range(len(test.tree)), query)


def held_out(splits: Mapping[str, str], catalogue: Catalogue) -> tuple[Catalogue, list[str]]:
    """The products that a run did not train on or choose its epoch by, and what to say of the others."""
    used = {"train", *VALIDATION}
    rows = [row for row, name in enumerate(catalogue.ids) if splits.get(name) not in used]
    left = len(catalogue) - len(rows)
    if not rows:
        raise UsageError(
            f"the run was trained on all {len(catalogue):,} products of {catalogue.name}",
            "give other products",
        )
    if not left:
        return catalogue, []
    return catalogue.subset(rows), [f"{left:,} products left out that the run was trained or validated on"]


def _seen(run: CategoryRun, catalogue: Catalogue, settings: Sequence[str]) -> dict[str, np.ndarray]:
    """Per setting that is measured, the categories that the run was trained on, by its own setting."""
    from diptych.commerce.catalogue.making import seen_nodes

    options, splits = run.options, run.splits
    rows = [row for row, name in enumerate(catalogue.ids) if splits.get(name) == "train"]
    epochs = options.epochs if options.resample else 0
    mask = seen_nodes(catalogue.subset(rows), options.setting, options.seed, epochs=epochs)
    return dict.fromkeys(settings, mask)


def is_of_categories(folder: Path) -> bool:
    """Whether ``diptych categories`` wrote the folder."""
    markers = ("category_run.json", "picks.json", "category_evaluation.json")
    return any((folder / marker).is_file() for marker in markers)


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
        whole = described(CatalogueSource, about["source"], found.folder).catalogue()
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
