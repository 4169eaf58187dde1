"""Family ``huggingface``: CLIP-like models of the transformers library."""

from __future__ import annotations

from pathlib import Path

from diptych.core.files import read_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    from diptych.encoders.text_rules import TEXT_RULES

    config = folder / "config.json"
    if (
        not config.is_file() or (folder / "modules.json").is_file()
    ):  # sentence-transformers, a CLIP among others
        return False
    content = read_json(config)
    return isinstance(content, dict) and content.get("model_type") in TEXT_RULES


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.huggingface import HuggingFaceEncoder

    return HuggingFaceEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="huggingface",
        description="CLIP, SigLIP, AltCLIP, ALIGN, GroupViT and their like, from transformers",
        forms=("hf:NAME", "a transformers folder"),
        prefix="hf",
        recognises=_recognises,
        load=_load,
    )
)
