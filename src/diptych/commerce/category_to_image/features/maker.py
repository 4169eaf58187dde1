"""FeatureMaker: frozen encoders, run once; the same rows again wherever it is opened."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.category_to_image.features.pictures import (
    PictureEncoder,
    make_picture_encoder,
    picture_rows,
)
from diptych.commerce.category_to_image.features.pictures.contract import Missing, Precision
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.features.texts import make_text_encoder, text_rows
from diptych.core.errors import MismatchError, StorageError
from diptych.core.files import atomic_folder, cache_root, recover_folder, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import opening, read_json
from diptych.encoders.targets import TargetModel, open_target_model
from diptych.encoders.targets.contract import TargetHeader

_MARKER, _TEXT = "features.json", "text"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class FeatureMaker:
    """What makes rows of products and categories; make one with :meth:`of`, or :meth:`open` a saved one.

    Attributes:
        image: the encoder of pictures; None for models of texts alone.
        text: the encoder of titles, attributes and categories.
        root: folder in which rows are kept, under the names of their content.
    """

    image: PictureEncoder | None
    text: TargetModel
    root: Path

    @classmethod
    def of(
        cls,
        image: str | None = "grid",
        text: str = "lsa",
        *,
        learn_from: Sequence[str] = (),
        cache: Path | str | None = None,
        precision: Precision = "float32",
        image_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """By the names of encoders.

        Args:
            precision: ``float32``, or ``bfloat16`` arithmetic of a backbone and of a sentence encoder.
        """
        root = Path(cache or cache_root()) / "catalogue"
        pictures = None if image is None else make_picture_encoder(image, image_options, precision)
        if pictures is not None and pictures.texts is not None and image == text:
            return cls(pictures, pictures.texts, root)  # one encoder is loaded once
        return cls(pictures, make_text_encoder(text, learn_from, root=root, precision=precision), root)

    @cached_property
    def fingerprint(self) -> str:
        """Of both encoders: the same one, the same rows of the same pictures and texts."""
        return fingerprint(None if self.image is None else self.image.fingerprint, self.text.fingerprint)

    def describe(self) -> dict[str, Any]:
        """What numbers made of its rows depend on, JSON-able: ``image``, ``text`` and ``fingerprint``."""
        return {
            "image": None if self.image is None else self.image.describe(),
            "text": self.text.describe(),
            "fingerprint": self.fingerprint,
        }

    def products(self, catalogue: Catalogue, *, missing: Missing = "error") -> ProductFeatures:
        """Rows of a catalogue's products, memory-mapped; what was computed before is not computed again."""
        pictures = (
            None if self.image is None else picture_rows(self.image, catalogue, self._pictures, missing)
        )
        titled = np.fromiter((bool(title.strip()) for title in catalogue.titles), bool, len(catalogue))
        distinct, start, items = _distinct(catalogue.attributes)
        about = {
            **self.describe(),
            "catalogue": catalogue.fingerprint,
            "products": len(catalogue),
            "without_picture": 0 if pictures is None else pictures.without,
            "unreadable_pictures": 0 if pictures is None else pictures.unreadable,
            "without_title": int((~titled).sum()),
            "without_attributes": int((np.diff(start) == 0).sum()),
            "distinct_attributes": len(distinct),
        }
        return ProductFeatures(
            ids=catalogue.ids,
            titles=catalogue.titles,
            image=None if pictures is None else pictures.rows,
            title=text_rows(self.text, catalogue.titles, self._texts, "titles"),
            attribute_rows=text_rows(self.text, distinct, self._texts, "attributes"),
            attribute_start=start,
            attribute_items=items,
            pictured=catalogue.pictured if pictures is None else pictures.pictured,
            titled=titled,
            about=about,
        )

    def categories(self, texts: Sequence[str]) -> CategoryFeatures:
        """Rows of categories' texts, by the text encoder and by the picture encoder's own text side, if any."""
        texts = list(texts)
        own = None if self.image is None else self.image.texts
        return CategoryFeatures(
            texts=texts,
            text=text_rows(self.text, texts, self._texts, "categories"),
            dual=None if own is None else text_rows(own, texts, self._texts, "categories"),
            about=self.describe(),
        )

    @property
    def _pictures(self) -> Path:
        return self.root / "pictures"

    @property
    def _texts(self) -> Path:
        return self.root / "texts"

    def save(self, folder: Path | str) -> Path:
        """Write what :meth:`open` needs: what was learned, and the names and fingerprints of what was not."""
        folder = Path(folder)
        with atomic_folder(folder, _MARKER) as temporary:
            self.text.save(temporary / _TEXT)
            image = self.image
            header = {
                "format": _FORMAT,
                "fingerprint": self.fingerprint,
                "image": None
                if image is None
                else {
                    "source": image.source,
                    "options": image.options,
                    "precision": getattr(image, "precision", "float32"),
                    "fingerprint": image.fingerprint,
                },
            }
            write_json(temporary / _MARKER, header)
        return folder

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str, *, cache: Path | str | None = None) -> Self:
        """What :meth:`save` wrote."""
        folder = Path(folder)
        recover_folder(folder)
        header = read_json(folder / _MARKER)
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            found = header.get("format") if isinstance(header, dict) else header
            raise StorageError(
                f"{folder / _MARKER} is of format {found}, this version reads {_FORMAT}",
                "train again with this version",
            )
        said = header["image"]
        image = (
            None if said is None else make_picture_encoder(said["source"], said["options"], said["precision"])
        )
        if image is not None and image.fingerprint != said["fingerprint"]:
            raise MismatchError(
                f"the picture encoder {said['source']} of {folder} was {said['fingerprint']} when it was saved "
                f"and is {image.fingerprint} now",
                "put its old weights back, or train again with the new ones",
            )
        own = None if image is None else image.texts
        shared = own is not None and own.fingerprint == TargetHeader.open(folder / _TEXT).fingerprint
        text = own if own is not None and shared else open_target_model(folder / _TEXT)
        return cls(image, text, Path(cache or cache_root()) / "catalogue")


def _distinct(attributes: Sequence[tuple[str, ...]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Each distinct attribute text once, in the order of first appearance, and which product has which."""
    places: dict[str, int] = {}
    start = np.zeros(len(attributes) + 1, dtype=np.int64)
    items = array("q")
    for product, given in enumerate(attributes):
        items.extend(places.setdefault(text, len(places)) for text in given if text.strip())
        start[product + 1] = len(items)
    return list(places), start, np.array(items, dtype=np.int64)
