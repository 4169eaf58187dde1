"""Fingerprints of pictures' bytes: what caches of anything computed from pictures are keyed by."""

from __future__ import annotations

from diptych.core.progress import track
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead

__all__ = ["picture_contents"]


def picture_contents(collection: Collection) -> list[str]:
    """One fingerprint per image, of its file's bytes; reads every file once, in parallel.

    Raises:
        ImageError: a picture's file is missing or cannot be read; the message names it.
    """
    found = read_ahead(lambda row: collection.source.content(int(row)), collection.source_rows)
    return list(track(found, "reading pictures", collection.n_images, "pictures"))
