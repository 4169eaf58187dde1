"""Measures by name: ``dp.measures.R @ 5``, ``dp.measures.mAP``, ``dp.measures.mAP @ 10``, ``dp.measures.rsum``.

Hyphens of names are underscores here (``R_precision``). Wherever a measure is taken, its name serves too: ``"R@5"``.
"""

from __future__ import annotations

from diptych.metrics.measuring import FAMILY, MEASURES, AnyMeasure


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
