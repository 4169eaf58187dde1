"""Family ``adapted``: another encoder with a linear map per side on its rows."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return False  # ours are always marked by diptych.json


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.adapted import LinearlyAdapted

    return LinearlyAdapted.open(source, device=device)


FAMILIES.add(
    Family(
        name="adapted",
        description="any other encoder with a linear map per side, learned from a few pairs",
        forms=("a folder that diptych adapt wrote",),
        prefix=None,
        recognises=_recognises,
        load=_load,
    )
)
