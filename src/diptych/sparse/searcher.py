"""Open an index with the encoder of its queries: a dual encoder, a sparse one, or the index's own terms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diptych.core.errors import UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import check_still_there
from diptych.index import Index
from diptych.index.searcher import OwnTerms, Searcher, encoder_note, origin_of, query_type


def searcher_of(index: Index, folder: Path, model: str | None, queries: Sequence[str]) -> Searcher:
    """Return an index with the encoder that queries need; without any, they may be sentences and images.

    ``model``: a run, encoder or sparse head; ``none`` for :class:`OwnTerms`; None for what the index was made with.
    """
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
    texts_only = bool(types) and "image" not in types
    if not (Path(model) / "sparse.json").is_file():
        return Searcher(index, DualEncoder.load(model, texts_only=texts_only), encoder_note(model))
    from diptych.sparse.sparsified import SparseEncoder, SparseFolder

    note = encoder_note(SparseFolder.open(model).origin.model)
    return Searcher(index, SparseEncoder.load(model, texts_only=texts_only), note)
