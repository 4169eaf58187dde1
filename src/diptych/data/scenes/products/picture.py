"""Pictures of products: one large object in front of the background of what the picture tells to be its department."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import LIGHTS
from diptych.data.scenes.products.facets import DEPARTMENTS
from diptych.data.scenes.world import SceneObject, World

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["draw_product"]

_RADII = (0.26, 0.34)


def draw_product(told: Mapping[str, str], chance: random.Random, size: int) -> Image:
    """Draw what a picture tells.

    Args:
        told: department, shape, colour and finish, as pictures tell them.
        chance: the product's own generator for everything that is no fact: place, size, light, turn, noise.
        size: side of the square picture in pixels.

    Returns:
        An RGB Pillow picture, (size, size).
    """
    item = SceneObject(
        told["shape"],
        told["colour"],
        "large",
        told["finish"],
        0.5 + chance.uniform(-0.1, 0.1),
        0.5 + chance.uniform(-0.1, 0.1),
        chance.uniform(*_RADII),
    )
    background = DEPARTMENTS[told["department"]].background
    return draw_world(World((item,), background, chance.choice(LIGHTS), "neutral", "none"), chance, size)
