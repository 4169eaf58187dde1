"""Compare: two or more evaluations of one test set, with intervals and corrected p-values.

What is resampled and swapped are images, each with its captions and in both directions at once; the
galleries and the training seeds stay as they are. So a p-value says whether the difference would be
there with other images of the same kind, not whether it would with another seed: give several seeds
of each recipe, whose values per query are then averaged, and look at their spread as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.comparable import check_comparable, check_same_gains, common_measures
from diptych.evaluation.comparison import TESTS, Comparison
from diptych.evaluation.corrections import LEVEL, corrected, correction_named
from diptych.evaluation.differences import PairedRuns
from diptych.evaluation.result import Result

__all__ = ["compare"]


def compare(
    runs: Mapping[str, Result | Sequence[Result]],
    measures: Sequence[str] | None = None,
    *,
    baseline: int | str = 0,
    test: str = "randomisation",
    correction: str = "bonferroni",
    samples: int = 1000,
    flips: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare runs with a baseline, measure by measure, from their values per query.

    Args:
        runs: by name, an evaluation, or several of one recipe with different seeds.
        measures: names; those that all have in common by default.
        baseline: the number or name of the run the others are compared with.
        test: ``"randomisation"`` (sign flips) or ``"t"``: which p-value is corrected and judged by;
            both are given.
        correction: ``"bonferroni"``, ``"holm"`` or ``"none"``.
        samples: bootstrap resamples for the intervals; 0 for none.
        flips: random swaps; a p-value is at least 1 / (flips + 1).
        confidence: coverage of the intervals.
        seed: of resamples and swaps.

    Raises:
        UsageError: fewer than two runs, a baseline, test or correction that does not exist.
        MismatchError: the runs were not measured on the same test set in the same way.
        NumericalError: a value is NaN; run, measure and query are named.
        StorageError: a run without values per query.
    """
    groups = {name: [given] if isinstance(given, Result) else list(given) for name, given in runs.items()}
    names = list(groups)
    if len(names) < 2 or not all(groups.values()):
        raise UsageError(f"{len(names)} runs: at least two are needed", "give two evaluations or more")
    base = _baseline(baseline, names)
    if test not in TESTS:
        raise UnknownNameError("test", test, TESTS)
    correct = correction_named(correction)
    if flips < 1:
        raise UsageError(f"flips are {flips}, at least 1 is needed")
    called = [
        name if len(group) == 1 else f"{name} (seed {number})"
        for name, group in groups.items()
        for number in range(len(group))
    ]
    results = [one for group in groups.values() for one in group]
    check_comparable(results, called)
    how = Bootstrap(samples, confidence, seed)
    compared = common_measures(results, called, measures)
    said = check_same_gains(results, called, compared)
    work = PairedRuns(groups, base, results, called, compared, how)
    found = work.differences(flips)
    p_chosen = [one.p_randomisation if test == "randomisation" else one.p_t for one in found]
    tested = sum(p is not None for p in p_chosen)
    judged = [replace(one, p=p) for one, p in zip(found, corrected(p_chosen, correct), strict=True)]
    notes = said
    most = 1 if correct == "none" else tested  # what the smallest p is multiplied by
    if test == "randomisation" and most / (flips + 1) > LEVEL:
        notes.append(f"{flips:,} swaps cannot reach 0.05 after the correction: raise flips, or take test t")
    if any(one.p_randomisation is None for one in found):
        notes.append("medians have an interval and no p")
    similarities = sorted({one.protocol.similarity for one in results})
    if len(similarities) > 1:
        notes.append(f"runs are scored by different similarities: {', '.join(similarities)}")
    if any(len(group) > 1 for group in groups.values()):
        notes.append("values per query averaged over seeds; p and intervals say nothing of other seeds")
    return Comparison(
        runs=tuple(names),
        baseline=base,
        values=work.values(),
        differences=tuple(judged),
        test="t" if test == "t" else "randomisation",
        correction=correct,
        tested=tested,
        how=how,
        flips=flips,
        protocol=_common_line(results, {one.name for one in work.plain}),
        notes=tuple(notes),
    )


def _baseline(given: int | str, names: list[str]) -> str:
    if isinstance(given, str):
        if given not in names:
            raise UnknownNameError("baseline", given, names)
        return given
    if not -len(names) <= given < len(names):
        raise UsageError(f"baseline {given} of {len(names)} runs", f"a number from 0 to {len(names) - 1}")
    return names[given]


def _common_line(results: list[Result], measures: set[str]) -> str:
    """The protocol without what differs from run to run, and of the compared measures alone."""
    protocols = [one.protocol for one in results]
    first = protocols[0]
    return replace(
        first,
        about={
            key: value
            for key, value in first.about.items()
            if all(key in other.about and other.about[key] == value for other in protocols)
        },
        any_of_k=tuple(name for name in first.any_of_k if name in measures),
        all_positives=tuple(name for name in first.all_positives if name in measures),
        compat=tuple(what for what in first.compat if what in measures or what == "ties"),
        gains={name: said for name, said in first.gains.items() if name in measures},
        samples=0,
    ).line()
