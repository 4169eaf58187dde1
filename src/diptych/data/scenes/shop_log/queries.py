"""What visitors look for: a vocabulary of queries, and the ways in which one of them is typed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_KINDS = (
    "red", "blue", "green", "black", "white", "small", "large", "cheap", "wireless", "wooden", "garden",
    "children's", "winter", "summer", "second-hand", "folding", "electric", "café", "müsli", "travel",
)  # fmt: skip
_THINGS = (
    "bicycle", "lamp", "table", "chair", "phone", "phone case", "headphones", "kettle", "fridge", "book", "puzzle",
    "board game", "lego", "backpack", "raincoat", "boots", "trainers", "tent", "sleeping bag", "coffee maker",
    "vacuum cleaner", "laptop", "charger", "monitor", "keyboard", "mouse", "printer", "desk", "bed", "mattress",
    "pillow", "curtain", "carpet", "mirror", "clock", "watch", "perfume", "shampoo", "toothbrush", "drill", "hammer",
    "paint", "ladder", "barbecue", "parasol", "pan", "knife", "plate", "mug", "toaster",
)  # fmt: skip
_USES = ("", " for two", " gift", " offer", " 2019")

STYLES = 5
"""Ways of typing: as it is, with a capital, all capitals, blanks around it, two blanks for one."""


@lru_cache
def query_texts(count: int) -> tuple[str, ...]:
    """The first ``count`` queries, most frequent first, as they are when normalised: all different."""
    texts = []
    for number in range(count):
        kind, rest = number % len(_KINDS), number // len(_KINDS)
        thing, use = (rest + kind * 7) % len(_THINGS), rest // len(_THINGS)
        tail = _USES[use] if use < len(_USES) else f" {use}"
        texts.append(f"{_KINDS[kind]} {_THINGS[thing]}{tail}")
    return tuple(texts)


def query_shares(count: int, slope: float) -> np.ndarray:
    """(count,) how frequent each is among all queries."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -slope
    shares: np.ndarray = weights / weights.sum()
    return shares


@lru_cache
def typed_texts(count: int) -> tuple[str, ...]:
    """(count × :data:`STYLES`): each query in each way of typing, number × :data:`STYLES` + style."""
    typed = []
    for text in query_texts(count):
        typed += [text, text.capitalize(), text.upper(), f" {text}  ", text.replace(" ", "  ", 1)]
    return tuple(typed)
