"""From dense rows to bags of weighted terms, and what that keeps and loses; names are imported when they are used."""

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.evaluation.agreement import faithfulness as faithfulness
    from diptych.sparse.expansion import expand as expand
    from diptych.sparse.explain import explain_match as explain_match
    from diptych.sparse.explain import top_terms as top_terms
    from diptych.sparse.measures import exact_at as exact_at
    from diptych.sparse.measures import flops as flops
    from diptych.sparse.measures import nonzeros as nonzeros
    from diptych.sparse.measures import semantic_at as semantic_at
    from diptych.sparse.options import SparsifyOptions as SparsifyOptions
    from diptych.sparse.sparsified import SparseEncoder as SparseEncoder
    from diptych.sparse.sparsified import SparseFolder as SparseFolder
    from diptych.sparse.sparsifier import Sparsifier as Sparsifier
    from diptych.sparse.training import train_sparsifier as train_sparsifier
    from diptych.sparse.vocabulary import TermVocabulary as TermVocabulary
