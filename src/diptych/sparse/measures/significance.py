"""Whether two heads differ by more than chance in a value per caption (Exact@k, Semantic@k, overlap …).

The thesis tests values per caption as if captions were drawn one by one (Tables 3.1 and 3.3: paired,
two-tailed t-test; Bonferroni). Captions of one picture are not: by default what is independent is a picture
with its captions, as in :func:`diptych.evaluation.compare`, which tests recalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import MismatchError, NumericalError, UsageError
from diptych.metrics.paired import shares_of, t_test


@dataclass(frozen=True)
class PairedTest:
    """One difference of means.

    Attributes:
        first, second: the means.
        p: two-sided, of the paired t-test; None where it says nothing (one cluster, or one and the same
            difference everywhere).
        corrected: ``p`` times the number of tests that say something, at most 1.
    """

    first: float
    second: float
    p: float | None
    corrected: float | None

    @property
    def difference(self) -> float:
        """The first mean less the second."""
        return self.first - self.second


def paired_tests(
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]], cluster: np.ndarray | None
) -> dict[str, PairedTest]:
    """Paired two-tailed t-tests with Bonferroni's correction over all of them.

    Args:
        pairs: by name, values of the same queries by two systems, (n,) each.
        cluster: (n,) whole numbers from 0, the picture of each caption; None: every caption by itself, as
            published.
    """
    if not pairs:
        raise UsageError("no values to test", "give at least one pair")
    found: dict[str, tuple[float, float, float | None]] = {}
    for name, (first, second) in pairs.items():
        n = len(first) if cluster is None else len(cluster)
        if len(first) != n or len(second) != n or not n:
            raise MismatchError(
                f"{name}: {len(first)} and {len(second)} values of {n} queries", "compare the same captions"
            )
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise NumericalError(f"{name}: a value is not finite", "leave out queries that have no value")
        of = np.arange(n) if cluster is None else cluster
        shares = shares_of(np.asarray(first) - np.asarray(second), of, int(of.max()) + 1)
        found[name] = (float(np.mean(first)), float(np.mean(second)), t_test([shares]))
    tested = sum(p is not None for _, _, p in found.values())
    return {
        name: PairedTest(first, second, p, None if p is None else min(1.0, p * tested))
        for name, (first, second, p) in found.items()
    }
