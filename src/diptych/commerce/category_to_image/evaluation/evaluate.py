"""One command for all models, settings and seeds (thesis section 7.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue import Catalogue, CategoryText, Relevance, category_texts, judge
from diptych.commerce.catalogue.splits import seen_nodes
from diptych.commerce.category_to_image.evaluation.choosing import (
    chosen_models,
    chosen_settings,
    data_line,
    encoders_line,
    trainable_settings,
    usable_models,
)
from diptych.commerce.category_to_image.evaluation.protocol import MARKER, GridProtocol, begin
from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation
from diptych.commerce.category_to_image.evaluation.summary import write_results
from diptych.commerce.category_to_image.evaluation.work import Work, modalities_of, run_grid
from diptych.commerce.category_to_image.features.pictures.contract import Missing
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.locking import exclusive_folder
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.features.maker import FeatureMaker


def evaluate_models(
    train: Catalogue,
    validation: Catalogue | None,
    test: Catalogue,
    maker: FeatureMaker,
    out: Path | str,
    *,
    models: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
    relevance: Relevance = "label",
    query: CategoryText = "name",
    seeds: Sequence[int] = (0, 1, 2),
    published: bool = False,
    options: TrainOptions | None = None,
    judged_seed: int = 0,
    missing: Missing = "error",
    jobs: int = 1,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Train and measure models in every setting, or go on where an earlier call was stopped or killed.

    The test products are judged once, with ``judged_seed``; ``seeds`` are of training alone, so that runs differ in
    nothing but their model. Untrained models are measured once. Numbers do not depend on ``jobs``.
    """
    from diptych.commerce.category_to_image.training.identity import missing_pictures

    out = Path(out)
    check_replaceable(out, MARKER)
    if published and options is not None:
        raise UsageError("published training has its own options", "leave out options, or published")
    for name, other in (("validation", validation), ("test", test)):
        if other is not None and other.tree.fingerprint != train.tree.fingerprint:
            raise MismatchError(
                f"the {name} products are of another category tree ({len(other.tree):,} categories) than the "
                f"training products ({len(train.tree):,})",
                "split one catalogue",
            )
    wanted = chosen_models(models)
    chosen = chosen_settings(settings)
    if not seeds:
        raise UsageError("no seed was asked for", "for example 0, 1, 2")
    base = TrainOptions() if options is None else options
    texts = category_texts(test.tree, range(len(test.tree)), query)
    learns = any(modalities_of(name) is not None for name in wanted)
    impossible: dict[str, str] = {}
    if learns:
        chosen, impossible = trainable_settings(chosen, train, texts, base, seeds, named=settings is not None)
    judged = {name: judge(test, name, relevance, judged_seed) for name in chosen}
    validating = None if published else validation
    tested = maker.products(test, missing=missing)
    categories = maker.categories(texts)
    trained = maker.products(train, missing=missing) if learns else None
    usable, left_out = usable_models(wanted, tested, categories, trained, named=models is not None)
    left_out = impossible | left_out
    validated = None
    if validating is not None and learns:
        validated = maker.products(validating, missing=missing)
    # Of products that are learned from only what is said of them: an evaluation may begin with untrained models.
    pictured = [tested.pictured, *(part.pictured for part in (train, validating) if part is not None)]
    protocol = GridProtocol(
        models=tuple(usable),
        settings=tuple(chosen),
        seeds=tuple(dict.fromkeys(seeds)),
        train=train.fingerprint,
        validation="" if validating is None else validating.fingerprint,
        test=test.fingerprint,
        encoders=maker.fingerprint,
        relevance=relevance,
        query=query,
        published=published,
        options={}
        if published
        else base.model_dump(mode="json", exclude={"modalities", "setting", "seed", "query"}),
        judged_seed=judged_seed,
        pictures="" if tested.image is None else missing_pictures(pictured),
    )
    said = {
        "data": data_line(train if learns else None, validating if learns else None, test),
        "encoders": encoders_line(maker.describe()),
        "features": maker.describe(),
        "left_out": left_out,
        "notes": [*dict.fromkeys((*train.notes, *test.notes)), *(f"{k}: {v}" for k, v in left_out.items())],
        **(about or {}),
    }
    work = Work(
        out,
        protocol,
        train if learns else None,
        validating,
        trained,
        validated,
        tested,
        categories,
        judged,
        _seen(train, protocol, base),
        {
            "dataset": test.name,
            "test": test.fingerprint,
            "query text": query,
            "encoders": maker.fingerprint,
            **({"compat": "published training"} if published else {}),
        },
    )
    with exclusive_folder(out, MARKER):
        begin(out, protocol, test.tree, judged, said)
        run_grid(work, jobs)
        found = ModelsEvaluation.open(out)
        write_results(found, test, bootstrap)
    return found


def _seen(
    train: Catalogue, protocol: GridProtocol, options: TrainOptions
) -> dict[tuple[str, int], np.ndarray]:
    epochs = options.epochs if options.resample and not protocol.published else 0
    return {
        (setting, seed): seen_nodes(train, setting, seed, epochs=epochs)
        for setting in protocol.settings
        for seed in protocol.seeds
    }


def evaluate_given(
    ranker: Ranker,
    test: Catalogue,
    products: ProductFeatures,
    categories: CategoryFeatures,
    out: Path | str,
    *,
    given: str,
    settings: Sequence[str] | None = None,
    relevance: Relevance = "label",
    query: CategoryText = "name",
    judged_seed: int = 0,
    seen: Mapping[str, np.ndarray] | None = None,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Measure one ready model in every setting; the folder is as of :func:`~.evaluate.evaluate_models`.

    Args:
        seen: per setting, (nodes,) booleans: categories that the model was trained on, where that is known.
    """
    out = Path(out)
    for what, have, want in (
        ("products", len(products), len(test)),
        ("categories", len(categories), len(test.tree)),
    ):
        if have != want:
            raise DataError(f"features of {have:,} {what} for {want:,}", "make them of this catalogue")
    chosen = chosen_settings(settings)
    judged = {name: judge(test, name, relevance, judged_seed) for name in chosen}
    encoders = str(products.about.get("fingerprint", ""))
    protocol = GridProtocol(
        models=(ranker.name,),
        settings=tuple(chosen),
        seeds=(),
        train="",
        validation="",
        test=test.fingerprint,
        encoders=encoders,
        relevance=relevance,
        query=query,
        published=False,
        options={},
        judged_seed=judged_seed,
        given=f"{given}, fingerprint {ranker.fingerprint}",
    )
    said = {
        "data": data_line(None, None, test),
        "encoders": encoders_line(products.about),
        "features": {name: products.about.get(name) for name in ("image", "text", "fingerprint")},
        "left_out": {},
        "notes": list(test.notes),
        **(about or {}),
    }
    work = Work(
        out,
        protocol,
        None,
        None,
        None,
        None,
        products,
        categories,
        judged,
        {(setting, 0): mask for setting, mask in (seen or {}).items()},
        {"dataset": test.name, "test": test.fingerprint, "query text": query, "encoders": encoders},
        {ranker.name: ranker},
    )
    with exclusive_folder(out, MARKER):
        begin(out, protocol, test.tree, judged, said)
        run_grid(work)
        found = ModelsEvaluation.open(out)
        write_results(found, test, bootstrap)
    return found
