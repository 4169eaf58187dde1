"""How good the model is now, on the validation split: recall both ways, after every epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.analysis.shortcuts import Shortcuts
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead
from diptych.encoders.store import FeatureOptions, FeatureStore
from diptych.encoders.trainable import TrainableEncoder
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth

_RECALLS = ("R@1", "R@5", "R@10")
_MEASURES = (*_RECALLS, "rsum")


class Validation:
    """The validation split, read or cached once, encoded as often as asked."""

    def __init__(
        self,
        collection: Collection,
        encoder: TrainableEncoder,
        root: Path,
        features: FeatureOptions | None,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        self._collection = collection
        self._encoder = encoder
        self._truth = GroundTruth.from_caption_image(collection.caption_image, collection.n_images)
        self._injected: Collection | None = None
        if shortcuts is not None and shortcuts.options.setup != "none":
            self._injected = shortcuts.injected(collection, encoder.with_endings)
        self._features: np.ndarray | None = None
        if features is not None and isinstance(encoder, TwoTowerEncoder):
            options = features.model_copy(update={"views": 0})
            self._features = FeatureStore.of(encoder.model.image, collection, root, options).rows[:, 0]

    def measure(self) -> dict[str, float]:
        """``rsum``, its ``chance`` level and, per direction, R@1, R@5 and R@10, all in per cent; without
        shortcuts. Where training has them, ``with rsum`` and so on are with them."""
        values = self._measured(self._collection)
        if self._injected is not None:
            values |= {f"with {name}": value for name, value in self._measured(self._injected).items()}
        return values

    def _measured(self, collection: Collection) -> dict[str, float]:
        if self._features is not None and isinstance(self._encoder, TwoTowerEncoder):
            images = self._encoder.project_features(self._features)
        else:
            images = self._encoder.encode_images(read_ahead(collection.item, range(collection.n_images)))
        texts = self._encoder.encode_texts(collection.captions)
        result = evaluate(images, texts, self._truth, _MEASURES, similarity=self._encoder.similarity)
        rsum = result.score("rsum")
        values = {"rsum": rsum.value, "chance": rsum.chance}
        for direction in DIRECTIONS:
            for name in _RECALLS:
                values[f"{direction} {name}"] = 100 * result.value(name, direction)
        return values
