"""The page of a sparse head: what it keeps and costs, terms of images and captions, what scores are made of."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from diptych.data.collection import Collection
from diptych.metrics.sparse_products import sparse_top_k
from diptych.report.document import Card, Gallery, Headline, Page, Section
from diptych.sparse.evaluate import SparseMeasures
from diptych.sparse.explain import Bag, Match, evenly
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.sparse.vocabulary import TermVocabulary

OWN_TERMS = (
    "Bold and blue: the caption, or one of the image's captions, contains the term; orange: expansion."
)


def bag_card(bag: Bag, vocabulary: TermVocabulary, k: int) -> Card:
    """Return a bag with its ``k`` heaviest terms as bars; those that its captions contain stand out."""
    found = bag.top(vocabulary, k) if k else []
    most = found[0][1] if found else 1.0
    bars = [(term, weight / most, f"{weight:.2f}", mine) for term, weight, mine in found]
    return Card(bag.name, bag.image, next(iter(bag.captions), ""), bars=bars)


def term_gallery(vocabulary: TermVocabulary, bags: Iterable[Bag], k: int = 10) -> Gallery:
    """Return bags with their heaviest terms, own terms marked."""
    return Gallery("", [bag_card(bag, vocabulary, k) for bag in bags], text=OWN_TERMS)


def match_gallery(vocabulary: TermVocabulary, query: Bag, item: Bag, shown: int = 12) -> Gallery:
    """Return a query and an item with the terms that their score is made of; own terms of the caption stand out."""
    match = Match.of(vocabulary, query, item, shown)
    own = set((query.words(vocabulary) or item.words(vocabulary)).values())
    most = max((one.contribution for one in match.terms), default=1.0) or 1.0
    bars = [
        (term, gives / most, f"{gives:.2f} = {mine:.2f} × {theirs:.2f}", term in own)
        for term, mine, theirs, gives in match.terms
    ]
    if match.more:
        bars.append((f"{match.more:,} more", 0.0, f"{match.rest:.2f} together", False))
    card = replace(bag_card(item, vocabulary, 0), label="score", score=f"{match.score:.3f}", bars=bars)
    return Gallery("", [card], replace(bag_card(query, vocabulary, 0), label="Query"))


def sparse_page(
    vocabulary: TermVocabulary,
    rows: SparsifiedCollection,
    collection: Collection,
    measures: SparseMeasures,
    command: str,
) -> Page:
    """Return the page of a head, measured on the split that ``rows`` are of."""
    found, dense = (100 * one.value("R@5", "t2i") for one in (measures.sparse, measures.dense))
    kept, exact = 100 * measures.kept("R@5", "t2i"), measures.deviation.exact
    bag = partial(Bag.of, rows, collection)
    images, captions = (
        replace(term_gallery(vocabulary, [bag(kind, place) for place in evenly(len(items), 10)]), text="")
        for kind, items in (("images", rows.images), ("texts", rows.texts))
    )
    queries = evenly(len(rows.texts), 3)
    best = sparse_top_k(rows.texts.rows[queries], rows.images.rows, 1)[0][:, 0].tolist()
    matches = [
        match_gallery(vocabulary, bag("texts", query), bag("images", item))
        for query, item in zip(queries, best, strict=True)
        if item >= 0
    ]
    score = "A score is the sum over common terms of the weight in the query × the weight in the item."
    return Page(
        title=f"{collection.name}, {measures.about['split']} split: dense rows as bags of terms",
        summary=f"With terms, captions find {kept:.1f} % of what dense embeddings find among the first five images;"
        f" a caption and an image share {measures.flops:.1f} terms.",
        headlines=[
            Headline("R@5, text → image", f"{found:.1f}", f"dense {dense:.1f}"),
            Headline("FLOPs", f"{measures.flops:.1f}", f"of {len(vocabulary):,} terms"),
            Headline(
                f"Exact@{measures.deviation.k}", f"{100 * exact:.1f} %", "leading terms are the caption's own"
            ),
        ],
        sections=[
            Section("Results", [*measures.tables(), *measures.charts()]),
            Section(
                "Terms of images", [images], f"An image's terms are made only from the image. {OWN_TERMS}"
            ),
            Section("Terms of captions", [captions], OWN_TERMS),
            Section("What a score is made of", matches, score),
        ],
        protocol={name: str(value) for name, value in measures.about.items() if value is not None},
        commands=[command],
    )
