"""What a person asks with: a sentence or a picture, and whatever makes rows of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import encoder_of
from diptych.cli.sparse_folder import SparseFolder

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.sparse import SparseEncoder

_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def looks_like_a_picture(query: str) -> bool:
    """Whether a query is the path of a picture, by its ending."""
    return Path(query).suffix.lower() in _PICTURES


def query_encoder(model: str) -> DualEncoder | SparseEncoder:
    """The encoder of queries: of a run or encoder, or of what ``diptych sparsify`` made."""
    if SparseFolder.is_one(model):
        return SparseFolder.open(model).encoder()
    return encoder_of(model)[0]
