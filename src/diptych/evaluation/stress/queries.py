"""The clean queries of both directions over their galleries: what perturbed queries are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.columns import Labels
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation.evaluate import measure_queries
from diptych.metrics import Direction, GroundTruth, Positives, similarity

GALLERIES = ("split", "all")
"""The pictures that captions ask for: those of the split that asks, or all of the collection."""

RSUM = "rsum"
"""R@1 + R@5 + R@10 of one direction in per cent, 300 at most: the column of the thesis's Table 5.3."""

_PARTS = ("R@1", "R@5", "R@10")
RANK = "medr"
"""The measure whose value per query is the rank of its best positive."""


@dataclass(frozen=True, eq=False)
class Part:
    """What is encoded, and which of its pictures ask."""

    encoded: Collection  # the gallery's pictures, with the captions of those that ask
    asking: Collection  # the pictures that ask, with their captions
    rows: np.ndarray  # the row in ``encoded`` of each picture of ``asking``


def part_of(collection: Collection, split: str | None, gallery: str) -> Part:
    """The split that asks, and the gallery it asks."""
    if gallery not in GALLERIES:
        raise UsageError(f"gallery is {gallery!r}", f"one of {', '.join(GALLERIES)}")
    asking = collection if split is None else collection.split(split)
    if not asking.n_images or not asking.n_captions:
        raise UsageError(
            f"{collection.name}: {asking.n_images} pictures and {asking.n_captions} captions ask",
            "give a split that has both",
        )
    if gallery == "split" or asking is collection:
        return Part(asking, asking, np.arange(asking.n_images))
    assert split is not None
    if isinstance(collection.splits, Labels):
        rows = collection.splits.rows_of(split)
    else:
        rows = np.flatnonzero(np.asarray(collection.splits, dtype=object) == split)
    whole = replace(
        collection,
        captions=asking.captions,
        caption_ids=asking.caption_ids,
        caption_image=rows[asking.caption_image],
        caption_records=asking.caption_records,
        notes=(*collection.notes, f"every picture, the captions of {split} alone"),
    )
    return Part(whole, asking, rows)


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries of one direction, their gallery, and what is relevant to them."""

    direction: Direction  # ``"t2i"``: captions ask; ``"i2t"``: pictures ask
    ids: Sequence[str]  # one per query
    rows: np.ndarray  # (n, d) float32, of the clean queries
    gallery_ids: Sequence[str]  # one per item
    gallery: np.ndarray  # (m, d) float32
    positives: Positives  # the relevant items of every query
    cluster: np.ndarray  # (n,) the picture that each query belongs to, numbered alike in both directions
    similarity: str  # by what rows are compared
    # rows of queries and gallery by a relevance model; None for the encoder's own
    relevance: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def measured(
        self,
        measures: Sequence[str],
        rows: np.ndarray | None = None,  # (q, d) rows of changed queries; the clean ones when not given
        places: np.ndarray | None = None,  # (q,) which queries they are
        relevance: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Values per query, and under :data:`RANK` the rank of its best positive.

        Args:
            relevance: (q, e) rows of the changed queries by the relevance model; those of the clean ones when
                not given.
        """
        positives, relevant = self.positives, self.relevance
        if places is not None:
            positives = positives.taken(places)
            if relevant is not None:
                relevant = (relevant[0][places] if relevance is None else relevance, relevant[1])
        wanted = [name for name in measures if name != RSUM]
        wanted += [name for name in (*_PARTS, RANK) if name not in wanted]
        found = measure_queries(
            self.rows if rows is None else rows,
            self.gallery,
            positives,
            wanted,
            relevance=relevant,
            similarity=self.similarity,
            query_side=self.direction,
        )
        found[RSUM] = 100.0 * np.sum([found[name] for name in _PARTS], axis=0)
        return {name: found[name] for name in dict.fromkeys((*measures, RSUM, RANK))}

    def best(self, rows: np.ndarray) -> np.ndarray:
        """(q,) the item that each of (q, d) query rows finds first."""
        images, texts = (rows, self.gallery) if self.direction == "i2t" else (self.gallery, rows)
        items, _ = similarity(self.similarity).best(images, texts, self.direction, 1)
        found: np.ndarray = items[:, 0]
        return found

    def own_scores(self, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(q,) float64: how captions with these rows score the picture that each was written for."""
        images = self.gallery[self.positives.rows[self.positives.start[places]]]
        source = similarity(self.similarity).source(images, rows, None, None)
        return source.pairs(np.arange(len(rows)), np.arange(len(rows)))


def queries_of(
    part: Part, encoded: EncodedCollection, relevance: EncodedCollection | None = None
) -> dict[Direction, Queries]:
    """Both directions of what was encoded."""
    truth = GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))
    images, texts = np.asarray(encoded.images.rows), np.asarray(encoded.texts.rows)
    relevant = None if relevance is None else (relevance.images.rows, relevance.texts.rows)
    return {
        "t2i": Queries(
            "t2i",
            encoded.texts.ids,
            texts,
            encoded.images.ids,
            images,
            truth.t2i,
            truth.text_image,
            encoded.similarity,
            None if relevant is None else (relevant[1], relevant[0]),
        ),
        "i2t": Queries(
            "i2t",
            part.asking.image_ids,
            images[part.rows],
            encoded.texts.ids,
            texts,
            truth.i2t.taken(part.rows),
            part.rows,
            encoded.similarity,
            None if relevant is None else (relevant[0][part.rows], relevant[1]),
        ),
    }
