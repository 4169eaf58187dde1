"""What can be true of a product: its facets, their values, and the words for them.

A category says the department first, then the shape, then what it adds level by level; which facet comes at which
level differs from department to department. Two departments may sell things of one noun, so that a category's name
stands under both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.scenes.facts import COLOUR_WORDS, COLOURS, MATERIAL_WORDS, MATERIALS, SHAPE_WORDS, SHAPES

Words = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Department:
    """A root of the tree."""

    background: str  # what pictures of its products stand in front of
    noun: str  # what it sells; a key of NOUNS


DEPARTMENTS = {
    "Beach": Department("sand", "float"),
    "Boating": Department("water", "float"),
    "Camping": Department("night", "lamp"),
    "Garden": Department("grass", "planter"),
    "Home & Kitchen": Department("wood", "lamp"),
    "Tools & Workshop": Department("brick", "hook"),
    "Travel": Department("sunset", "bag"),
    "Winter Sports": Department("snow", "sled"),
}
"""One for each background that can be painted."""

NOUNS: Words = {
    "float": ("float", "raft"),
    "lamp": ("lamp", "lantern"),
    "planter": ("planter", "flower pot"),
    "hook": ("hook", "hanger"),
    "bag": ("bag", "pouch"),
    "sled": ("sled", "toboggan"),
}
"""What titles call them; the first is the category's word."""

_SIZES: Words = {"mini": ("mini", "pocket-size"), "large": ("large", "big"), "giant": ("giant", "jumbo")}
_USES: Words = {
    "indoor": ("indoor", "in-house"),
    "outdoor": ("outdoor", "all-weather"),
    "kids": ("kids", "children's"),
    "pet": ("pet", "dog & cat"),
}
_STYLES: Words = {
    "vintage": ("vintage", "retro"),
    "modern": ("modern", "contemporary"),
    "rustic": ("rustic", "country-style"),
    "nordic": ("nordic", "scandinavian"),
}
_FEATURES: Words = {
    "foldable": ("foldable", "collapsible"),
    "magnetic": ("magnetic", "magnet"),
    "inflatable": ("inflatable", "blow-up"),
    "wireless": ("wireless", "cordless"),
}
_OCCASIONS: Words = {
    "christmas": ("christmas", "xmas"),
    "halloween": ("halloween", "spooky"),
    "easter": ("easter", "spring"),
    "birthday": ("birthday", "party"),
}

SAID: dict[str, Words] = {
    "department": {name: (name,) for name in DEPARTMENTS},
    "shape": {value: SHAPE_WORDS[value] for value in SHAPES},
    "colour": {value: COLOUR_WORDS[value] for value in COLOURS},
    "finish": {value: MATERIAL_WORDS[value] for value in MATERIALS},
    "size": _SIZES,
    "use": _USES,
    "style": _STYLES,
    "feature": _FEATURES,
    "occasion": _OCCASIONS,
    "noun": NOUNS,
}
"""Facet → value → what titles say for it; the first is the category's word, and what attributes say."""

FACETS = tuple(facet for facet in SAID if facet != "noun")
"""What a category can depend on: one for each of nine levels. The noun follows from the department."""


DATASET = "product-scenes"
"""What ``dataset.json`` calls it."""

VERSION = 1
"""Raised whenever the same seed would give other products; part of the cache's key."""

PRODUCTS = "products.jsonl"
"""A line for each product: ``id``, ``split``, ``picture`` (its file, or null), ``title`` (or null), ``attributes``,
``category_paths``, ``belongs`` (the path that it belongs to, given or not), ``depends`` (the facets that this category
depends on, one for each level), ``facts`` (of every facet) and ``told`` (what each modality tells, rightly or
wrongly)."""

TRUTH = "truth.json"


MODALITIES = ("picture", "title", "attributes")

ALWAYS_SHOWN = ("department", "shape", "colour", "finish")
"""What a picture cannot but show, rightly or wrongly: background, shape, colour and finish."""


@dataclass(frozen=True)
class Telling:
    """How a modality tells a facet."""

    told: float  # probability that it says a value at all; where the product's category depends on the facet
    # probability that the value is the product's own; else it is one of the others, each as likely
    right: float = 1.0


def _texts(right: float, **told: float) -> dict[str, Telling]:
    return {facet: Telling(share, right) for facet, share in told.items()}


@dataclass(frozen=True)
class Effects:
    """All of them.

    Attributes:
        picture: facet → how pictures tell it; all of :data:`ALWAYS_SHOWN`, each with ``told`` 1, and no other.
        title: facet → how titles tell it; also of ``noun``. A facet that is absent is never told.
        attributes: facet → how attributes tell it.
        beside: how often titles and attributes tell a facet that the product's category does not depend on, as a
            share of how often they tell it otherwise.
        synonyms: probability that a title says a value by another word than the category's.
    """

    picture: Mapping[str, Telling] = field(
        default_factory=lambda: {
            "department": Telling(1.0, 0.92),
            "shape": Telling(1.0, 0.92),
            "colour": Telling(1.0, 0.8),
            "finish": Telling(1.0, 0.5),
        }
    )
    title: Mapping[str, Telling] = field(
        default_factory=lambda: _texts(
            0.98,
            noun=0.25,
            shape=0.9,
            colour=0.75,
            finish=0.75,
            size=0.75,
            use=0.7,
            style=0.7,
            feature=0.7,
            occasion=0.7,
        )
    )
    attributes: Mapping[str, Telling] = field(
        default_factory=lambda: _texts(
            0.96,
            department=0.1,
            colour=0.6,
            finish=0.75,
            size=0.7,
            use=0.65,
            style=0.65,
            feature=0.65,
            occasion=0.65,
        )
    )
    beside: float = 0.3
    synonyms: float = 0.4

    def of(self, modality: str) -> Mapping[str, Telling]:
        """Return how one of :data:`MODALITIES` tells each facet."""
        told: Mapping[str, Telling] = getattr(self, modality)
        return told

    def check(self) -> None:
        """See that they can be."""
        shares = {"beside": self.beside, "synonyms": self.synonyms}
        for modality in MODALITIES:
            for facet, telling in self.of(modality).items():
                if facet not in SAID:
                    raise UnknownNameError("facet", facet, SAID)
                shares[f"{modality}: {facet}, told"] = telling.told
                shares[f"{modality}: {facet}, right"] = telling.right
        for what, share in shares.items():
            if not 0 <= share <= 1:
                raise UsageError(f"effects: {what} is {share}", "give a probability, 0 to 1")
        shown = {facet for facet, telling in self.picture.items() if telling.told == 1}
        if shown != set(self.picture) or shown != set(ALWAYS_SHOWN):
            raise UsageError(
                f"effects: pictures tell {', '.join(sorted(self.picture)) or 'nothing'}",
                f"give {', '.join(ALWAYS_SHOWN)}, each told with probability 1: a picture shows some value of each",
            )
        if "noun" in self.attributes:
            raise UsageError("effects: attributes tell the noun", "give it to titles alone")
        if "department" in self.title:
            raise UsageError("effects: titles tell the department", "titles tell it by the noun")
