"""A dual encoder with a matching head that needs no model: colours against letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.fingerprint import fingerprint
from diptych.encoders.dual_encoder import DualEncoder, unit_rows
from diptych.encoders.rerank import MatchingEncoder, PairInputs

LETTERS = "abcdefghijklmnopqrst"


class FakeMatching(DualEncoder, MatchingEncoder):
    """Rows are mean colours and counts of letters; the head multiplies a picture's corners with a text's letters.

    Attributes:
        asked: how often each text and picture was given to the head, and how many pairs were scored.
        most_pictures: the most pictures whose tokens were asked for at once.
    """

    family = "fake"
    adds_contrastive = False

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self._seed = seed
        self._image, self._text = random.normal(size=(3, 6)), random.normal(size=(len(LETTERS), 6))
        self._head = random.normal(size=(12, len(LETTERS)))
        self.asked: Counter[str] = Counter()
        self.most_pictures = 0

    @property
    def width(self) -> int:
        return 6

    @property
    def fingerprint(self) -> str:
        return fingerprint("fake", self._seed)

    def describe(self) -> dict[str, Any]:
        return {"family": "fake", "name": f"fake {self._seed}", "width": 6, "fingerprint": self.fingerprint}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        rows = [np.asarray(image, dtype=np.float64).mean(axis=(0, 1)) / 255 - 0.5 for image in images]
        return unit_rows(np.reshape(rows, (-1, 3)) @ self._image, "image", range(len(rows)))

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        return unit_rows(_letters(texts) @ self._text, "text", range(len(texts)))

    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        pixels = [np.asarray(image, dtype=np.float32) / 255 for image in images]
        corners = [image[row, column] for image in pixels for row in (0, -1) for column in (0, -1)]
        self.asked["pictures"] += len(pixels)
        self.most_pictures = max(self.most_pictures, len(pixels))
        return {"corners": np.reshape(corners, (len(pixels), 4, 3)).astype(np.float32)}

    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        self.asked["texts"] += len(texts)
        return {
            "letters": _letters(texts).astype(np.float32),
            "length": np.array([len(text) for text in texts], dtype=np.int64),
        }

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        self.asked["pairs"] += len(images["corners"])
        flat = images["corners"].reshape(len(images["corners"]), -1).astype(np.float64)
        scores = np.sum((flat @ self._head) * texts["letters"], axis=1) / (1 + texts["length"])
        return scores.astype(np.float32)


def _letters(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.count(letter) for letter in LETTERS] for text in texts], dtype=np.float64)
