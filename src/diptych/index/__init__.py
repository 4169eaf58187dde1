"""Search over embeddings: one contract, an engine per file."""

from __future__ import annotations

from diptych.index.contract import Index, build_index, index_collection, open_index
from diptych.index.engine import ENGINES, Engine, Hits, Option, Recall, measure_recall

__all__ = [
    "ENGINES",
    "Engine",
    "Hits",
    "Index",
    "Option",
    "Recall",
    "build_index",
    "index_collection",
    "measure_recall",
    "open_index",
]
