"""Family ``two_tower``: the encoders this package trains."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return False  # ours are always marked by diptych.json


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.two_tower import TwoTowerEncoder

    return TwoTowerEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="two_tower",
        description="an image tower and a caption tower trained by this package",
        forms=("a folder that diptych train wrote",),
        prefix=None,
        recognises=_recognises,
        load=_load,
    )
)
