"""From a collection and an encoder to embeddings on disk, block by block.

Encode once: evaluation, index and analysis work on what is stored here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import ImageError, MismatchError, StorageError
from diptych.core.files import atomic_path, read_json, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task, track
from diptych.data.collection import Collection
from diptych.data.contents import picture_contents
from diptych.data.loading import batched, read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.given_rows import GivenRows

__all__ = ["EncodedCollection", "encode_collection", "without_bad_images"]

logger = logging.getLogger(__name__)

_IMAGE_BLOCK = 64
_TEXT_BLOCK = 8192


def _picture_blocks(encoder: DualEncoder, collection: Collection) -> Iterator[np.ndarray]:
    pictures = read_ahead(collection.item, range(collection.n_images))
    with task("embedding pictures", collection.n_images, "pictures") as bar:
        for batch in batched(pictures, _IMAGE_BLOCK):
            yield encoder.encode_images(batch)
            bar.advance(len(batch))


def _caption_blocks(encoder: DualEncoder, collection: Collection) -> Iterator[np.ndarray]:
    with task("embedding captions", collection.n_captions, "captions") as bar:
        for start in range(0, collection.n_captions, _TEXT_BLOCK):
            texts = list(collection.captions[start : start + _TEXT_BLOCK])
            yield encoder.encode_texts(texts)
            bar.advance(len(texts))


@dataclass(frozen=True, eq=False)
class EncodedCollection:
    """A collection as embeddings: pictures, captions, and which describes which.

    Attributes:
        images: one row per picture.
        texts: one row per caption.
        caption_image: (n_captions,) int64, the picture of each caption.
        about: what evaluations print beside their numbers: dataset, split, encoder.
    """

    images: Embeddings
    texts: Embeddings
    caption_image: np.ndarray
    about: dict[str, Any]

    @property
    def similarity(self) -> str:
        """How a picture's row and a caption's row are compared: ``"cosine"`` or ``"order"``."""
        return self.images.similarity

    @classmethod
    def open(cls, folder: Path | str) -> EncodedCollection:
        """Memory-map what :func:`encode_collection` wrote.

        Raises:
            StorageError: the folder is not one, or its two halves were made by different weights.
        """
        folder = Path(folder)
        about = read_json(folder / "about.json")
        images, texts = Embeddings.open(folder / "images"), Embeddings.open(folder / "texts")
        if images.encoder != texts.encoder:
            raise StorageError(
                f"{folder}: pictures were embedded by {images.encoder}, captions by {texts.encoder}",
                "embed again",
            )
        if images.similarity != texts.similarity:
            raise StorageError(
                f"{folder}: pictures are compared by {images.similarity}, captions by {texts.similarity}",
                "embed again",
            )
        caption_image = np.load(folder / "caption_image.npy", allow_pickle=False)
        return cls(images, texts, caption_image, about)


def encode_collection(
    encoder: DualEncoder, collection: Collection, folder: Path | str, split: str | None = None
) -> EncodedCollection:
    """Embed pictures and captions into ``folder``, or open what is there when it is the same.

    "The same" is: the same encoder fingerprint, ids, captions and bytes of pictures.

    Args:
        encoder: makes the rows.
        collection: all of it is embedded; take a split first.
        folder: ``images/``, ``texts/``, ``caption_image.npy`` and ``about.json`` are written to it.
        split: what to call the part in ``about``.

    Raises:
        MismatchError: an encoder of pictures and a collection of region features, or the other way round.
        ImageError: a picture cannot be read; the message names it.
        NumericalError: a row is not finite.
        StorageError: the write failed.
    """
    folder = Path(folder)
    if encoder.takes != collection.holds:
        raise MismatchError(
            f"the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
            "read the data with the reader's option regions=FILE.npy, or without it",
        )
    # Of rows that are given the pictures need not be there.
    given = encoder if isinstance(encoder, GivenRows) else None
    contents = picture_contents(collection) if given is None else given.fingerprint
    data = fingerprint(collection.text_fingerprint, contents)
    about = {
        "dataset": collection.name,
        "split": split,
        "data": data,
        "encoder": encoder.describe(),
        "notes": list(collection.notes),
    }
    if (folder / "about.json").is_file() and read_json(folder / "about.json") == about:
        return EncodedCollection.open(folder)
    (folder / "about.json").unlink(missing_ok=True)
    pictures = _picture_blocks(encoder, collection) if given is None else given.image_blocks(collection)
    captions = _caption_blocks(encoder, collection) if given is None else given.text_blocks(collection)
    for kind, ids, blocks in (
        ("image", collection.image_ids, pictures),
        ("text", collection.caption_ids, captions),
    ):
        Embeddings.stream(
            folder / f"{kind}s",
            ids,
            encoder.width,
            blocks,
            encoder=encoder.fingerprint,
            data=data,
            kind=kind,
            about=about,
            similarity=encoder.similarity,
        )
    with atomic_path(folder / "caption_image.npy") as temporary, open(temporary, "wb") as handle:
        np.save(handle, collection.caption_image)
    # Written last: a folder with it is complete.
    write_json(folder / "about.json", about)
    return EncodedCollection.open(folder)


def without_bad_images(collection: Collection) -> tuple[Collection, list[str]]:
    """The collection without pictures that cannot be read, and what was wrong with each.

    Reads every picture once; for collections that are known to be damaged, when asked for.
    """

    def problem(row: int) -> str | None:
        try:
            collection.item(row)
        except ImageError as error:
            return error.message
        return None

    found = list(
        track(
            read_ahead(problem, range(collection.n_images)),
            "checking pictures",
            collection.n_images,
            "pictures",
        )
    )
    good = np.flatnonzero([message is None for message in found])
    problems = [message for message in found if message is not None]
    for message in problems:
        logger.warning("left out: %s", message)
    return (collection if not problems else collection.subset(good)), problems
