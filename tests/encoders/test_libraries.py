from __future__ import annotations

import json
import logging
import math
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import load_file

from diptych.core.errors import (
    CaptionError,
    MismatchError,
    MissingExtraError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.conse import ConseEncoder, class_texts, convex_combination
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES
from diptych.encoders.huggingface import HuggingFaceEncoder
from diptych.encoders.inputs import load_tensors
from diptych.encoders.openclip import OpenClipEncoder
from diptych.encoders.pretrained import PretrainedEncoder, shortened
from diptych.encoders.two_stage import BlipEncoder

from .tiny_conse import NAMES
from .tiny_pretrained import (
    CAPTIONS,
    OPEN_CLIP_CONFIG,
    WORDS,
    bert_tokenizer,
    open_clip_folder,
    pictures,
    transformers_model,
)

Folders = Callable[[str], Path]
Encoders = Callable[[str], Any]


@pytest.fixture(scope="module")
def clip(sources: Folders) -> HuggingFaceEncoder:
    return HuggingFaceEncoder.open(str(sources("clip")), device="cpu")


class _Evil:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_bin_files_are_read_without_running_code(copied: Folders, clip: HuggingFaceEncoder) -> None:
    folder = copied("clip")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert DualEncoder.load(folder, device="cpu").fingerprint == clip.fingerprint

    touched = folder / "touched"
    torch.save({**weights, "more": _Evil(touched)}, folder / "pytorch_model.bin")
    refused(StorageError, "more than tensors", DualEncoder.load, folder, device="cpu")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(touched), protocol=2))
    with pytest.raises(StorageError):
        DualEncoder.load(folder, device="cpu")
    assert not touched.exists()


def test_code_that_comes_with_a_model_is_not_run(copied: Folders, clip: HuggingFaceEncoder) -> None:
    folder = copied("clip")
    touched = folder / "touched"
    (folder / "own.py").write_text(f"import pathlib\npathlib.Path({str(touched)!r}).touch()\n")
    for file, classes in (
        ("config", {"AutoConfig": "own.Config", "AutoModel": "own.Model"}),
        ("tokenizer_config", {"AutoTokenizer": ["own.Tokenizer", None]}),
        ("preprocessor_config", {"AutoImageProcessor": "own.Processor"}),
    ):
        path = folder / f"{file}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": classes}))
    assert DualEncoder.load(folder, device="cpu").fingerprint == clip.fingerprint
    assert not touched.exists()


def test_another_models_tokenizer(copied: Folders, tmp_path: Path) -> None:
    folder = copied("clip")
    names = [f"word{place}" for place in range(600)] + WORDS.split()
    transformers.BertTokenizer(vocab={name: place for place, name in enumerate(names)}).save_pretrained(
        folder
    )
    encoder = DualEncoder.load(folder, device="cpu")
    refused(MismatchError, "the model knows 517", encoder.encode_texts, ["a dog"])


def test_matching_scores_are_those_of_the_library_with_the_published_first_token(
    encoders: Encoders,
) -> None:
    (model, tokenizer, processor), blip = transformers_model("blip"), encoders("blip")
    how = {"padding": "max_length", "truncation": True, "max_length": 35, "return_tensors": "pt"}
    tokens = {name: tokenizer(CAPTIONS[:5], **how)[name] for name in ("input_ids", "attention_mask")}
    plain = tokens["input_ids"].clone()
    tokens["input_ids"][:, 0] = len(tokenizer) + 1  # [ENC]; [DEC] is before it
    with torch.no_grad():
        pixels = processor(images=pictures(), return_tensors="pt")["pixel_values"]
        expected = model(**tokens, pixel_values=pixels).itm_score[:, 1]
        wrong = model(**{**tokens, "input_ids": plain}, pixel_values=pixels).itm_score[:, 1]
        # The library gives the cosine of the rows as well.
        cosines = model(**{**tokens, "input_ids": plain}, pixel_values=pixels, use_itm_head=False).itm_score
    rows = blip.encode_images(pictures()) @ blip.encode_texts(CAPTIONS[:5]).T
    np.testing.assert_allclose(rows, cosines, atol=1e-5)
    images, texts = blip.image_inputs(pictures(), 2), blip.text_inputs(CAPTIONS[:5], 3)
    assert {name: values.shape for name, values in images.items()} == {"states": (5, 17, 24)}
    assert {name: values.shape for name, values in texts.items()} == {"ids": (5, 35), "mask": (5, 35)}
    got = blip.match(images, texts)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert np.abs(got - wrong.numpy()).max() > 1e-3  # [CLS] instead of [ENC] is another model


def test_the_tokenizers_own_encode_token(copied: Folders, encoders: Encoders) -> None:
    blip_folder, blip = copied("blip"), encoders("blip")
    tokenizer = transformers.AutoTokenizer.from_pretrained(blip_folder)
    first = len(tokenizer)
    tokenizer.add_special_tokens({"bos_token": "[DEC]", "additional_special_tokens": ["[ENC]"]})
    tokenizer.save_pretrained(blip_folder)
    encoder = DualEncoder.load(blip_folder, device="cpu")
    assert isinstance(encoder, BlipEncoder)
    assert encoder.text_inputs(["a dog"])["ids"][0, 0] == first + 1
    np.testing.assert_array_equal(encoder.text_inputs(CAPTIONS)["ids"], blip.text_inputs(CAPTIONS)["ids"])


WEIGHTS, CONFIG = "open_clip_model.safetensors", "open_clip_config.json"

WITH_WORDS = {
    "custom_text": True,
    "text_cfg": {**OPEN_CLIP_CONFIG["text_cfg"], "vocab_size": 90, "hf_tokenizer_name": "words"},
}
"""Changes that give a model another library's tokenizer, which its folder then holds."""


def test_another_librarys_tokenizer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = open_clip_folder(tmp_path / "words", **WITH_WORDS)
    refused(StorageError, "tokenizer", DualEncoder.load, source, device="cpu")
    bert_tokenizer().save_pretrained(source)
    encoder = DualEncoder.load(source, device="cpu")
    assert isinstance(encoder, OpenClipEncoder)
    model, _ = open_clip.create_model_from_pretrained(f"local-dir:{source}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{source}")
    with torch.no_grad():
        expected = model.eval().encode_text(tokenizer(CAPTIONS), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_texts(CAPTIONS), expected, atol=1e-5)
    encoder.encode_texts(["dog " * 14, "dog " * 15])  # 16 and 17 tokens with start and end
    assert "1 of 2 texts" in caplog.text
    again = DualEncoder.load(encoder.save(tmp_path / "saved"), device="cpu")
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode_texts(CAPTIONS), encoder.encode_texts(CAPTIONS))


def test_long_texts_are_cut_counted_and_logged(sources: Folders, caplog: pytest.LogCaptureFixture) -> None:
    encoder = DualEncoder.load(sources("open_clip"), device="cpu")
    fits = " ".join(["dog"] * 14)  # with start and end exactly 16 tokens
    # The fourth would take the library's tokenizer minutes if it were shown all of it.
    texts = ["dog " * 25_000, "a dog", fits, "qzx" * 33_000, fits + " dog", " " * 5_000 + "a dog"]
    with caplog.at_level(logging.WARNING):
        rows = encoder.encode_texts(texts)
    assert "3 of 6 texts were longer than 16 tokens" in caplog.text
    np.testing.assert_allclose(rows[[0, 4, 5]], rows[[2, 2, 1]], atol=1e-6)


LONG = "a dog on the left of a red cube sees two cats and a green ball on the right of a blue cube"
ENDING = "0 1 2 3 4 5"


def test_weights_without_a_side_are_named(sources: Folders) -> None:
    encoder = DualEncoder.load(sources("clip"), device="cpu")
    assert isinstance(encoder, PretrainedEncoder)
    encoder.model.fusion = torch.nn.Linear(2, 2)
    refused(UsageError, r"has weights of neither side, e\.g\. fusion\.weight", lambda: encoder.towers)
    del encoder.model.fusion
    encoder.model.text_projection.weight = encoder.model.visual_projection.weight
    refused(UsageError, "weights that both sides share", lambda: encoder.towers)


@pytest.mark.parametrize("kind", ["clip", "siglip", "open_clip"])
def test_endings_are_tokens_of_their_own(kind: str, encoders: Encoders) -> None:
    """Token for token what the library makes of the joined text; without endings nothing changes."""
    encoder = encoders(kind)
    inputs = encoder.towers.text.inputs(["ball", "a red dog", "dog"])
    rows = np.array([2, 0, 1])
    endings = ["", "1 2", "3 0"]
    tokens, lengths = inputs.batch(rows, endings)
    joined = ["dog", "ball 1 2", "a red dog 3 0"]
    assert encoder.with_endings(["dog", "ball", "a red dog"], endings) == joined
    for row, length, text in zip(tokens, lengths, joined, strict=True):
        np.testing.assert_array_equal(row[: int(length)], encoder.token_ids([text])[0])
    again = inputs.batch(rows, ["", "", ""])
    for got, expected in zip(again, inputs.batch(rows), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    with torch.no_grad():
        np.testing.assert_allclose(
            encoder.towers.text(tokens, lengths).numpy(), encoder.encode_texts(joined), atol=1e-5
        )


@pytest.mark.parametrize("kind", ["clip", "open_clip"])
def test_the_limit_cuts_the_text_and_not_its_ending(
    kind: str, encoders: Encoders, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = encoders(kind)
    digits = [token for word in ENDING.split() for token in encoder.token_ids([word])[0].tolist()[1:-1]]
    start, end = encoder.token_ids(["dog"])[0][[0, -1]].tolist()
    assert len(set(digits)) == 6
    cut_off = encoder.token_ids([f"{LONG} {ENDING}"])[0].tolist()
    assert len(cut_off) == 16
    assert cut_off[-7:-1] != digits  # what happens without care
    with caplog.at_level(logging.WARNING):
        inputs = encoder.towers.text.inputs([LONG, "dog"])
        for _ in range(2):
            tokens, lengths = inputs.batch(np.array([0, 1]), [ENDING, ENDING])
    for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
        assert length <= 16
        assert row[0] == start
        assert row[length - 7 : length] == [*digits, end]
    # As many of the caption's words as fit: one more would not.
    words = LONG.split()
    kept = encoder.with_endings([LONG], [ENDING])[0].removesuffix(f" {ENDING}").split()
    assert kept == words[: len(kept)]
    longer = encoder.token_ids([" ".join(words[: len(kept) + 1]) + f" {ENDING}"])[0].tolist()
    assert len(longer) == 16
    assert longer[-7:-1] != digits
    assert caplog.text.count("of 2 captions of a batch are shortened") == 1


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=12).map(" ".join),
    st.integers(4, 60),
)
def test_as_much_as_fits_and_no_more(text: str, letters: int) -> None:
    result = shortened(text, "7 7", lambda text: len(text) <= letters)
    assert len(result) <= letters
    assert result.endswith("7 7")
    kept = result[:-3].rstrip()
    assert text.startswith(kept)
    rest = text[len(kept) :]
    if rest and text.split()[0] in kept.split():
        assert len(f"{kept} {rest.split()[0]} 7 7") > letters
    refused(CaptionError, "'0 1 2' is longer", shortened, "a dog", "0 1 2", lambda text: len(text) <= 4)


def test_names_and_libraries_that_are_not_there(sources: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sources("open_clip")
    for name, error, message, fix in (
        ("hf:nobody/no-such-model", UsageError, "loaded, neither from its hub", "hf download nobody/"),
        ("hf:not a name!", UsageError, ".", ""),
        ("open_clip:ViT-B-33/openai", UsageError, "unknown architecture of open_clip 'ViT-B-33'", "ViT-B-32"),
        ("open_clip:ViT-B-32/laion2b", UnknownNameError, "laion2b_s34b_b79k", ""),
        ("open_clip:ViT-B-32", UnknownNameError, "unknown pretrained tag of open_clip:ViT-B-32", ""),
        # The library only warns, and the rows are silently worse.
        ("open_clip:ViT-B-32/openai", UsageError, "trained with QuickGELU", "ViT-B-32-quickgelu/openai"),
    ):
        assert fix in refused(error, message, DualEncoder.load, name).fix
    monkeypatch.setitem(sys.modules, "open_clip", None)
    error = refused(MissingExtraError, ".", DualEncoder.load, folder)
    assert error.fix == "pip install 'diptych[open-clip]'"


@pytest.mark.parametrize("layout", ["published", "of today", "with a prompt"])
def test_sentence_transformers_gives_the_same_rows(
    layout: str, sources: Folders, copied: Folders, tmp_path: Path
) -> None:
    """Also of a folder as the library writes it now, in which config.json and modules.json lie side by side."""
    from sentence_transformers import SentenceTransformer

    folder = copied("st")
    if layout == "of today":
        SentenceTransformer(str(folder), device="cpu").save_pretrained(str(tmp_path / "today"))
        folder = tmp_path / "today"
        assert (folder / "config.json").is_file()
    if layout == "with a prompt":
        prompts = {"prompts": {"photo": "a photo of a "}, "default_prompt_name": "photo"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    assert [one.name for one in FAMILIES if one.recognises(folder)] == ["sentence_transformers"]
    encoder: Any = DualEncoder.load(folder, device="cpu")
    theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    for rows, inputs in (
        (encoder.encode_texts(CAPTIONS, 4), CAPTIONS),
        (encoder.encode_images(pictures(), 2), pictures()),
    ):
        np.testing.assert_allclose(rows, theirs.encode(inputs, normalize_embeddings=True), atol=1e-5)
        assert (rows @ rows.T - np.eye(len(rows))).max() < 0.999
    plain: Any = DualEncoder.load(sources("st"), device="cpu")
    assert encoder.prefix == ("a photo of a " if layout == "with a prompt" else "")
    prefixed = plain.prefix_texts_with(encoder.prefix)
    assert (encoder.fingerprint == prefixed.fingerprint) or layout == "of today"
    of_clip = DualEncoder.load(sources("st") / "0_CLIPModel", device="cpu")
    np.testing.assert_allclose(of_clip.encode_texts(CAPTIONS), plain.encode_texts(CAPTIONS), atol=1e-6)
    # Pillow prepares pictures there, torchvision here.
    assert 1e-5 < np.abs(of_clip.encode_images(pictures()) - plain.encode_images(pictures())).max() < 1e-2


@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "groupvit", "open_clip"])
def test_towers_give_the_encoders_rows_and_have_all_its_weights(kind: str, encoders: Encoders) -> None:
    encoder = encoders(kind)
    towers, texts = encoder.towers, [caption for caption in CAPTIONS if caption]
    inputs = towers.text.inputs(texts)
    pixels = np.stack([towers.image.prepare(picture, 0) for picture in pictures()])
    towers.image.eval(), towers.text.eval()
    with torch.no_grad():
        images = towers.image(torch.from_numpy(pixels)).numpy()
        rows = towers.text(*inputs.batch(np.arange(len(texts)))).numpy()
        single = towers.text(*inputs.batch(np.array([1]))).numpy()
    np.testing.assert_allclose(images, encoder.encode_images(pictures()), atol=1e-5)
    np.testing.assert_allclose(rows, encoder.encode_texts(texts), atol=1e-5)
    np.testing.assert_allclose(single[0], rows[1], atol=1e-5)
    given, own = dict(towers.image.named_parameters()), dict(encoder.model.named_parameters())
    assert all(name.startswith("vis") for name in given)
    given |= dict(towers.text.named_parameters())
    assert all(own[name] is parameter for name, parameter in given.items())
    assert set(own) - set(given) <= {"logit_scale", "logit_bias", "temperature"}


def slow(logits: list[float], rows: np.ndarray, top: int, temperature: float) -> np.ndarray:
    """The paper's formula, one picture at a time."""
    largest = sorted(range(len(logits)), key=lambda row: -logits[row])[:top]
    powers = [math.exp(logits[row] / temperature) for row in largest]
    weighted = sum(power * rows[row] for power, row in zip(powers, largest, strict=True))
    return np.asarray(weighted / sum(powers))


@given(st.integers(0, 1000), st.integers(1, 6), st.floats(0.2, 5.0))
def test_combinations_are_the_papers(seed: int, top: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    logits, rows = random.normal(0, 3, (4, 6)), random.normal(size=(6, 3))
    found = convex_combination(logits, rows, top, temperature)
    expected = [slow(row.tolist(), rows, top, temperature) for row in logits]
    assert np.allclose(found, expected)
    shifted = convex_combination(logits + 700.0, rows, top, temperature)
    assert np.allclose(shifted, expected)


def test_rows_are_those_of_the_parts(sources: Folders, encoders: Encoders) -> None:
    import timm
    from sentence_transformers import SentenceTransformer

    folder, encoder = sources("conse"), encoders("conse")
    network = timm.create_model("test_resnet", num_classes=5).eval()
    network.load_state_dict(load_tensors(folder / "network.safetensors", ""))
    sentences = SentenceTransformer(str(folder / "sentence"), device="cpu")
    names = sentences.encode(NAMES, show_progress_bar=False)
    shown, texts = pictures(5), ["a dog", "two dogs on the left"]
    prepared = np.stack([encoder.preprocessing(picture) for picture in shown])
    with torch.inference_mode():
        logits = network(torch.from_numpy(prepared)).numpy()
    expected = np.stack([slow(row.tolist(), names, 3, 1.5) for row in logits])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert len(np.unique(expected.round(4), axis=0)) == 5
    np.testing.assert_allclose(encoder.encode_images(shown, batch_size=2), expected, atol=1e-5)
    rows = sentences.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_texts(texts), rows, atol=1e-6)


def test_preprocessing_is_timms_where_nothing_is_given(copied: Folders) -> None:
    import timm
    from timm.data import resolve_data_config

    place = copied("conse")
    content = read_json(place / "conse.json")
    del content["preprocessing"]
    write_json(place / "conse.json", content)
    found = ConseEncoder.open(place).preprocessing
    config = resolve_data_config({}, model=timm.create_model("test_resnet"))
    assert found.size == config["input_size"][1]
    assert found.resize == math.floor(found.size / config["crop_pct"])
    assert found.mean == tuple(config["mean"])


def test_a_template_surrounds_each_name_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text(" a dog\nred {ball}\n", encoding="utf-8")
    texts = class_texts("names.txt", tmp_path, "a photo of {name}.")
    assert texts == ["a photo of a dog.", "a photo of red {ball}."]
    assert class_texts(str(file), Path("elsewhere")) == ["a dog", "red {ball}"]
    for content, message in (
        (b"", "is empty"),
        (b"dog\n\ncat\n", "nothing in line 2"),
        (b"\xff\xfe", "is not UTF-8"),
    ):
        file.write_bytes(content)
        refused(StorageError, message, class_texts, "names.txt", tmp_path)
    names = class_texts("imagenet-1k", tmp_path)  # in the order of the usual outputs
    assert len(names) == 1000
    assert (names[0], names[281], names[430]) == ("tench, Tinca tinca", "tabby, tabby cat", "basketball")
