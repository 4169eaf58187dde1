"""The words captions are written with: every value's synonyms.

Whole words only mean one thing: no phrase here occurs inside a phrase of another value of its kind
unless the longer one is read first (``above it`` before ``above``), so what a caption says can be
read back from its text.
"""

from __future__ import annotations

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
