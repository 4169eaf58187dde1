"""TrainedModel: the heads after training, as a ranker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diptych.commerce.category_to_image.features.rows import CategoryFeatures, Modality, ProductFeatures
from diptych.commerce.category_to_image.model.product import CategoryProductModel
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.commerce.category_to_image.training.feeding import ProductFeed, gathered
from diptych.commerce.category_to_image.training.identity import check_encoders
from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import opening, read_json
from diptych.core.version import __version__
from diptych.encoders.tensors import load_tensors, save_tensors

MARKER = "category_model.json"
FORMAT = 1
_BLOCK = 2048
_AGAIN = "train it again: diptych categories train"


def model_of(
    options: TrainOptions, widths: Mapping[Modality, int], category_width: int
) -> CategoryProductModel:
    """The model that options describe, for rows of these lengths; its weights are those of ``options.seed``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        return CategoryProductModel(
            {one: widths[one] for one in options.modalities},
            category_width,
            hidden=options.hidden,
            width=options.width,
            normalise=options.normalise,
            attributes=options.attributes,
        )


@dataclass(frozen=True, eq=False)
class TrainedModel(Ranker):
    """A trained :class:`CategoryProductModel`; its rows are unit rows, so inner products are cosines.

    With a share z of zero-shot (``options.share_of_zero_shot``), the rows of titles and category texts stand behind the
    trained ones, √z and √(1 − z) times: inner products are then (1 − z) times the trained cosine and z times the text
    encoder's own. A product without a title has its trained row alone there, of unit length.

    Attributes:
        model: the weights.
        options: how it was trained.
        encoders: the fingerprints of the encoders whose rows it takes.
        about: on what it was trained and how far; JSON-able.
    """

    model: CategoryProductModel
    options: TrainOptions
    encoders: Mapping[str, str]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:  # type: ignore[override]
        """``clip-`` and the letters of the modalities."""
        return self.options.model

    @cached_property
    def fingerprint(self) -> str:
        """Of weights, layout and encoders."""
        arrays = {name: value.detach().cpu().numpy() for name, value in self.model.state_dict().items()}
        share = [self.options.share_of_zero_shot] if self.options.share_of_zero_shot else []
        return fingerprint(fingerprint_arrays(arrays), self.options.normalise, dict(self.encoders), *share)

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.model.width + (self.model.category_width if self.options.share_of_zero_shot else 0)

    def _beside(self, trained: np.ndarray, frozen: np.ndarray, there: np.ndarray | None = None) -> np.ndarray:
        """(n, width) rows: the trained ones, and behind them the text encoder's, where a share is theirs."""
        share = self.options.share_of_zero_shot
        if not share:
            return trained
        left = np.full((len(trained), 1), np.sqrt(1 - share), dtype=np.float32)
        if there is not None:
            left[~there] = 1.0
        return np.concatenate([left * trained, np.float32(np.sqrt(share)) * frozen], axis=1)

    def describe(self) -> dict[str, Any]:
        """Name, options, encoders, fingerprint and what training said."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "options": self.options.model_dump(mode="json"),
            "encoders": dict(self.encoders),
            **self.about,
        }

    def product_blocks(
        self, products: ProductFeatures, block: int = _BLOCK
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Which products, and their unit rows, a block at a time."""
        if block < 1:
            raise UsageError(f"a block of {block} products", "give 1 or more")
        check_encoders(self.encoders, products.about, self.options.modalities)
        feed = ProductFeed(products, self.options.modalities)
        for begin in range(0, len(products), block):
            rows = np.arange(begin, min(begin + block, len(products)))
            batch = feed.batch(rows)
            with torch.inference_mode():
                made = self.model.products(batch.rows, batch.present).numpy()
            if not np.isfinite(made.sum()):
                feed.check(rows)
                raise NumericalError(f"the model gives rows that are not finite ({self.fingerprint})", _AGAIN)
            place = slice(begin, begin + len(rows))
            yield place, self._beside(made, products.title[place], products.titled[place])

    def product_rows(self, products: ProductFeatures, out: np.ndarray | None = None) -> np.ndarray:
        """(n, width) float32 unit rows; what else is held at once does not grow with n."""
        made = np.empty((len(products), self.width), dtype=np.float32) if out is None else out
        for place, rows in self.product_blocks(products):
            made[place] = rows
        return made

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, width) float32 unit rows."""
        check_encoders(self.encoders, categories.about, ("title",))
        made = np.empty((len(categories), self.model.width), dtype=np.float32)
        for begin in range(0, len(categories), _BLOCK):
            rows = np.arange(begin, min(begin + _BLOCK, len(categories)))
            with torch.inference_mode():
                made[rows] = self.model.categories(gathered(categories.text, rows)).numpy()
        wrong = np.flatnonzero(~np.isfinite(made).all(axis=1))
        if len(wrong):
            raise NumericalError(
                f"the row of category {categories.texts[int(wrong[0])]!r} is not finite",
                "make the features again",
            )
        return self._beside(made, categories.text)

    def save(self, folder: Path | str) -> None:
        """Write it, whole or not at all."""
        with atomic_folder(folder, MARKER) as temporary:
            save_tensors(self.model.state_dict(), temporary / "model.safetensors")
            write_json(
                temporary / MARKER,
                {
                    "format": FORMAT,
                    "diptych": __version__,
                    "model": self.name,
                    "fingerprint": self.fingerprint,
                    "options": self.options.model_dump(mode="json"),
                    "widths": self.model.widths,
                    "category_width": self.model.category_width,
                    "encoders": dict(self.encoders),
                    "about": dict(self.about),
                },
            )

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str) -> TrainedModel:
        """Read what :meth:`save` wrote."""
        folder = Path(folder)
        if not (folder / MARKER).is_file():
            raise UsageError(
                f"{folder} holds no trained category model (no {MARKER})", "give a folder of one"
            )
        said = read_json(folder / MARKER)
        found = said.get("format") if isinstance(said, dict) else None
        if found != FORMAT:
            raise StorageError(f"{folder} is of format {found}, this version reads {FORMAT}", _AGAIN)
        try:
            options = TrainOptions.read(said["options"], "options", StorageError)
            model = model_of(options, said["widths"], said["category_width"])
            opened = cls(model, options, dict(said["encoders"]), dict(said["about"]))
            marked = said["fingerprint"]
        except (KeyError, TypeError, ValueError, StorageError) as error:
            raise StorageError(f"{folder / MARKER} is damaged: {error}", _AGAIN) from None
        try:
            model.load_state_dict(load_tensors(folder / "model.safetensors", _AGAIN))
        except RuntimeError as error:
            raise StorageError(
                f"{folder / 'model.safetensors'} is of another model: {error}", _AGAIN
            ) from None
        if opened.fingerprint != marked:
            raise MismatchError(
                f"{folder}: weights of fingerprint {opened.fingerprint}, its {MARKER} says {marked}", _AGAIN
            )
        return opened
