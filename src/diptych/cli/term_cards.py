"""Rows of a head as people read them: cards of weighted terms, and matches with what each term gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from diptych.data.collection import Collection
    from diptych.report.pictures import PictureSource
    from diptych.report.terms import Match, TermCard
    from diptych.sparse import SparsifiedCollection, TermVocabulary


def row_card(
    vocabulary: TermVocabulary,
    row: csr_array,
    k: int,
    *,
    name: str,
    caption: str | None = None,
    about: str = "",
    picture: PictureSource | None = None,
) -> TermCard:
    """The k heaviest terms of one row.

    Args:
        row: (1, |V|).
    """
    from diptych.report.terms import TermCard, WeightedTerm
    from diptych.sparse import marked_terms

    own = None if caption is None else vocabulary.caption_terms([caption])
    words = [] if caption is None else _words(vocabulary, caption)
    marked = marked_terms(row, own, vocabulary.terms, k, vocabulary.special, words) if k else []
    terms = [WeightedTerm(*one) for one in marked]
    return TermCard(name, terms, caption=about if caption is None else caption, picture=picture)


def picture_card(
    vocabulary: TermVocabulary, rows: SparsifiedCollection, collection: Collection, place: int, k: int
) -> TermCard:
    """The picture in row ``place`` of a split, with the first of its captions below it."""
    return row_card(
        vocabulary,
        rows.images.rows[[place]],
        k,
        name=rows.images.ids[place],
        about=next(iter(collection.captions_of(place)), ""),
        picture=partial(collection.image, place),
    )


def caption_card(
    vocabulary: TermVocabulary, rows: SparsifiedCollection, collection: Collection, place: int, k: int
) -> TermCard:
    """The caption in row ``place`` of a split."""
    row = rows.texts.rows[[place]]
    return row_card(vocabulary, row, k, name=rows.texts.ids[place], caption=collection.captions[place])


def match_of(
    vocabulary: TermVocabulary,
    query: TermCard,
    query_row: csr_array,
    item: TermCard,
    item_row: csr_array,
    caption: str | None,
) -> Match:
    """What the score of a query and an item is made of; pieces of one word of ``caption`` put together."""
    from diptych.report.terms import Match, MatchTerm
    from diptych.sparse import explain_match, in_words, readable

    found = explain_match(query_row, item_row, vocabulary.terms)
    score = sum(one.contribution for one in found)
    if any(one.contribution < 0 for one in found):
        raise UsageError("a weight is negative", "explanations are of rows that a head made")
    if caption is not None:
        found = in_words(found, _words(vocabulary, caption))
    terms = [MatchTerm(readable(one.term), one.query, one.item, one.contribution) for one in found]
    return Match(query, item, terms, score)


def _words(vocabulary: TermVocabulary, caption: str) -> list[tuple[str, list[str]]]:
    return [
        (word, [vocabulary.terms[column] for column in columns])
        for word, columns in vocabulary.words_of(caption)
    ]


def evenly(sequence: Sequence[Any] | int, count: int) -> Iterator[int]:
    """At most ``count`` places of so many, evenly spaced."""
    size = sequence if isinstance(sequence, int) else len(sequence)
    taken = min(count, size)
    yield from (place * size // taken for place in range(taken))
