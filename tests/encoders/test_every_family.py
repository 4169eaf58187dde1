"""What every encoder keeps, whatever library it is of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from diptych.core.errors import (
    CaptionError,
    DiptychError,
    ImageError,
    MismatchError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.data.images import OverlaidPicture
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.rerank import MatchingEncoder

from .tiny_conse import network_file
from .tiny_pretrained import CAPTIONS, OPEN_CLIP_CONFIG, Square, pictures, transformers_model

Folders = Callable[[str], Path]
Encoders = Callable[[str], Any]

MATCHING = ["blip", "albef", "xvlm"]
PRETRAINED = ["clip", "siglip", "siglip2", "align", "open_clip", "st", *MATCHING]
TRANSFORMERS = ["clip", "siglip", "siglip2", "altclip", "align", "groupvit", "chinese_clip", "metaclip_2"]
KINDS = [*PRETRAINED, "conse", "two_tower", "adapted"]
LIMITS = {
    "clip": 16,
    "siglip": 12,
    "siglip2": 64,
    "align": 64,
    "open_clip": 16,
    "blip": 35,
    "albef": 30,
    "xvlm": 40,
}

PADDED = {"siglip": 12, "siglip2": 64, "align": 64, "blip": 35}
"""Kinds whose texts are always padded to a length."""


def rows_of_the_library(kind: str, folder: Path) -> list[np.ndarray]:
    """Of images and of texts."""
    with torch.no_grad():
        if kind == "open_clip":
            model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
            tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(CAPTIONS)
            pixels = torch.stack([preprocess(picture) for picture in pictures()])
            rows = [model.eval().encode_image(pixels), model.encode_text(tokens)]
        else:
            model, tokenizer, processor = transformers_model(kind)
            how = {"padding": "max_length" if kind in PADDED else True, "max_length": PADDED.get(kind, 16)}
            tokens = dict(tokenizer(CAPTIONS, truncation=True, return_tensors="pt", **how))
            if kind.startswith("siglip"):
                tokens = {"input_ids": tokens["input_ids"]}
            tokens.pop("token_type_ids" if kind == "blip" else "", None)
            seen = processor(images=pictures(), return_tensors="pt")
            if kind == "blip":
                images = model.vision_model(**seen).last_hidden_state[:, 0]
                texts = model.text_encoder(**tokens).last_hidden_state[:, 0]
                rows = [model.vision_proj(images), model.text_proj(texts)]
                return [torch.nn.functional.normalize(side, dim=-1).numpy() for side in rows]
            images = model.get_image_features(**seen)
            rows = [images.pooler_output, model.get_text_features(**tokens).pooler_output]
        return [torch.nn.functional.normalize(side, dim=-1).numpy() for side in rows]


@pytest.mark.parametrize("kind", [*TRANSFORMERS, "open_clip", "blip"])
def test_rows_are_those_of_the_library(kind: str, sources: Folders, encoders: Encoders) -> None:
    encoder, (images, texts) = encoders(kind), rows_of_the_library(kind, sources(kind))
    assert encoder.family == (kind if kind in ("open_clip", "blip") else "huggingface")
    assert [one.name for one in FAMILIES if one.recognises(sources(kind))] == [encoder.family]
    got_images, got_texts = encoder.encode_images(pictures(), 2), encoder.encode_texts(CAPTIONS, 4)
    for got, expected in ((got_images, images), (got_texts, texts)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1.0, atol=1e-6)
        # Different inputs have different rows, or the comparison above would say nothing.
        assert (got @ got.T - np.eye(len(got))).max() < 0.999
    assert encoder.text_limit == PADDED.get(kind, 16)
    assert encoder.width == images.shape[1] == texts.shape[1]


@pytest.mark.parametrize("kind", KINDS)
def test_saved_it_is_whole_and_the_same(
    kind: str, encoders: Encoders, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    encoder = encoders(kind)
    about = encoder.describe()
    assert json.loads(json.dumps(about)) == about
    parts = {"image", "text", "activation", "normalisation", "temperature"}
    assert parts | {"family", "name", "width", "fingerprint"} <= about.keys()
    assert (about["family"], about["width"]) == (encoder.family, encoder.width)
    if kind in LIMITS:
        assert about["text"]["limit"] == encoder.text_limit == LIMITS[kind]
    capfd.readouterr()  # of making it
    before = encoder.fingerprint
    encoder.encode_texts(CAPTIONS, 2)  # tokenizers remember the last call's padding and length
    assert encoder.fingerprint == before
    if isinstance(encoder, PretrainedEncoder):
        encoder = encoder.cut_texts_at(40).prefix_texts_with("two ")
        assert encoder.fingerprint != before
    moved = Path(shutil.move(encoder.save(tmp_path / "saved"), tmp_path / "moved"))
    again = DualEncoder.load(moved, device="cpu")
    assert type(again) is type(encoder)
    assert again.fingerprint == encoder.fingerprint
    assert again.describe() == encoder.describe()  # the name too, though the folder has another
    np.testing.assert_array_equal(again.encode_texts(CAPTIONS), encoder.encode_texts(CAPTIONS))
    np.testing.assert_array_equal(again.encode_images(pictures()), encoder.encode_images(pictures()))
    suffixes = {path.suffix for path in moved.rglob("*") if path.is_file()}
    assert suffixes <= {".json", ".safetensors", ".npz", ".md", ".txt"}
    assert "library_name: diptych" in (moved / "README.md").read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "kind", ["clip", "open_clip", "st", "blip", "albef", "conse", "two_tower", "adapted"]
)
def test_a_corrupt_file_is_an_error(kind: str, encoders: Encoders, tmp_path: Path) -> None:
    saved = encoders(kind).save(tmp_path / "saved")
    names = ("diptych.json", "config.json", "model.json", "open_clip_config.json", "conse.json")
    files = [path for path in saved.rglob("*") if path.suffix == ".safetensors" or path.name in names]
    assert len(files) >= 3 or kind == "adapted"
    for file in files:
        content = file.read_bytes()
        for wrong in (content[: len(content) // 2], b"", None):
            file.unlink()
            if wrong is not None:
                file.write_bytes(wrong)
            if wrong is not None or file.name != "diptych.json":  # without it some folders are the library's
                refused(DiptychError, ".", DualEncoder.load, saved, device="cpu")
            file.write_bytes(content)


@pytest.mark.parametrize("kind", ["clip", "open_clip", "albef", "conse", "two_tower", "adapted"])
def test_bad_items_are_named(kind: str, encoders: Encoders) -> None:
    encoder = encoders(kind)
    for texts, error, message in (
        (["a", None], CaptionError, "text 1 is a NoneType"),
        (["a", float("nan")], CaptionError, "text 1 is a float"),
        (["a", "b\ud800"], CaptionError, "text 1 .* surrogate"),
    ):
        refused(error, message, encoder.encode_texts, texts)
    np.testing.assert_array_equal(encoder.encode_texts("a dog"), encoder.encode_texts(["a dog"]))
    refused(ImageError, "image 2 .*a.png does not exist", encoder.encode_images, [*pictures(2), "a.png"], 2)
    refused(ImageError, "image 2 is a int", encoder.encode_images, [*pictures(2), 7], 2)
    refused(ImageError, r"image 0 .*\(36, 9\)", encoder.encode_images, [np.zeros((36, 9), "f4")])
    refused(UsageError, "batch_size must be 1 or more, got 0", encoder.encode_images, [], batch_size=0)


@pytest.mark.parametrize("kind", ["clip", "siglip", "open_clip", "st", "blip", "xvlm"])
def test_prefix_and_cut_are_applied_once(
    kind: str, encoders: Encoders, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The cut is of the caption; the prefix comes before what is left, and counts among the tokens."""
    encoder = encoders(kind)
    short = encoder.cut_texts_at(5)
    photo = short.prefix_texts_with("a ball ")
    texts, whole = ["a dog and a cat", "cat"], ["a ball a dog", "a ball cat"]
    np.testing.assert_allclose(photo.encode_texts(texts), encoder.encode_texts(whole), atol=1e-6)
    assert "1 of 2 texts" in caplog.text
    assert len({encoder.fingerprint, short.fingerprint, photo.fingerprint}) == 3
    assert photo.prefix_texts_with("").cut_texts_at(None).fingerprint == encoder.fingerprint
    about = photo.describe()["text"]
    assert (about["prefix"], about["characters"]) == ("a ball ", 5)
    assert "prefix" not in encoder.describe()["text"]
    np.testing.assert_array_equal(photo.token_ids(["dog"])[0], encoder.token_ids(["a ball dog"])[0])
    ended, cut = photo.cut_texts_at(None).ended(["dog " * 70, "a cat"], ["red cube", ""])
    assert cut == 1
    assert ended[0].endswith(" red cube")
    assert ended[1] == "a cat"
    if kind == "clip":
        saved = encoder.save(tmp_path / "kept#1")
        named = DualEncoder.load(f"{saved}#characters=5&prefix=a ball ", device="cpu")
        assert named.fingerprint == photo.fingerprint
        for wrong in ("character=5", "characters=", "characters=0", "characters=-1"):
            refused(UsageError, "characters", DualEncoder.load, f"{saved}#{wrong}")
    refused(UsageError, "cut to 0", encoder.cut_texts_at, 0)
    refused(CaptionError, "text 0 is a NoneType", encoder.prefix_texts_with, None)


@pytest.mark.parametrize("kind", MATCHING)
def test_matching_heads(kind: str, encoders: Encoders) -> None:
    encoder, shown = encoders(kind), pictures()
    assert isinstance(encoder, MatchingEncoder)
    images, texts = encoder.image_inputs(iter(shown), 2), encoder.text_inputs(CAPTIONS[:5], 3)
    scores = encoder.match(images, texts)
    assert (scores.dtype, scores.shape) == (np.float32, (5,))
    rows = np.array([0, 0, 1, 3, 3])
    repeated = encoder.match({name: values[rows] for name, values in images.items()}, texts)
    np.testing.assert_allclose(encoder.match_rows(images, rows, texts), repeated, atol=1e-5)
    for place in range(5):
        single = encoder.match(
            encoder.image_inputs(shown[place : place + 1]), encoder.text_inputs([CAPTIONS[place]])
        )
        np.testing.assert_allclose(single, scores[place], atol=1e-5)
    prefixed = encoder.prefix_texts_with("a ball ").text_inputs(["dog"])
    for name, values in encoder.text_inputs(["a ball dog"]).items():
        np.testing.assert_allclose(prefixed[name], values, atol=1e-5)

    nothing = encoder.image_inputs([]), encoder.text_inputs([])
    assert nothing[0]["states"].shape == (0, *images["states"].shape[1:])
    assert nothing[1]["mask"].shape == (0, encoder.text_limit)
    assert encoder.match(*nothing).shape == (0,)
    broken, fewer = {"states": images["states"].copy()}, {name: values[:2] for name, values in texts.items()}
    broken["states"][1, 0, 0] = np.nan
    for call, given, error, message in (
        (encoder.match, (images, fewer), MismatchError, "."),
        (encoder.match, (texts, images), MismatchError, "."),
        (encoder.match_rows, (images, np.array([0, 1]), texts), MismatchError, "."),
        (encoder.match, (broken, texts), NumericalError, "matching score of pair 1 is nan"),
        (
            encoder.match_rows,
            (broken, np.arange(5), texts),
            NumericalError,
            "matching score of pair 1 is nan",
        ),
        (encoder.image_inputs, ([*pictures(3), "no picture"], 2), ImageError, "image 3 "),
        (encoder.text_inputs, (["a dog", 7],), CaptionError, "text 1 "),
        (lambda: encoder.towers, (), UsageError, "cannot be fine-tuned as two towers"),
    ):
        refused(error, message, call, *given)


def test_bad_devices(sources: Folders) -> None:
    for device in ("toaster", "cuda:99"):
        message = f"device '{device}' cannot be used"
        refused(UsageError, message, DualEncoder.load, sources("clip"), device=device)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_modes_and_overlays(kind: str, encoders: Encoders) -> None:
    encoder, texts, shown = encoders(kind), CAPTIONS * 3, pictures()
    whole, images = encoder.encode_texts(texts, 256), encoder.encode_images(shown)
    for rows in (whole[:4], images):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for size in (1, 2):
        np.testing.assert_allclose(encoder.encode_texts(texts, size), whole, atol=1e-5)
        np.testing.assert_allclose(encoder.encode_images(iter(shown), size), images, atol=1e-5)
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, encoder.width)
    picture, grey = shown[0], shown[0].convert("L")
    for one in (picture, np.asarray(picture)):
        np.testing.assert_allclose(encoder.encode_images(one), images[:1], atol=1e-5)
    rows = encoder.encode_images([np.asarray(picture), picture.convert("RGBA"), grey, grey.convert("RGB")])
    np.testing.assert_allclose(rows[:2], [images[0], images[0]], atol=1e-5)
    np.testing.assert_allclose(rows[2], rows[3], atol=1e-6)
    assert np.isfinite(encoder.encode_images([picture.resize((1, 3)), picture.resize((3, 1))])).all()
    if kind != "siglip2":  # pictures of their own shape have no place for an overlay
        laid = encoder.encode_images([OverlaidPicture(picture, Square())])[0]
        assert np.abs(laid - images[0]).max() > 1e-4


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
    ("blip:clip", {}, MismatchError, "looks like a CLIP-like model"),  # nor of BLIP's authors
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
    kind: str, encoders: Encoders, sources: Folders, tmp_path: Path
) -> None:
    encoder, least = encoders(kind), 1e-4 if kind == "conse" else 1e-7
    whole = encoder.encode_images(pictures(3)), encoder.encode_texts(CAPTIONS)
    for number, change in enumerate(CHANGED[kind]):
        folder = apply(Path(shutil.copytree(sources(kind), tmp_path / str(number))), change)
        other = DualEncoder.load(folder, device="cpu")
        assert other.fingerprint != encoder.fingerprint
        found = other.encode_images(pictures(3)), other.encode_texts(CAPTIONS)
        assert max(np.abs(one - two).max() for one, two in zip(found, whole, strict=True)) > least


def test_where_it_was_written_changes_no_fingerprint(encoders: Encoders, copied: Folders) -> None:
    place = {"transformers_version": "4.1.0", "_name_or_path": "elsewhere", "dtype": "float16"}
    other = DualEncoder.load(apply(copied("clip"), {"config.json": place}), device="cpu")
    assert other.fingerprint == encoders("clip").fingerprint
