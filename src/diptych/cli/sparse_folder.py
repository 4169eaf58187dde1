"""Queries: sentences and images, encoded by what a run, an encoder or ``diptych sparse train`` made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.data.images import is_image_path

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.sparse import SparseEncoder, SparseFolder


looks_like_a_picture = is_image_path


def sparse_folder(source: str) -> SparseFolder | None:
    """Return what ``diptych sparse train`` has finished in a folder; None for another source."""
    if not (Path(source) / "sparse.json").is_file():
        return None
    from diptych.sparse import SparseFolder

    return SparseFolder.open(source)


def query_encoder(model: str, texts_only: bool = False) -> DualEncoder | SparseEncoder:
    """Return the encoder of queries: of a run or encoder, or of what ``diptych sparse train`` made."""
    if sparse_folder(model) is not None:
        from diptych.sparse import SparseEncoder

        return SparseEncoder.load(model, texts_only=texts_only)
    from diptych.encoders.dual_encoder import DualEncoder

    return DualEncoder.load(model, texts_only=texts_only)
