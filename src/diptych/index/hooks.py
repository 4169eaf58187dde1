"""What an engine writes: the hooks behind the contract, all of them given checked values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from diptych.encoders.embeddings import Embeddings
from diptych.index.engine import OptionValue
from diptych.index.hits import Hits
from diptych.index.storage import Header
from diptych.index.vectors import dense_vectors, row_norms

__all__ = ["Hooks", "Vectors"]

Vectors = Any
"""(n, width) rows: a float32 array for dense engines, a ``scipy.sparse.csr_array`` for sparse ones."""


class Hooks(ABC):
    """The part of an index that differs from engine to engine; see :class:`diptych.index.contract.Index`.

    Attributes:
        engine_name: the name of the engine's declaration.
        mapped: files of a saved index that are mapped, not read, when it is opened.
        encoder: fingerprint of the weights and preprocessing that made the vectors.
        width: d, the length of one vector.
        options: every option of the engine with its value.
        about: what else is known, JSON-able: ``kind`` of the items, fingerprint of the ``data``,
            ``embeddings`` (what they said of themselves) and, for an approximate engine, its
            ``recall`` (see :class:`diptych.index.recall.Recall`); absent when nothing was there to
            measure it on.
    """

    engine_name: ClassVar[str]
    mapped: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, *, encoder: str, width: int, options: dict[str, OptionValue], about: dict[str, Any]
    ) -> None:
        self.encoder = encoder
        self.width = width
        self.options = options
        self.about = about

    @classmethod
    @abstractmethod
    def _build(cls, embeddings: Embeddings, options: dict[str, OptionValue], about: dict[str, Any]) -> Self:
        """A new index of ``embeddings``; ids and width are checked, the engine checks that all is finite."""

    @classmethod
    @abstractmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        """The index whose files lie in ``folder``; their sizes and fingerprints are as written."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the engine's files into an empty ``folder``."""

    @abstractmethod
    def _add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Insert checked vectors under ids that are not there yet."""

    @abstractmethod
    def _delete(self, ids: Sequence[str]) -> None:
        """Remove ids that are there."""

    @abstractmethod
    def _search(self, queries: Vectors, k: int, options: Mapping[str, OptionValue]) -> Hits:
        """The best ``1 <= k <= len(self)`` items for each of at least one checked query.

        A dense engine returns k of them; a sparse one may return fewer, those that share a term.
        """

    @abstractmethod
    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        """As :meth:`_search`, missing nothing; the same item gets the same score as there."""

    @abstractmethod
    def __len__(self) -> int:
        """How many items can be found."""

    @abstractmethod
    def __contains__(self, item_id: object) -> bool: ...

    @abstractmethod
    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """A new index of the items that can be found, without a trace of those deleted.

        Args:
            sample: as for :meth:`build`.
            options: options that shall differ from this index's.
        """

    def _checked(self, vectors: Any, names: Sequence[str] | None, what: str) -> Vectors:
        checked = dense_vectors(vectors, self.width, what)
        row_norms(checked, names, what)
        return checked
