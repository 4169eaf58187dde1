"""Qdrant: collections of a server or a cluster, dense or sparse, restricted by metadata.

``qdrant`` holds dense vectors in the server's HNSW graph, ``qdrant-sparse`` bags of terms in its
inverted index. Without a ``url`` both run in this process, through the same client, for tests.
"""

from __future__ import annotations

from diptych.index.engine import ENGINES, Engine, Option
from diptych.index.qdrant_connection import CONNECTION_OPTIONS
from diptych.index.qdrant_forms import DenseForm, SparseForm
from diptych.index.qdrant_index import QdrantIndex


class DenseQdrantIndex(QdrantIndex):
    """Dense vectors; the server's graph may miss items, and its recall is measured against its exact search."""

    engine_name = "qdrant"
    form = DenseForm()


class SparseQdrantIndex(QdrantIndex):
    """Bags of terms; the server's inverted index misses none."""

    engine_name = "qdrant-sparse"
    form = SparseForm()


QDRANT = ENGINES.add(
    Engine(
        name="qdrant",
        description="dense vectors and metadata on a Qdrant server or cluster; for more than one machine holds",
        index=DenseQdrantIndex,
        approximate=True,
        options=(
            *CONNECTION_OPTIONS,
            Option("m", 16, "links per item in the server's graph; more: better, larger", 2),
            Option("ef_construction", 100, "candidates kept while linking; more: better, slower build", 1),
            Option(
                "ef_search",
                128,
                "candidates kept while searching; more: higher recall, slower",
                1,
                per_search=True,
            ),
        ),
        filters=True,
    )
)

QDRANT_SPARSE = ENGINES.add(
    Engine(
        name="qdrant-sparse",
        description="bags of terms and metadata on a Qdrant server or cluster",
        index=SparseQdrantIndex,
        approximate=False,
        options=CONNECTION_OPTIONS,
        vectors="sparse",
        filters=True,
    )
)
