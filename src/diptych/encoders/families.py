"""Encoder families, one declaration per file; see :mod:`diptych.encoders.family`."""

from __future__ import annotations

from pathlib import Path

from diptych.core.reading import read_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES, Family
from diptych.encoders.given_rows import GivenRows, is_folder_of_rows


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


def _albef_recognises(folder: Path) -> bool:
    return False  # a checkpoint file does not say whose it is until it is read; ours say it in diptych.json


def _albef_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.official.albef import AlbefEncoder

    return AlbefEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="albef",
        description="ALBEF from its authors' checkpoints, with its matching head",
        forms=("albef:FILE", "albef:pretraining:FILE"),
        prefix="albef",
        recognises=_albef_recognises,
        load=_albef_load,
        matches=True,
    )
)


def _blip_recognises(folder: Path) -> bool:
    config = folder / "config.json"
    if not config.is_file():
        return False
    content = read_json(config)
    return isinstance(content, dict) and content.get("model_type") == "blip"


def _blip_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.blip import BlipEncoder

    path = Path(source).expanduser()
    if source.startswith("pretraining:") or path.is_file() or (path.is_dir() and not _blip_recognises(path)):
        from diptych.encoders.official.blip import open_official_blip

        return open_official_blip(source, device=device)
    return BlipEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="blip",
        description="BLIP for retrieval, of transformers or from its authors' checkpoints, with its matching head",
        forms=("blip:NAME", "blip:FILE", "blip:pretraining:FILE", "a transformers folder of BLIP"),
        prefix="blip",
        recognises=_blip_recognises,
        load=_blip_load,
        matches=True,
    )
)


def _conse_recognises(folder: Path) -> bool:
    return (folder / "conse.json").is_file()


def _conse_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.conse import ConseEncoder

    return ConseEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="conse",
        description="a timm classifier's class names through a sentence encoder (ConSE): no training on pairs",
        forms=("conse:FOLDER with a conse.json",),
        prefix="conse",
        recognises=_conse_recognises,
        load=_conse_load,
    )
)


def _huggingface_recognises(folder: Path) -> bool:
    from diptych.encoders.text_cleaning import TEXT_RULES

    config = folder / "config.json"
    if (
        not config.is_file() or (folder / "modules.json").is_file()
    ):  # sentence-transformers, a CLIP among others
        return False
    content = read_json(config)
    return isinstance(content, dict) and content.get("model_type") in TEXT_RULES


def _huggingface_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.huggingface import HuggingFaceEncoder

    return HuggingFaceEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="huggingface",
        description="CLIP, SigLIP, AltCLIP, ALIGN, GroupViT and their like, from transformers",
        forms=("hf:NAME", "a transformers folder"),
        prefix="hf",
        recognises=_huggingface_recognises,
        load=_huggingface_load,
    )
)


def _openclip_recognises(folder: Path) -> bool:
    return (folder / "open_clip_config.json").is_file()


def _openclip_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.openclip import OpenClipEncoder

    return OpenClipEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="open_clip",
        description="any model of open_clip, by architecture and pretrained tag or by folder",
        forms=("open_clip:ARCHITECTURE/PRETRAINED", "open_clip:hf-hub:NAME", "an open_clip folder"),
        prefix="open_clip",
        recognises=_openclip_recognises,
        load=_openclip_load,
    )
)


def _rows_load(source: str, device: str | None) -> DualEncoder:
    return GivenRows.open(source)


FAMILIES.add(
    Family(
        name="rows",
        description="rows made elsewhere, as .npy or Parquet, matched with the data by id; encodes nothing new",
        forms=("rows:FOLDER",),
        prefix="rows",
        recognises=is_folder_of_rows,
        load=_rows_load,
    )
)


def _sentence_transformers_recognises(folder: Path) -> bool:
    return (folder / "modules.json").is_file()


def _sentence_transformers_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.sentence_transformers import SentenceTransformersEncoder

    return SentenceTransformersEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="sentence_transformers",
        description="CLIP of sentence-transformers, e.g. clip-ViT-L-14, with the library's own preprocessing",
        forms=("st:NAME", "a sentence-transformers folder"),
        prefix="st",
        recognises=_sentence_transformers_recognises,
        load=_sentence_transformers_load,
    )
)


def _two_tower_recognises(folder: Path) -> bool:
    return False  # ours are always marked by diptych.json


def _two_tower_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.two_tower import TwoTowerEncoder

    return TwoTowerEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="two_tower",
        description="an image tower and a caption tower trained by this package",
        forms=("a folder that diptych train wrote",),
        prefix=None,
        recognises=_two_tower_recognises,
        load=_two_tower_load,
    )
)


def _xvlm_recognises(folder: Path) -> bool:
    return False  # a checkpoint file does not say whose it is until it is read; ours say it in diptych.json


def _xvlm_load(source: str, device: str | None) -> DualEncoder:
    from diptych.encoders.official.xvlm import XvlmEncoder

    return XvlmEncoder.open(source, device=device)


FAMILIES.add(
    Family(
        name="xvlm",
        description="X-VLM from its authors' checkpoints, with its matching head",
        forms=("xvlm:FILE", "xvlm:pretraining:FILE"),
        prefix="xvlm",
        recognises=_xvlm_recognises,
        load=_xvlm_load,
        matches=True,
    )
)
