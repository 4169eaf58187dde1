"""Reading sparse rows: images, captions and sentences as bags of terms, and which terms a match is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError
from diptych.core.table import Cell, Table
from diptych.data.collection import Collection as Captioned
from diptych.data.images import is_image_path, read_image
from diptych.encoders.embeddings import Origin, canonical_rows, check_still_there
from diptych.metrics.sparse_products import sparse_top_k
from diptych.sparse.measures import leading_terms
from diptych.sparse.sparsified import SparseEncoder, SparseFolder, SparsifiedCollection
from diptych.sparse.vocabulary import CONTINUATION, TermVocabulary

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
    mine, theirs = _one(query, terms, "query"), _one(item, terms, "item")
    common = np.intersect1d(mine.indices, theirs.indices, assume_unique=True).tolist()
    weights = [(terms[column], float(mine[0, column]), float(theirs[0, column])) for column in common]
    found = [Contribution(term, first, second, first * second) for term, first, second in weights]
    return sorted(found, key=lambda one: -one.contribution)


def in_words(
    contributions: Iterable[Contribution], words: Iterable[tuple[str, Sequence[str]]]
) -> list[Contribution]:
    """Put pieces of the same word together, most first; the sum of all contributions stays what it was."""
    word_of: dict[str, str] = {}
    for word, pieces in words:
        for piece in pieces if len(pieces) > 1 else ():
            word_of.setdefault(piece, word)
    together: dict[tuple[bool, str], Contribution] = {}
    for term, *numbers in contributions:
        # A word in pieces and a term of its own may be written alike: they are kept apart.
        key = (term in word_of, word_of.get(term, term))
        _, *before = together.get(key, Contribution(term, 0.0, 0.0, 0.0))
        together[key] = Contribution(key[1], *(a + b for a, b in zip(before, numbers, strict=True)))
    return sorted(together.values(), key=lambda one: -one.contribution)


def readable(term: str, words: Iterable[tuple[str, Sequence[str]]] = ()) -> str:
    """Return a term as users read it: ``-ing`` for ``##ing``, with the word that it is a piece of."""
    if not term.startswith(CONTINUATION):
        return term
    whole = next((f" ({word})" for word, pieces in words if term in pieces), "")
    return f"-{term.removeprefix(CONTINUATION)}{whole}"


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

    def own_words(self, vocabulary: TermVocabulary) -> list[tuple[str, list[str]]]:
        """Return the words of a caption with the terms that each consists of; none of an image."""
        words = vocabulary.words_of(self.captions[0]) if self.image is None else []
        return [(word, [vocabulary.terms[column] for column in columns]) for word, columns in words]

    def top(self, vocabulary: TermVocabulary, k: int) -> list[tuple[str, float, bool]]:
        """Return the heaviest terms, their weights, and whether the caption, or one of the image's, has them."""
        own = {vocabulary.terms[column] for column in vocabulary.caption_terms(self.captions).indices}
        words = self.own_words(vocabulary)
        found = top_terms(self.row, vocabulary.terms, k, vocabulary.special)
        return [(readable(term, words), weight, term in own) for term, weight in found]


class Match(NamedTuple):
    """The parts of a score: its first terms as users read them, and how many more add how much."""

    score: float
    terms: list[Contribution]
    more: int
    rest: float

    @classmethod
    def of(cls, vocabulary: TermVocabulary, query: Bag, item: Bag, shown: int) -> Match:
        """Explain the match of two bags; pieces of the query's words are together, special terms never shown."""
        special = {vocabulary.terms[column] for column in vocabulary.special}
        found = in_words(explain_match(query.row, item.row, vocabulary.terms), query.own_words(vocabulary))
        found = sorted(found, key=lambda one: one.term in special)
        shown = min(shown, sum(one.term not in special for one in found))
        terms = [one._replace(term=readable(one.term)) for one in found[:shown]]
        score, rest = (sum(one.contribution for one in part) for part in (found, found[shown:]))
        return cls(score, terms, len(found) - shown, rest)

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
        if is_image_path(name):
            image = partial(read_image, Path(name))
            return Bag(name, self.encoder.encode_images([image()]), image=image)
        return Bag(name, self.encoder.encode_texts([name]), [name])

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
