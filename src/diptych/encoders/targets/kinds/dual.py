"""Targets of the text side of a dual encoder: CLIP and its like, or one that was trained here.

Source: Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import rooted
from diptych.encoders.targets.contract import TargetModel, TargetOptions


class DualTexts(TargetModel):
    kind: ClassVar[str] = "dual"

    def __init__(self, encoder: DualEncoder, source: str) -> None:
        if encoder.similarity != "cosine":
            raise UsageError(
                f"{source} compares its rows by {encoder.similarity}, unit rows are compared by cosine",
                "give an encoder whose similarity is the cosine",
            )
        self.encoder = encoder
        self.source = source

    @classmethod
    def make(cls, options: TargetOptions, captions: Sequence[str]) -> Self:
        if options.precision != "float32":
            raise UsageError(
                f"precision {options.precision} with a dual encoder", "leave it out: its rows are float32"
            )
        source = rooted(options.model)
        return cls(DualEncoder.load(source), source)

    @classmethod
    def reopen(cls, folder: Path, settings: dict[str, Any]) -> Self:
        return cls(DualEncoder.load(settings["model"]), settings["model"])

    @property
    def width(self) -> int:
        return self.encoder.width

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    def _about(self) -> dict[str, Any]:
        return {"encoder": self.encoder.describe()}

    def _rows(self, texts: list[str]) -> np.ndarray:
        return self.encoder.encode_texts(texts, batch_size=len(texts))

    def _write(self, folder: Path) -> dict[str, Any]:
        return {"model": self.source}
