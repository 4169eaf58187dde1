"""A collection as embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError
from diptych.encoders.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class EncodedCollection(
    Artifact,
    kind="embedded_collection",
    recreate="diptych embed MODEL",
    mapped=("caption_image",),
    parts=("images", "texts"),
):
    """A collection as embeddings: images, captions, and which describes which.

    Attributes:
        images: one row per image.
        texts: one row per caption.
        caption_image: (n_captions,) int64, the image of each caption.
        about: metadata of evaluations: dataset, split, encoder.
    """

    images: Embeddings
    texts: Embeddings
    caption_image: np.ndarray
    about: dict[str, Any]

    def __post_init__(self) -> None:
        for what in ("encoder", "similarity"):
            image, text = getattr(self.images, what), getattr(self.texts, what)
            if image != text:
                raise StorageError(
                    f"images and captions were embedded with different values of {what}: {image} and {text}",
                    "embed both again",
                )

    @property
    def similarity(self) -> str:
        return self.images.similarity

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Memory-map what :func:`~diptych.encoders.encode.encode_collection` wrote."""
        if not cls.is_at(path) and any(Path(path).glob("*.unfinished")):
            raise StorageError(f"{path} is not finished", "resume with the command that began it")
        return super().open(path, of)
