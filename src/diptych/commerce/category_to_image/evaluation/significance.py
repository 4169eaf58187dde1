"""Whether models differ: paired tests over categories, corrected for how many are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.evaluation.comparison import Difference
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import (
    corrected,
    correction_named,
    correction_text,
    shares_of,
    sign_flip_tests,
    t_test,
)


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
    way, how = correction_named(correction), bootstrap or Bootstrap()
    mean = {
        (model, name): np.mean(list(of[name]), axis=0) for model, of in values.items() for name in measures
    }
    sizes = {model: len(mean[model, measures[0]]) for model in values}
    if len(set(sizes.values())) > 1:
        raise MismatchError(
            f"numbers of categories differ: {', '.join(f'{name} {n}' for name, n in sizes.items())}",
            "measure all models on the same judged products",
        )
    q = sizes[baseline]
    pairs = [(model, name) for model in values if model != baseline for name in measures]
    gaps = {pair: mean[pair] - mean[baseline, pair[1]] for pair in pairs}
    each = np.stack([gaps[pair] for pair in pairs], axis=1) / q
    p = sign_flip_tests(each, flips, how.seed)
    samples = [
        weights @ each * (q / weights.sum(axis=1, keepdims=True)) for weights in drawn_clusters(how, 0, q, q)
    ]
    drawn = np.concatenate(samples) if samples else np.empty((0, len(pairs)))
    found = []
    for place, (model, name) in enumerate(pairs):
        gap = float(gaps[model, name].mean())
        ends = interval(drawn[:, place], how.confidence) if how.samples else None
        found.append(
            Difference(
                run=model,
                direction="t2i",
                measure=name,
                difference=gap,
                low=None if ends is None else ends[0],
                high=None if ends is None else ends[1],
                p_randomisation=float(p[place]),
                p_t=t_test([shares_of(gaps[model, name], np.arange(q), q)]),
                p=None,
                better=None if gap == 0 else gap > 0,
            )
        )
    judged = corrected([one.p_randomisation for one in found], way)
    return [replace(one, p=value) for one, value in zip(found, judged, strict=True)]


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
