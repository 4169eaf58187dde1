"""Search over embeddings: one contract, an engine per file."""

from diptych.index.contract import Index, build_index
from diptych.index.engine import ENGINES, Engine, Hits, Option, Recall, measure_recall
from diptych.index.journal import StoredIndex, open_index

__all__ = [
    "ENGINES",
    "Engine",
    "Hits",
    "Index",
    "Option",
    "Recall",
    "StoredIndex",
    "build_index",
    "measure_recall",
    "open_index",
]
