"""Floor 4, sparse: from dense rows to bags of weighted terms, and what that keeps and loses.

Names are imported when they are used: a vocabulary alone needs no library of networks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    name: f"diptych.sparse.{module}"
    for module, names in {
        "evaluate": "SparseMeasures measure_sparsified",
        "expansion": "expand",
        "explain": "Contribution explain_match in_words readable top_terms",
        "measures": "exact_at faithfulness flops nonzeros semantic_at",
        "options": "SparsifyOptions sparsify_options",
        "pairs": "PairedRows",
        "sparsified": "NamedSparse SparseEncoder SparseFolder SparsifiedCollection sparsify_collection",
        "sparsifier": "Sparsifier",
        "static": "StaticEmbedding",
        "training": "train_sparsifier",
        "vocabulary": "TermVocabulary",
    }.items()
    for name in names.split()
}

__all__ = [
    "Contribution",
    "NamedSparse",
    "PairedRows",
    "SparseEncoder",
    "SparseFolder",
    "SparseMeasures",
    "SparsifiedCollection",
    "Sparsifier",
    "SparsifyOptions",
    "StaticEmbedding",
    "TermVocabulary",
    "exact_at",
    "expand",
    "explain_match",
    "faithfulness",
    "flops",
    "in_words",
    "measure_sparsified",
    "nonzeros",
    "readable",
    "semantic_at",
    "sparsify_collection",
    "sparsify_options",
    "top_terms",
    "train_sparsifier",
]

if TYPE_CHECKING:
    from diptych.sparse.evaluate import SparseMeasures, measure_sparsified
    from diptych.sparse.expansion import expand
    from diptych.sparse.explain import Contribution, explain_match, in_words, readable, top_terms
    from diptych.sparse.measures import exact_at, faithfulness, flops, nonzeros, semantic_at
    from diptych.sparse.options import SparsifyOptions, sparsify_options
    from diptych.sparse.pairs import PairedRows
    from diptych.sparse.sparsified import (
        NamedSparse,
        SparseEncoder,
        SparseFolder,
        SparsifiedCollection,
        sparsify_collection,
    )
    from diptych.sparse.sparsifier import Sparsifier
    from diptych.sparse.static import StaticEmbedding
    from diptych.sparse.training import train_sparsifier
    from diptych.sparse.vocabulary import TermVocabulary


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
