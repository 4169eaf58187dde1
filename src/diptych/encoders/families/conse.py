"""Family ``conse``: a classifier's class names through a sentence encoder, trained on no pairs."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return (folder / "conse.json").is_file()


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.conse import ConseEncoder

    return ConseEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="conse",
        description="a timm classifier's class names through a sentence encoder (ConSE): no training on pairs",
        forms=("conse:FOLDER with a conse.json",),
        prefix="conse",
        recognises=_recognises,
        load=_load,
    )
)
