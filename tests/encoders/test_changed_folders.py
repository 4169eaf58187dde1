"""Folders whose files were changed: refused with what is wrong, or of another fingerprint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from diptych.core.errors import DiptychError, MismatchError, StorageError, UnknownNameError, UsageError
from diptych.encoders.dual_encoder import DualEncoder

from .tiny_conse import network_file
from .tiny_pretrained import CAPTIONS, OPEN_CLIP_CONFIG, pictures

Folders = Callable[[str], Path]

Change = dict[str, Any]
"""What becomes of a file: None removes it, a dict changes keys of its JSON, a call does what it does."""

MODEL, OPEN_CLIP = "model.safetensors", "open_clip_model.safetensors"
CLIP = {"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}
DENSE = {"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"}


def merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}


def apply(folder: Path, change: Change) -> Path:
    for name, value in change.items():
        path = folder / name
        if value is None:
            path.unlink()
        elif callable(value):
            value(path)
        elif isinstance(value, str):
            path.write_text(value)
        else:
            path.write_text(
                json.dumps(merged(json.loads(path.read_text()) if path.exists() else None, value))
            )
    return folder


def without(*names: str) -> Callable[[Path], None]:
    """Leave out the weights whose names begin so."""

    def change(path: Path) -> None:
        weights = load_file(path)
        kept = {name: value for name, value in weights.items() if not name.startswith(names)}
        assert len(kept) < len(weights)
        save_file(kept, path, metadata={"format": "pt"})

    return change


def nudged(name: str) -> Callable[[Path], None]:
    """Change one number of a weight a little."""

    def change(path: Path) -> None:
        weights = load_file(path)
        weights[name][0, 0] += 1e-3
        save_file(weights, path, metadata={"format": "pt"})

    return change


def larger(path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(path.parent)
    tokenizer.add_tokens(["one", "more", "words"])
    tokenizer.save_pretrained(path.parent)


def fewer_merges(path: Path) -> None:
    rules = json.loads(path.read_text())
    rules["model"]["merges"].pop()
    path.write_text(json.dumps(rules))


def conse(**changes: Any) -> Change:
    return {"conse.json": changes}


REFUSED: list[tuple[str, Change, type[DiptychError], str]] = [
    (
        "clip",
        {MODEL: without("text_projection.weight")},
        StorageError,
        r"lacks 1 of .* text_projection\.weight",
    ),
    ("clip", {MODEL: None}, StorageError, "neither model.safetensors nor pytorch_model.bin"),
    ("clip", {"tokenizer.json": None}, StorageError, "holds no tokenizer"),
    ("clip", {"preprocessor_config.json": None}, StorageError, "preprocessor_config.json|image processor"),
    ("clip", {"config.json": {"model_type": "bert"}}, StorageError, "holds no encoder that is known"),
    ("hf:clip", {"config.json": {"model_type": "bert"}}, UsageError, "'bert' model, not an image–text"),
    ("hf:blip", {}, UsageError, "is a 'blip' model, not an image–text dual encoder"),
    (
        "blip:clip",
        {},
        MismatchError,
        "looks like a CLIP-like model",
    ),  # no checkpoint of BLIP's authors either
    ("blip", {MODEL: without("itm_head")}, StorageError, r"lacks 2 of the model's weights.*itm_head"),
    ("blip", {MODEL: without("text_encoder.encoder.layer.1.crossattention")}, StorageError, "crossattention"),
    (
        *("blip", {"config.json": {"architectures": ["BlipForConditionalGeneration"]}}, UsageError),
        "for another task: its config.json says BlipForConditionalGeneration",
    ),
    ("blip", {"config.json": {"text_config": {"is_decoder": False}}}, UsageError, "is_decoder false"),
    ("blip", {"tokenizer.json": larger}, MismatchError, "none is left for it"),
    ("blip", {"preprocessor_config.json": None}, StorageError, "cannot be read"),
    ("blip", {MODEL: None}, StorageError, "holds no weights"),
    ("st", {"modules.json": [CLIP, DENSE]}, UsageError, "made of CLIPModel, Dense"),
    ("st", {"modules.json": []}, StorageError, "lists no modules"),
    ("st", {"modules.json": [{"idx": 0}]}, StorageError, "lists no modules"),
    ("st", {"modules.json": [{**CLIP, "path": "nowhere"}]}, StorageError, "nowhere holds no config.json"),
    ("st", {"modules.json": "[{"}, StorageError, "is not JSON"),
    (
        *("st", {"0_CLIPModel/config.json": {"model_type": "bert"}}, UsageError),
        "is a 'bert' model, not an image–text dual encoder of sentence-transformers",
    ),
    ("st", {f"0_CLIPModel/{MODEL}": None}, StorageError, "no weights"),
    ("st", {"0_CLIPModel/sentence_bert_config.json": {"do_lower_case": True}}, UsageError, "do_lower_case"),
    ("conse", {"network.safetensors": without("fc.")}, MismatchError, "2 tensors missing.*fc.bias"),
    (
        *("conse", {"network.safetensors": lambda path: network_file(path, classes=7)}, MismatchError),
        "2 of another shape",
    ),
    ("conse", conse(weights="nowhere.safetensors"), StorageError, "does not exist"),
    ("conse", conse(network="test_resnett"), UnknownNameError, "unknown timm network"),
    ("conse", conse(network_options={"nonsense": 1}), UsageError, "nonsense"),
    ("conse", conse(top=0), StorageError, "top: .*greater than or equal to 1"),
    ("conse", conse(top=6), UsageError, "top 6 of 5 classes"),
    ("conse", conse(names="imagenet-1k"), MismatchError, "test_resnet has 5 outputs, there are 1,000 names"),
    ("conse", conse(names="absent.txt"), UsageError, "neither a set of classes"),
    ("conse", conse(template="a photo"), UsageError, "no place for a name"),
    ("conse:conse", {"conse.json": None}, StorageError, "conse.json does not exist"),
    ("conse", {"conse.json": "{}"}, StorageError, "network: Field required"),
    ("conse", {"conse.json": "[1]"}, StorageError, "Input should be"),
]


@pytest.mark.parametrize("kind", ["clip", "blip", "st", "conse"])
def test_half_a_model_is_refused(
    kind: str, sources: Folders, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = [case for case in REFUSED if case[0].rpartition(":")[2] == kind]
    for number, (source, change, error, message) in enumerate(cases):
        folder = apply(Path(shutil.copytree(sources(kind), tmp_path / str(number))), change)
        capfd.readouterr()  # of making it
        refused(error, message, DualEncoder.load, f"{source.removesuffix(kind)}{folder}", device="cpu")
        assert capfd.readouterr() == ("", "")  # a library's own report is not printed as well


CHANGED: dict[str, list[Change]] = {
    "clip": [
        {MODEL: nudged("visual_projection.weight")},
        {"preprocessor_config.json": {"image_mean": [0.5, 0.5, 0.5]}},
        {"config.json": {"text_config": {"hidden_act": "gelu"}}},
        {"tokenizer.json": fewer_merges},
        {"tokenizer_config.json": {"model_max_length": 12}},
    ],
    "open_clip": [
        {"open_clip_config.json": {"preprocess_cfg": {"interpolation": "bilinear"}}},
        {"open_clip_config.json": {"model_cfg": {**OPEN_CLIP_CONFIG, "quick_gelu": True}}},
        {OPEN_CLIP: nudged("visual.proj")},
    ],
    "conse": [
        conse(top=2),
        conse(template="a photo of {name}"),
        conse(preprocessing={"size": 32, "resize": 32}),
    ],
}


@pytest.mark.parametrize("kind", CHANGED)
def test_what_changes_a_row_changes_the_fingerprint(
    kind: str, encoders: Callable[[str], Any], sources: Folders, tmp_path: Path
) -> None:
    encoder, least = encoders(kind), 1e-4 if kind == "conse" else 1e-7
    whole = encoder.encode_images(pictures(3)), encoder.encode_texts(CAPTIONS)
    for number, change in enumerate(CHANGED[kind]):
        folder = apply(Path(shutil.copytree(sources(kind), tmp_path / str(number))), change)
        other = DualEncoder.load(folder, device="cpu")
        assert other.fingerprint != encoder.fingerprint
        found = other.encode_images(pictures(3)), other.encode_texts(CAPTIONS)
        assert max(np.abs(one - two).max() for one, two in zip(found, whole, strict=True)) > least


def test_where_it_was_written_changes_no_fingerprint(encoders: Callable[[str], Any], copied: Folders) -> None:
    place = {"transformers_version": "4.1.0", "_name_or_path": "elsewhere", "dtype": "float16"}
    other = DualEncoder.load(apply(copied("clip"), {"config.json": place}), device="cpu")
    assert other.fingerprint == encoders("clip").fingerprint
