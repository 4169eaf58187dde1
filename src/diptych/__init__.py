"""Diptych: image–text retrieval. Train dual encoders, measure what they learned, index and search.

Names are imported when they are used, so that ``import diptych`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.analysis import gradient_weights as gradient_weights
    from diptych.analysis.perturbations import PERTURBATIONS as PERTURBATIONS
    from diptych.analysis.perturbations import perturb_caption as perturb_caption
    from diptych.analysis.perturbations import perturb_captions as perturb_captions
    from diptych.analysis.shortcuts import ShortcutOptions as ShortcutOptions
    from diptych.analysis.shortcuts import Shortcuts as Shortcuts
    from diptych.core.errors import DiptychError as DiptychError
    from diptych.core.version import __version__ as __version__
    from diptych.data import read_collection as read_collection
    from diptych.data.collection import Collection as Collection
    from diptych.encoders.dual_encoder import DualEncoder as DualEncoder
    from diptych.encoders.embeddings import Embeddings as Embeddings
    from diptych.evaluation import compare as compare
    from diptych.evaluation import evaluate as evaluate
    from diptych.evaluation import explore_rows as explore_rows
    from diptych.evaluation import explore_scores as explore_scores
    from diptych.evaluation.auditing import audit_encoder as audit_encoder
    from diptych.evaluation.evaluate_encoder import evaluate_encoder as evaluate_encoder
    from diptych.evaluation.stress import stress as stress
    from diptych.index import Index as Index
    from diptych.index import open_index as open_index
    from diptych.metrics import GroundTruth as GroundTruth
    from diptych.objectives import OBJECTIVES as OBJECTIVES
    from diptych.objectives import infonce as infonce
    from diptych.objectives import siglip as siglip
    from diptych.objectives import smoothap as smoothap
    from diptych.objectives import triplet as triplet
    from diptych.studies import STUDIES as STUDIES
    from diptych.studies import run_study as run_study
    from diptych.training.evaluations import audit_run as audit_run
    from diptych.training.fit import fit as fit
    from diptych.training.recipe import Recipe as Recipe
    from diptych.training.recipe import load_recipe as load_recipe
    from diptych.training.run import Run as Run
