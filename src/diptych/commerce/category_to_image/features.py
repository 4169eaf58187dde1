"""Embeddings of products and categories by frozen encoders: computed once, stored, all that models see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.category_to_image.images import ImageEncoder, Missing, image_rows, open_image_encoder
from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import cached
from diptych.core.options import Options, parameter, parse_values
from diptych.core.reading import opening
from diptych.encoders.targets import TargetModel, TargetOptions, make_target_model, open_target_model
from diptych.encoders.targets.contract import TargetHeader, stored_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Modality = Literal["image", "title", "attributes"]
MODALITIES: tuple[Modality, ...] = ("image", "title", "attributes")
"""In the order in which they are concatenated (thesis Eq. 7.6)."""

_LSA_WIDTH = 256
_TOKENS: Literal["titles"] = "titles"  # words as BM25 reads them: "Dresses" and "dress" are one


@dataclass(frozen=True, eq=False)
class ProductFeatures:
    """Embeddings of products, memory-mapped; zeros stand for what a product lacks."""

    ids: Sequence[str]
    titles: Sequence[str]  # for rankers that read words
    image: np.ndarray | None  # (n, d_image) float32; None without an image encoder
    title: np.ndarray  # (n, d_text) float32 unit rows
    attribute_rows: np.ndarray  # (u, d_text) float32 unit rows, one per distinct attribute text
    attributes: csr_array  # (n, u) float32: 1 / count at a product's attributes, whose mean it is
    pictured: np.ndarray  # (n,) booleans: which products have an image
    titled: np.ndarray  # (n,) booleans: which have a title
    about: Mapping[str, Any]  # metadata: the encoders image and text, counts of what is missing; JSON-able

    def __len__(self) -> int:
        return len(self.ids)

    def width(self, modality: Modality) -> int:
        """Return the length of a row of one modality; 0 for images without an image encoder."""
        rows = self.image if modality == "image" else self.title
        return 0 if rows is None else int(rows.shape[1])

    def present(self, modality: Modality) -> np.ndarray:
        """(n,) booleans: which products have this modality."""
        if modality == "image":
            return self.pictured if self.image is not None else np.zeros(len(self), dtype=bool)
        has: np.ndarray = self.titled if modality == "title" else np.diff(self.attributes.indptr) > 0
        return has

    def part(self, rows: np.ndarray) -> ProductFeatures:
        return replace(
            self,
            ids=[self.ids[row] for row in rows.tolist()],
            titles=[self.titles[row] for row in rows.tolist()],
            image=None if self.image is None else self.image[rows],
            **{name: getattr(self, name)[rows] for name in ("title", "attributes", "pictured", "titled")},
        )


@dataclass(frozen=True, eq=False)
class CategoryFeatures:
    """Embeddings of category texts."""

    texts: Sequence[str]  # a category's name, or its path
    text: np.ndarray  # (q, d_text) float32 unit rows of the text encoder
    dual: np.ndarray | None  # (q, d_image) of the image encoder's own text side; None without one
    about: Mapping[str, Any]  # as of ProductFeatures

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, nodes: np.ndarray) -> CategoryFeatures:
        dual = None if self.dual is None else self.dual[nodes]
        return replace(
            self, texts=[self.texts[node] for node in nodes.tolist()], text=self.text[nodes], dual=dual
        )


def learning_texts(catalogue: Catalogue) -> list[str]:
    """Return what ``lsa`` learns from: each product's title with its attributes, and each category's name once."""
    products = (
        ". ".join(part for part in (title, *attributes) if part.strip())
        for title, attributes in zip(catalogue.titles, catalogue.attributes, strict=True)
    )
    names = dict.fromkeys(path[-1] for path in catalogue.tree.paths)
    return [*(text for text in products if text), *names]


def open_text_encoder(source: str, learn_from: Sequence[str] = (), *, root: Path) -> TargetModel:
    """Open ``lsa``, ``lsa:WIDTH``, ``sentence``, ``sentence:NAME``, or the text side of a dual encoder."""
    name, _, rest = source.partition(":")
    if name == "sentence":
        return make_target_model(TargetOptions(kind="sentence", **({"model": rest} if rest else {})), [])
    if name != "lsa":
        return make_target_model(TargetOptions(kind="dual", model=source), [])
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    if rest and not (rest.isdecimal() and int(rest) >= 1):
        raise UsageError(f"lsa of width {rest!r}", f"give lsa:WIDTH, e.g. lsa:{_LSA_WIDTH}")
    width, texts = int(rest or _LSA_WIDTH), [text for text in learn_from if text.strip()]
    if not texts:
        fix = "give learn_from: titles, attributes, category names"
        raise UsageError("lsa without texts to learn from", fix)

    def learn(folder: Path) -> None:
        LatentSemanticAnalysis.learn(texts, width, or_less=True, tokens=_TOKENS).save(folder)

    return cached(root / "lsa" / fingerprint(width, _TOKENS, iter(texts)), open_target_model, learn)


@dataclass(frozen=True)
class SavedEncoders(Artifact, kind="category_encoders", version=2, recreate="diptych categories train"):
    """Source, options and fingerprint of an image encoder, if any; the text encoder lies in ``text/``."""

    image: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class FeatureMaker:
    """Frozen encoders and the folder of their embeddings; make one with :meth:`of`, :meth:`open` a saved one."""

    image: ImageEncoder | None  # None for models of texts
    text: TargetModel  # of titles, attributes and categories
    root: Path  # embeddings are stored here under the fingerprints of encoder and content

    @classmethod
    def of(
        cls,
        image: str | None = "grid",
        text: str = "lsa",
        *,
        learn_from: Sequence[str] = (),
        cache: Path | str | None = None,
        image_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open encoders by name: see :func:`open_image_encoder` and :func:`open_text_encoder`."""
        root = Path(cache or cache_root()) / "catalogue"
        images = None if image is None else open_image_encoder(image, image_options)
        if images is not None and images.texts is not None and image == text:
            return cls(images, images.texts, root)  # one encoder is loaded once
        return cls(images, open_text_encoder(text, learn_from, root=root), root)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(None if self.image is None else self.image.fingerprint, self.text.fingerprint)

    def describe(self) -> dict[str, Any]:
        """Return the metadata of numbers made of its embeddings: ``image``, ``text``, ``fingerprint``; JSON-able."""
        image = None if self.image is None else self.image.describe()
        return {"image": image, "text": self.text.describe(), "fingerprint": self.fingerprint}

    def products(self, catalogue: Catalogue, *, missing: Missing = "error") -> ProductFeatures:
        """Return embeddings of a catalogue's products; what was computed before is not computed again.

        An image that is missing or cannot be read is an ImageError, or with ``missing="none"`` a row of zeros.
        """
        from scipy.sparse import csr_array

        images, pictured = None, catalogue.pictured
        if self.image is not None:
            images, pictured = image_rows(self.image, catalogue, self.root / "pictures", missing)
        given = [[text for text in texts if text.strip()] for texts in catalogue.attributes]
        places: dict[str, int] = {}  # each attribute text once, in the order of first appearance
        items = [places.setdefault(text, len(places)) for texts in given for text in texts]
        counts = np.array([len(texts) for texts in given], dtype=np.int64)
        shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        start, shape = np.concatenate([[0], np.cumsum(counts)]), (len(catalogue), len(places))
        unreadable = 0 if images is None else int((catalogue.pictured & ~pictured).sum())
        return ProductFeatures(
            ids=catalogue.ids,
            titles=catalogue.titles,
            image=images,
            title=self._text_rows(self.text, catalogue.titles, "titles"),
            attribute_rows=self._text_rows(self.text, list(places), "attributes"),
            attributes=csr_array((shares, np.array(items, dtype=np.int64), start), shape=shape),
            pictured=pictured,
            titled=np.array([bool(title.strip()) for title in catalogue.titles], dtype=bool),
            about={**self.describe(), "catalogue": catalogue.fingerprint, "unreadable_pictures": unreadable},
        )

    def categories(self, texts: Sequence[str]) -> CategoryFeatures:
        own = None if self.image is None else self.image.texts
        rows = self._text_rows(self.text, texts, "categories")
        dual = None if own is None else self._text_rows(own, texts, "categories")
        return CategoryFeatures(list(texts), rows, dual, self.describe())

    def _text_rows(self, encoder: TargetModel, texts: Sequence[str], unit: str) -> np.ndarray:
        return stored_rows(encoder, texts, self.root / "texts", unit)[0]

    def save(self, folder: Path | str) -> Path:
        """Write what :meth:`open` needs: what was learned, and names and fingerprints of what was not."""
        image = self.image
        kept = None
        if image is not None:
            kept = {"source": image.source, "options": dict(image.options), "fingerprint": image.fingerprint}
        return SavedEncoders(kept).save(folder, also=lambda inside: self.text.save(inside / "text"))

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str, *, cache: Path | str | None = None) -> Self:
        """Open what :meth:`save` wrote; MismatchError where an encoder's weights are others by now."""
        folder = Path(folder)
        saved, image, text = SavedEncoders.open(folder).image, None, None
        if saved is not None:
            image = open_image_encoder(saved["source"], saved["options"])
            if image.fingerprint != saved["fingerprint"]:
                was = f"was {saved['fingerprint']} when it was saved and is {image.fingerprint} now"
                message = f"the image encoder {saved['source']} of {folder} {was}"
                raise MismatchError(message, "put its old weights back, or train again with the new ones")
            text = image.texts
        if text is None or text.fingerprint != TargetHeader.open(folder / "text").fingerprint:
            text = open_target_model(folder / "text")
        return cls(image, text, Path(cache or cache_root()) / "catalogue")


class EncoderSpec(Options):
    """The frozen encoders that make rows of images and texts."""

    image_encoder: str = parameter("grid", "grid (no weights), backbone:NAME, hf:NAME, …, or none.")
    image_option: list[str] = parameter([], "KEY=VALUE, e.g. weights=FILE. Repeatable.")
    text_encoder: str = parameter("lsa", "lsa (learned here), sentence:NAME, hf:NAME, …")

    @property
    def given(self) -> list[tuple[str, str]]:
        """The options as a command repeats them."""
        options = [("image option", one) for one in self.image_option]
        return [("image", self.image_encoder), ("text", self.text_encoder), *options]

    def maker(self, catalogue: Catalogue, modalities: tuple[str, ...] = ("image",)) -> FeatureMaker:
        """Return the encoders; what learns from texts learns from the training products."""
        learns = self.text_encoder.partition(":")[0] == "lsa"
        learned = catalogue.split("train") if "train" in catalogue.split_sizes else catalogue
        return FeatureMaker.of(
            self.image_encoder if "image" in modalities and self.image_encoder != "none" else None,
            self.text_encoder,
            learn_from=learning_texts(learned) if learns else (),
            image_options=parse_values(self.image_option, "--image-option"),
        )
