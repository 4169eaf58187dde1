"""Diptych: image–text retrieval. Train dual encoders, measure what they learned, index and search.

Names are imported when they are used, so that ``import diptych`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from diptych.core.version import __version__

_HOMES = {
    "Collection": "diptych.data.collection",
    "DiptychError": "diptych.core.errors",
    "DualEncoder": "diptych.encoders.dual_encoder",
    "Embeddings": "diptych.encoders.embeddings",
    "GroundTruth": "diptych.metrics",
    "Index": "diptych.index",
    "OBJECTIVES": "diptych.objectives",
    "PERTURBATIONS": "diptych.analysis.perturbations",
    "Recipe": "diptych.training.recipe",
    "Run": "diptych.training.run",
    "STUDIES": "diptych.studies",
    "ShortcutOptions": "diptych.analysis.shortcuts",
    "Shortcuts": "diptych.analysis.shortcuts",
    "audit_encoder": "diptych.evaluation.auditing",
    "audit_run": "diptych.training.evaluations",
    "compare": "diptych.evaluation",
    "evaluate": "diptych.evaluation",
    "evaluate_encoder": "diptych.evaluation.evaluate_encoder",
    "explore_rows": "diptych.evaluation",
    "explore_scores": "diptych.evaluation",
    "fit": "diptych.training.fit",
    "gradient_weights": "diptych.analysis",
    "infonce": "diptych.objectives",
    "load_recipe": "diptych.training.recipe",
    "open_index": "diptych.index",
    "perturb_caption": "diptych.analysis.perturbations",
    "perturb_captions": "diptych.analysis.perturbations",
    "read_collection": "diptych.data",
    "run_study": "diptych.studies",
    "siglip": "diptych.objectives",
    "smoothap": "diptych.objectives",
    "stress": "diptych.evaluation.stress",
    "triplet": "diptych.objectives",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from diptych.analysis import gradient_weights
    from diptych.analysis.perturbations import PERTURBATIONS, perturb_caption, perturb_captions
    from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
    from diptych.core.errors import DiptychError
    from diptych.data import read_collection
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import Embeddings
    from diptych.evaluation import compare, evaluate, explore_rows, explore_scores
    from diptych.evaluation.auditing import audit_encoder
    from diptych.evaluation.evaluate_encoder import evaluate_encoder
    from diptych.evaluation.stress import stress
    from diptych.index import Index, open_index
    from diptych.metrics import GroundTruth
    from diptych.objectives import OBJECTIVES, infonce, siglip, smoothap, triplet
    from diptych.studies import STUDIES, run_study
    from diptych.training.evaluations import audit_run
    from diptych.training.fit import fit
    from diptych.training.recipe import Recipe, load_recipe
    from diptych.training.run import Run


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'diptych' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
