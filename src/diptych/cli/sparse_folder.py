"""Queries: sentences and images, encoded by what a run, an encoder or ``diptych sparse train`` made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.index import Index
    from diptych.index.searcher import Searcher
    from diptych.sparse import SparseEncoder, SparseFolder


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


def searcher_of(index: Index, folder: Path, model: str | None, queries: Sequence[str]) -> Searcher:
    """Return an index with the encoder that queries need; without any, they may be sentences and images."""
    from diptych.encoders.embeddings import check_still_there
    from diptych.index.searcher import OwnTerms, Searcher, encoder_note, origin_of, query_type

    types, origin = set(map(query_type, queries)), origin_of(index)
    if model == "none":
        from diptych.sparse.vocabulary import TermVocabulary

        if origin is None or index.engine().vectors != "sparse":
            message = "--model none with an index that has no terms of its own"
            raise UsageError(message, "name the query encoder, or search with the vectors of a .npy file")
        return Searcher(index, OwnTerms(TermVocabulary.load(Path(origin.model) / "head"), index))
    if types == {"vectors"}:
        return Searcher(index)
    if model is None:
        if origin is None:
            message = f"{folder} does not say what it was built with"
            raise UsageError(message, "name the query encoder with --model")
        check_still_there(origin.model, folder)
        model = origin.model
    made, texts_only = sparse_folder(model), bool(types) and "image" not in types
    note = encoder_note(model if made is None else made.origin.model)
    return Searcher(index, query_encoder(model, texts_only), note)
