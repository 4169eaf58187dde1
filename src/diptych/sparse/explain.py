"""Reading sparse rows: the heaviest terms of a row, and which terms a match is made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError
from diptych.core.table import Cell, Table
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.sparse.measures.deviation import leading_terms
from diptych.sparse.wordpiece import CONTINUATION


class Contribution(NamedTuple):
    """What one term, or one word of several, adds to the score of a match.

    Attributes:
        term: how it is written.
        query: its weight in the query's row (of a word: the sum over its pieces).
        item: its weight in the item's row, likewise.
        contribution: the product of a term's two weights; they add up to the score.
    """

    term: str
    query: float
    item: float
    contribution: float


def top_terms(
    row: csr_array, terms: Sequence[str], k: int, special: Collection[int] = ()
) -> list[tuple[str, float]]:
    """The k heaviest terms of one row with their weights, fewer where it has fewer.

    Args:
        row: (1, |V|) sparse, e.g. ``rows[[7]]``.
    """
    one = _one(row, terms, "row")
    weights = dict(zip(one.indices.tolist(), one.data.tolist(), strict=True))
    columns = leading_terms(one, k, left_out=special)[0].tolist()
    return [(terms[column], weights[column]) for column in columns if column >= 0]


def marked_terms(
    row: csr_array,
    own: csr_array | None,
    terms: Sequence[str],
    k: int,
    special: Collection[int] = (),
    words: Iterable[tuple[str, Sequence[str]]] = (),
) -> list[tuple[str, float, bool | None]]:
    """The heaviest terms of one row as people read them, with their weights, and whether they are a caption's own.

    Args:
        row: (1, |V|) sparse.
        own: (1, |V|) sparse, not 0 where the caption contains the term; None for a picture, whose terms are
            marked None.
    """
    mine = None if own is None else {terms[column] for column in _one(own, terms, "caption").indices.tolist()}
    words = list(words)
    return [
        (readable(term, words), weight, None if mine is None else term in mine)
        for term, weight in top_terms(row, terms, k, special)
    ]


def explain_match(query: csr_array, item: csr_array, terms: Sequence[str]) -> list[Contribution]:
    """The terms that a query and an item have in common, by what they add to the score, most first.

    The contributions are products of float32 weights, exact in float64; added in the order of the columns they
    are the score of exact search. Special terms are among them, for they are part of the score.

    Args:
        query: (1, |V|) sparse.
        item: (1, |V|) sparse.
    """
    mine, theirs = _one(query, terms, "query"), _one(item, terms, "item")
    common, left, right = np.intersect1d(
        mine.indices, theirs.indices, assume_unique=True, return_indices=True
    )
    products = mine.data[left].astype(np.float64) * theirs.data[right]
    order = np.argsort(-products, kind="stable")
    return [
        Contribution(
            terms[common[place]],
            float(mine.data[left[place]]),
            float(theirs.data[right[place]]),
            float(products[place]),
        )
        for place in order.tolist()
    ]


def in_words(
    contributions: Iterable[Contribution], words: Iterable[tuple[str, Sequence[str]]]
) -> list[Contribution]:
    """Pieces of the same word put together, most first; the sum of all contributions stays what it was."""
    word_of: dict[str, str] = {}
    for word, pieces in words:
        if len(pieces) > 1:
            for piece in pieces:
                word_of.setdefault(piece, word)
    put_together: dict[tuple[bool, str], Contribution] = {}
    for one in contributions:
        # A word in pieces and a term of its own may be written alike: they are kept apart.
        key = (one.term in word_of, word_of.get(one.term, one.term))
        before = put_together.get(key, Contribution(key[1] if key[0] else one.term, 0.0, 0.0, 0.0))
        put_together[key] = Contribution(
            before.term,
            before.query + one.query,
            before.item + one.item,
            before.contribution + one.contribution,
        )
    return sorted(put_together.values(), key=lambda one: -one.contribution)


def match_terms(
    query: csr_array, item: csr_array, terms: Sequence[str], words: Iterable[tuple[str, Sequence[str]]] = ()
) -> list[Contribution]:
    """Return what the common terms add to a score, most first, as people read them; pieces of ``words`` together."""
    return [
        one._replace(term=readable(one.term)) for one in in_words(explain_match(query, item, terms), words)
    ]


def match_table(caption: str, found: Sequence[Contribution], shown: int) -> Table:
    """Return the first ``shown`` terms of a match, and what the rest adds."""
    score = sum(one.contribution for one in found)

    def row(name: str, weights: Sequence[str], gives: float) -> list[Cell]:
        share = f"{100 * gives / score:.0f} %" if score else "–"
        return [Cell(name, words=True), *map(Cell, weights), Cell(f"{gives:.3f}", value=gives), Cell(share)]

    rows = [row(one.term, (f"{one.query:.2f}", f"{one.item:.2f}"), one.contribution) for one in found[:shown]]
    if found[shown:]:
        left = sum(one.contribution for one in found[shown:])
        rows.append(row(f"{len(found) - shown} more", ("", ""), left))
    return Table(caption, ("term", "query", "item", "gives", "of the score"), rows)


def readable(term: str, words: Iterable[tuple[str, Sequence[str]]] = ()) -> str:
    """A term as people read it: ``-ing`` for ``##ing``, or the word that it is a piece of."""
    if not term.startswith(CONTINUATION):
        return term
    end = f"-{term.removeprefix(CONTINUATION)}"
    word = next((word for word, pieces in words if term in pieces), None)
    return end if word is None else f"{end} ({word})"


def _one(row: csr_array, terms: Sequence[str], what: str) -> csr_array:
    if getattr(row, "ndim", 0) != 2 or row.shape[0] != 1:
        raise DataError(f"the {what} has shape {getattr(row, 'shape', None)}", "give one row: rows[[number]]")
    if row.shape[1] != len(terms):
        raise MismatchError(
            f"{len(terms)} terms for the {what} of {row.shape[1]}", "take the terms of the head that made it"
        )
    return canonical_rows(row, what)
