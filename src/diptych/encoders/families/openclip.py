"""Family ``open_clip``: models of the open_clip library."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return (folder / "open_clip_config.json").is_file()


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.openclip import OpenClipEncoder

    return OpenClipEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="open_clip",
        description="any model of open_clip, by architecture and pretrained tag or by folder",
        forms=("open_clip:ARCHITECTURE/PRETRAINED", "open_clip:hf-hub:NAME", "an open_clip folder"),
        prefix="open_clip",
        recognises=_recognises,
        load=_load,
    )
)
