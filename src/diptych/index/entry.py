"""The two ways to an index: build one with a named engine, or open a folder whatever engine made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.core.errors import UsageError
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index.contract import Index
from diptych.index.engine import ENGINES
from diptych.index.hooks import AnyEmbeddings, Vectors


def build_index(
    embeddings: AnyEmbeddings, engine: str | None = None, *, sample: Vectors | None = None, **options: Any
) -> Index:
    """An index of ``embeddings`` by the engine of that name; see :meth:`Index.build`."""
    if engine is None:
        engine = "inverted" if isinstance(embeddings, SparseEmbeddings) else "exact"
    if not isinstance(embeddings, SparseEmbeddings) and embeddings.similarity != "cosine":
        raise UsageError(
            f"rows compared by {embeddings.similarity!r} cannot be indexed: engines search by the cosine",
            'measure them with diptych evaluate; to search, train with model.similarity = "cosine"',
        )
    return ENGINES.get(engine).index.build(embeddings, sample=sample, **options)


def open_index(folder: Path | str, *, verify: bool = False) -> Index:
    """The index saved in ``folder``, by the engine its header names; see :meth:`Index.open`."""
    return Index.open(folder, verify=verify)
