"""Whose rows a model was trained on, and whether others are the same encoders' rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from diptych.commerce.category_to_image.features.rows import Modality
from diptych.core.errors import MismatchError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays


def encoder_marks(about: Mapping[str, Any], modalities: tuple[Modality, ...]) -> dict[str, str]:
    """The fingerprints of the encoders that matter to a model of ``modalities``: always ``text``, maybe ``image``."""
    sides = ("image", "text") if "image" in modalities else ("text",)
    return {side: _mark(about.get(side)) for side in sides}


def _mark(description: Any) -> str:
    if isinstance(description, Mapping) and "fingerprint" in description:
        return str(description["fingerprint"])
    return fingerprint(description)


def missing_pictures(pictured: Iterable[np.ndarray]) -> str:
    """Which products stand without a picture, in words that change with them; empty where none does.

    A catalogue's fingerprint knows nothing of pictures. One that is downloaded or mended later makes other rows.
    """
    masks = {str(place): mask for place, mask in enumerate(pictured)}
    missing = sum(int((~mask).sum()) for mask in masks.values())
    return f"{missing:,} missing ({fingerprint_arrays(masks)})" if missing else ""


def check_encoders(
    trained: Mapping[str, str], about: Mapping[str, Any], modalities: tuple[Modality, ...]
) -> None:
    """See that features were made by the encoders that a model was trained with."""
    for side, mark in encoder_marks(about, modalities).items():
        if mark != trained.get(side):
            raise MismatchError(
                f"the model was trained on rows of {side} encoder {trained.get(side)}, these are of {mark}",
                "make the features with the encoders in the run's folder: CategoryRun.open(folder).features(...)",
            )
