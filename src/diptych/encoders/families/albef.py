"""Family ``albef``: ALBEF from the checkpoints that its authors published."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return False  # a checkpoint file does not say whose it is until it is read; ours say it in diptych.json


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.official.albef import AlbefEncoder

    return AlbefEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="albef",
        description="ALBEF from its authors' checkpoints, with its matching head",
        forms=("albef:FILE", "albef:pretraining:FILE"),
        prefix="albef",
        recognises=_recognises,
        load=_load,
        matches=True,
    )
)
