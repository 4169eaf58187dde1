"""What table 3.6 searches: as many pictures as the thesis has, as dense and as sparse rows, and the captions.

Where a collection has too few, its own pictures come again with noise: the dense row of a copy is that of its
picture and a random vector ``noise`` times as long, brought back to its length. Sparse rows are what the head
makes of these, so that they have the statistics of its rows and not those of a generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.context import track
from diptych.core.files import read_json, write_json
from diptych.core.fingerprint import fingerprint
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.studies.dense import DenseRows
from diptych.studies.sparsified import Head

if TYPE_CHECKING:
    from diptych.studies.searching import SearchOptions

_BLOCK = 8192
_SEED = 36


@dataclass(frozen=True)
class Items:
    """What is searched, and by what.

    Attributes:
        items: embeddings of pictures, dense or sparse.
        queries: (q, width) rows of captions.
        own: the same with the captions' own terms alone; the queries themselves where rows are dense.
        told: how the items were made, in words.
    """

    items: Embeddings | SparseEmbeddings
    queries: Any
    own: Any
    told: str


def dense_items(dense: DenseRows, chosen: SearchOptions) -> Items:
    """Dense rows of ``chosen.items`` pictures, kept beside the dense rows, and of evenly spaced captions."""
    splits = (dense.data.test, dense.data.validation, dense.data.train)
    parts = [dense.encoded(split).images for split in splits]
    rows = np.concatenate([np.asarray(part.rows) for part in parts])
    ids = [name for part in parts for name in part.ids]
    wanted, there = chosen.items, len(rows)
    told = f"{wanted:,} of {there:,} pictures of all splits"
    if wanted > there:
        told = (
            f"{wanted:,} items: {there:,} pictures of all splits, then copies with noise of {chosen.noise:g}"
        )
    data = fingerprint([part.data for part in parts], wanted, chosen.noise, _SEED)
    folder = dense.folder / "items" / _name(chosen)
    if not _is_there(folder, data):
        Embeddings.stream(
            folder,
            [f"{ids[place % there]}#{place // there}" for place in range(wanted)],
            rows.shape[1],
            with_copies(rows, wanted, chosen.noise),
            encoder=parts[0].encoder,
            data=data,
            kind="image",
            about={"items": told},
            similarity=parts[0].similarity,
        )
    texts = dense.encoded(dense.data.test).texts
    queries = np.ascontiguousarray(np.asarray(texts.rows)[_asking(len(texts), chosen)], dtype=np.float32)
    return Items(Embeddings.open(folder), queries, queries, told)


def sparse_items(head: Head, chosen: SearchOptions) -> Items:
    """What a head makes of the dense items and of the same captions; kept in the head's folder."""
    dense = dense_items(head.dense, chosen)
    folder = head.folder / "items" / _name(chosen)
    key = fingerprint(head.sparsifier.fingerprint, dense.items.data)
    if not (folder / "key.json").is_file() or read_json(folder / "key.json") != key:
        assert isinstance(dense.items, Embeddings)
        head.sparsifier.embed(dense.items).save(folder / "rows")
        # Written last: a folder with it is complete.
        write_json(folder / "key.json", key)
    sparsified = head.sparsified(head.dense.data.test)
    places = _asking(len(sparsified.texts), chosen)
    return Items(
        SparseEmbeddings.open(folder / "rows"),
        sparsified.texts.rows[places],
        sparsified.unexpanded.rows[places],
        dense.told,
    )


def _name(chosen: SearchOptions) -> str:
    return f"{chosen.items}-{chosen.noise:g}"


def _is_there(folder: Path, data: str) -> bool:
    return Embeddings.is_at(folder) and Embeddings.open(folder).data == data


def _asking(captions: int, chosen: SearchOptions) -> np.ndarray:
    """Which test captions ask: evenly spaced."""
    count = min(chosen.queries, captions)
    places: np.ndarray = np.linspace(0, captions - 1, count).round().astype(np.int64)
    return places


def with_copies(rows: np.ndarray, wanted: int, noise: float) -> Iterator[np.ndarray]:
    """Rows, then copies with noise, in blocks; a block's noise is a function of its place.

    Args:
        rows: (n, d), of any length.
    """
    there, width = rows.shape
    for start in track(range(0, wanted, _BLOCK), "making items", unit="blocks"):
        places = np.arange(start, min(start + _BLOCK, wanted))
        block = rows[places % there].astype(np.float32)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        random = np.random.default_rng((_SEED, start)).standard_normal(block.shape, dtype=np.float32)
        copies = block + np.float32(noise / np.sqrt(width)) * lengths * random
        copies *= lengths / np.maximum(np.linalg.norm(copies, axis=1, keepdims=True), 1e-12)
        yield np.where((places >= there)[:, None], copies, block).astype(np.float32)
