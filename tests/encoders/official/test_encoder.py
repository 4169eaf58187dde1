from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import save_file

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.official.encoder import AlbefEncoder, OfficialEncoder, XvlmEncoder
from diptych.encoders.official.vision import relative_bias_table

from ..tiny_pretrained import CAPTIONS, bert_tokenizer, pictures
from .tiny_official import (
    SWIN,
    TEXT,
    VIT,
    State,
    albef_state,
    fused,
    inputs,
    linear,
    matched,
    swin,
    text,
    unit,
    vit,
    xvlm_state,
)

KINDS = ["albef", "xvlm"]
CLASSES = {"albef": AlbefEncoder, "xvlm": XvlmEncoder}
VISION = {"albef": VIT, "xvlm": SWIN}
PREFIX = {"albef": "visual_encoder.", "xvlm": "vision_encoder."}


def made(kind: str, state: State | None = None, **options: Any) -> OfficialEncoder:
    state = state or (albef_state() if kind == "albef" else xvlm_state())
    options = {"vision": VISION[kind], "text": TEXT, "tokenizer": bert_tokenizer(), "device": "cpu"} | options
    return CLASSES[kind].from_checkpoint(state, **options)


@pytest.fixture(scope="module", params=KINDS)
def encoder(request: pytest.FixtureRequest) -> OfficialEncoder:
    return made(request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_the_published_code(kind: str) -> None:
    state = albef_state() if kind == "albef" else xvlm_state()
    encoder = made(kind, state)
    pixels, tokens, mask = inputs()
    images = (vit if kind == "albef" else swin)(state, PREFIX[kind], pixels.double())
    texts = text(state, tokens, mask)
    image_rows = unit(linear(state, "vision_proj", images[:, 0]))
    text_rows = unit(linear(state, "text_proj", texts[:, 0]))
    with torch.inference_mode():
        torch.testing.assert_close(encoder.pixel_states(pixels).double(), images, atol=2e-5, rtol=0)
        torch.testing.assert_close(encoder.token_states(tokens, mask).double(), texts, atol=2e-5, rtol=0)
        got_images, got_texts = (
            unit(encoder.pixel_features(pixels)),
            unit(encoder.token_features(tokens, mask)),
        )
        by_length = encoder.token_features(tokens, mask.sum(1))
    torch.testing.assert_close(got_images.double(), image_rows, atol=2e-5, rtol=0)
    torch.testing.assert_close(got_texts.double(), text_rows, atol=2e-5, rtol=0)
    torch.testing.assert_close(unit(by_length), got_texts)
    # Different inputs have different rows, or the comparisons above would say nothing.
    for rows in (image_rows, text_rows):
        assert (rows @ rows.T - torch.eye(len(rows))).max() < 0.99

    one, other = np.divmod(np.arange(35), 7)
    first = fused(state, texts[other], mask[other], images[one])
    logits = matched(state, first).numpy()
    seen, read = encoder.pixel_inputs(pixels), encoder.token_inputs(tokens, mask)
    pairs = {name: value[one] for name, value in seen.items()}, {n: v[other] for n, v in read.items()}
    torch.testing.assert_close(encoder.fused(*pairs).double(), first, atol=2e-5, rtol=0)
    np.testing.assert_allclose(encoder.matching_logits(*pairs), logits, atol=2e-5, rtol=0)
    np.testing.assert_allclose(encoder.match(*pairs), logits[:, 1], atol=2e-5, rtol=0)
    assert logits[:, 1].std() > 0.05


def test_stages_smaller_than_the_window() -> None:
    """The last stage has 3 × 3 patches for windows of 6 × 6: one window, a smaller table, no shift."""
    state = xvlm_state(window=6, side=6)
    assert state["vision_encoder.layers.1.blocks.0.attn.relative_position_bias_table"].shape == (25, 4)
    encoder = made("xvlm", state, vision={**SWIN, "image_res": 24, "window_size": 6})
    pixels, _, _ = inputs(24)
    expected = swin(state, PREFIX["xvlm"], pixels.double(), window=6)
    with torch.inference_mode():
        torch.testing.assert_close(encoder.pixel_states(pixels).double(), expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_configurations_in_every_form(kind: str, tmp_path: Path) -> None:
    """Given in parts, as the published recipe, as files, or found beside the checkpoint: the same model."""
    state = albef_state() if kind == "albef" else xvlm_state()
    parts = {"vision": VISION[kind], "text": TEXT}
    recipe = {"image_res": 48, "embed_dim": 12, "temp": 0.07, "k_test": 3, "max_tokens": 17}
    vision, text = ("vit", "bert_config") if kind == "albef" else ("vision_config", "text_config")
    whole = {"config": recipe, vision: parts["vision"], text: parts["text"]}
    for name, content in (("vision", parts["vision"]), ("text", parts["text"]), ("config", whole)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    save_file(state, tmp_path / "x.safetensors")
    load = CLASSES[kind].from_checkpoint
    sizes = {"vision", "text", "width", "head", "head_width", "trained_size"}
    expected = load(state, **parts, device="cpu").config.model_dump(include=sizes)
    for options in (
        {"config": whole},
        {"config": {**recipe, **{vision: parts["vision"], text: parts["text"]}}},
        {"config": tmp_path / "config.json"},
        {"vision": str(tmp_path / "vision.json"), "text": tmp_path / "text.json"},
        {"config": {"embed_dim": 12}, **parts},
        {},
    ):
        found = load(tmp_path / "x.safetensors", **options, device="cpu").config
        assert found.model_dump(include=sizes) == expected
        said = options.get("config", whole) is not None and options.get("config") != {"embed_dim": 12}
        assert found.text_limit == (17 if said else CLASSES[kind].published_limit), options
    with pytest.raises(MismatchError, match="the configuration says 13, the weights say 12"):
        load(tmp_path / "x.safetensors", config={**whole, "config": recipe | {"embed_dim": 13}})
    with pytest.raises(StorageError, match=r"absent.json does not exist"):
        load(tmp_path / "x.safetensors", config=tmp_path / "absent.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(StorageError, match="is not a JSON object"):
        load(tmp_path / "x.safetensors", vision=tmp_path / "list.json")


@pytest.mark.parametrize("kind", KINDS)
def test_pre_training_layout_has_the_same_numbers(kind: str) -> None:
    """Loaded on purpose, and said in every description."""
    make = albef_state if kind == "albef" else xvlm_state
    before = make(stage="pre-training")
    encoder = made(kind, before, stage="pre-training")
    after = {name.replace("text_encoder.bert.", "text_encoder."): value for name, value in before.items()}
    after = {name: value for name, value in after.items() if ".cls." not in name and "bbox" not in name}
    same = made(kind, after)
    assert encoder.describe()["stage"] == "pre-training"
    assert same.describe()["stage"] == "fine-tuned"
    assert encoder.fingerprint == same.fingerprint  # their rows are the same
    np.testing.assert_array_equal(encoder.encode_texts(CAPTIONS), same.encode_texts(CAPTIONS))
    np.testing.assert_array_equal(encoder.encode_images(pictures()), same.encode_images(pictures()))


def test_pictures_of_another_size_albef() -> None:
    state = albef_state()
    encoder = made("albef", state, image_size=80)
    table = state["visual_encoder.pos_embed"]
    grid = table[:, 1:].reshape(1, 3, 3, 24).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, (5, 5), mode="bicubic", align_corners=False)
    larger = {"visual_encoder.pos_embed": torch.cat([table[:, :1], grid.flatten(2).mT], 1)}
    pixels, _, _ = inputs(80)
    expected = vit(state | larger, PREFIX["albef"], pixels.double())
    with torch.inference_mode():
        torch.testing.assert_close(encoder.pixel_states(pixels).double(), expected, atol=2e-5, rtol=0)
    about = encoder.describe()
    assert about["image"]["size"] == 80
    assert about["checkpoint"]["tables"] == "interpolated from 48 to 80 pixels"


@pytest.mark.parametrize("stripped", [False, True])
def test_pictures_of_another_size_xvlm(stripped: bool) -> None:
    """Windows of 3 at 48 pixels become windows of 4 at 64, whether masks or the configuration say 48."""
    state = xvlm_state()
    if stripped:
        state = {name: value for name, value in state.items() if not name.endswith("attn_mask")}
    said = {"vision": SWIN} if stripped else {"vision": {"num_heads": [2, 4]}}
    encoder = made("xvlm", state, image_size=64, **said)
    assert encoder.config.vision.window == 4
    larger = {
        name: relative_bias_table(value, 4) if name.endswith("bias_table") else value
        for name, value in state.items()
    }
    pixels, _, _ = inputs(64)
    expected = swin(larger, PREFIX["xvlm"], pixels.double(), window=4)
    with torch.inference_mode():
        torch.testing.assert_close(encoder.pixel_states(pixels).double(), expected, atol=2e-5, rtol=0)


def test_pre_training_is_fitted_to_384_pixels_unless_another_size_is_said() -> None:
    state = albef_state(stage="pre-training")
    sizes = {"num_heads": 3}
    assert made("albef", state, stage="pre-training", vision=sizes).config.vision.image_size == 384
    half = made("albef", state, stage="pre-training", vision=sizes, image_size=96)
    assert half.config.vision.image_size == 96
    assert made("albef", albef_state(), vision=sizes).config.vision.image_size == 48


def test_pictures_are_prepared_as_torchvision_does(encoder: OfficialEncoder) -> None:
    from torchvision import transforms

    published = transforms.Compose(
        [
            transforms.Resize((48, 48), interpolation=transforms.InterpolationMode.BICUBIC),
            transforms.ToTensor(),
            transforms.Normalize((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        ]
    )
    for place, picture in enumerate(pictures()):
        np.testing.assert_allclose(encoder.prepare(picture, place), published(picture).numpy(), atol=1e-6)
    pixels = torch.stack([published(picture) for picture in pictures()])
    with torch.inference_mode():
        expected = unit(encoder.pixel_features(pixels)).numpy()
    np.testing.assert_allclose(encoder.encode_images(pictures(), 2), expected, atol=1e-5)
    np.testing.assert_allclose(
        encoder.image_inputs(iter(pictures()), 2)["states"], encoder.pixel_inputs(pixels)["states"], atol=1e-4
    )


def test_texts_are_cleaned_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    encoder = made("xvlm")
    assert encoder.text_limit == 40
    texts = ["A dog, on the left!", "a dog on the left", "dog " * 31, "dog " * 30]
    with caplog.at_level(logging.WARNING):
        rows = encoder.encode_texts(texts)
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    np.testing.assert_allclose(rows[2], rows[3], atol=1e-6)
    # 31 words are 33 tokens, below the limit of 40: the words are what is cut.
    assert "1 of 4 texts" in caplog.text
    assert made("albef").text_limit == 30
    assert made("albef", text_limit=12).text_limit == 12
    refused(UsageError, "texts of 41 tokens for a text encoder of 40 positions", made, "albef", text_limit=41)


def test_bad_prepared_inputs(encoder: OfficialEncoder) -> None:
    refused(MismatchError, r"not \(n, 3, 48, 48\)", encoder.pixel_features, torch.zeros(2, 3, 64, 64))
    with pytest.raises(MismatchError, match="token ids from 0 to 90, .* knows 90"):
        encoder.token_features(torch.tensor([[0, 90]]), torch.ones(1, 2))
    refused(MismatchError, "mask of shape", encoder.token_features, torch.zeros(2, 3), torch.ones(2, 4))
    refused(MismatchError, "at most 40", encoder.token_features, torch.zeros(1, 41), torch.ones(1, 41))


@pytest.mark.parametrize("kind", KINDS)
def test_load_by_name(kind: str, sources: Callable[[str], Path], encoders: Callable[[str], Any]) -> None:
    """The file, with its configuration and its tokenizer beside it, and its folder: the same model."""
    again = DualEncoder.load(f"{kind}:{sources(kind) / 'tuned.pth'}", device="cpu")
    assert again.fingerprint == encoders(kind).fingerprint == made(kind).fingerprint
    np.testing.assert_array_equal(again.encode_images(pictures()), made(kind).encode_images(pictures()))
    np.testing.assert_allclose(again.encode_texts(CAPTIONS), made(kind).encode_texts(CAPTIONS), atol=1e-5)
    for one in (again, encoders(kind)):
        assert (one.describe()["name"], one.describe()["checkpoint"]["file"]) == ("tuned.pth", "tuned.pth")
