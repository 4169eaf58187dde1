"""source: which embeddings were scored: another split, text cut or prompt, as the person names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Settings


def _from(settings: Settings, label: str) -> Settings:
    return replace(settings, source=label)


def _choices(inputs: Inputs) -> Sequence[Choice]:
    found = []
    for label, source in inputs.sources.items():
        words = f"embeddings of {source.truth.n_images:,} images and {source.truth.n_texts:,} captions"
        found.append(Choice(label, words, partial(_from, label=label)))
    return found


SOURCE = AXES.add(
    Axis(
        name="source",
        description="which embeddings of the same model: split, text cut, prompt, as named with --also",
        choices=_choices,
    )
)
