"""Measure a model that was trained before, as it is: nothing is fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue, CategoryText, Relevance, judge
from diptych.commerce.category_to_image.evaluation.choosing import chosen_settings, data_line, encoders_line
from diptych.commerce.category_to_image.evaluation.folder import MARKER, begin
from diptych.commerce.category_to_image.evaluation.grid import run_grid
from diptych.commerce.category_to_image.evaluation.protocol import GridProtocol
from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation
from diptych.commerce.category_to_image.evaluation.summary import write_results
from diptych.commerce.category_to_image.evaluation.work import Work
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import DataError
from diptych.core.locking import exclusive_folder
from diptych.metrics.bootstrap import Bootstrap


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
    should_stop: Callable[[], bool] = lambda: False,
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
        run_grid(work, 1, should_stop)
        found = ModelsEvaluation.open(out)
        write_results(found, test, bootstrap)
    return found
