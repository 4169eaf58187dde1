"""What can be true of a scene: fact keys, their values, and who states them.

A fact is a key and a value, ``"main.colour": "red"``. A key means the same in every scene, so that a
probe can be trained per key. Objects are named by their rank in drawn size: ``main`` is the largest
(and in front), then ``second``, ``third``, ``fourth``; keys of objects a scene does not have are absent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from diptych.core.errors import DataError

SHAPES = (
    "circle", "square", "triangle", "star", "heart", "cross",
    "ring", "crescent", "arrow", "flower", "drop", "hexagon",
)  # fmt: skip
COLOURS = ("red", "orange", "yellow", "green", "turquoise", "blue", "purple", "pink", "white", "black")
SIZES = ("small", "medium", "large")
MATERIALS = ("matte", "striped", "spotted", "shiny")
PLACES = ("left", "right", "top", "bottom", "middle")
RELATIONS = ("left of", "right of", "above", "below")
BACKGROUNDS = ("sand", "grass", "water", "brick", "snow", "night", "wood", "sunset")
COUNTS = ("2", "3", "4")
LIGHTS = ("left", "right", "top", "bottom")
TINTS = ("neutral", "warm", "cool")
FRAMES = ("none", "white", "black")
ROLES = ("main", "second", "third", "fourth")

FACT_VALUES: dict[str, tuple[str, ...]] = {
    **{
        f"{role}.{attribute}": values
        for role in ROLES
        for attribute, values in (
            ("shape", SHAPES),
            ("colour", COLOURS),
            ("size", SIZES),
            ("material", MATERIALS),
        )
    },
    "main.place": PLACES,
    **{f"relation.main.{role}": RELATIONS for role in ROLES[1:]},
    "count": COUNTS,
    "background": BACKGROUNDS,
    "light": LIGHTS,
    "tint": TINTS,
    "frame": FRAMES,
}
"""Every key a scene can have, with every value it can take: the classes of a probe."""

SHARED = ("main.shape", "main.colour")
"""What every caption of every scene states."""

TOPICS: dict[str, tuple[str, ...]] = {
    "background": ("background",),
    "size": ("main.size",),
    "material": ("main.material",),
    "place": ("main.place",),
    "count": ("count",),
    "second": ("second.shape", "second.colour", "relation.main.second"),
    "second size": ("second.size",),
    "second material": ("second.material",),
    "third": ("third.shape", "third.colour", "relation.main.third"),
}
"""What a caption may state beside the shared facts; the facts of one topic are stated together."""

DESCRIBABLE = (*SHARED, *(key for keys in TOPICS.values() for key in keys))
"""The keys that captions can state."""

NEVER_DESCRIBED = tuple(key for key in FACT_VALUES if key not in DESCRIBABLE)
"""The keys no caption ever states, though they can be seen: light, tint, frame, details of the others."""


@dataclass(frozen=True)
class Described:
    """The keys of one image by how many of its k captions state them.

    Attributes:
        shared: stated by every caption.
        partial: stated by several captions, not by all.
        specific: stated by exactly one of several captions.
        undescribed: stated by none.
    """

    shared: tuple[str, ...]
    partial: tuple[str, ...]
    specific: tuple[str, ...]
    undescribed: tuple[str, ...]


def described(facts: Mapping[str, str], states: Sequence[Collection[str]]) -> Described:
    """Sort the keys of one image by who states them."""
    for position, stated in enumerate(states):
        if strange := sorted(set(stated) - set(facts)):
            raise DataError(
                f"caption {position} states {strange[0]!r}, which is no fact of its image",
                "give the captions of the image that has these facts",
            )
    times = {key: sum(key in stated for stated in states) for key in facts}
    k = len(states)
    return Described(
        shared=tuple(key for key, n in times.items() if n == k and k),
        partial=tuple(key for key, n in times.items() if 1 < n < k),
        specific=tuple(key for key, n in times.items() if n == 1 and k > 1),
        undescribed=tuple(key for key, n in times.items() if n == 0),
    )


# The words captions are written with: every value's synonyms.
#
# Whole words only mean one thing: no phrase here occurs inside a phrase of another value of its kind
# unless the longer one is read first (``above it`` before ``above``), so what a caption says can be
# read back from its text.


Words = dict[str, tuple[str, ...]]

SHAPE_WORDS: Words = {
    "circle": ("circle", "disc"),
    "square": ("square", "box"),
    "triangle": ("triangle",),
    "star": ("star",),
    "heart": ("heart",),
    "cross": ("cross", "plus sign"),
    "ring": ("ring", "hoop"),
    "crescent": ("crescent", "moon"),
    "arrow": ("arrow", "pointer"),
    "flower": ("flower", "blossom"),
    "drop": ("drop", "teardrop"),
    "hexagon": ("hexagon",),
}
COLOUR_WORDS: Words = {
    "red": ("red", "crimson", "scarlet"),
    "orange": ("orange", "tangerine"),
    "yellow": ("yellow", "lemon"),
    "green": ("green", "emerald"),
    "turquoise": ("turquoise", "teal"),
    "blue": ("blue", "cobalt"),
    "purple": ("purple", "violet"),
    "pink": ("pink", "rosy"),
    "white": ("white", "ivory"),
    "black": ("black", "ebony"),
}
SIZE_WORDS: Words = {
    "small": ("small", "little", "tiny"),
    "medium": ("medium-sized", "mid-sized"),
    "large": ("large", "big", "huge"),
}
MATERIAL_WORDS: Words = {
    "matte": ("matte", "plain"),
    "striped": ("striped", "stripy"),
    "spotted": ("spotted", "dotted"),
    "shiny": ("shiny", "glossy", "polished"),
}
PLACE_PHRASES: Words = {
    "left": ("on the left-hand side", "near the left edge"),
    "right": ("on the right-hand side", "near the right edge"),
    "top": ("at the top", "near the upper edge"),
    "bottom": ("at the bottom", "near the lower edge"),
    "middle": ("in the middle", "in the centre"),
}
BACKGROUND_PHRASES: Words = {
    "sand": ("on sand", "on sandy ground", "on a beach"),
    "grass": ("on grass", "on a lawn", "in a meadow"),
    "water": ("on water", "on the sea", "on the waves"),
    "brick": ("against a brick wall", "in front of bricks", "on brickwork"),
    "snow": ("in the snow", "on snowy ground"),
    "night": ("at night", "against a night sky"),
    "wood": ("on wood", "on wooden planks", "on a wooden floor"),
    "sunset": ("at sunset", "at dusk", "against an evening sky"),
}
COUNT_WORDS: Words = {"2": ("two",), "3": ("three",), "4": ("four",)}

RELATION_PHRASES: Words = {
    "left of": ("to the left of", "left of"),
    "right of": ("to the right of", "right of"),
    "above": ("above", "over"),
    "below": ("below", "under", "beneath"),
}
"""Before the other object: 'a red star *to the left of* a blue heart'."""

RELATION_INVERSE: Words = {
    "left of": ("to its right", "on its right"),
    "right of": ("to its left", "on its left"),
    "above": ("below it", "underneath it"),
    "below": ("above it", "over it"),
}
"""After the other object: 'a red star with a blue heart *to its right*'; keyed by where the main one is."""
