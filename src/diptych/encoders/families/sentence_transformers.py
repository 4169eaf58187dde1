"""Family ``sentence_transformers``: CLIP models of the sentence-transformers library."""

from __future__ import annotations

from pathlib import Path

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family


def _recognises(folder: Path) -> bool:
    return (folder / "modules.json").is_file()


def _load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.sentence_transformers import SentenceTransformersEncoder

    return SentenceTransformersEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="sentence_transformers",
        description="CLIP of sentence-transformers, e.g. clip-ViT-L-14, with the library's own preprocessing",
        forms=("st:NAME", "a sentence-transformers folder"),
        prefix="st",
        recognises=_recognises,
        load=_load,
    )
)
