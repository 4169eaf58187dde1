"""Which models and settings an evaluation is of, and how its data and encoders are said in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.commerce.catalogue import SETTINGS, Catalogue
from diptych.commerce.category_to_image.evaluation.work import TRAINED, modalities_of, ready_ranker
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError

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
    from diptych.commerce.category_to_image.training.pairs import Pairs

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
