"""From a batch's rows to tensors: pictures or cached features, and padded tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import DataError
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import pad_tokens
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.store import FeatureStore
from diptych.encoders.two_tower import ModelConfig

__all__ = ["Examples", "Loaded"]


@dataclass(frozen=True)
class Loaded:
    """A batch as tensors.

    Attributes:
        images: (b, 3, size, size) pictures or (b, features) cached features.
        tokens, lengths: (c, longest) and (c,).
        image_ids: (b,) int64 image rows.
        caption_image_ids: (c,) int64 image row of each caption.
    """

    images: Tensor
    tokens: Tensor
    lengths: Tensor
    image_ids: Tensor
    caption_image_ids: Tensor

    def to(self, device: torch.device) -> Loaded:
        """The same on ``device``; lengths stay, the GRU wants them on the CPU.

        Pictures become channels-last, in which convolutions are faster.
        """
        layout = torch.channels_last if self.images.ndim == 4 else torch.contiguous_format
        return Loaded(
            self.images.to(device, non_blocking=True, memory_format=layout),
            self.tokens.to(device, non_blocking=True),
            self.lengths,
            self.image_ids.to(device),
            self.caption_image_ids.to(device),
        )


class Examples:
    """The training split as tensors, every random choice a function of (seed, epoch, image).

    Args:
        collection: what is trained on.
        config: of the model: preprocessing and longest caption.
        vocabulary: of the caption tower.
        features: cached features of the same collection, or None to read pictures.
        augmentation: of pictures that are read.
        seed: of views, crops and flips.
    """

    def __init__(
        self,
        collection: Collection,
        config: ModelConfig,
        vocabulary: Vocabulary,
        features: FeatureStore | None = None,
        augmentation: Augmentation | None = None,
        seed: int = 0,
    ) -> None:
        if features is not None and len(features.rows) != collection.n_images:
            raise DataError(f"{collection.n_images} images, but features of {len(features.rows)}")
        self._collection = collection
        self._preprocessing = config.image.preprocessing
        self._features = features
        self._augmentation = augmentation
        self._seed = seed
        self._flat, self._starts = vocabulary.encode_all(collection.captions, config.text.max_tokens)

    @property
    def cached(self) -> bool:
        """Whether ``Loaded.images`` are features."""
        return self._features is not None

    def load(self, batch: Batch, epoch: int) -> Loaded:
        """One batch as tensors.

        Raises:
            ImageError: a picture cannot be read; the message names it.
        """
        tokens, lengths = pad_tokens(self._flat, self._starts, batch.captions)
        return Loaded(
            self._images(batch.images, epoch),
            tokens,
            lengths,
            torch.from_numpy(batch.images),
            torch.from_numpy(batch.images[batch.caption_image]),
        )

    def _images(self, rows: np.ndarray, epoch: int) -> Tensor:
        if self._features is not None:
            stored = self._features.rows
            if stored.shape[1] == 1:
                return torch.from_numpy(np.asarray(stored[rows, 0], dtype=np.float32))
            # One draw for the whole epoch: an image's view does not depend on who else is in the batch.
            draw = np.random.default_rng([self._seed, 1, epoch]).integers(stored.shape[1], size=len(stored))
            return torch.from_numpy(np.asarray(stored[rows, draw[rows]], dtype=np.float32))
        return torch.from_numpy(np.stack([self._picture(int(row), epoch) for row in rows]))

    def _picture(self, row: int, epoch: int) -> np.ndarray:
        picture = self._collection.image(row)
        if self._augmentation is None:
            return self._preprocessing(picture)
        random = np.random.default_rng([self._seed, 2, epoch, row])
        return self._preprocessing.augmented(picture, self._augmentation, random)
