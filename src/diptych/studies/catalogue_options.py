"""What a person may choose about models of a catalogue (``--set KEY=VALUE``), and what is taken otherwise.

====================== ============ =====================================================================
``features.image``     grid         encoder of pictures: ``grid``, ``backbone:NAME``, a dual encoder; ``none``
``features.text``      lsa          encoder of titles, attributes, categories: ``lsa``, ``sentence:MODEL``
``features.KEY``                    of the picture encoder, e.g. ``weights``, ``size``, ``timm.pad_type``
``train.KEY``                       of training, e.g. ``epochs``: see ``diptych categories train --help``
``measure.relevance``  label        ``path``: a product is relevant to the ancestors of its category too
``measure.query``      name         ``path``: what stands for a category
``measure.split``                   ``given``, ``product`` or ``category``; without it the data's own test
                                    split where it has one, else by product
``measure.attributes`` named        ``values``: an attribute's text without its name
``measure.missing``    none         ``error``: no product may lack a picture, or have one that cannot be read
``measure.draw``       0            seed of the categories that the setting ``all`` draws for test products
``measure.jobs``       1            processes
====================== ============ =====================================================================

Settings have others for some of them; ``diptych study show`` names those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions

_WORDS: dict[str, tuple[str | None, ...]] = {
    "relevance": ("label", "path"),
    "query": ("name", "path"),
    "split": (None, "given", "product", "category"),
    "attributes": ("named", "values"),
    "missing": ("error", "none"),
}
_NUMBERS = {"draw": 0, "jobs": 1}
MEASURED_BY = (*_WORDS, *_NUMBERS)
"""Keys of ``measure``."""

_SECTIONS = ("features", "train", "measure")
_OWN = ("modalities", "setting", "seed", "query", "resample")
"""Options of training that rows, seeds and ``measure.query`` set; ``resample`` would see other categories per epoch."""


@dataclass(frozen=True)
class CatalogueOptions:
    """See above.

    Attributes:
        image, text: encoders; ``image`` None for none.
        image_options: of the picture encoder.
        train: options of training that were set.
        published: whether training is as thesis section 7.4.2 says.
        relevance, query, split, attributes, missing, draw, jobs: as above.
    """

    image: str | None = "grid"
    text: str = "lsa"
    image_options: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    published: bool = False
    relevance: str = "label"
    query: str = "name"
    split: str | None = None
    attributes: str = "named"
    missing: str = "none"
    draw: int = 0
    jobs: int = 1

    @classmethod
    def of(cls, values: Mapping[str, Any], *, published: bool = False) -> CatalogueOptions:
        """From dotted keys and values, as settings have them and as a person sets them."""
        sections: dict[str, dict[str, Any]] = {name: {} for name in _SECTIONS}
        for key, value in values.items():
            name, point, rest = key.partition(".")
            if name not in sections:
                raise UnknownNameError("section of a study of a catalogue", name, _SECTIONS)
            if not point or not rest:
                raise UsageError(f"{name} is a section, not a value", f"set its keys: --set {name}.KEY=VALUE")
            _put(sections[name], rest.split("."), value)
        features = sections["features"]
        encoders = {side: features.pop(side) for side in ("image", "text") if side in features}
        if encoders.get("image") == "none":
            encoders["image"] = None
        for key in sections["measure"]:
            if key not in MEASURED_BY:
                raise UnknownNameError("key of measure", key, MEASURED_BY)
        return cls(
            **encoders,
            **sections["measure"],
            image_options=features,
            train=sections["train"],
            published=published,
        )

    def __post_init__(self) -> None:
        for side, given in (("image", self.image), ("text", self.text)):
            if not (isinstance(given, str) and given) and not (side == "image" and given is None):
                raise UsageError(
                    f"features.{side} is {given!r}", f"name an encoder: --set features.{side}=NAME"
                )
        for key, words in _WORDS.items():
            if getattr(self, key) not in words:
                known = [word for word in words if word is not None]
                raise UnknownNameError(f"measure.{key}", str(getattr(self, key)), known)
        for key, least in _NUMBERS.items():
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UsageError(f"measure.{key} is {value!r}", f"give a whole number from {least}")
        if self.published and self.train:
            raise UsageError(
                f"train.{next(iter(self.train))} is set, and the setting 'paper' trains as the thesis says",
                "choose --setting data, or leave it out",
            )
        self.training()

    def training(self) -> TrainOptions | None:
        """Options of training; None for the thesis's."""
        from pydantic import ValidationError

        from diptych.commerce.category_to_image.options import TrainOptions

        if self.published:
            return None
        known = [key for key in TrainOptions.model_fields if key not in _OWN]
        for key in self.train:
            if key not in known:
                raise UnknownNameError("key of train", key, known)
        try:
            return TrainOptions(**self.train)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"train.{where}: {first['msg']}, got {first['input']!r}", "diptych categories train --help"
            ) from None

    def protocol(self) -> str:
        """How is measured, in the words of printed numbers."""
        return f"by {self.relevance}" + (
            "" if self.query == "name" else f", categories by their {self.query}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All that numbers depend on besides the encoders, which have fingerprints; JSON-able."""
        named = ("published", "relevance", "query", "split", "attributes", "missing", "draw")
        return {**{name: getattr(self, name) for name in named}, "train": dict(self.train)}


def _put(section: dict[str, Any], keys: list[str], value: Any) -> None:
    """``timm.pad_type`` is a key of the table ``timm``."""
    for key in keys[:-1]:
        section = section.setdefault(key, {})
    section[keys[-1]] = value
