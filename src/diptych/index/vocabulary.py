"""Which terms a sparse index is over: kept with it, compared with what is searched for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import read_json, write_json
from diptych.encoders.sparse_embeddings import SparseEmbeddings, term_fingerprint
from diptych.index.engine import ENGINES, Engine
from diptych.index.hooks import AnyEmbeddings
from diptych.index.sparse_vectors import sparse_vectors
from diptych.index.storage import Header

__all__ = ["check_kind", "checked_sparse", "read_terms", "write_terms"]

_NAME = "terms.json"


def check_kind(engine: Engine, embeddings: AnyEmbeddings) -> None:
    """Compare what the engine takes with what it is given.

    Raises:
        UsageError: dense embeddings for a sparse engine, or sparse ones for a dense engine.
    """
    given = "sparse" if isinstance(embeddings, SparseEmbeddings) else "dense"
    if given != engine.vectors:
        suited = ", ".join(other.name for other in ENGINES if other.vectors == given)
        raise UsageError(
            f"the {engine.name} engine indexes {engine.vectors} vectors, these are {given} "
            f"({len(embeddings):,} of width {embeddings.width:,})",
            f"engines for {given} vectors: {suited}",
        )


def checked_sparse(embeddings: SparseEmbeddings) -> SparseEmbeddings:
    """The embeddings with checked, canonical rows, which are not copied when they are that already.

    Raises:
        DataError, NumericalError: a weight is negative, not finite or too large; the message names the id.
    """
    rows = sparse_vectors(embeddings.rows, embeddings.width, embeddings.ids, "item")
    return replace(embeddings, rows=rows)


def write_terms(folder: Path, terms: tuple[str, ...]) -> None:
    """Write the vocabulary beside the engine's files; nothing for a dense engine."""
    if terms:
        write_json(folder / _NAME, list(terms))


def read_terms(folder: Path, header: Header, engine: Engine) -> tuple[str, ...]:
    """The vocabulary of a saved index; nothing for a dense engine.

    Raises:
        StorageError: the file is not the vocabulary that the header names.
    """
    if engine.vectors != "sparse":
        return ()
    terms = read_json(folder / _NAME)
    if len(terms) != header.width or term_fingerprint(terms) != header.about.get("vocabulary"):
        raise StorageError(
            f"{folder / _NAME}: the {header.width:,} terms of vocabulary {header.about.get('vocabulary')} "
            f"expected, got {len(terms):,} of {term_fingerprint(terms)}",
            "build the index again",
        )
    return tuple(terms)
