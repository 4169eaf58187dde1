"""From a batch's rows to tensors: images or cached features, captions, and what they should mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor

from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.data.images import OverlaidPicture, Overlay
from diptych.encoders.dual_encoder import Towers
from diptych.encoders.image_tower import RegionTower
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.targets.contract import TargetModel
from diptych.encoders.tower import CaptionInputs
from diptych.encoders.wrapped import WrappedImages
from diptych.training.features import FeatureStore
from diptych.training.sections import CaptionAugmentation

# Decoded images that stay in memory, at most.
_DECODED_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Loaded:
    """A batch as tensors.

    Attributes:
        images: (b, 3, size, size) images, (b, regions, features) regions, or (b, features) cached
            features.
        tokens, lengths: (c, longest) and (c,), as the caption tower takes them.
        targets: (c, width) latent targets; (c, 0) where there are none.
        image_ids: (b,) int64 image rows.
        caption_image_ids: (c,) int64 image row of each caption.
    """

    images: Tensor
    tokens: Tensor
    lengths: Tensor
    targets: Tensor
    image_ids: Tensor
    caption_image_ids: Tensor

    def to(self, device: torch.device) -> Loaded:
        """Return the same on ``device``; lengths stay, the GRU wants them on the CPU.

        Images become channels-last, in which convolutions are faster.
        """
        layout = torch.channels_last if self.images.ndim == 4 else torch.contiguous_format
        return replace(
            self.ids_to(device),
            images=self.images.to(device, non_blocking=True, memory_format=layout),
            tokens=self.tokens.to(device, non_blocking=True),
            targets=self.targets.to(device, non_blocking=True),
        )

    def ids_to(self, device: torch.device) -> Loaded:
        """Return a copy with only the ids on ``device``."""
        return replace(
            self, image_ids=self.image_ids.to(device), caption_image_ids=self.caption_image_ids.to(device)
        )

    def part(self, number: int, pieces: int) -> Loaded:
        """Return piece ``number`` of ``pieces``: a share of the images and a share of the captions."""
        images = slice(*(len(self.images) * place // pieces for place in (number, number + 1)))
        captions = slice(*(len(self.tokens) * place // pieces for place in (number, number + 1)))
        return Loaded(
            self.images[images],
            self.tokens[captions],
            self.lengths[captions],
            self.targets[captions],
            self.image_ids[images],
            self.caption_image_ids[captions],
        )


class Examples:
    """The training split as tensors, every random choice a function of (seed, epoch, image or caption).

    An image is drawn once per batch that it is in, with a view of its own: by the first of its captions there.

    Args:
        targets: (n_captions, width) latent targets; or the model that makes them, for captions that
            end with a shortcut; or None.
    """

    def __init__(
        self,
        collection: Collection,
        model: Towers,
        captions: CaptionInputs,
        features: FeatureStore | None = None,
        augmentation: Augmentation | None = None,
        caption_augmentation: CaptionAugmentation | None = None,
        targets: np.ndarray | TargetModel | None = None,
        shortcuts: Shortcuts | None = None,
        seed: int = 0,
    ) -> None:
        self._collection = collection
        self._tower = model.image
        self._captions = captions
        self._features = features
        self._augmentation = augmentation
        self._caption_augmentation = caption_augmentation
        self._targets = targets
        self._shortcuts = shortcuts
        self._seed = seed
        caption_image = collection.caption_image
        first = np.searchsorted(caption_image, caption_image)  # captions of an image stand together
        self._draw = np.arange(len(caption_image)) - first
        self._decoded: dict[int, Any] = {}
        self._room = _DECODED_BYTES

    @property
    def cached(self) -> bool:
        return self._features is not None

    def load(self, batch: Batch, epoch: int) -> Loaded:
        endings: list[str] | None = None
        overlays: list[Overlay | None] = [None] * len(batch.images)
        if self._shortcuts is not None:
            given = self._shortcuts.training(self._collection, batch, epoch)
            overlays = given.overlays
            endings = given.endings if any(given.endings) else None
        tokens, lengths = self._read_captions(batch.captions, epoch, endings)
        return Loaded(
            self._images(batch, overlays, epoch),
            tokens,
            lengths,
            self._targets_of(batch.captions, endings),
            torch.from_numpy(batch.images),
            torch.from_numpy(batch.images[batch.caption_image]),
        )

    def _read_captions(
        self, rows: np.ndarray, epoch: int, endings: list[str] | None
    ) -> tuple[Tensor, Tensor]:
        noise = self._caption_augmentation
        if noise is None:
            return self._captions.batch(rows, endings)
        return self._captions.augmented(rows, noise.unknown, noise.deleted, self._seed, epoch, endings)

    def _targets_of(self, rows: np.ndarray, endings: list[str] | None) -> Tensor:
        if self._targets is None:
            return torch.empty(len(rows), 0)
        if isinstance(self._targets, TargetModel):
            captions = [self._collection.captions[row] for row in rows.tolist()]
            texts = [f"{one} {more}" for one, more in zip(captions, endings or [], strict=True)]
            return torch.from_numpy(self._targets.encode(texts))
        return torch.from_numpy(np.asarray(self._targets[rows], dtype=np.float32))

    def _images(self, batch: Batch, overlays: list[Overlay | None], epoch: int) -> Tensor:
        rows = batch.images
        draws = np.full(len(rows), len(self._draw))
        np.minimum.at(draws, batch.caption_image, self._draw[batch.captions])
        if self._features is not None:
            stored = self._features.rows
            views = np.zeros(len(rows), dtype=np.int64)
            for draw in np.unique(draws).tolist() if stored.shape[1] > 1 else []:
                # Of all images: a view does not depend on who else is in the batch.
                random = np.random.default_rng(_key(self._seed, 1, epoch, draw=draw))
                views = np.where(
                    draws == draw, random.integers(stored.shape[1], size=len(stored))[rows], views
                )
            return torch.from_numpy(np.asarray(stored[rows, views], dtype=np.float32))
        each = zip(rows.tolist(), draws.tolist(), overlays, strict=True)
        return torch.from_numpy(np.stack([self._picture(*one, epoch) for one in each]))

    def _picture(self, row: int, draw: int, overlay: Overlay | None, epoch: int) -> np.ndarray:
        item = self._item(row)
        if overlay is not None:
            item = OverlaidPicture(item, overlay)
        if self._augmentation is None or isinstance(self._tower, RegionTower | WrappedImages):
            return self._tower.prepare(item, row)
        random = np.random.default_rng(_key(self._seed, 2, epoch, row, draw=draw))
        return self._tower.augmented(item, row, self._augmentation, random)

    def _item(self, row: int) -> Any:
        item: Any = self._decoded.get(row)
        if item is None:
            item = self._collection.item(row)
            size = (
                item.width * item.height * len(item.getbands()) if isinstance(item, Image) else self._room + 1
            )
            if size <= self._room:
                self._room -= size
                self._decoded[row] = item
        return item


def _key(*numbers: int, draw: int) -> list[int]:
    """Return what a random choice is a function of; ``draw``: which of an epoch's, by default the first."""
    return [*numbers, draw] if draw else [*numbers]
