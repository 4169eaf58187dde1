"""What an engine writes: the hooks behind the contract, all of them given checked values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from diptych.core.errors import MismatchError, UsageError
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index.engine import ENGINES, Engine, OptionValue
from diptych.index.hits import Hits, Recall
from diptych.index.sparse_rows import sparse_vectors
from diptych.index.storage import Header
from diptych.index.vectors import dense_vectors, row_norms


class Origin:
    """Attributes: see :class:`diptych.index.hooks.Hooks`."""

    engine_name: ClassVar[str]
    encoder: str
    width: int
    terms: tuple[str, ...]
    about: dict[str, Any]

    def check_encoder(self, encoder: str) -> None:
        """Refuse vectors that other weights made."""
        if encoder != self.encoder:
            raise MismatchError(
                f"the vectors given were made by encoder {encoder}, those of the index by {self.encoder}",
                "rebuild the index with this encoder, or use the encoder the index was built with",
            )

    def check_vocabulary(self, vocabulary: str) -> None:
        """Refuse vectors over other terms, whose columns mean other things."""
        if "vocabulary" not in self.about:
            raise UsageError(
                f"the {self.engine_name} engine holds dense vectors, which have no vocabulary",
                "check the encoder instead",
            )
        if vocabulary != self.about["vocabulary"]:
            raise MismatchError(
                f"an index opened with another vocabulary: the vectors given are over {vocabulary}, those of "
                f"the index over {self.about['vocabulary']} ({self.width:,} terms)",
                "use the head that the index was built with, or rebuild the index with this one",
            )

    def _check_origin(self, encoder: str | None, vocabulary: str | None) -> None:
        """Compare those fingerprints that are given."""
        if encoder is not None:
            self.check_encoder(encoder)
        if vocabulary is not None:
            self.check_vocabulary(vocabulary)


AnyEmbeddings = Embeddings | SparseEmbeddings
"""What an index is built of: dense rows or bags of weighted terms."""

Vectors = Any
"""(n, width) rows: a float32 array for dense engines, a ``scipy.sparse.csr_array`` for sparse ones."""


class Hooks(Origin, ABC):
    """The part of an index that differs from engine to engine; see :class:`diptych.index.contract.Index`.

    Attributes:
        engine_name: the name of the engine's declaration.
        mapped: files of a saved index that are mapped, not read, when it is opened.
        encoder: fingerprint of the weights and preprocessing that made the vectors.
        width: the length of one vector: d, or |V| of a sparse engine.
        terms: the vocabulary, one term per column, of a sparse engine; of a dense one nothing.
        options: every option of the engine with its value.
        about: what else is known, JSON-able: ``kind`` of the items, fingerprint of the ``data``,
            ``embeddings`` (what they said of themselves), for a sparse engine the fingerprint of its
            ``vocabulary`` and, for an approximate engine, its
            ``recall`` (see :class:`diptych.index.hits.Recall`); absent when nothing was there to
            measure it on.
    """

    engine_name: ClassVar[str]
    mapped: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, *, encoder: str, width: int, options: dict[str, OptionValue], about: dict[str, Any]
    ) -> None:
        self.encoder = encoder
        self.width = width
        self.terms: tuple[str, ...] = ()  # the contract sets a sparse engine's
        self.options = options
        self.about = about

    @classmethod
    def engine(cls) -> Engine:
        """The engine's declaration."""
        return ENGINES.get(cls.engine_name)

    @classmethod
    @abstractmethod
    def _build(cls, embeddings: Any, options: dict[str, OptionValue], about: dict[str, Any]) -> Self:
        """A new index of ``embeddings``, which are of the engine's kind.

        Ids and width are checked. Dense rows the engine checks itself, which may have to read them anyway;
        sparse ones are checked and canonical.
        """

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

    def describe(self) -> str:
        """One line: engine, size, width, encoder, recall."""
        recall = Recall(**self.about["recall"]).describe() if "recall" in self.about else ""
        exact = "" if self.engine().approximate else "exact"
        return (
            f"{self.engine_name} index: {len(self):,} {self.about.get('kind', 'item')} vectors of width "
            f"{self.width}, encoder {self.encoder}; {recall or exact or 'recall not measured'}"
        )

    @abstractmethod
    def __len__(self) -> int:
        """How many items can be found."""

    @abstractmethod
    def __contains__(self, item_id: object) -> bool: ...

    @abstractmethod
    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """A new index of the items that can be found, without a trace of those deleted."""

    def _reference(self, embeddings: Any) -> Any:
        """The exact index of ``embeddings`` that recall is measured against; None: this one's exact search."""
        return None

    def _checked(self, vectors: Any, names: Sequence[str] | None, what: str) -> Vectors:
        if self.engine().vectors == "sparse":
            return sparse_vectors(vectors, self.width, names, what)
        checked = dense_vectors(vectors, self.width, what)
        row_norms(checked, names, what)
        return checked
