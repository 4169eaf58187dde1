"""Measures by name: ``dp.measures.R @ 5``, ``dp.measures.mAP``, ``dp.measures.mAP @ 10``, ``dp.measures.rsum``.

Hyphens of names are underscores here (``R_precision``). Wherever a measure is taken, its name serves too: ``"R@5"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.metrics.measuring import FAMILY, MEASURES, AnyMeasure

if TYPE_CHECKING:
    from diptych.metrics.measuring import GainMeasure, Measure, Sum

    DCG_CM: GainMeasure
    DCG_CM_published: GainMeasure
    nDCG: GainMeasure
    nDCG_CM: GainMeasure
    nDCG_exponential: GainMeasure
    MRR: Measure
    P: Measure
    R: Measure
    R_cap: Measure
    R_precision: Measure
    mAP: Measure
    mAP_at_R: Measure
    mAP_cutoff: Measure
    mAP_hits: Measure
    mAP_positives: Measure
    meanr: Measure
    medr: Measure
    medr_floor: Measure
    rsum: Sum


def _names() -> dict[str, str]:
    """Return the measures' names by the identifiers that they have here; a plain measure stands for its family."""
    names = sorted(MEASURES.names(), key=lambda name: not name.endswith(FAMILY))
    return {name.removesuffix(FAMILY).replace("-", "_").replace("@", "_at_"): name for name in names}


def __getattr__(name: str) -> AnyMeasure:
    known = _names()
    if name not in known:
        raise AttributeError(f"no measure {name!r}; there are {', '.join(known)}")
    return MEASURES.get(known[name])


def __dir__() -> list[str]:
    return sorted(_names())
