"""Queries of a service: parts that are encoded together, mixed, searched together, and fused over several indexes."""

import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import UnknownNameError, UsageError
from diptych.encoders.embeddings import canonical_rows
from diptych.index import Index

RANK_CONSTANT = 60  # of reciprocal rank fusion (Cormack et al. 2009)
_KEPT_TEXTS = 4096
_TOGETHER = 64  # images encoded in one batch


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a query: a sentence, a decoded image, a vector, or the id of an item; below 0 it is avoided."""

    kind: Literal["text", "image", "vector", "item"]
    value: Any
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Query:
    """What is searched for in one index; with ``depth`` 0 only the query's vector is made."""

    index: Index
    parts: Sequence[Part]
    depth: int = 10
    exact: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> tuple[Any, ...]:
        """Return what queries have in common that are searched in one call."""
        return id(self.index), self.depth, self.exact, json.dumps(self.options, sort_keys=True, default=str)


@dataclass(frozen=True, eq=False)
class Answer:
    """The query's (1, width) vector, and the items found, best first."""

    vector: Any
    hits: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """Texts and images to be encoded, without a search."""

    texts: Sequence[str] = ()
    images: Sequence[Any] = ()


class QueryEncoder:
    """Encodes and searches for many requests together; used from one thread."""

    def __init__(self, texts: Callable[[Sequence[str]], Any], images: Callable[[Sequence[Any]], Any]) -> None:
        self._encode_texts, self._encode_images = texts, images
        self._texts: OrderedDict[str, Any] = OrderedDict()  # rows of the latest

    def process(self, jobs: Sequence[Query | Rows]) -> list[Any]:
        """Return an :class:`Answer` for each query and (texts, images) rows for each :class:`Rows`, or its error."""
        try:
            return self._process(jobs)
        except Exception as error:  # noqa: BLE001  # of one job: each is done alone, so that the others are answered
            if len(jobs) == 1:
                return [error]
            return [result for job in jobs for result in self.process([job])]

    def _process(self, jobs: Sequence[Query | Rows]) -> list[Any]:
        texts = [text for job in jobs for text in _contents(job, "text")]
        images = [image for job in jobs for image in _contents(job, "image")]
        text_rows, image_rows = self._rows_of_texts(texts), iter(self._rows_of_images(images))
        results: list[Any] = [None] * len(jobs)
        groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, job in enumerate(jobs):
            if isinstance(job, Rows):
                mine = [text_rows[text] for text in job.texts], [next(image_rows) for _ in job.images]
                results[place] = mine
                continue
            results[place] = Answer(_vector(job, text_rows, image_rows))
            if job.depth:
                groups[job.group].append(place)
        for places in groups.values():
            first = jobs[places[0]]
            assert isinstance(first, Query)
            vectors = stacked([results[place].vector for place in places])
            find = first.index.search_exact if first.exact else first.index.search
            hits = find(vectors, first.depth, **first.options)
            for place, found in zip(places, hits, strict=True):
                results[place] = Answer(results[place].vector, found)
        return results

    def _rows_of_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the row of each text; new ones are encoded by length, so that little is padded."""
        found = {text: self._texts[text] for text in texts if text in self._texts}
        new = sorted({text for text in texts if text not in found}, key=lambda text: (len(text), text))
        if new:
            rows = self._encode_texts(new)
            found.update((text, rows[[place]]) for place, text in enumerate(new))
        for text in found:
            self._texts[text] = found[text]
            self._texts.move_to_end(text)
        while len(self._texts) > _KEPT_TEXTS:
            self._texts.popitem(last=False)
        return found

    def _rows_of_images(self, images: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(images), _TOGETHER):
            rows = self._encode_images(images[start : start + _TOGETHER])
            found += [rows[[place]] for place in range(rows.shape[0])]
        return found


def _contents(job: Query | Rows, kind: str) -> Sequence[Any]:
    if isinstance(job, Rows):
        return job.texts if kind == "text" else job.images
    return [part.value for part in job.parts if part.kind == kind]


def _vector(query: Query, texts: Mapping[str, Any], images: Any) -> Any:
    """Mix the parts: Σ weight · row; dense rows are scaled to length 1 before and after, sparse ones cut at 0."""
    index, rows = query.index, []
    sparse = index.engine().vectors == "sparse"
    for part in query.parts:
        if part.kind == "text":
            row = texts[part.value]
        elif part.kind == "image":
            row = next(images)
        elif part.kind == "item":
            if part.value not in index:
                raise UnknownNameError("item", part.value, [])
            row = index.vectors([part.value])
        else:
            row = _given(index, part.value)
        rows.append(row)
    if len(rows) == 1 and query.parts[0].weight == 1:
        return rows[0]
    if sparse:
        mixed = sum((part.weight * row for part, row in zip(query.parts, rows, strict=True)), 0 * rows[0])
        return canonical_rows(csr_array(mixed.maximum(0)))
    mixed = np.zeros((1, index.width), dtype=np.float64)
    for part, row in zip(query.parts, rows, strict=True):
        mixed += part.weight * np.asarray(row, dtype=np.float64) / max(float(np.linalg.norm(row)), 1e-12)
    length = float(np.linalg.norm(mixed))
    if length < 1e-9:
        raise UsageError("the parts of the query cancel each other out", "give them other weights")
    return (mixed / length).astype(np.float32)


def _given(index: Index, vector: Any) -> Any:
    """Return a vector of the request as a row of the index: numbers, or weights by term."""
    if not isinstance(vector, Mapping):
        return index.checked_queries(np.asarray([vector]))
    if index.engine().vectors != "sparse":
        raise UsageError("weights by term with an index of dense vectors", "give a list of numbers")
    columns = {term: column for column, term in enumerate(index.terms)}
    for term in vector:
        if term not in columns:
            raise UnknownNameError("term", term, index.terms)
    entries = [columns[term] for term in vector]
    shape, places = (1, index.width), ([0] * len(entries), entries)
    return canonical_rows(csr_array((list(map(float, vector.values())), places), shape=shape))


def stacked(rows: Sequence[Any]) -> Any:
    """Stack (1, width) rows, dense or sparse."""
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    from scipy.sparse import vstack

    return rows[0] if len(rows) == 1 else csr_array(vstack(rows, format="csr"))


def fused(answers: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
    """Fuse several rankings: Σ 1 / (60 + rank), equal sums in the order of first appearance (Cormack et al. 2009).

    >>> fused([[("a", 0.9), ("b", 0.8)], [("b", 7.0)]])
    [('b', 0.03252247488101534), ('a', 0.01639344262295082)]
    """
    sums: dict[str, float] = {}
    for hits in answers:
        for rank, (name, _) in enumerate(hits, 1):
            sums[name] = sums.get(name, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(sums.items(), key=lambda item: -item[1])
