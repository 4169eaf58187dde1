"""Captions that say the same: twice of one image, or of several images."""

from __future__ import annotations

import numpy as np

from diptych.data.checking.findings import Some
from diptych.data.collection import Collection

__all__ = ["same_captions"]


def same_captions(collection: Collection) -> tuple[Some, Some]:
    """Captions that repeat an earlier one of their image, and captions that another image has too.

    Texts are compared by 64-bit hashes of their words in lower case, so a million of them are a few
    megabytes; two different texts are taken for one less than once in 10^7 collections of a million.
    """
    texts = np.fromiter(
        (hash(" ".join(text.lower().split())) for text in collection.captions),
        np.int64,
        collection.n_captions,
    )
    _, group = np.unique(texts, return_inverse=True)
    image = collection.caption_image
    order = np.lexsort((np.arange(len(texts)), image, group))
    same_text = np.zeros(len(texts), dtype=bool)
    same_text[1:] = group[order][1:] == group[order][:-1]
    same_image = np.zeros(len(texts), dtype=bool)
    same_image[1:] = image[order][1:] == image[order][:-1]
    repeated = np.sort(order[same_text & same_image])
    first_of_image = ~(same_text & same_image)
    images_of_group = np.bincount(group[order][first_of_image])
    shared = np.flatnonzero(images_of_group[group] > 1) if len(texts) else np.empty(0, dtype=np.int64)
    ids = collection.caption_ids
    return Some.of(ids[row] for row in repeated.tolist()), Some.of(ids[row] for row in shared.tolist())
