"""The clean queries of both directions over their galleries: what perturbed queries are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.columns import Labels
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation.evaluate import measure_queries
from diptych.metrics import Direction, GroundTruth, Positives, similarity

_GALLERIES = ("split", "all")  # the images that captions query: of the split, or all of the collection

RSUM = "rsum"  # R@1 + R@5 + R@10 of one direction in per cent, at most 300: as in the thesis's Table 5.3
_PARTS = ("R@1", "R@5", "R@10")
RANK = "medr"  # the measure whose value per query is the rank of its best positive


@dataclass(frozen=True, eq=False)
class Part:
    """A collection to encode, and which of its images are queries."""

    encoded: Collection  # the gallery's images, with the captions of those that ask
    asking: Collection  # the images that ask, with their captions
    rows: np.ndarray  # the row in ``encoded`` of each image of ``asking``


def part_of(collection: Collection, split: str | None, gallery: str) -> Part:
    if gallery not in _GALLERIES:
        raise UsageError(f"gallery is {gallery!r}", f"one of {', '.join(_GALLERIES)}")
    asking = collection if split is None else collection.split(split)
    if not asking.n_images or not asking.n_captions:
        text = f"{collection.name}: {asking.n_images} images and {asking.n_captions} captions to query with"
        raise UsageError(text, "give a split that has both")
    if gallery == "split" or asking is collection:
        return Part(asking, asking, np.arange(asking.n_images))
    assert split is not None
    splits = collection.splits
    if isinstance(splits, Labels):
        rows = splits.rows_of(split)
    else:
        rows = np.flatnonzero(np.asarray(splits, dtype=object) == split)
    whole = replace(
        collection,
        captions=asking.captions,
        caption_ids=asking.caption_ids,
        caption_image=rows[asking.caption_image],
        caption_records=asking.caption_records,
        notes=(*collection.notes, f"every image, only the captions of {split}"),
    )
    return Part(whole, asking, rows)


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries of one direction, their gallery, and what is relevant to them."""

    direction: Direction  # ``"t2i"``: captions ask; ``"i2t"``: images ask
    ids: Sequence[str]  # one per query
    rows: np.ndarray  # (n, d) float32, of the clean queries
    gallery_ids: Sequence[str]  # one per item
    gallery: np.ndarray  # (m, d) float32
    positives: Positives  # the relevant items of every query
    cluster: np.ndarray  # (n,) the image that each query belongs to, numbered alike in both directions
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
        relevance: np.ndarray | None = None,  # (q, e) rows of changed queries by the relevance model
    ) -> dict[str, np.ndarray]:
        """Return values per query, and under :data:`RANK` the rank of its best positive."""
        positives, relevant = self.positives, self.relevance
        if places is not None:
            positives = positives.taken(places)
            if relevant is not None:
                relevant = (relevant[0][places] if relevance is None else relevance, relevant[1])
        names = [name for name in measures if name != RSUM]
        names += [name for name in (*_PARTS, RANK) if name not in names]
        found = measure_queries(
            self.rows if rows is None else rows,
            self.gallery,
            positives,
            names,
            relevance=relevant,
            similarity=self.similarity,
            query_side=self.direction,
        )
        found[RSUM] = 100.0 * np.sum([found[name] for name in _PARTS], axis=0)
        return {name: found[name] for name in dict.fromkeys((*measures, RSUM, RANK))}

    def best(self, rows: np.ndarray) -> np.ndarray:
        """Return (q,) the item that each of (q, d) query rows finds first."""
        images, texts = (rows, self.gallery) if self.direction == "i2t" else (self.gallery, rows)
        items, _ = similarity(self.similarity).best(images, texts, self.direction, 1)
        return np.asarray(items[:, 0])

    def own_scores(self, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return (q,) float64: how captions with these rows score the image that each was written for."""
        images = self.gallery[self.positives.rows[self.positives.start[places]]]
        source = similarity(self.similarity).source(images, rows, None, None)
        return source.pairs(np.arange(len(rows)), np.arange(len(rows)))


def queries_of(
    part: Part, encoded: EncodedCollection, relevance: EncodedCollection | None = None
) -> dict[Direction, Queries]:
    truth = GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))
    rows, owner, image_ids, text_ids = part.rows, truth.text_image, encoded.images.ids, encoded.texts.ids
    images, texts = np.asarray(encoded.images.rows), np.asarray(encoded.texts.rows)
    t2i = Queries("t2i", text_ids, texts, image_ids, images, truth.t2i, owner, encoded.similarity)
    asking, positives = part.asking.image_ids, truth.i2t.taken(rows)
    i2t = Queries("i2t", asking, images[rows], text_ids, texts, positives, rows, encoded.similarity)
    if relevance is not None:
        images, texts = relevance.images.rows, relevance.texts.rows
        t2i = replace(t2i, relevance=(texts, images))
        i2t = replace(i2t, relevance=(images[rows], texts))
    return {"t2i": t2i, "i2t": i2t}
