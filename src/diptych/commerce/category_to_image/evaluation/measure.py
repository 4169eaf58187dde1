"""Measure a ranker: categories ask for products, products ask for their category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.commerce.catalogue.relevance import Judged
from diptych.commerce.category_to_image.evaluation.names import CATEGORY_MEASURES, PRODUCT_MEASURES
from diptych.commerce.category_to_image.evaluation.retrieved import ranks_of_retrieved
from diptych.commerce.category_to_image.evaluation.scored import Scored, score_rows
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.evaluate import evaluate, evaluate_sparse
from diptych.evaluation.galleries import measure_galleries
from diptych.evaluation.ground_truth import Direction
from diptych.evaluation.partitioning import Fold, partition
from diptych.evaluation.ranks import Ranks
from diptych.evaluation.result import Result

__all__ = ["measure_ranker"]

_NOT_FOUND = "pairs of score 0 are not retrieved"


def measure_ranker(
    ranker: Ranker,
    products: ProductFeatures,
    categories: CategoryFeatures,
    judged: Judged,
    *,
    measures: Sequence[str] = (*CATEGORY_MEASURES, *PRODUCT_MEASURES),
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
    scored: Scored | None = None,
) -> Result:
    """Measure a ranker on judged products.

    ``t2i`` of the result is a category that asks for products, ``i2t`` a product that asks for its category. Where
    the ranker says that a score of 0 is no ranking, such pairs give no hit at any cut-off.

    Args:
        ranker: a ready model.
        products: features of the whole catalogue that was judged.
        categories: features of ``judged.nodes``, in that order.
        judged: what is relevant.
        measures: names, of both directions.
        bootstrap: intervals over categories; none by default.
        about: what else the numbers depend on.
        scored: the rows, where :func:`~.scored.score_rows` was called already.

    Raises:
        DataError: sizes that disagree.
        MismatchError, UsageError: as of :class:`~diptych.commerce.category_to_image.ranker.Ranker`.
        NumericalError: a row that is not finite, named.
    """
    rows = scored or score_rows(ranker, products, categories, judged)
    said = {
        "model": ranker.name,
        "setting": judged.setting,
        "relevance": judged.relevance,
        "data": f"judged {judged.setting} by {judged.relevance}, seed {judged.seed}",
        **(about or {}),
    }
    if rows.unranked:

        def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
            return ranks_of_retrieved(rows, fold.ground_truth, every)

        return measure_galleries(
            rank,
            judged.truth,
            measures,
            partition("full"),
            "expected",
            bootstrap,
            {**said, "retrieved": _NOT_FOUND},
        )
    way = evaluate_sparse if rows.sparse else evaluate
    return way(
        rows.products,
        rows.categories,
        judged.truth,
        measures,
        bootstrap=bootstrap,
        image_ids=rows.product_ids,
        text_ids=rows.texts,
        about=said,
    )
