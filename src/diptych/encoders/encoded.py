"""A collection as embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.reading import map_array, opening, read_json
from diptych.encoders.embeddings import Embeddings


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
    @opening("embed again")
    def open(cls, folder: Path | str) -> EncodedCollection:
        """Memory-map what :func:`~diptych.encoders.encode.encode_collection` wrote."""
        folder = Path(folder)
        if not (folder / "about.json").is_file() and any(folder.glob("*.unfinished")):
            raise StorageError(f"{folder} is not finished", "give the command that began it once more")
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
        caption_image = map_array(folder / "caption_image.npy", shape=(None,), fix="embed again")
        return cls(images, texts, caption_image, about)
