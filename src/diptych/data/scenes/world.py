"""Worlds: what is in a scene and where, sampled from a seed, before anything is drawn or written.

Every scene has its own generator, named by (seed, split, index, purpose); none is shared, so a scene
does not depend on how many there are, in which order, or by how many processes they are made.

No two splits hold the same world: a world's describable facts, hashed, belong to one split, and a
scene of a split is drawn again until its facts belong there. That needs no list of what was seen.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from diptych.core.errors import UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.data.scenes.facts import (
    BACKGROUNDS,
    COLOURS,
    DESCRIBABLE,
    FRAMES,
    LIGHTS,
    MATERIALS,
    PLACES,
    ROLES,
    SHAPES,
    SIZES,
    TINTS,
)

SPLITS = ("train", "val", "test")

# The least and the most objects of a scene by default.
OBJECTS = (2, 4)

_RADII = {"small": 0.115, "medium": 0.16, "large": 0.215}
_MAIN_SIZE_WEIGHTS = (2, 3, 5)
_COUNT_WEIGHTS = {1: 3, 2: 3, 3: 4, 4: 3}
# The main object is at the upper end of its size's radii and the others are at the lower end, so that
# it is visibly the largest even next to others of its size; radii of different sizes never meet.
_MAIN_STRETCH, _OTHER_STRETCH = (1.06, 1.12), (0.88, 0.94)
_CLEAR = 0.06  # by how much one axis must lead for a relation or a place to be beyond doubt
_OVERLAP = 0.78  # centres may come as close as this share of the two radii: objects occlude each other


@dataclass(frozen=True)
class SceneObject:
    """One object; lengths are fractions of the image's side, y grows downwards."""

    shape: str
    colour: str
    size: str
    material: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class World:
    """One scene: 1 to 4 objects, largest first, a background, and what is seen but never described."""

    objects: tuple[SceneObject, ...]
    background: str
    light: str
    tint: str
    frame: str

    def facts(self) -> dict[str, str]:
        """Key -> value; the keys are those of ``FACT_VALUES`` that this scene has."""
        main = self.objects[0]
        facts: dict[str, str] = {}
        for role, item in zip(ROLES, self.objects, strict=False):
            facts |= {
                f"{role}.{name}": getattr(item, name) for name in ("shape", "colour", "size", "material")
            }
        facts["main.place"] = place(main.x, main.y)
        for role, item in zip(ROLES[1:], self.objects[1:], strict=False):
            facts[f"relation.main.{role}"] = relation(main, item)
        if len(self.objects) > 1:  # a caption of one object states no count
            facts["count"] = str(len(self.objects))
        return facts | {name: getattr(self, name) for name in ("background", "light", "tint", "frame")}


def relation(first: SceneObject, other: SceneObject) -> str:
    """Return where ``first`` is, seen from ``other``, along the axis on which they are further apart."""
    across, down = first.x - other.x, first.y - other.y
    if abs(across) > abs(down):
        return "left of" if across < 0 else "right of"
    return "above" if down < 0 else "below"


def place(x: float, y: float) -> str:
    """In which part of the image a point is: the middle, or the side its larger offset leads to."""
    across, down = x - 0.5, y - 0.5
    if max(abs(across), abs(down)) < 0.11:
        return "middle"
    if abs(across) > abs(down):
        return "left" if across < 0 else "right"
    return "top" if down < 0 else "bottom"


def generator(seed: int, split: str, index: int, purpose: str) -> random.Random:
    return random.Random(f"diptych scenes/{seed}/{split}/{index}/{purpose}")


def home_split(facts: Mapping[str, str]) -> str:
    """Return the only split that may hold a world with these describable facts."""
    describable = {key: facts[key] for key in DESCRIBABLE if key in facts}
    return SPLITS[int(fingerprint(describable), 16) % len(SPLITS)]


def world_of(seed: int, split: str, index: int, objects: tuple[int, int] = OBJECTS) -> World:
    """World ``index`` of ``split``: the first of its generator's worlds whose home is that split.

    ``objects`` is as for :func:`sample_world`.
    """
    if split not in SPLITS:
        raise UnknownNameError("split of scenes", split, SPLITS)
    chance = generator(seed, split, index, "world")
    while True:
        world = sample_world(chance, objects)
        if home_split(world.facts()) == split:
            return world


def sample_world(chance: random.Random, objects: tuple[int, int] = OBJECTS) -> World:
    """Sample one world of ``objects[0]`` to ``objects[1]`` objects.

    Shapes, colours, materials, background, light, tint, frame and the main object's place are uniform
    and independent, but that no two objects share shape and colour; no other object is of a larger
    size than the main one; positions are drawn until they fit.
    """
    weights = {count: _COUNT_WEIGHTS[count] for count in range(objects[0], objects[1] + 1)}
    count = chance.choices(list(weights), list(weights.values()))[0]
    looks: set[tuple[str, str]] = set()
    pairs: list[tuple[str, str]] = []
    while len(pairs) < count:  # no two objects share shape and colour: "the red star" is one object
        pair = (chance.choice(SHAPES), chance.choice(COLOURS))
        if pair not in looks:
            looks.add(pair)
            pairs.append(pair)
    main_place = chance.choice(PLACES)
    sizes = _sample_sizes(chance, count)
    spots = None
    while spots is None:
        spots = _sample_spots(chance, [radius for _, radius in sizes], main_place)
    return World(
        objects=tuple(
            SceneObject(shape, colour, size, chance.choice(MATERIALS), x, y, radius)
            for (shape, colour), (size, radius), (x, y) in zip(pairs, sizes, spots, strict=True)
        ),
        background=chance.choice(BACKGROUNDS),
        light=chance.choice(LIGHTS),
        tint=chance.choice(TINTS),
        frame=chance.choice(FRAMES),
    )


def _sample_sizes(chance: random.Random, count: int) -> list[tuple[str, float]]:
    main = chance.choices(SIZES, _MAIN_SIZE_WEIGHTS)[0]
    allowed = SIZES[: SIZES.index(main) + 1]
    others = [chance.choice(allowed) for _ in range(count - 1)]
    sized = [(name, _RADII[name] * chance.uniform(*_OTHER_STRETCH)) for name in others]
    sized.sort(key=lambda size: -size[1])
    return [(main, _RADII[main] * chance.uniform(*_MAIN_STRETCH)), *sized]


def _sample_spots(
    chance: random.Random, radii: list[float], main_place: str, tries: int = 40
) -> list[tuple[float, float]] | None:
    """Centres that keep the main object's place and relations clear; None when they would not fit."""
    spots = [_main_spot(chance, main_place, radii[0])]
    for radius in radii[1:]:
        edge = 0.9 * radius
        for _ in range(tries):
            x, y = chance.uniform(edge, 1 - edge), chance.uniform(edge, 1 - edge)
            across, down = abs(x - spots[0][0]), abs(y - spots[0][1])
            if abs(across - down) >= _CLEAR and all(
                math.hypot(x - other_x, y - other_y) >= _OVERLAP * (radius + other)
                for (other_x, other_y), other in zip(spots, radii, strict=False)
            ):
                spots.append((x, y))
                break
        else:
            return None
    return spots


def _main_spot(chance: random.Random, main_place: str, radius: float) -> tuple[float, float]:
    if main_place == "middle":
        return 0.5 + chance.uniform(-0.08, 0.08), 0.5 + chance.uniform(-0.08, 0.08)
    lead = chance.uniform(0.15, 0.5 - 0.9 * radius)
    side = chance.uniform(-1, 1) * (lead - _CLEAR)
    if main_place in ("left", "top"):
        lead = -lead
    return (0.5 + lead, 0.5 + side) if main_place in ("left", "right") else (0.5 + side, 0.5 + lead)
