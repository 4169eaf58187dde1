"""FeatureMaker: frozen encoders, run once; the same rows again wherever it is opened."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.category_to_image.features.pictures import (
    PictureEncoder,
    make_picture_encoder,
    picture_rows,
)
from diptych.commerce.category_to_image.features.pictures.contract import Missing, Precision
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options, parameter, parse_values
from diptych.core.reading import opening
from diptych.encoders.row_store import keyed_rows, text_keys
from diptych.encoders.targets import TargetModel, open_target_model
from diptych.encoders.targets.contract import TargetHeader

logger = logging.getLogger(__name__)

DEFAULT_WIDTH = 256
"""Of ``lsa``, where no width is given."""

_TOKENS: Final = "titles"
"""Words are read as BM25 reads them, so that "Dresses" and "dress" are one."""

_BATCH = 64


def learning_texts(catalogue: Catalogue) -> list[str]:
    """What ``lsa`` learns from, of a catalogue to train on: each product's title with its attributes, so that words
    of both stand together, and the name of every category of the tree once."""
    products = (
        ". ".join(part for part in (title, *attributes) if part.strip())
        for title, attributes in zip(catalogue.titles, catalogue.attributes, strict=True)
    )
    names = dict.fromkeys(path[-1] for path in catalogue.tree.paths)
    return [*(text for text in products if text), *names]


def make_text_encoder(
    source: str, learn_from: Sequence[str] = (), *, root: Path, precision: str = "float32"
) -> TargetModel:
    """The encoder that a source asks for."""
    from diptych.encoders.targets import TargetOptions, make_target_model

    name, _, rest = source.partition(":")
    if name == "lsa":
        return _lsa(rest, [text for text in learn_from if text.strip()], root)
    if name == "sentence":
        given = {"model": str(Path(rest).expanduser()) if Path(rest).expanduser().is_dir() else rest}
        options = {"kind": "sentence", "precision": precision, **(given if rest else {})}
        return make_target_model(TargetOptions.model_validate(options), [])
    options = {"kind": "dual", "model": source, "precision": precision}
    return make_target_model(TargetOptions.model_validate(options), [])


def _lsa(width: str, texts: list[str], root: Path) -> TargetModel:
    from diptych.encoders.targets import open_target_model
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    if width and not (width.isdecimal() and int(width) >= 1):
        raise UsageError(f"lsa of width {width!r}", f"give lsa:WIDTH, e.g. lsa:{DEFAULT_WIDTH}")
    if not texts:
        raise UsageError(
            "lsa without texts to learn from", "give learn_from: titles, attributes, category names"
        )
    asked = int(width or DEFAULT_WIDTH)
    folder = root / "lsa" / fingerprint(asked, _TOKENS, iter(texts))
    try:
        return open_target_model(folder)
    except StorageError:  # not there, or damaged: learned again
        model = LatentSemanticAnalysis.learn(texts, asked, or_less=True, tokens=_TOKENS)
    model.save(folder)
    return model


def text_rows(model: TargetModel, texts: Sequence[str], root: Path, unit: str) -> np.ndarray:
    """(n, width) float32 unit rows, one per text, memory-mapped; each distinct text is computed once, ever.

    A blank text has a row of zeros, and so has one of which the model knows no word.
    """
    if not len(texts):
        return np.empty((0, model.width), dtype=np.float32)

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        blank = np.array([not texts[place].strip() for place in places], dtype=bool)
        if blank.any():
            numbers = np.flatnonzero(blank)
            yield numbers, np.zeros((len(numbers), model.width), dtype=np.float32)
        said = np.flatnonzero(~blank)
        for numbers, rows in model.encode_batches([texts[place] for place in places[said]], _BATCH):
            yield said[numbers], rows

    rows, _ = keyed_rows(
        root / model.fingerprint,
        text_keys(texts),
        model.width,
        make,
        doing=f"encoding {unit}",
        unit=unit,
    )
    return rows


_TEXT = "text"


@dataclass(frozen=True)
class SavedEncoders(Artifact, kind="category_encoders", recreate="diptych categories train"):
    """Name, options and fingerprint of an image encoder, if any; the text encoder lies beside it."""

    image: dict[str, Any] | None


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
        image = self.image
        saved = SavedEncoders(
            None
            if image is None
            else {
                "source": image.source,
                "options": image.options,
                "precision": getattr(image, "precision", "float32"),
                "fingerprint": image.fingerprint,
            }
        )
        return saved.save(folder, also=lambda inside: self.text.save(inside / _TEXT))

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str, *, cache: Path | str | None = None) -> Self:
        """Read what :meth:`save` wrote."""
        folder = Path(folder)
        saved, image = SavedEncoders.open(folder).image, None
        if saved is not None:
            image = make_picture_encoder(saved["source"], saved["options"], saved["precision"])
        if saved is not None and image is not None and image.fingerprint != saved["fingerprint"]:
            raise MismatchError(
                f"the picture encoder {saved['source']} of {folder} was {saved['fingerprint']} when it was saved "
                f"and is {image.fingerprint} now",
                "put its old weights back, or train again with the new ones",
            )
        own = None if image is None else image.texts
        shared = own is not None and own.fingerprint == TargetHeader.open(folder / _TEXT).fingerprint
        text = own if own is not None and shared else open_target_model(folder / _TEXT)
        return cls(image, text, Path(cache or cache_root()) / "catalogue")


class EncoderSpec(Options):
    """The frozen encoders that make rows of images and texts."""

    image_encoder: str = parameter("grid", "grid (no weights), backbone:NAME, hf:NAME, …, or none.")
    image_option: list[str] = parameter([], "KEY=VALUE for it, e.g. weights=FILE. Repeatable.")
    text_encoder: str = parameter("lsa", "lsa (learned here), sentence:NAME, hf:NAME, …")

    @property
    def given(self) -> list[tuple[str, str]]:
        """The options as a command repeats them."""
        options = [("image option", one) for one in self.image_option]
        return [("image", self.image_encoder), ("text", self.text_encoder), *options]

    def maker(self, catalogue: Catalogue, modalities: tuple[str, ...] = ("image",)) -> FeatureMaker:
        """Return what makes features; what learns from texts learns from the training products."""
        learns = self.text_encoder.partition(":")[0] == "lsa"
        options = parse_values(self.image_option, "--image-option")
        for key, value in options.items():  # files by their whole path, so that they are found from anywhere
            if isinstance(value, str) and Path(value).expanduser().is_file():
                options[key] = str(Path(value).expanduser().resolve())
        seen = "image" in modalities and self.image_encoder != "none"
        learned = catalogue.split("train") if "train" in catalogue.split_sizes else catalogue
        return FeatureMaker.of(
            encoder_source(self.image_encoder) if seen else None,
            encoder_source(self.text_encoder),
            learn_from=learning_texts(learned) if learns else (),
            image_options=options or None,
        )


def encoder_source(name: str) -> str:
    """Return the name of an encoder; of a training run the folder of its best one."""
    if not (Path(name) / "run.json").is_file():
        return name
    from diptych.training.run import Run

    return str(Run.open(name).best.resolve())


def _distinct(attributes: Sequence[tuple[str, ...]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Each distinct attribute text once, in the order of first appearance, and which product has which."""
    places: dict[str, int] = {}
    start = np.zeros(len(attributes) + 1, dtype=np.int64)
    items = array("q")
    for product, given in enumerate(attributes):
        items.extend(places.setdefault(text, len(places)) for text in given if text.strip())
        start[product + 1] = len(items)
    return list(places), start, np.array(items, dtype=np.int64)
