"""Perturbations of captions and images by name, e.g. ``dp.perturbations.character_swap``.

See :mod:`diptych.analysis.perturbations`.
"""

from __future__ import annotations

from diptych.analysis.perturbations.declaration import PERTURBATIONS, Perturbation


def __getattr__(name: str) -> Perturbation:
    names = {one.replace("-", "_"): one for one in PERTURBATIONS.names()}
    if name not in names:
        raise AttributeError(f"no perturbation {name!r}; there are {', '.join(names)}")
    return PERTURBATIONS.get(names[name])


def __dir__() -> list[str]:
    return sorted(one.replace("-", "_") for one in PERTURBATIONS.names())
