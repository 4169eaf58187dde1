"""One command for all models, settings and seeds (thesis section 7.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue import SETTINGS, Catalogue, CategoryText, Relevance, category_texts, judge
from diptych.commerce.catalogue.making import seen_nodes
from diptych.commerce.category_to_image.evaluation.grid import (
    MARKER,
    TRAINED,
    GridProtocol,
    Work,
    begin,
    modalities_of,
    ready_ranker,
    run_grid,
)
from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation
from diptych.commerce.category_to_image.evaluation.summary import write_results
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.images import Missing
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.locking import exclusive_folder
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.features import FeatureMaker

SETTING_ORDER = ("all", "most-general", "most-specific")
"""As thesis Table 7.1 prints them; further ones follow."""


def all_models() -> tuple[str, ...]:
    """Every model there is: untrained ones first."""
    from diptych.commerce.category_to_image.rankers import RANKERS

    return (*RANKERS.names(), *TRAINED)


def chosen_models(asked: Sequence[str] | None) -> list[str]:
    """Models in the order of :func:`all_models`; all of them when None is asked for."""
    known = all_models()
    if asked is None:
        return list(known)
    for name in asked:
        if name not in known:
            raise UnknownNameError("model", name, known)
    if not asked:
        raise UsageError("no model was asked for", f"for example {', '.join(known)}")
    return [name for name in known if name in set(asked)]


def chosen_settings(asked: Sequence[str] | None) -> list[str]:
    """Settings in the order of thesis Table 7.1; all of them when None is asked for."""
    names = SETTINGS.names()
    known = sorted(names, key=lambda name: (SETTING_ORDER.index(name) if name in SETTING_ORDER else 99, name))
    if asked is None:
        return known
    for name in asked:
        SETTINGS.get(name)
    if not asked:
        raise UsageError("no setting was asked for", f"for example {', '.join(known)}")
    return [name for name in known if name in set(asked)]


def trainable_settings(
    wanted: Sequence[str],
    train: Catalogue,
    texts: Sequence[str],
    options: TrainOptions,
    seeds: Sequence[int],
    *,
    named: bool,
) -> tuple[list[str], dict[str, str]]:
    """The settings that a model can be trained in; those that were asked for by name must be among them.

    A shop with a single most general category has nothing to tell apart there, and the other settings are as good.
    """
    from diptych.commerce.category_to_image.training import Pairs

    usable: list[str] = []
    left_out: dict[str, str] = {}
    for setting in wanted:
        try:
            for seed in seeds:
                Pairs(train, texts, options.model_copy(update={"setting": setting, "seed": seed}))
        except DataError as error:
            if named or (setting == wanted[-1] and not usable):
                raise
            left_out[setting] = str(error.message)
        else:
            usable.append(setting)
    return usable, left_out


def usable_models(
    wanted: Sequence[str],
    products: ProductFeatures,
    categories: CategoryFeatures,
    learned: ProductFeatures | None,
    *,
    named: bool,
) -> tuple[list[str], dict[str, str]]:
    """The models that these features allow; those that were asked for by name must be among them."""
    usable, left_out = [], {}
    for model in wanted:
        try:
            _check_usable(model, products, categories, learned)
        except (UsageError, MismatchError) as error:
            if named:
                raise
            left_out[model] = str(error.message)
        else:
            usable.append(model)
    if not usable:
        raise UsageError("no model can be measured on these features", "; ".join(left_out.values()))
    return usable, left_out


def _check_usable(
    model: str, products: ProductFeatures, categories: CategoryFeatures, learned: ProductFeatures | None
) -> None:
    modalities = modalities_of(model)
    if modalities is None:
        ready_ranker(model, products).category_rows(categories)
        return
    for one in modalities:
        for part, what in ((products, "product"), (learned, "training product")):
            if part is not None and not np.any(part.present(one)):
                raise UsageError(f"{model} needs {one}, which no {what} has", f"leave out {model}")


def data_line(train: Catalogue | None, validation: Catalogue | None, test: Catalogue) -> str:
    """Dataset, sizes and fingerprint, for protocols."""
    parts = [f"dataset {test.name}"]
    if train is not None:
        parts.append(f"{len(train):,} products to train on")
    if validation is not None:
        parts.append(f"{len(validation):,} to choose the epoch by")
    parts.append(f"{len(test):,} to find (fingerprint {test.fingerprint})")
    parts.append(test.tree.describe())
    return "; ".join(parts)


def encoders_line(described: Mapping[str, Any]) -> str:
    """What made the features, for protocols."""
    said = [f"{side} encoder {_short(described[side])}" for side in ("image", "text") if described.get(side)]
    if described.get("fingerprint"):
        said.append(f"features {described['fingerprint']}")
    return ", ".join(said) or "encoders not said"


def _short(described: Any) -> str:
    if not isinstance(described, Mapping):
        return str(described)
    words = [str(described[key]) for key in ("kind", "source", "model", "width") if described.get(key)]
    fingerprint = described.get("fingerprint")
    return " ".join(dict.fromkeys(words)) + (f" ({fingerprint})" if fingerprint else "")


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
    from diptych.commerce.category_to_image.training import missing_pictures

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
