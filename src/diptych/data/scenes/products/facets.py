"""What can be true of a product: its facets, their values, and the words for them.

A category says the department first, then the shape, then what it adds level by level; which facet comes at which
level differs from department to department. Two departments may sell things of one noun, so that a category's name
stands under both.
"""

from __future__ import annotations

from dataclasses import dataclass

from diptych.data.scenes.facts import COLOURS, MATERIALS, SHAPES
from diptych.data.scenes.words import COLOUR_WORDS, MATERIAL_WORDS, SHAPE_WORDS

Words = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Department:
    """A root of the tree.

    Attributes:
        background: what pictures of its products stand in front of.
        noun: what it sells; a key of :data:`NOUNS`.
    """

    background: str
    noun: str


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
