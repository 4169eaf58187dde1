"""Index: the one contract behind which every way of searching stands.

Dense or sparse, exact or approximate, here or on a server: an engine is a file in ``engines/`` with a subclass of
:class:`Index` (usually of :class:`diptych.index.slots.SlotIndex`) and a :class:`diptych.index.engine.Engine`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import DataError, MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.locking import locked_in_place
from diptych.core.reading import opening, read_json
from diptych.data.columns import Column
from diptych.data.records import Record, Where, check_records
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, term_fingerprint
from diptych.index.engine import (
    ENGINES,
    AnyEmbeddings,
    Engine,
    Hits,
    Known,
    OptionValue,
    Recall,
    Vectors,
    measure_recall,
    own_queries,
)
from diptych.index.sparse_rows import sparse_vectors
from diptych.index.storage import REBUILD, Captions, Header, records_of
from diptych.index.vectors import check_ids, check_k, check_width, count_rows, dense_vectors, largest_norm

_TERMS = "terms.json"


class CaptionLines(Column[str]):
    """The captions of items as lines of JSON, each made when it is read."""

    def __init__(self, ids: Sequence[str], captions: Captions) -> None:
        super().__init__(len(ids))
        self._ids, self._captions = ids, captions

    def read(self, rows: range | np.ndarray) -> list[str]:
        return [json.dumps(list(self._captions.get(self._ids[row], ()))) for row in rows]


@dataclass(frozen=True, eq=False)
class Change:
    """Checked items to be inserted, or ids to be removed."""

    ids: Sequence[str]
    vectors: Vectors = None  # float32; None: the items are removed
    there: Sequence[str] = ()  # those of the ids that are replaced
    # "records" and "captions", where they are given: of each item as JSON
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Index(ABC):
    """Items with ids and vectors, found by inner product with a query.

    Equal scores are ordered by insertion (an item that was replaced counts as inserted then). Every method checks all
    of what it is given before it changes anything; an engine's own methods, whose names begin with ``_``, are given
    checked values.

    Attributes:
        encoder: fingerprint of the weights and preprocessing that made the vectors.
        width: the length of one vector: d, or |V| of a sparse engine.
        terms: the vocabulary, one term per column, of a sparse engine; of a dense one nothing.
        options: every option of the engine with its value.
        captions: the captions of items by id, for showing hits; None where no item has any.
        about: what else is known, JSON-able: ``kind`` of the items, fingerprint of the ``data``,
            ``embeddings`` (their metadata), for a sparse engine the fingerprint of its
            ``vocabulary`` and, for an approximate engine, its
            ``recall`` (see :class:`diptych.index.engine.Recall`); absent when nothing was there to
            measure it on.
    """

    engine_name: ClassVar[str]
    mapped: ClassVar[frozenset[str]] = frozenset()  # files that are mapped, not read, when an index is opened
    captions: Captions | None

    def __init__(self, known: Known) -> None:
        self.encoder, self.width, self.options, self.about, self.terms = known

    @classmethod
    def engine(cls) -> Engine:
        """Return the engine's declaration."""
        return ENGINES.get(cls.engine_name)

    @classmethod
    @abstractmethod
    def _build(cls, items: Change, known: Known) -> Self:
        """A new index of items, which are of the engine's kind.

        Ids and width are checked. Dense rows the engine checks itself, which may have to read them anyway;
        sparse ones are checked and canonical.
        """

    @classmethod
    @abstractmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        """Return the index whose files lie in ``folder``; their sizes and fingerprints are as written."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the engine's files into an empty ``folder``."""

    @abstractmethod
    def _insert(self, change: Change) -> None:
        """Insert checked items, or replace those that are there; of an engine that can add."""

    @abstractmethod
    def _delete(self, ids: Sequence[str]) -> None:
        """Remove ids that are there; of an engine that can delete."""

    @abstractmethod
    def _search(self, queries: Vectors, k: int, options: Mapping[str, OptionValue]) -> Hits:
        """The best ``1 <= k <= len(self)`` items for each of at least one checked query.

        A dense engine returns k of them; a sparse one may return fewer, those that share a term.
        """

    @abstractmethod
    def _search_exact(self, queries: Vectors, k: int, where: Where | None = None) -> Hits:
        """As :meth:`_search`, missing nothing; the same item gets the same score as there."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many items can be found."""

    @abstractmethod
    def __contains__(self, item_id: object) -> bool: ...

    @abstractmethod
    def rebuild(self, **options: Any) -> Self:
        """A new index of the items that can be found, without a trace of those deleted."""

    def _reference(self, embeddings: Any) -> Any:
        """The exact index of ``embeddings`` that recall is measured against; None: this one's exact search."""
        return None

    @classmethod
    def build(
        cls,
        embeddings: AnyEmbeddings,
        *,
        sample: Vectors | None = None,
        records: Sequence[Record] | None = None,
        captions: Captions | None = None,
        **options: Any,
    ) -> Self:
        """An index of ``embeddings``; their rows are not copied where the engine can map them.

        Args:
            embeddings: sparse ones for a sparse engine, dense ones for a dense engine.
            sample: queries an approximate engine measures its recall@10 on, best of the kind it will
                be searched with; without it some of the items themselves are taken (each without
                itself), which tends to flatter.
            records: of an engine that filters, the metadata of each item, JSON-able, by which searches are
                restricted.
            captions: of the items by id, for showing hits.
            options: the engine's options, see :meth:`engine`.

        Raises:
            UsageError: options or kinds of embeddings that the engine cannot have.
            DataError: an id occurs twice or is no string; width 0; a negative weight of a sparse vector.
            NumericalError: a vector is not finite; the message names its id.
        """
        resolved = cls.engine().resolve(options)
        given = "sparse" if isinstance(embeddings, SparseEmbeddings) else "dense"
        if given != cls.engine().vectors:
            suited = ", ".join(other.name for other in ENGINES if other.vectors == given)
            raise UsageError(
                f"the {cls.engine_name} engine indexes {cls.engine().vectors} vectors, these are {given} "
                f"({len(embeddings):,} of width {embeddings.width:,})",
                f"engines for {given} vectors: {suited}",
            )
        check_ids(embeddings.ids, len(embeddings))
        if embeddings.width < 1:
            raise DataError("vectors of width 0 cannot be indexed")
        if sample is not None:
            check_width(sample, embeddings.width, "sample")  # before the long work, not after it
        about = {"kind": embeddings.kind, "data": embeddings.data, "embeddings": dict(embeddings.about)}
        if isinstance(embeddings, SparseEmbeddings):
            # Checked and canonical; not copied when they are that already.
            rows = sparse_vectors(embeddings.rows, embeddings.width, embeddings.ids, "item")
            embeddings = replace(embeddings, rows=rows)
            about["vocabulary"] = embeddings.vocabulary
        terms = tuple(getattr(embeddings, "terms", ()))
        known = Known(embeddings.encoder, embeddings.width, resolved, about, terms)
        lines = cls._lines(embeddings.ids, records, captions)
        index = cls._build(Change(embeddings.ids, embeddings.rows, lines=lines), known)
        if cls.engine().approximate:
            queries, excluded = own_queries(embeddings) if sample is None else (sample, None)
            if len(index) > (excluded is not None) and count_rows(queries, "sample"):
                reference = index._reference(embeddings)
                recall = measure_recall(index, queries, excluded=excluded, reference=reference)
                index.about["recall"] = asdict(recall)
        return index

    @classmethod
    def _lines(
        cls, ids: Sequence[str], records: Sequence[Record] | None, captions: Captions | None
    ) -> dict[str, Sequence[str]]:
        if records is not None and not cls.engine().filters:
            raise UnknownNameError(f"option of index engine {cls.engine_name}", "records", [])
        lines: dict[str, Sequence[str]] = {}
        if records is not None:
            lines["records"] = check_records(records, ids)
        if captions is not None:
            lines["captions"] = CaptionLines(ids, captions)
        return lines

    @property
    def on_server(self) -> bool:
        """Whether a server keeps the items, and every change as it is made."""
        return bool(self.options.get("url"))

    def _held(self, names: Sequence[str]) -> set[str]:
        return {name for name in names if name in self}

    def add(self, ids: Sequence[str], rows: Vectors, **given: Any) -> None:
        """Insert items; arguments as of :meth:`check_add`."""
        self.apply(self.check_add(ids, rows, **given))

    def check_add(
        self,
        ids: Sequence[str],
        rows: Vectors,
        *,
        replace: bool = False,
        encoder: str | None = None,
        vocabulary: str | None = None,
        records: Sequence[Record] | None = None,
        captions: Sequence[Sequence[str]] | None = None,
    ) -> Change:
        """Return the insertion of items, checked; :meth:`apply` makes it.

        Args:
            ids: one per row, the collection's ids.
            rows: (n, width) vectors.
            replace: items whose id is there already take the new vector, metadata and captions instead of
                being refused.
            encoder: fingerprint of what made ``rows``, checked when given.
            vocabulary: fingerprint of what the columns of sparse ``rows`` mean, checked when given.
            records: of an engine that filters, the metadata of each item.
            captions: the captions of each item, which are shown when it is found.
        """
        if not self.engine().can_add:
            raise UsageError(f"the {self.engine_name} engine cannot add items", REBUILD)
        self.check_origin(encoder, vocabulary)
        names = check_ids(ids, count_rows(rows, "item"))
        vectors = self._checked(rows, names, "item")
        if captions is not None and len(captions) != len(names):
            raise DataError(
                f"captions of {len(captions):,} items given for {len(names):,}", "give a list each"
            )
        texts = None if captions is None else dict(zip(names, map(list, captions), strict=True))
        lines = self._lines(names, records, texts)
        held = self._held(names)
        there = [name for name in names if name in held]
        if there and not replace:
            raise UsageError(
                f"id {there[0]!r} is already in the index ({len(there):,} of {len(names):,} are)",
                "pass replace=True to give them their new vectors",
            )
        return Change(names, vectors, there, lines)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove items; none is removed when one of the ids is unknown."""
        self.apply(self.check_delete(ids))

    def check_delete(self, ids: Sequence[str]) -> Change:
        if not self.engine().can_delete:
            raise UsageError(f"the {self.engine_name} engine cannot delete items", REBUILD)
        names = check_ids(ids, len(ids))
        held = self._held(names)
        unknown = [name for name in names if name not in held]
        if unknown:
            raise UsageError(
                f"id {unknown[0]!r} is not in the index ({len(unknown):,} of {len(names):,} are not)",
                "delete only what is there; ids are those of the collection that was embedded",
            )
        return Change(names)

    def apply(self, change: Change) -> None:
        """Make a change that was checked against the index as it is."""
        if change.vectors is None:
            self._delete(change.ids)
        else:
            self._insert(change)
        if "recall" in self.about:
            self.about["recall"]["changes"] += len(change.ids)

    def search(
        self,
        queries: Vectors,
        k: int,
        *,
        encoder: str | None = None,
        vocabulary: str | None = None,
        **options: Any,
    ) -> Hits:
        """The ``k`` items of largest inner product for each query, best first.

        ``k`` may be larger than the index: then there are as many hits as items, and
        :attr:`Hits.note` says so. Scores are float32 inner products of the vectors as they are. A sparse
        engine finds the items that share a term with the query, whose scores are above 0: there may be
        fewer than ``k`` of them, and a query without terms finds nothing.

        Args:
            queries: (q, width) vectors.
            k: how many hits per query.
            encoder: fingerprint of what made ``queries``, checked when given.
            vocabulary: fingerprint of what the columns of sparse ``queries`` mean, checked when given.
            options: per-search options of the engine; of one that filters ``where``, conditions on the items'
                metadata (:data:`diptych.data.records.Where`), of one with two stages ``first``, (q, width)
                vectors of the first.
        """
        more = {name: options.pop(name) for name in self.engine().inputs if name in options}
        resolved = self.engine().resolve_search(self.options, options)
        find = partial(self._search, options=resolved, **more)
        return self._answer(queries, k, encoder, vocabulary, find)

    def search_exact(
        self,
        queries: Vectors,
        k: int,
        *,
        encoder: str | None = None,
        vocabulary: str | None = None,
        where: Where | None = None,
    ) -> Hits:
        """As :meth:`search`, missing nothing, at whatever cost: what recall is measured against."""
        if where is not None and not self.engine().filters:
            raise UnknownNameError(f"option of index engine {self.engine_name}", "where", [])
        return self._answer(queries, k, encoder, vocabulary, partial(self._search_exact, where=where))

    def _answer(
        self, queries: Vectors, k: int, encoder: str | None, vocabulary: str | None, find: Callable[..., Hits]
    ) -> Hits:
        """Return what ``find`` finds for checked queries, where there is anything to search, and to search for."""
        self.check_origin(encoder, vocabulary)
        requested = check_k(k)
        checked = self._checked(queries, None, "query")
        count = count_rows(checked, "query")
        if not len(self) or not count:
            return Hits([[]] * count, np.empty((count, 0), dtype=np.float32), requested)
        hits = find(checked, min(requested, len(self)))
        return Hits(hits.ids, hits.scores, requested)

    def save(self, folder: Path | str) -> Path:
        """Write the index; all or nothing, an older index in ``folder`` is replaced, its journal with it."""
        with locked_in_place(folder):
            return self.write(folder)

    def write(self, folder: Path | str) -> Path:
        """As :meth:`save`, of a folder that is locked already."""
        with atomic_folder(folder, Header.marker()) as temporary:
            self._write(temporary)
            if self.terms:
                write_json(temporary / _TERMS, list(self.terms))
            known = (self.encoder, self.width, len(self), self.options, self.about)
            Header(self.engine_name, *known, records_of(temporary)).write_header(temporary)
        return Path(folder)

    @classmethod
    @opening(REBUILD)
    def open(cls, folder: Path | str, *, verify: bool = False) -> Self:
        """The index that :meth:`save` wrote; called on ``Index``, of whichever engine it is.

        Changes of its journal are made by :func:`diptych.index.open_index`.

        Args:
            verify: also read the mapped files through and compare their fingerprints (slow for large
                ones); the sizes of all files and the contents of the others are always checked.

        Raises:
            StorageError: there is none, it is of another version or engine, or a file is corrupt.
        """
        where, header = Path(folder), Header.open(folder)
        engine = header.declared_engine(folder)
        if not issubclass(engine.index, cls):
            raise StorageError(
                f"{folder} holds an index of engine {header.engine!r}, not {cls.engine_name!r}",
                "open it with open_index",
            )
        header.check_files(where, engine.index.mapped, verify)
        index = engine.index._read(where, header)
        if engine.vectors == "sparse":
            terms, vocabulary = read_json(where / _TERMS), header.about.get("vocabulary")
            if len(terms) != header.width or term_fingerprint(terms) != vocabulary:
                raise StorageError(
                    f"{where / _TERMS}: the {header.width:,} terms of vocabulary {vocabulary} expected, got "
                    f"{len(terms):,} of {term_fingerprint(terms)}",
                    REBUILD,
                )
            index.terms = tuple(terms)
        if len(index) != header.items:
            raise StorageError(f"{folder}: {header.items:,} items expected, got {len(index):,}", REBUILD)
        return index

    @property
    @abstractmethod
    def records(self) -> Mapping[str, Record]:
        """The metadata of each item by id, in order of insertion; each is read when it is asked for."""

    @abstractmethod
    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of items that are there, as they were given."""

    def checked_queries(self, vectors: Any) -> Vectors:
        """Return (q, width) query vectors as the engine takes them, or raise the error of :meth:`search`."""
        return self._checked(vectors, None, "query")

    def prefetch(self, ids: Sequence[str]) -> None:
        """Read metadata and captions of items in one request, where a server keeps them."""
        return

    def some_ids(self, start: int, count: int) -> list[str]:
        """Return up to ``count`` ids in order of insertion, from place ``start`` on; of an engine that lists them."""
        return []

    def matching(self, where: Where) -> list[str]:
        """Return the ids of the items that fulfil conditions; of an engine that keeps metadata here."""
        raise UsageError(f"the {self.engine_name} engine cannot list items by metadata", "give ids")

    def document_frequency(self) -> np.ndarray:
        """(|V|,) int64: how many items have each term; of an engine that keeps the weights of terms."""
        raise UsageError(f"the {self.engine_name} engine does not count terms", "name the query encoder")

    def describe(self) -> str:
        """One line: engine, size, width, encoder, recall."""
        recall = Recall(**self.about["recall"]).describe() if "recall" in self.about else ""
        exact = "" if self.engine().approximate else "exact"
        return (
            f"{self.engine_name} index: {len(self):,} {self.about.get('kind', 'item')} vectors of width "
            f"{self.width}, encoder {self.encoder}; {recall or exact or 'recall not measured'}"
        )

    def _checked(self, vectors: Any, names: Sequence[str] | None, what: str) -> Vectors:
        if self.engine().vectors == "sparse":
            return sparse_vectors(vectors, self.width, names, what)
        checked = dense_vectors(vectors, self.width, what)
        largest_norm(checked, names, what)
        return checked

    def _embedded(self, ids: Sequence[str], rows: Vectors) -> AnyEmbeddings:
        about = self.about
        source = (self.encoder, about["data"], about["kind"], about["embeddings"])
        if self.engine().vectors == "sparse":
            return SparseEmbeddings(list(ids), rows, self.terms, *source)
        return Embeddings(list(ids), rows, *source)

    def check_origin(self, encoder: str | None = None, vocabulary: str | None = None) -> None:
        """Refuse vectors that other weights made, or whose columns mean other terms; what is not given, passes."""
        if encoder is not None and encoder != self.encoder:
            raise MismatchError(
                f"the vectors given were made by encoder {encoder}, those of the index by {self.encoder}",
                "search with the encoder the index was built with (no --model), or index embeddings of this one",
            )
        mine = self.about.get("vocabulary", "none")  # of dense vectors
        if vocabulary is not None and vocabulary != mine:
            raise MismatchError(
                f"an index opened with another vocabulary: the vectors given are over {vocabulary}, those of "
                f"the index over {mine} ({self.width:,} columns)",
                "use the head that the index was built with, or rebuild the index with this one",
            )


def build_index(
    embeddings: AnyEmbeddings, engine: str | None = None, *, sample: Vectors | None = None, **options: Any
) -> Index:
    """An index of ``embeddings`` by the engine of that name; see :meth:`Index.build`."""
    if not isinstance(embeddings, SparseEmbeddings) and embeddings.similarity != "cosine":
        raise UsageError(
            f"rows compared by {embeddings.similarity!r} cannot be indexed: engines search by the cosine",
            'measure them with diptych evaluate; to search, train with model.similarity = "cosine"',
        )
    return engine_of(embeddings, engine).index.build(embeddings, sample=sample, **options)


def engine_of(embeddings: AnyEmbeddings, name: str | None) -> Engine:
    """Return the engine of that name, or that of the kind of embeddings."""
    return ENGINES.get(name or ("inverted" if isinstance(embeddings, SparseEmbeddings) else "exact"))
