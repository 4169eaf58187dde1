"""Search over embeddings: one contract, an engine per file."""

from __future__ import annotations

from diptych.index.contract import Index, build_index, index_collection
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
    "index_collection",
    "measure_recall",
    "open_index",
]
