"""Floor 4, sparse: from dense rows to bags of weighted terms, and what that keeps and loses."""

from diptych.sparse.evaluate import SparseMeasures, measure_sparsified
from diptych.sparse.expansion import expand
from diptych.sparse.explain import Contribution, explain_match, in_words, readable, top_terms
from diptych.sparse.measures import exact_at, faithfulness, flops, nonzeros, semantic_at
from diptych.sparse.options import SparsifyOptions, sparsify_options
from diptych.sparse.pairs import PairedRows
from diptych.sparse.sparsified import SparseEncoder, SparseFolder, SparsifiedCollection, sparsify_collection
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.static import StaticEmbedding
from diptych.sparse.training import train_sparsifier
from diptych.sparse.vocabulary import TermVocabulary

__all__ = [
    "Contribution",
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
