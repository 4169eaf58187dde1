"""Queries: sentences and images, encoded by what a run, an encoder or ``diptych sparse train`` made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.sparse import SparseEncoder
    from diptych.sparse.folder import SparseFolder


def looks_like_a_picture(query: str) -> bool:
    """Return whether a query is the path of an image, by its ending."""
    from diptych.index.searcher import query_type

    return query_type(query) == "image"


def sparse_folder(source: str) -> SparseFolder | None:
    """Return what ``diptych sparse train`` has finished in a folder; None for another source."""
    if not (Path(source) / "sparse.json").is_file():
        return None
    from diptych.sparse.folder import SparseFolder

    return SparseFolder.open(source)


def query_encoder(model: str, texts_only: bool = False) -> DualEncoder | SparseEncoder:
    """Return the encoder of queries: of a run or encoder, or of what ``diptych sparse train`` made."""
    from diptych.encoders.dual_encoder import DualEncoder

    made = sparse_folder(model)
    return DualEncoder.load(model, texts_only=texts_only) if made is None else made.encoder(texts_only)
