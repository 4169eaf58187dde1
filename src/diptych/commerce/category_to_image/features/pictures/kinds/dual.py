"""Pictures through the image side of a dual encoder: CLIP, as published, or one that was trained here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from diptych.commerce.category_to_image.features.pictures.contract import (
    PICTURES,
    NoOptions,
    PictureEncoder,
    PictureKind,
    Precision,
)
from diptych.core.errors import UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import rooted
from diptych.encoders.targets import TargetModel

__all__ = ["DualPictures"]


class DualPictures(PictureEncoder):
    """The image side of a dual encoder.

    Args:
        encoder: makes the rows.
        source: where it is from, as :meth:`DualEncoder.load` takes it.

    Raises:
        UsageError: its rows are not compared by the cosine.
    """

    kind: ClassVar[str] = "dual"

    def __init__(self, encoder: DualEncoder, source: str) -> None:
        from diptych.encoders.targets.kinds.dual import DualTexts

        self.encoder, self.source = encoder, source
        self.options: dict[str, Any] = {}
        self._texts = DualTexts(encoder, source)

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.encoder.width

    @property
    def fingerprint(self) -> str:
        """The encoder's own."""
        return self.encoder.fingerprint

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        """What an item is."""
        return self.encoder.takes

    @property
    def texts(self) -> TargetModel:
        """The encoder's other side."""
        return self._texts

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {"kind": self.kind, "source": self.source, **self.encoder.describe()}

    def prepared(self, item: Any, name: str) -> Any:
        """What the encoder prepares."""
        return self.encoder.prepared(item, name)

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows."""
        return self.encoder.encode_prepared(prepared, names)


def _make(rest: str, options: NoOptions, precision: Precision) -> PictureEncoder:
    if precision != "float32":
        raise UsageError(f"precision {precision} with a dual encoder", "leave it out: its rows are float32")
    source = rooted(rest)
    return DualPictures(DualEncoder.load(source), source)


PICTURES.add(
    PictureKind(
        "dual",
        "FOLDER or PREFIX:NAME",
        "the image side of a dual encoder (CLIP as published); its text side then reads categories, too",
        "Radford et al. 2021",
        NoOptions,
        _make,
    )
)
