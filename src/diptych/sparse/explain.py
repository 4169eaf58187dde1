"""Reading sparse rows: images, captions and sentences as bags of terms, and which terms a match is made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError
from diptych.core.table import Cell, Table
from diptych.data.collection import Collection as Captioned
from diptych.data.images import is_image_path, read_image
from diptych.encoders.embeddings import Origin, canonical_rows, check_still_there
from diptych.index.engine import query_type
from diptych.metrics.sparse_products import sparse_top_k
from diptych.sparse.measures import leading_terms
from diptych.sparse.sparsified import SparseEncoder, SparseFolder, SparsifiedCollection
from diptych.sparse.vocabulary import TermVocabulary

if TYPE_CHECKING:
    from PIL.Image import Image


class Contribution(NamedTuple):
    """The part of the score of a match that one term, or one word of several, adds."""

    term: str
    query: float  # its weight in the query's row (of a word: the sum over its pieces)
    item: float  # its weight in the item's row, likewise
    contribution: float  # the product of a term's two weights; they add up to the score


def top_terms(
    row: csr_array, terms: Sequence[str], k: int, special: Collection[int] = ()
) -> list[tuple[str, float]]:
    """Return the k heaviest terms of a (1, |V|) row (``rows[[7]]``) with their weights, fewer where it has fewer."""
    one = _one(row, terms, "row")
    columns = leading_terms(one, k, left_out=special)[0]
    return [(terms[column], float(one[0, column])) for column in columns[columns >= 0].tolist()]


def explain_match(query: csr_array, item: csr_array, terms: Sequence[str]) -> list[Contribution]:
    """Return the terms that (1, |V|) rows of a query and an item have in common, by what they add to the score.

    The contributions are products of float32 weights, exact in float64; added in the order of the columns they
    are the score of exact search. Special terms are among them, for they are part of the score.
    """
    found = [Contribution(terms[column], *weights) for column, *weights in _in_common(query, item, terms)]
    return sorted(found, key=lambda one: -one.contribution)


def _in_common(
    query: csr_array, item: csr_array, terms: Sequence[str]
) -> list[tuple[int, float, float, float]]:
    """Return the columns that both rows have, in their order, with both weights and the product."""
    mine, theirs = _one(query, terms, "query"), _one(item, terms, "item")
    columns, *places = np.intersect1d(mine.indices, theirs.indices, assume_unique=True, return_indices=True)
    first, second = (
        row.data[place].astype(np.float64) for row, place in zip((mine, theirs), places, strict=True)
    )
    return list(zip(*(one.tolist() for one in (columns, first, second, first * second)), strict=True))


def _one(row: csr_array, terms: Sequence[str], what: str) -> csr_array:
    if getattr(row, "ndim", 0) != 2 or row.shape[0] != 1:
        raise DataError(f"the {what} has shape {getattr(row, 'shape', None)}", "give one row: rows[[number]]")
    if row.shape[1] != len(terms):
        raise MismatchError(
            f"{len(terms)} terms for the {what} of {row.shape[1]}", "take the terms of the head that made it"
        )
    return canonical_rows(row, what)


@dataclass(frozen=True)
class Bag:
    """An image or a caption as a bag of terms: (1, |V|) weights, and the caption itself or those of the image."""

    name: str
    row: csr_array
    captions: Sequence[str] = ()
    image: Callable[[], Image] | None = None

    @classmethod
    def of(cls, rows: SparsifiedCollection, collection: Captioned, kind: str, place: int) -> Bag:
        """Return the bag of an image (``"images"``) or a caption (``"texts"``) of a split."""
        items = rows.images if kind == "images" else rows.texts
        row = items.rows[[place]]
        if kind == "texts":
            return cls(items.ids[place], row, [collection.captions[place]])
        return cls(items.ids[place], row, collection.captions_of(place), partial(collection.image, place))

    @classmethod
    def made(cls, encoder: SparseEncoder, given: Any) -> Bag:
        """Encode a sentence, an image or the path of one."""
        if query_type(given) != "image":
            return cls(given, encoder.encode_texts([given]), [given])
        image = read_image(Path(given)) if isinstance(given, str | Path) else given
        return cls(str(given), encoder.encode_images([image]), image=lambda: image)

    def words(self, vocabulary: TermVocabulary) -> dict[int, str]:
        """Return the words of a caption by the columns of their terms, the first word of each; none of an image."""
        words = vocabulary.words_of(self.captions[0]) if self.captions and self.image is None else []
        return {column: word for word, columns in reversed(words) for column in columns}

    def top(self, vocabulary: TermVocabulary, k: int) -> list[tuple[str, float, bool]]:
        """Return the heaviest terms, their weights, and whether the caption, or one of the image's, has them."""
        row, words = _one(self.row, vocabulary.terms, "row"), self.words(vocabulary)
        own = set(vocabulary.caption_terms(self.captions).indices.tolist())
        weights, own_names = Counter[str](), set[str]()
        for column, weight in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            if name := vocabulary.shown(column, words.get(column)):
                weights[name] += weight
                own_names.update({name} if column in own else ())
        return [(name, weight, name in own_names) for name, weight in weights.most_common(k)]


class Match(NamedTuple):
    """The parts of a score: its first terms as users read them, and how many more add how much.

    Marks, function words, special terms and pieces of unknown words are among those ``more``; pieces of a word are one
    term. ``score`` is that of exact search to the last bit.
    """

    score: float
    terms: list[Contribution]
    more: int
    rest: float

    @classmethod
    def of(cls, vocabulary: TermVocabulary, query: Bag, item: Bag, shown: int) -> Match:
        """Explain the match of two bags."""
        words = item.words(vocabulary) | query.words(vocabulary)
        found: defaultdict[str, list[list[float]]] = defaultdict(list)
        common = _in_common(query.row, item.row, vocabulary.terms)
        for column, *weights in common:
            found[vocabulary.shown(column, words.get(column))].append(weights)
        hidden = found.pop("", [])
        named = (Contribution(name, *np.sum(parts, axis=0).tolist()) for name, parts in found.items())
        ranked = sorted(named, key=lambda one: -one.contribution)
        rest = [*(one.contribution for one in ranked[shown:]), *(product for *_, product in hidden)]
        score = reduce(add, (one[-1] for one in common), 0.0)  # as an index adds up
        return cls(score, ranked[:shown], len(rest), sum(rest))

    def table(self, caption: str) -> Table:
        lines = [(one.term, f"{one.query:.2f}", f"{one.item:.2f}", one.contribution) for one in self.terms]
        if self.more:
            lines.append((f"{self.more} more", "", "", self.rest))
        rows = []
        for name, query, item, gives in lines:
            share = f"{100 * gives / self.score:.0f} %" if self.score else "–"
            rows.append([Cell(name, words=True), Cell(query), Cell(item), Cell.number(gives, 3), Cell(share)])
        return Table(caption, ("term", "query", "item", "gives", "of the score"), rows)


class BagReader:
    """Images and captions of a part, sentences and files as bags of terms; the encoder is loaded when needed."""

    def __init__(self, folder: Path, split: str | None) -> None:
        """Open a head, an index of its rows, or what was embedded with it; ``split``: of the head's own data."""
        origin = Origin.read(folder)
        if origin is None and (folder / "index.json").is_file():
            from diptych.index.storage import Header

            about = Header.open(folder).about
            origin = Origin.from_dict(about["origin"], folder / "index.json") if "origin" in about else None
        if origin is not None:
            check_still_there(origin.model, folder)
        self.made = SparseFolder.open(folder if origin is None else origin.model)
        origin = origin or replace(self.made.origin, split=self.made.split)
        origin = replace(origin, split=split or origin.split)
        embedded = SparsifiedCollection.is_at(folder) and not split
        self.rows = SparsifiedCollection.open(folder) if embedded else self.made.rows(origin)
        self.vocabulary, self.collection = self.made.sparsifier().vocabulary, origin.collection()

    @cached_property
    def encoder(self) -> SparseEncoder:
        return SparseEncoder.load(self.made.folder)

    def bag(self, name: str) -> Bag:
        if not name.strip():
            raise UsageError("one of the texts is empty", "give a sentence, a path or an id")
        for kind, items in (("images", self.rows.images), ("texts", self.rows.texts)):
            if name in items.ids:
                return Bag.of(self.rows, self.collection, kind, list(items.ids).index(name))
        return Bag.made(self.encoder, name)

    def bags(self, names: Sequence[str], count: int) -> list[Bag]:
        """Return what is named as bags, or without any so many images of the part, evenly spaced."""
        ids = self.rows.images.ids
        return [self.bag(name) for name in names or [ids[place] for place in evenly(len(ids), count)]]

    def table(self, bags: Iterable[Bag], k: int) -> Table:
        """Return the heaviest terms of bags; those that their captions contain have an asterisk."""
        rows = []
        for bag in bags:
            found = bag.top(self.vocabulary, k)
            terms = [f"{term}{'*' if own else ''} {weight:.2f}" for term, weight, own in found]
            shown = next(iter(bag.captions), "") if bag.image is None else bag.name
            rows.append((shown, ", ".join(terms) or "no term at all"))
        return Table.of("", "", ("what", f"top {k} terms"), rows)

    def best(self, query: Bag, kind: str | None, k: int, item: str | None = None) -> list[Bag]:
        """Return the best for a query by exact search, or the item that is named; by default what the query is not."""
        kind = kind or ("texts" if is_image_path(query.name) else "images")
        items = self.rows.images if kind == "images" else self.rows.texts
        if item is None:
            found, _ = sparse_top_k(query.row, items.rows, k)
            places = found[found >= 0].tolist()
        elif item in items.ids:
            places = [list(items.ids).index(item)]
        else:
            split = self.rows.about["split"] or "all"
            raise UnknownNameError(f"id among the {kind} of split {split}", item, items.ids)
        return [Bag.of(self.rows, self.collection, kind, place) for place in places]


def evenly(size: int, count: int) -> list[int]:
    taken = min(count, size)
    return [place * size // taken for place in range(taken)]
