"""Whether models differ: paired tests over categories, corrected for how many are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.evaluation.comparison import Difference
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.paired import correction_named, correction_text, paired


def compare_models(
    values: Mapping[str, Mapping[str, Sequence[np.ndarray]]],
    baseline: str,
    measures: Sequence[str],
    *,
    correction: str = "holm",
    flips: int = 10_000,
    bootstrap: Bootstrap | None = None,
) -> list[Difference]:
    """Every model against a baseline, measure by measure, category by category.

    What is swapped and resampled are the categories that ask; values of several seeds are averaged per category
    first, so a p-value says whether the difference would be there with other categories, not with other seeds.

    Args:
        values: per model and measure, one (q,) array per seed, of the same categories in the same order.
    """
    if baseline not in values:
        raise UnknownNameError("baseline", baseline, values)
    if len(values) < 2:
        raise UsageError(f"{len(values)} model: at least two are needed", "evaluate another model beside it")
    how = bootstrap or Bootstrap()
    mean = {
        (model, name): np.mean(list(of[name]), axis=0) for model, of in values.items() for name in measures
    }
    sizes = {model: len(mean[model, measures[0]]) for model in values}
    if len(set(sizes.values())) > 1:
        raise MismatchError(
            f"numbers of categories differ: {', '.join(f'{name} {n}' for name, n in sizes.items())}",
            "measure all models on the same judged products",
        )
    pairs = [(model, name) for model in values if model != baseline for name in measures]
    gaps = [mean[pair] - mean[baseline, pair[1]] for pair in pairs]
    categories = np.arange(sizes[baseline])
    tests = paired(
        [[gap] for gap in gaps], [categories] * len(gaps), how=how, flips=flips, correction=correction
    )
    return [
        Difference(
            run=model,
            direction="t2i",
            measure=name,
            difference=test.difference,
            low=test.low,
            high=test.high,
            p_randomisation=test.p,
            p_t=test.p_t,
            p=test.corrected,
            better=None if test.difference == 0 else test.difference > 0,
        )
        for (model, name), test in zip(pairs, tests, strict=True)
    ]


def comparison_line(
    baseline: str,
    tested: int,
    *,
    correction: str = "holm",
    flips: int = 10_000,
    bootstrap: Bootstrap | None = None,
) -> str:
    """What :func:`compare_models` did, in one line."""
    how = bootstrap or Bootstrap()
    test = f"p of {flips:,} random swaps per category, two-sided"
    said = correction_text(correction_named(correction), tested)
    ends = (
        f"{100 * how.confidence:g} % intervals from {how.samples:,} resamples of categories, seed {how.seed}"
    )
    return "; ".join(
        text for text in (f"differences to {baseline}", ends if how.samples else "", test, said) if text
    )
