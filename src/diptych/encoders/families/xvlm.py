"""Family ``xvlm``: X-VLM from the checkpoints that its authors published."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return False  # a checkpoint file does not say whose it is until it is read; ours say it in diptych.json


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.official.xvlm import XvlmEncoder

    return XvlmEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="xvlm",
        description="X-VLM from its authors' checkpoints, with its matching head",
        forms=("xvlm:FILE", "xvlm:pretraining:FILE"),
        prefix="xvlm",
        recognises=_recognises,
        load=_load,
        matches=True,
    )
)
