"""Fingerprints of pictures' bytes: what caches of anything computed from pictures are keyed by."""

from __future__ import annotations

from collections.abc import Iterator

from diptych.core.context import track
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead

NO_PICTURE = "no picture"


def each_picture_content(collection: Collection) -> Iterator[str]:
    """Yield one fingerprint per image, of its file's bytes, as it is asked for; reads every file once, in parallel.

    Of an item without a picture it is :data:`NO_PICTURE`.
    """
    source = collection.source
    found = read_ahead(
        lambda row: source.content(int(row)) if row >= 0 else NO_PICTURE, collection.source_rows
    )
    yield from track(found, "reading pictures", collection.n_images, "pictures")


def picture_contents(collection: Collection) -> list[str]:
    """Return all of :func:`each_picture_content`."""
    return list(each_picture_content(collection))
