"""The models by name: what each needs, what it is called in print."""

from __future__ import annotations

from itertools import combinations

from diptych.commerce.category_to_image.features.rows import MODALITIES, Modality

_LETTERS: dict[str, Modality] = {one[0]: one for one in MODALITIES}

TRAINED: tuple[str, ...] = tuple(
    "clip-" + "".join(one[0] for one in chosen)
    for size in range(1, len(MODALITIES) + 1)
    for chosen in combinations(MODALITIES, size)
)
"""``clip-i`` … ``clip-ita``: every subset of modalities, fewest first."""

_PRINTED = {"bm25": "BM25", "sentence": "sentence encoder"}


def modalities_of(model: str) -> tuple[Modality, ...] | None:
    """What a trained model represents a product by; None for a name of none."""
    return tuple(_LETTERS[letter] for letter in model.removeprefix("clip-")) if model in TRAINED else None


def printed_name(model: str) -> str:
    """``CLIP-ITA``, ``BM25``, ``sentence encoder``."""
    return _PRINTED.get(model, model.upper())
