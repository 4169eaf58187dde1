"""From dense rows to bags of weighted terms, and what that keeps and loses.

Names are imported when they are used: a vocabulary needs no library of networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.sparse.evaluate import SparseMeasures as SparseMeasures
    from diptych.sparse.evaluate import measure_sparsified as measure_sparsified
    from diptych.sparse.expansion import expand as expand
    from diptych.sparse.explain import Contribution as Contribution
    from diptych.sparse.explain import explain_match as explain_match
    from diptych.sparse.explain import in_words as in_words
    from diptych.sparse.explain import readable as readable
    from diptych.sparse.explain import top_terms as top_terms
    from diptych.sparse.measures import StaticEmbedding as StaticEmbedding
    from diptych.sparse.measures import exact_at as exact_at
    from diptych.sparse.measures import faithfulness as faithfulness
    from diptych.sparse.measures import flops as flops
    from diptych.sparse.measures import nonzeros as nonzeros
    from diptych.sparse.measures import semantic_at as semantic_at
    from diptych.sparse.options import SparsifyOptions as SparsifyOptions
    from diptych.sparse.options import sparsify_options as sparsify_options
    from diptych.sparse.sparsified import NamedSparse as NamedSparse
    from diptych.sparse.sparsified import SparseEncoder as SparseEncoder
    from diptych.sparse.sparsified import SparseFolder as SparseFolder
    from diptych.sparse.sparsified import SparsifiedCollection as SparsifiedCollection
    from diptych.sparse.sparsified import sparsify_collection as sparsify_collection
    from diptych.sparse.sparsifier import Sparsifier as Sparsifier
    from diptych.sparse.task import PairedRows as PairedRows
    from diptych.sparse.training import train_sparsifier as train_sparsifier
    from diptych.sparse.vocabulary import TermVocabulary as TermVocabulary
