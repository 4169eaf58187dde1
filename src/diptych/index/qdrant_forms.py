"""Dense and sparse vectors as a Qdrant collection takes them, gives them back and is asked for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.index.engine import OptionValue
from diptych.index.qdrant_connection import Connection, models
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import load_array
from diptych.index.vectors import dense_vectors, row_norms

_ELSE = "name another collection, or pass replace=True to delete this one first"


class Form(ABC):
    """What differs between kinds of vectors.

    Attributes:
        using: the vector's name in the collection; None: the only, nameless one.
    """

    using: str | None = None

    @abstractmethod
    def checked(self, rows: Any, ids: Sequence[str]) -> Any:
        """The rows of embeddings, all finite."""

    @abstractmethod
    def configuration(self, width: int, options: Mapping[str, OptionValue]) -> dict[str, Any]:
        """What a new collection is created with."""

    @abstractmethod
    def check(self, connection: Connection, width: int) -> None:
        """Compare the collection there is with what is needed."""

    @abstractmethod
    def vectors(self, rows: Any) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        """Per row the client's form of it, and the arrays it is made of, for a fingerprint."""

    @abstractmethod
    def rows(self, vectors: Sequence[Any], width: int) -> Any:
        """The rows whose vectors a collection gave back."""

    @abstractmethod
    def parameters(self, options: Mapping[str, OptionValue], *, exact: bool) -> Any:
        """The server's parameters of a search."""

    @abstractmethod
    def write(self, folder: Path, rows: Any) -> None:
        """Write rows as NumPy files."""

    @abstractmethod
    def read(self, folder: Path, items: int, width: int) -> Any:
        """The rows that :meth:`write` wrote; StorageError when they are damaged."""


class DenseForm(Form):
    """One nameless vector per point, compared by the inner product as it is.

    Not by the cosine: under that Qdrant would scale what it stores to unit length.
    """

    def checked(self, rows: Any, ids: Sequence[str]) -> np.ndarray:
        """As :class:`Form` says."""
        dense = dense_vectors(rows, rows.shape[1], "item")
        row_norms(dense, ids, "item")
        return dense

    def configuration(self, width: int, options: Mapping[str, OptionValue]) -> dict[str, Any]:
        """As :class:`Form` says."""
        m = models()
        graph = m.HnswConfigDiff(m=options["m"], ef_construct=options["ef_construction"])
        return {"vectors_config": m.VectorParams(size=width, distance=m.Distance.DOT, hnsw_config=graph)}

    def check(self, connection: Connection, width: int) -> None:
        """As :class:`Form` says."""
        have = connection.ask("get_collection").config.params.vectors
        size = getattr(have, "size", None)
        if size is None:
            raise MismatchError(
                f"{connection.place} holds no nameless dense vectors, {width} wide ones are needed", _ELSE
            )
        if size != width or str(have.distance) != "Dot":
            raise MismatchError(
                f"{connection.place} holds vectors of width {size} compared by {have.distance}, "
                f"these are of width {width}, compared by Dot",
                _ELSE,
            )

    def vectors(self, rows: np.ndarray) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        """As :class:`Form` says."""
        for row in rows:
            yield row.tolist(), {"row": row}

    def rows(self, vectors: Sequence[Any], width: int) -> np.ndarray:
        """As :class:`Form` says."""
        rows: np.ndarray = np.array(vectors, dtype=np.float32).reshape(-1, width)
        return rows

    def parameters(self, options: Mapping[str, OptionValue], *, exact: bool) -> Any:
        """As :class:`Form` says."""
        m = models()
        return m.SearchParams(exact=True) if exact else m.SearchParams(hnsw_ef=options["ef_search"])

    def write(self, folder: Path, rows: np.ndarray) -> None:
        """As :class:`Form` says."""
        np.save(folder / "rows.npy", rows)

    def read(self, folder: Path, items: int, width: int) -> np.ndarray:
        """As :class:`Form` says."""
        return load_array(folder / "rows.npy", (items, width), np.float32, mapped=False)


class SparseForm(Form):
    """One sparse vector named ``terms`` per point; a bag without terms is a point without a vector."""

    using = "terms"

    def checked(self, rows: Any, ids: Sequence[str]) -> csr_array:
        """As :class:`Form` says."""
        return rows  # the contract checked them

    def configuration(self, width: int, options: Mapping[str, OptionValue]) -> dict[str, Any]:
        """As :class:`Form` says."""
        return {"vectors_config": {}, "sparse_vectors_config": {self.using: models().SparseVectorParams()}}

    def check(self, connection: Connection, width: int) -> None:
        """As :class:`Form` says."""
        have = connection.ask("get_collection").config.params.sparse_vectors or {}
        if set(have) != {self.using} or have[self.using].modifier not in (None, "none"):
            raise MismatchError(
                f"{connection.place} holds sparse vectors {sorted(have)}, plain ones named {self.using!r} "
                "are needed",
                _ELSE,
            )

    def vectors(self, rows: csr_array) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        """As :class:`Form` says."""
        sparse_vector = models().SparseVector
        for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            terms, weights = rows.indices[start:end], rows.data[start:end]
            bag = sparse_vector(indices=terms.tolist(), values=weights.tolist())
            yield {self.using: bag} if len(terms) else {}, {"terms": terms, "weights": weights}

    def rows(self, vectors: Sequence[Any], width: int) -> csr_array:
        """As :class:`Form` says."""
        bags = [(vector or {}).get(self.using) for vector in vectors]
        terms = [bag.indices if bag else [] for bag in bags]
        weights = np.array([value for bag in bags if bag for value in bag.values], dtype=np.float32)
        starts = np.cumsum([0, *map(len, terms)])
        columns = np.array([term for bag in terms for term in bag], dtype=np.int64)
        return canonical_rows(csr_array((weights, columns, starts), shape=(len(bags), width)))

    def parameters(self, options: Mapping[str, OptionValue], *, exact: bool) -> Any:
        """As :class:`Form` says."""
        return models().SearchParams(exact=exact)

    def write(self, folder: Path, rows: csr_array) -> None:
        """As :class:`Form` says."""
        SparseRows(rows).write(folder)

    def read(self, folder: Path, items: int, width: int) -> csr_array:
        """As :class:`Form` says."""
        return SparseRows.read(folder, items, width).csr()
