"""Index engines: what each declares, their registry, what a search finds, and recall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.data.records import Record as Record
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings

if TYPE_CHECKING:
    from diptych.index.contract import Index


OptionValue = int | float | str | bool

# What an index is built of: dense rows or bags of weighted terms.
AnyEmbeddings = Embeddings | SparseEmbeddings

# (n, width) rows: a float32 array for dense engines, a ``scipy.sparse.csr_array`` for sparse ones.
Vectors = Any


class Known(NamedTuple):
    """What every index knows, see :class:`diptych.index.contract.Index`."""

    encoder: str
    width: int
    options: dict[str, OptionValue]
    about: dict[str, Any]
    terms: tuple[str, ...] = ()


# Where an index of products says which run they were embedded by, and how they were read.
OF_PRODUCTS = "category_run"

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def query_type(query: Any) -> str:
    """Return ``image``, ``vectors`` or ``text``: files are known by their ending."""
    if not isinstance(query, str | Path):
        is_pixels = getattr(query, "dtype", None) == np.uint8 or hasattr(query, "convert")
        return "image" if is_pixels else "vectors"
    ending = Path(query).suffix.lower()
    if ending == ".npy":
        return "vectors"
    return "image" if ending in _IMAGES or isinstance(query, Path) else "text"


@dataclass(frozen=True)
class Option:
    """One choice an engine offers; its type is its default's."""

    name: str  # the keyword of ``build``, and of ``search`` where ``per_search``
    default: OptionValue
    meaning: str  # one line, as help texts print it
    minimum: float | None = None  # the smallest number allowed
    per_search: bool = False  # whether ``search`` takes it too, for that search only
    choices: tuple[str, ...] = ()  # the words that it can be

    def check(self, value: Any) -> Any:
        """Return ``value`` if it is one this option can have."""
        if self.choices and value not in self.choices:
            raise UnknownNameError(self.name, value, self.choices)
        expected = type(self.default)
        if expected is float and type(value) is int:
            value = float(value)
        wrong = "" if type(value) is expected else f"not of type {expected.__name__}"
        if not wrong and self.minimum is not None and not value >= self.minimum:
            wrong = f"below {self.minimum}"
        if wrong:
            raise UsageError(
                f"index option {self.name}={value!r} is {wrong}",
                f"{self.name}: {self.meaning} (default {self.default!r})",
            )
        return value


@dataclass(frozen=True)
class Engine:
    """A way of searching, declared."""

    name: str  # the word for it in calls, command lines and saved headers
    description: str  # one line of what it is and when to choose it
    index: type[Index]
    approximate: bool  # whether hits can be missed; such an engine reports its recall when it is built
    options: tuple[Option, ...] = ()
    vectors: str = "dense"  # or "sparse": what ``build``, ``add`` and ``search`` take
    can_add: bool = True  # whether items can be added after the build
    can_delete: bool = True
    filters: bool = False  # whether ``build`` takes ``records``, items' metadata, and ``search`` a ``where``
    two_stages: bool = False  # whether ``search`` takes ``first``, the vectors of its first stage

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return what ``search`` takes besides options."""
        return ("where",) * self.filters + ("first",) * self.two_stages

    def resolve(self, given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """Every option's value: the given ones checked, the others at their default."""
        return {option.name: option.default for option in self.options} | self._checked(given, self.options)

    def resolve_search(self, stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """The values one search runs with: the stored ones, and those ``given`` to it on top."""
        offered = tuple(option for option in self.options if option.per_search)
        return {option.name: stored[option.name] for option in offered} | self._checked(given, offered)

    def _checked(self, given: Mapping[str, Any], offered: tuple[Option, ...]) -> dict[str, OptionValue]:
        known = {option.name: option for option in offered}
        for name in given:
            if name not in known:
                raise UnknownNameError(f"option of index engine {self.name}", name, known)
        return {name: known[name].check(value) for name, value in given.items()}


ENGINES: Registry[Engine] = Registry("index engine", "diptych.index.engines", "diptych.engines")


def declare(name: str, index: type[Index]) -> None:
    """Register an index class as the engine of that name in ``engines/engines.toml``."""
    declared = read_toml(Path(__file__).parent / "engines" / "engines.toml")
    given = declared[name]
    options = declared["shared"].get(given.pop("shared", ""), {}) | given.pop("options", {})
    named = (Option(key, **one | {"choices": tuple(one.get("choices", ()))}) for key, one in options.items())
    ENGINES.add(Engine(name, index=index, options=tuple(named), **given))


@dataclass(frozen=True, eq=False)
class Hits:
    """The best items for each query, best first.

    Where fewer than ``requested`` items were found, a query's list simply ends: :attr:`found` says
    where, :attr:`note` says so in words, and no placeholder stands in any list.

    Attributes:
        ids: one list of item ids per query.
        scores: (q, longest list) float32; ``scores[i, :found[i]]`` belong to ``ids[i]``, what lies
            beyond is ``-inf``.
        requested: k, how many were requested.
    """

    ids: Sequence[Sequence[str]]
    scores: np.ndarray
    requested: int

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[list[tuple[str, float]]]:
        for ids, scores in zip(self.ids, self.scores, strict=True):
            yield list(zip(ids, scores[: len(ids)].tolist(), strict=True))

    @property
    def found(self) -> np.ndarray:
        """(q,) int64: how many items each query's list holds."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    @property
    def note(self) -> str:
        """A sentence when a list is shorter than requested, else nothing."""
        short = self.found[self.found < self.requested]
        if not len(short):
            return ""
        return (
            f"{self.requested:,} hits were requested; {len(short):,} of {len(self):,} queries have fewer "
            f"(the fewest: {short.min():,}), for the index holds no more for them"
        )


class Found(NamedTuple):
    """The best items of each query: (q, k) slots and scores, of which the first ``found`` count."""

    slots: np.ndarray
    scores: np.ndarray
    found: np.ndarray

    @classmethod
    def nothing(cls, queries: int, k: int) -> Found:
        """Room for the best k of each query."""
        slots, scores = np.zeros((queries, k), dtype=np.int64), np.zeros((queries, k), dtype=np.float32)
        return cls(slots, scores, np.zeros(queries, dtype=np.int64))

    @classmethod
    def whole(cls, slots: np.ndarray, scores: np.ndarray) -> Found:
        return cls(slots, scores, np.full(len(slots), slots.shape[1]))

    def hits(self, names: np.ndarray, requested: int) -> Hits:
        """Return the ids of an object array by slot; what lies beyond ``found`` must be a slot nevertheless."""
        longest = int(self.found.max(initial=0))
        ids: Any = names[self.slots[:, :longest]].tolist()
        kept = np.array(self.scores[:, :longest], dtype=np.float32)
        if self.found.min(initial=longest) < longest:
            ids = [one[:count] for one, count in zip(ids, self.found.tolist(), strict=True)]
            kept[np.arange(longest) >= self.found[:, None]] = -np.inf
        return Hits(ids, kept, requested)


_SAMPLE = 100
_SEED = 0


@dataclass(frozen=True)
class Recall:
    """The share of the k best items that a search finds, averaged over queries.

    A hit counts when its score is at least that of the k-th best item, so that of two equal items either will do.
    """

    value: float  # from 0 to 1
    k: int
    queries: int  # how many were evaluated
    source: str  # where they came from
    items: int  # how many the index held
    options: dict[str, Any]  # the per-search options it was measured with
    changes: int = 0  # items added and deleted since; after many the value says little

    def describe(self) -> str:
        """Return one line with its protocol."""
        options = "".join(f", {name} {value}" for name, value in self.options.items())
        since = f", {self.changes:,} items changed since" if self.changes else ""
        return (
            f"recall@{self.k} {self.value:.3f} against exact search "
            f"({self.queries:,} queries: {self.source}{options}{since})"
        )


def own_queries(embeddings: AnyEmbeddings) -> tuple[Any, list[str]]:
    """Some rows of ``embeddings`` as queries, the same ones every time, with their ids; no empty bags."""
    rng = np.random.default_rng(_SEED)
    full = np.arange(len(embeddings))
    if isinstance(embeddings, SparseEmbeddings):
        full = np.flatnonzero(np.diff(embeddings.rows.indptr))
    rows = np.sort(rng.choice(full, min(_SAMPLE, len(full)), replace=False))
    return embeddings.rows[rows], [embeddings.ids[row] for row in rows.tolist()]


def measure_recall(
    index: Index,
    queries: Any,
    k: int = 10,
    *,
    excluded: Sequence[str] | None = None,
    reference: Index | None = None,
    **options: Any,
) -> Recall:
    """Search ``queries``, (q, width) vectors, at least one, as the engine does and exactly, and compare."""
    itself = excluded is not None
    depth = min(k, len(index) - itself)
    found = _pairs(index.search(queries, depth + itself, **options), excluded)
    if reference is None:
        best = _pairs(index.search_exact(queries, depth + itself), excluded)
    else:  # twice as deep, to see which items are as good as the last
        best = _pairs(reference.search_exact(queries, 2 * (depth + itself)), excluded)
    shares = []
    for mine, truth in zip(found, best, strict=True):
        expected = truth[:depth]
        least = expected[-1][1] if expected else np.inf
        good = {name for name, score in truth if score >= least}
        hits = sum(score >= least if reference is None else name in good for name, score in mine[:depth])
        shares.append(min(hits, len(expected)) / len(expected) if expected else 1.0)
    return Recall(
        value=float(np.mean(shares)),
        k=k,
        queries=len(shares),
        source="items of the index, each without itself" if itself else "given",
        items=len(index),
        options=dict(index.engine().resolve_search(index.options, options)),
    )


def _pairs(hits: Hits, excluded: Sequence[str] | None) -> list[list[tuple[str, float]]]:
    owns = [None] * len(hits) if excluded is None else excluded
    return [[pair for pair in pairs if pair[0] != own] for pairs, own in zip(hits, owns, strict=True)]
