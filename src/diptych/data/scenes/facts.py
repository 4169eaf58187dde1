"""Facts of a scene: their keys, their values, and which captions state them.

A fact is a key and a value, ``"main.colour": "red"``. A key means the same in every scene, so that a
probe can be trained per key. Objects are named by their rank in drawn size: ``main`` is the largest
(and in front), then ``second``, ``third``, ``fourth``; keys of objects a scene does not have are absent.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.reading import read_toml

Words = Mapping[str, tuple[str, ...]]


def _words(*kinds: str) -> Iterator[Words]:
    tables = read_toml(Path(__file__).with_suffix(".toml"))
    for kind in kinds:
        yield {value: tuple(phrases) for value, phrases in tables[kind].items()}


SHAPE_WORDS, COLOUR_WORDS, SIZE_WORDS, MATERIAL_WORDS = _words("shape", "colour", "size", "material")
PLACE_PHRASES, BACKGROUND_PHRASES, COUNT_WORDS = _words("place", "background", "count")
RELATION_PHRASES, RELATION_INVERSE = _words("relation", "inverse")
SHAPES, COLOURS, SIZES, MATERIALS = map(tuple, (SHAPE_WORDS, COLOUR_WORDS, SIZE_WORDS, MATERIAL_WORDS))
PLACES, RELATIONS, BACKGROUNDS = map(tuple, (PLACE_PHRASES, RELATION_PHRASES, BACKGROUND_PHRASES))
COUNTS = tuple(COUNT_WORDS)
LIGHTS = ("left", "right", "top", "bottom")
TINTS = ("neutral", "warm", "cool")
FRAMES = ("none", "white", "black")
ROLES = ("main", "second", "third", "fourth")

# Every key a scene can have, with every value it can take: the classes of a probe.
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

# What every caption of every scene states.
SHARED = ("main.shape", "main.colour")

# What a caption may state besides the shared facts; the facts of one topic are stated together.
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

# The keys that captions can state.
DESCRIBABLE = (*SHARED, *(key for keys in TOPICS.values() for key in keys))

# The keys no caption ever states, though they can be seen: light, tint, frame, details of the others.
NEVER_DESCRIBED = tuple(key for key in FACT_VALUES if key not in DESCRIBABLE)


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
