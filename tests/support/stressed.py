"""A small world to stress: pictures of one colour each, captions that say it, and encoders that read words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.analysis.perturbations import Caption, NoOptions, TextPerturbation, Unchanged
from diptych.core.draws import Draws
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.language import words_of
from diptych.encoders.dual_encoder import DualEncoder, unit_rows

COLOURS = {
    "red": (220, 30, 30),
    "green": (30, 200, 40),
    "blue": (20, 40, 220),
    "yellow": (230, 220, 40),
    "white": (245, 245, 245),
    "black": (10, 10, 10),
    "pink": (250, 150, 190),
    "brown": (120, 70, 30),
}
THINGS = ("house", "garden", "river", "mountain", "bridge", "window", "harbour", "market")


class Painted:
    """Pictures in memory."""

    def read(self, row: int) -> Image.Image:
        return Image.new("RGB", (12, 8), list(COLOURS.values())[row])

    def content(self, row: int) -> str:
        return fingerprint("painted", row)


def painted() -> Collection:
    """Eight pictures with three captions each; six of them in the split ``test``, two in ``train``."""
    captions = [
        text
        for colour, thing in zip(COLOURS, THINGS, strict=True)
        for text in (
            f"a {colour} {thing} near the old tower.",
            f"the {thing} is {colour}",
            f"{colour} paint covers every {thing} we saw",
        )
    ]
    n = len(COLOURS)
    return Collection(
        name="painted",
        image_ids=[f"p{row}" for row in range(n)],
        captions=captions,
        caption_ids=[f"c{row}" for row in range(len(captions))],
        caption_image=np.repeat(np.arange(n), 3),
        splits=["test"] * 6 + ["train"] * 2,
        source=Painted(),
        source_rows=np.arange(n),
    )


@cache
def _vector(part: str, width: int) -> np.ndarray:
    return np.random.default_rng(int(fingerprint(part), 16)).normal(size=width)


class Reader(DualEncoder):
    """A caption is what its parts are: words (blind to order) or pairs of neighbouring letters; a picture is
    the colour word nearest to it.

    Args:
        parts: ``"words"`` or ``"letters"``.
        noise: of rows, another one in every call, as batches of another size bring it.

    Attributes:
        texts, pictures: how often each was given to it.
    """

    family = "reader"

    def __init__(self, parts: str = "words", noise: float = 0.0, takes: str = "pictures") -> None:
        self.parts, self._noise, self._takes = parts, noise, takes
        self.texts: Counter[str] = Counter()
        self.pictures = 0
        self._calls = 0

    @property
    def takes(self) -> Any:
        return self._takes

    @property
    def width(self) -> int:
        return 16

    @property
    def fingerprint(self) -> str:
        return fingerprint("reader", self.parts)

    def describe(self) -> dict[str, Any]:
        return {"family": "reader", "name": f"reader of {self.parts}", "fingerprint": self.fingerprint}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError

    def _row(self, text: str) -> np.ndarray:
        if self.parts == "words":
            parts = [word.text.lower() for word in words_of(text)]
        else:
            parts = [text[place : place + 2].lower() for place in range(len(text) - 1)]
        row = np.full(self.width, 1e-3)
        for part in sorted(parts):
            row += _vector(part, self.width)
        return row

    def _noisy(self, rows: list[np.ndarray], kind: str) -> np.ndarray:
        self._calls += 1
        found = unit_rows(np.reshape(rows, (-1, self.width)), kind, range(len(rows)))
        noise = np.random.default_rng(self._calls).normal(size=found.shape)
        return (found + self._noise * noise).astype(np.float32)

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        self.texts.update(texts)
        return self._noisy([self._row(text) for text in texts], "text")

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        rows = []
        for image in images:
            self.pictures += 1
            colour = np.asarray(image, dtype=np.float64).mean(axis=(0, 1))
            place = int(np.argmin([np.sum((colour - other) ** 2) for other in COLOURS.values()]))
            rows.append(self._row(f"{list(COLOURS)[place]} {THINGS[place]}"))
        return self._noisy(rows, "image")


def _last_letter(caption: Caption, draws: Draws, options: NoOptions) -> str:
    word = caption.words[-1]
    if len(word.text) < 5:
        raise Unchanged("the last word is short")
    place = draws.below(len(word.text))
    return caption.replaced({len(caption.words) - 1: word.text[:place] + "x" + word.text[place + 1 :]})


LAST_WORD = TextPerturbation(
    name="last-word",
    description="a letter of the last word, where that is long",
    group="typos",
    source="these tests",
    keeps_meaning=True,
    apply=_last_letter,
)
"""Changes the captions whose last word has five letters or more."""


def _reversed(caption: Caption, draws: Draws, options: NoOptions) -> str:
    words = [word.text for word in caption.words]
    return caption.reordered(range(len(words)), range(len(words))[::-1])


REVERSED = TextPerturbation(
    name="reversed",
    description="the words from behind",
    group="word order",
    source="these tests",
    keeps_meaning=False,
    apply=_reversed,
)
"""The same with every seed."""


class Tags:
    """Things are nouns, everything else is not."""

    name = fingerprint = "tags by hand"

    def tag(self, sentences: Any) -> list[list[str]]:
        return [["NN" if word in THINGS else "IN" for word in words] for words in sentences]
