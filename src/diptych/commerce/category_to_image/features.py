"""Embeddings of products and categories by frozen encoders: computed once, stored, all that models see of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.sparse import csr_array

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.images import ImageEncoder, image_rows, open_image_encoder
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import cached
from diptych.core.options import Options, parameter, parse_values
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import rooted
from diptych.encoders.given_rows import GivenRows
from diptych.encoders.targets.contract import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    stored_rows,
)
from diptych.encoders.targets.kinds.dual import DualTexts
from diptych.metrics.runs import starts

Modality = Literal["image", "title", "attributes"]
MODALITIES: tuple[Modality, ...] = ("image", "title", "attributes")
"""In the order in which they are concatenated (thesis Eq. 7.6)."""

TRAINED = {
    "clip-" + "".join(one[0] for one in chosen): chosen
    for size in range(1, len(MODALITIES) + 1)
    for chosen in combinations(MODALITIES, size)
}
"""``clip-i`` … ``clip-ita`` and the modalities that represent a product, fewest first."""

_LSA_WIDTH = 256
_TOKENS: Literal["titles"] = "titles"  # words as BM25 reads them: "Dresses" and "dress" are one


class TrainOptions(Options):
    """Options of one training of heads; the thesis's own are :meth:`published`."""

    modalities: tuple[Modality, ...] = MODALITIES  # what represents a product, in this order
    setting: str = "most-specific"  # the category of a product: see diptych.commerce.catalogue
    # A category's text: its name, as published, its whole path, or unique: the path where names repeat.
    query: Literal["name", "path", "unique"] = "name"
    resample: bool = False  # draw a product's category anew in every epoch, where the setting draws
    attributes: Literal["mean", "attention"] = "mean"  # how attributes become one row
    hidden: int = Field(512, ge=1)  # width of the two hidden layers of each head
    width: int = Field(256, ge=1)  # d of the shared space
    normalise: Literal["before", "after"] = "before"  # a hidden layer's layer norm: before or after the GELU
    dropout: float = Field(0.1, ge=0, lt=1)  # after each hidden layer
    # Share of products of which one modality is hidden in an epoch, so that a missing one is no surprise.
    modality_dropout: float = Field(0.1, ge=0, lt=1)
    temperature: float = Field(0.07, gt=0)  # τ, or where learning it starts
    learn_temperature: bool = True  # train log(1/τ)
    balance: float = Field(0.5, ge=0, le=1)  # λ of Eq. 7.9, the weight of product→category
    # Products of one category in a batch: negatives of each other, as published, or masked out of both sums.
    duplicates: Literal["negatives", "masked"] = "masked"
    # Share of a score that is the frozen text encoder's cosine of category and title, so that categories that
    # training never saw keep what the encoder knew of them. Models without titles have none.
    zero_shot: float = Field(0.0, ge=0, lt=1)
    tree_distance: float = Field(0.0, ge=0)  # strength of the tree-aware loss
    epochs: int = Field(30, ge=1)
    batch_size: int = Field(128, ge=2)  # pairs
    learning_rate: float = Field(1e-3, gt=0)  # of AdamW
    weight_decay: float = Field(1e-3, ge=0)
    patience: int | None = Field(10, ge=1)  # stop after so many epochs without a better validation measure
    seed: int = Field(0, ge=0)  # of weights, order and draws

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.modalities not in TRAINED.values():
            raise ValueError(f"modalities are some of {', '.join(MODALITIES)}, each once and in this order")
        return self

    @property
    def model(self) -> str:
        return next(name for name, chosen in TRAINED.items() if chosen == self.modalities)

    @property
    def sides(self) -> tuple[str, ...]:
        return ("image", "text") if "image" in self.modalities else ("text",)

    @property
    def share_of_zero_shot(self) -> float:
        """``zero_shot`` where titles stand for a product, else 0."""
        return self.zero_shot if "title" in self.modalities else 0.0

    @property
    def drawn_epochs(self) -> int:
        """The epochs that each draw categories of their own; 0 where one draw is for all."""
        return self.epochs if self.resample else 0

    @classmethod
    def published(cls, modalities: tuple[Modality, ...] = MODALITIES, setting: str = "most-specific") -> Self:
        """Return the options of section 7.4.2: τ = 1, λ = 0.5, 30 epochs, batches of 8 (most general) or 128.

        What the chapter leaves out is ours: widths, rate and decay (those of the authors' other code), dropout 0.
        """
        return cls(
            modalities=modalities,
            setting=setting,
            dropout=0.0,
            modality_dropout=0.0,
            patience=None,
            temperature=1.0,
            learn_temperature=False,
            duplicates="negatives",
            batch_size=8 if setting == "most-general" else 128,
        )


@dataclass(frozen=True, eq=False)
class ProductFeatures:
    """Products and their embeddings, memory-mapped; zeros stand for what a product lacks."""

    catalogue: Catalogue
    image: np.ndarray | None  # (n, d_image) float32; None without an image encoder
    title: np.ndarray  # (n, d_text) float32 unit rows
    attribute_rows: np.ndarray  # (u, d_text) float32 unit rows, one per distinct attribute text
    attributes: csr_array  # (n, u) float32: 1 / count at a product's attributes, whose mean it is
    pictured: np.ndarray  # (n,) booleans: which products have an image that can be read
    about: Mapping[str, Any]  # metadata: the encoders image and text, counts of what is missing; JSON-able

    @cached_property
    def present(self) -> dict[Modality, np.ndarray]:
        """(n,) booleans by modality: which products have it."""
        titled = np.array([bool(title.strip()) for title in self.catalogue.titles], dtype=bool)
        pictured = self.pictured & (self.image is not None)
        return {"image": pictured, "title": titled, "attributes": np.diff(self.attributes.indptr) > 0}

    def part(self, rows: np.ndarray) -> Self:
        parts = {name: getattr(self, name)[rows] for name in ("title", "attributes", "pictured")}
        image = None if self.image is None else self.image[rows]
        return replace(self, catalogue=self.catalogue.subset(rows), image=image, **parts)


@dataclass(frozen=True, eq=False)
class CategoryFeatures:
    """Embeddings of category texts."""

    texts: Sequence[str]  # a category's name, or its path
    text: np.ndarray  # (q, d_text) float32 unit rows of the text encoder
    dual: np.ndarray | None  # (q, d_image) of the image encoder's own text side; None without one
    about: Mapping[str, Any]  # as of ProductFeatures

    def part(self, nodes: np.ndarray) -> Self:
        texts, dual = [self.texts[node] for node in nodes.tolist()], self.dual
        return replace(self, texts=texts, text=self.text[nodes], dual=None if dual is None else dual[nodes])


def encoders_of(about: Mapping[str, Any], *sides: str) -> dict[str, str]:
    """Return the fingerprints of the encoders in the metadata of features, by side: image, text."""
    return {side: str((about.get(side) or {}).get("fingerprint")) for side in sides}


def encoders_line(described: Mapping[str, Any]) -> str:
    """Return names and fingerprints of the encoders of a :meth:`FeatureMaker.describe`."""
    parts = []
    for side in ("image", "text"):
        about = described[side] or {"kind": "none", "fingerprint": "the model needs none"}
        words = dict.fromkeys(
            str(about[key]) for key in ("kind", "source", "model", "width") if about.get(key)
        )
        parts.append(f"{side} encoder: {' '.join(words)} ({about['fingerprint']})")
    return ", ".join(parts)


def learning_texts(catalogue: Catalogue) -> list[str]:
    """Return what ``lsa`` learns from: each product's title with its attributes, and each category's name once."""
    products = (
        ". ".join(part for part in (title, *attributes) if part.strip())
        for title, attributes in zip(catalogue.titles, catalogue.attributes, strict=True)
    )
    names = dict.fromkeys(path[-1] for path in catalogue.tree.paths)
    return [*(text for text in products if text), *names]


def open_text_encoder(source: str | Path, learn_from: Sequence[str] = (), *, root: Path) -> TargetModel:
    """Open ``lsa``, ``lsa:WIDTH``, ``sentence``, ``sentence:NAME``, the text side of a dual encoder, or a saved one."""
    if isinstance(source, Path):
        return open_target_model(source)
    name, _, rest = source.partition(":")
    if name == "sentence":
        return make_target_model(TargetOptions(kind="sentence", **({"model": rest} if rest else {})), [])
    if name != "lsa":
        return make_target_model(TargetOptions(kind="dual", model=source), [])
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    if rest and not (rest.isdecimal() and int(rest)):
        raise UsageError(f"lsa of width {rest!r}", f"give lsa:WIDTH, e.g. lsa:{_LSA_WIDTH}")
    width, texts = int(rest or _LSA_WIDTH), [text for text in learn_from if text.strip()]
    if not texts:
        raise UsageError("lsa without texts to learn from", "give titles, attributes, category names")

    def learn(folder: Path) -> None:
        LatentSemanticAnalysis.learn(texts, width, or_less=True, tokens=_TOKENS).save(folder)

    return cached(root / "lsa" / fingerprint(width, _TOKENS, iter(texts)), open_target_model, learn)


@dataclass(frozen=True, eq=False)
class FeatureMaker:
    """Frozen encoders and the folder of their embeddings; make one with :meth:`of`."""

    image: ImageEncoder | None  # None for models of texts
    text: TargetModel  # of titles, attributes and categories
    root: Path  # embeddings are stored here under the fingerprints of encoder and content
    source: str = ""  # of the image encoder
    image_texts: TargetModel | None = None  # its text side, whose embeddings are comparable with images'

    @classmethod
    def of(
        cls,
        image: str | None = "grid",
        text: str | Path = "lsa",
        *,
        learn_from: Sequence[str] = (),
        cache: Path | str | None = None,
        image_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open encoders by name: see :func:`open_image_encoder` and :func:`open_text_encoder`."""
        root, source, own = Path(cache or cache_root()) / "catalogue", image or "", None
        opened = None if image is None else open_image_encoder(image, image_options)
        if isinstance(opened, DualEncoder):
            source = rooted(source)
            own = None if isinstance(opened, GivenRows) else DualTexts(opened, source)
        texts = own if own and text == image else open_text_encoder(text, learn_from, root=root)
        return cls(opened, texts, root, source, own)

    @classmethod
    def reopen(cls, described: Mapping[str, Any], folder: Path, cache: Path | str | None = None) -> Self:
        """Open encoders by their :meth:`describe` and the text encoder's folder; MismatchError for other weights."""
        image, text = described["image"] or {"source": None, "options": {}}, described["text"]
        source, is_own = image["source"], text["kind"] == "dual" and text["model"] == image["source"]
        made = cls.of(source, source if is_own else folder, image_options=image["options"], cache=cache)
        if made.image is not None and made.image.fingerprint != image["fingerprint"]:
            was = f"was {image['fingerprint']} when it was saved and is {made.image.fingerprint} now"
            fix = "put its old weights back, or train again with the new ones"
            raise MismatchError(f"the image encoder {source} {was}", fix)
        return made

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(None if self.image is None else self.image.fingerprint, self.text.fingerprint)

    def describe(self) -> dict[str, Any]:
        """Return the metadata of numbers made of its embeddings: ``image``, ``text``, ``fingerprint``; JSON-able."""
        image: dict[str, Any] | None = None
        if (opened := self.image) is not None:
            kind = "rows" if isinstance(opened, GivenRows) else "dual"
            image = {"kind": kind, "source": self.source, "width": opened.width, **opened.describe()}
            image |= {"fingerprint": opened.fingerprint, "options": getattr(opened, "options", {})}
        return {"image": image, "text": self.text.describe(), "fingerprint": self.fingerprint}

    def products(self, catalogue: Catalogue) -> ProductFeatures:
        """Return embeddings of products, computed once; zeros for an image that is missing or, logged, unreadable."""
        images, pictured = None, catalogue.pictured
        if self.image is not None:
            images, pictured = image_rows(self.image, catalogue, self.root / "pictures")
        given = [[text for text in texts if text.strip()] for texts in catalogue.attributes]
        places: dict[str, int] = {}  # each attribute text once, in the order of first appearance
        items = [places.setdefault(text, len(places)) for texts in given for text in texts]
        counts = np.array([len(texts) for texts in given], dtype=np.int64)
        shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        entries = shares, np.array(items, dtype=np.int64), starts(counts)
        return ProductFeatures(
            catalogue=catalogue,
            image=images,
            title=self._rows(self.text, catalogue.titles, "titles"),
            attribute_rows=self._rows(self.text, list(places), "attributes"),
            attributes=csr_array(entries, shape=(len(catalogue), len(places))),
            pictured=pictured,
            about={**self.describe(), "unreadable_pictures": int((catalogue.pictured & ~pictured).sum())},
        )

    def categories(self, texts: Sequence[str]) -> CategoryFeatures:
        dual = None if self.image_texts is None else self._rows(self.image_texts, texts, "categories")
        return CategoryFeatures(texts, self._rows(self.text, texts, "categories"), dual, self.describe())

    def _rows(self, encoder: TargetModel, texts: Sequence[str], unit: str) -> np.ndarray:
        return stored_rows(encoder, texts, self.root / "texts", unit)[0]


class EncoderSpec(Options):
    """The frozen encoders that make rows of images and texts."""

    image_encoder: str = parameter("grid", "grid (no weights), backbone:NAME, hf:NAME, …, or none.")
    image_option: list[str] = parameter([], "KEY=VALUE, e.g. weights=FILE. Repeatable.")
    text_encoder: str = parameter("lsa", "lsa (learned here), sentence:NAME, hf:NAME, …")

    def maker(self, catalogue: Catalogue, modalities: tuple[str, ...] = ("image",)) -> FeatureMaker:
        """Return the encoders; what learns from texts learns from the training products."""
        learned = catalogue.split("train") if "train" in catalogue.split_sizes else catalogue
        return FeatureMaker.of(
            self.image_encoder if "image" in modalities and self.image_encoder != "none" else None,
            self.text_encoder,
            learn_from=learning_texts(learned),
            image_options=parse_values(self.image_option, "--image-option"),
        )
