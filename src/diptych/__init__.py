"""Diptych: image–text retrieval. Train dual encoders, measure what they learned, index and search.

    import diptych as dp

    encoder = dp.load("runs/x")
    print(dp.evaluate(encoder, "flickr8k"))

Names are imported when they are used, so that ``import diptych`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

_MOVED = {
    "Embeddings": "diptych.encoders.embeddings",
    "Index": "diptych.index",
    "audit_encoder": "diptych.evaluation.shortcuts",
    "audit_run": "diptych.training.evaluations",
    "evaluate_encoder": "diptych.evaluation.evaluate_encoder",
    "fit": "diptych.training.fit",
    "infonce": "diptych.losses",
    "read_collection": "diptych.data",
    "siglip": "diptych.losses",
    "smoothap": "diptych.losses",
    "triplet": "diptych.losses",
}
__getattr__, __dir__ = lazy_names(__name__, _MOVED)

if TYPE_CHECKING:
    from diptych import losses as losses
    from diptych import measures as measures
    from diptych import perturbations as perturbations
    from diptych.analysis.cocos import gradient_weights as gradient_weights
    from diptych.analysis.perturbations import PERTURBATIONS as PERTURBATIONS
    from diptych.analysis.perturbations import perturb_caption as perturb_caption
    from diptych.analysis.perturbations import perturb_captions as perturb_captions
    from diptych.analysis.shortcuts.codes import ShortcutOptions as ShortcutOptions
    from diptych.analysis.shortcuts.shortcuts import Shortcuts as Shortcuts
    from diptych.api import as_mteb as as_mteb
    from diptych.api import audit as audit
    from diptych.api import build_index as build_index
    from diptych.api import compare as compare
    from diptych.api import encode as encode
    from diptych.api import evaluate as evaluate
    from diptych.api import export as export
    from diptych.api import gradient_counts as gradient_counts
    from diptych.api import load as load
    from diptych.api import open_index as open_index
    from diptych.api import read as read
    from diptych.api import run_study as run_study
    from diptych.api import sparsify as sparsify
    from diptych.api import stress as stress
    from diptych.api import top_k as top_k
    from diptych.api import train as train
    from diptych.core.errors import DiptychError as DiptychError
    from diptych.core.table import Table as Table
    from diptych.core.version import __version__ as __version__
    from diptych.data.collection import Collection as Collection
    from diptych.data.readers import READERS as READERS
    from diptych.encoders.dual_encoder import DualEncoder as DualEncoder
    from diptych.encoders.embeddings import EncodedCollection as EncodedCollection
    from diptych.encoders.family import FAMILIES as FAMILIES
    from diptych.evaluation import explore_rows as explore_rows
    from diptych.evaluation import explore_scores as explore_scores
    from diptych.evaluation.result import Result as Result
    from diptych.index.engine import ENGINES as ENGINES
    from diptych.metrics import GroundTruth as GroundTruth
    from diptych.metrics.measuring import MEASURES as MEASURES
    from diptych.objectives import OBJECTIVES as OBJECTIVES
    from diptych.objectives import Objective as Objective
    from diptych.report.searcher import Searcher as Searcher
    from diptych.sparse.sparsified import SparseEncoder as SparseEncoder
    from diptych.studies import STUDIES as STUDIES
    from diptych.training.recipe import Recipe as Recipe
    from diptych.training.recipe import load_recipe as load_recipe
    from diptych.training.run import Run as Run
