"""Perturbing captions by a perturbation's name."""

from __future__ import annotations

from typing import Any

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)


def text_perturbation(name: str) -> TextPerturbation:
    found = PERTURBATIONS.get(name)
    assert isinstance(found, TextPerturbation)
    return found


def perturbed(
    name: str, *captions: str, ids: Any = None, options: Any = None, **given: Any
) -> PerturbedCaptions:
    """Captions perturbed; their ids are their numbers unless given."""
    ids = [str(row) for row in range(len(captions))] if ids is None else ids
    return perturb_captions(text_perturbation(name), captions, ids, options=options, **given)


def untagged(tagged: str) -> tuple[str, list[str]]:
    """A caption and its tags, from ``word/TAG word/TAG``."""
    pairs = [token.rsplit("/", 1) for token in tagged.split()]
    return " ".join(word for word, _ in pairs), [tag for _, tag in pairs]


def perturbed_tagged(name: str, tagged: str, times: int = 1) -> PerturbedCaptions:
    """The same caption several times, from ``word/TAG word/TAG``."""
    text, tags = untagged(tagged)
    return perturbed(name, *[text] * times, tags=[tags] * times)
