"""Family ``blip``: BLIP for image–text retrieval, of transformers or from its authors' checkpoints."""

from __future__ import annotations

from pathlib import Path

from diptych.core.files import read_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    config = folder / "config.json"
    if not config.is_file():
        return False
    content = read_json(config)
    return isinstance(content, dict) and content.get("model_type") == "blip"


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.blip import BlipEncoder

    path = Path(source).expanduser()
    if source.startswith("pretraining:") or path.is_file() or (path.is_dir() and not _recognises(path)):
        from diptych.encoders.official.blip import open_official_blip

        return open_official_blip(source, device=device)
    return BlipEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="blip",
        description="BLIP for retrieval, of transformers or from its authors' checkpoints, with its matching head",
        forms=("blip:NAME", "blip:FILE", "blip:pretraining:FILE", "a transformers folder of BLIP"),
        prefix="blip",
        recognises=_recognises,
        load=_load,
        matches=True,
    )
)
