"""A collection with perturbed images: a view that changes each image when it is read.

A changed image is a function of (seed, image id, perturbation, options) and of the image.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from PIL.Image import Image

from diptych.analysis.perturbations.caption import Unchanged
from diptych.analysis.perturbations.declaration import PicturePerturbation, options_of
from diptych.core.draws import Draws
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.data.images import Overlay, OverlaySource

SAME_PICTURE = "the result is the image itself"


class PerturbedSource:
    def __init__(
        self, collection: Collection, perturbation: PicturePerturbation, seed: int, options: Options
    ) -> None:
        self.perturbation, self.seed, self.options = perturbation, seed, options
        self._pictures, self._rows = collection.source, collection.source_rows
        self._ids = collection.image_ids
        self._outcomes: dict[int, str] = {}  # of rows that were read: why they stay as they are, or nothing

    def read(self, row: int) -> Image:
        picture = self._pictures.read(int(self._rows[row]))
        draws = Draws(self.seed, self.perturbation.name, self._ids[row])
        try:
            perturbed = self.perturbation.apply(picture, draws, self.options)
            same = perturbed.size == picture.size and perturbed.tobytes() == picture.tobytes()
            reason = SAME_PICTURE if same else ""
        except Unchanged as outcome:
            perturbed, reason = picture, str(outcome)
        self._outcomes[row] = reason
        return perturbed

    def content(self, row: int) -> str:
        name, options = self.perturbation.name, self.options.model_dump(mode="json")
        plain = self._pictures.content(int(self._rows[row]))
        return fingerprint(plain, name, options, self.seed, self._ids[row])

    def outcome(self, row: int) -> str:
        """Return why an image stays as it is, empty when it is changed; it is read for it where it has not been."""
        if row not in self._outcomes:
            self.read(row)
        return self._outcomes[row]


class _OverlaidSource(PerturbedSource):
    """The same where images have overlays, which stay what they are: nothing is pasted until later."""

    def overlay(self, row: int) -> Overlay | None:
        pictures: Any = self._pictures
        found: Overlay | None = pictures.overlay(int(self._rows[row]))
        return found


def perturbed_pictures(
    collection: Collection,
    perturbation: PicturePerturbation,
    *,
    seed: int,
    options: Mapping[str, Any] | None = None,
) -> Collection:
    settings = options_of(perturbation, options)
    if collection.holds == "regions":
        raise UsageError(
            f"{perturbation.name} changes images, {collection.name} holds region features",
            "read the data without the reader's option regions, or perturb captions",
        )
    kind = _OverlaidSource if isinstance(collection.source, OverlaySource) else PerturbedSource
    given = ((key, f"{one:.3g}" if isinstance(one, float) else one) for key, one in settings)
    options_text = ", ".join(f"{key} {value}" for key, value in given)
    return replace(
        collection,
        source=kind(collection, perturbation, seed, settings),
        source_rows=np.arange(collection.n_images),
        notes=(*collection.notes, f"pictures perturbed: {perturbation.name} ({options_text}), seed {seed}"),
    )
