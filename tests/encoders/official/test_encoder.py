from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranking import evaluate_reranked
from refusals import refused
from safetensors.torch import save_file

from diptych.core.errors import MismatchError, StorageError
from diptych.encoders.official.checkpoint import Checkpoint
from diptych.encoders.official.encoder import (
    AlbefEncoder,
    OfficialEncoder,
    XvlmEncoder,
    blip_state_from_official,
    open_official_blip,
)
from diptych.encoders.official.inputs import Configuration
from diptych.encoders.official.vision import position_table, relative_bias_table
from diptych.encoders.rerank import rerank_prepared
from diptych.metrics.ground_truth import GroundTruth

from ..tiny_pretrained import CAPTIONS, bert_tokenizer, pictures
from .tiny_official import (
    SWIN,
    TEXT,
    VIT,
    Maker,
    State,
    albef_state,
    bert_layer,
    fused,
    inputs,
    linear,
    matched,
    norm,
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
    return CLASSES[kind].load_published(state, **options)


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


def test_bad_prepared_inputs(encoder: OfficialEncoder) -> None:
    refused(MismatchError, r"not \(n, 3, 48, 48\)", encoder.pixel_features, torch.zeros(2, 3, 64, 64))
    with pytest.raises(MismatchError, match="token ids from 0 to 90, .* knows 90"):
        encoder.token_features(torch.tensor([[0, 90]]), torch.ones(1, 2))
    refused(MismatchError, "mask of shape", encoder.token_features, torch.zeros(2, 3), torch.ones(2, 4))
    refused(MismatchError, "at most 40", encoder.token_features, torch.zeros(1, 41), torch.ones(1, 41))


FOLDER = Path(__file__).parents[4] / "shared" / "golden"

TABLES = np.load(Path(__file__).parents[2] / "golden" / "posembed_interp.npz", allow_pickle=False)


def test_tables_are_interpolated_as_published() -> None:
    """Outputs of the published code."""
    biases = relative_bias_table(torch.from_numpy(TABLES["relpos_src_13x13_h4"]), 12)
    np.testing.assert_allclose(biases, TABLES["relpos_dst_23x23_h4"], atol=1e-5)
    positions = position_table(torch.from_numpy(TABLES["vit_src_1_17_12"]), 6)
    np.testing.assert_allclose(positions, TABLES["vit_dst_1_37_12"], atol=1e-6)


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "pretrained.md"


def test_prepared_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if "AlbefEncoder" in block
    )
    (tmp_path / "albef").mkdir()
    torch.save({"model": albef_state()}, tmp_path / "albef" / "tiny.pth")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["encoder"].config.vision.heads == VIT["num_heads"]
    itm, similarities = found["itm"], found["similarities"]
    assert itm.shape == (3, 2, 2)
    for scores, matching, first in (
        (found["score_i2t"], itm[..., 1], similarities),
        (found["score_t2i"], itm[..., 1].T, similarities.T),
    ):
        expected = np.full(first.shape, -100.0)
        best = np.arange(len(first)), first.argmax(axis=1)
        expected[best] = matching[best]
        np.testing.assert_allclose(scores, expected, atol=1e-5)


BLIP_VISION, BLIP_TEXT = {"num_heads": 3}, {"num_attention_heads": 4}
WORDS = ["a dog on the left", "ball"]


def blip_state(pre_training: bool = False) -> State:
    maker = Maker(3)
    for momentum in ("", "_m"):
        maker.vit(f"visual_encoder{momentum}.")
        maker.bert(f"text_encoder{momentum}.", first=0)
        maker.linear(f"vision_proj{momentum}", 12, 24)
        maker.linear(f"text_proj{momentum}", 12, 32)
    maker.linear("itm_head", 2, 32)
    if pre_training:
        maker.linear("text_decoder.cls.predictions.decoder", 90, 32)
    maker.state |= {"temp": torch.tensor(0.05), "ptr_queue": torch.zeros(1), "idx_queue": torch.zeros(1, 8)}
    return {name: value for name, value in maker.state.items() if "token_type" not in name}


def read(state: State, tokens: torch.Tensor, mask: torch.Tensor, images: torch.Tensor | None) -> torch.Tensor:
    """All four layers, with or without the picture."""
    tables = "text_encoder.embeddings."
    rows = state[f"{tables}word_embeddings.weight"].double()[tokens]
    rows = rows + state[f"{tables}position_embeddings.weight"].double()[: tokens.shape[1]]
    rows = norm(state, f"{tables}LayerNorm", rows, 1e-12)
    for layer in range(4):
        rows = bert_layer(state, f"text_encoder.encoder.layer.{layer}.", rows, mask, images)
    return rows[:, 0]


def test_blips_numbers_are_those_of_the_published_code(tmp_path: Path) -> None:
    state = blip_state()
    torch.save({"model": state, "epoch": 2}, tmp_path / "retrieval.pth")
    tokenizer = bert_tokenizer()  # of fewer words than the model, whose last row is [ENC]
    assert len(tokenizer) < 90
    (tmp_path / "config.json").write_text(json.dumps({"vision": BLIP_VISION, "bert_config": BLIP_TEXT}))
    encoder = open_official_blip(tmp_path, tokenizer=tokenizer, device="cpu")
    pixels = torch.from_numpy(np.stack([encoder.prepare(picture, 0) for picture in pictures(2)]))
    assert pixels.shape == (2, 3, 48, 48)
    tokens = tokenizer([encoder.cleaning(text) for text in WORDS], padding=True, return_tensors="pt")
    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    images = vit(state, "visual_encoder.", pixels.double())
    expected = unit(linear(state, "vision_proj", images[:, 0])).numpy()
    np.testing.assert_allclose(encoder.encode_images(pictures(2)), expected, atol=2e-5)
    rows = unit(linear(state, "text_proj", read(state, ids, mask, None))).numpy()
    np.testing.assert_allclose(encoder.encode_texts(WORDS), rows, atol=2e-5)
    ids[:, 0] = 89
    scores = matched(state, read(state, ids, mask, images))[:, 1].numpy()
    found = encoder.match(encoder.image_inputs(pictures(2)), encoder.text_inputs(WORDS))
    np.testing.assert_allclose(found, scores, atol=2e-5)
    assert encoder.name == "retrieval.pth"


def expect_states(encoder: OfficialEncoder, pixels: torch.Tensor, expected: torch.Tensor) -> None:
    with torch.inference_mode():
        torch.testing.assert_close(encoder.pixel_states(pixels).double(), expected, atol=2e-5, rtol=0)


def test_stages_smaller_than_the_window() -> None:
    """The last stage has 3 × 3 patches for windows of 6 × 6: one window, a smaller table, no shift."""
    state = xvlm_state(window=6, side=6)
    assert state["vision_encoder.layers.1.blocks.0.attn.relative_position_bias_table"].shape == (25, 4)
    pixels, _, _ = inputs(24)
    expected = swin(state, PREFIX["xvlm"], pixels.double(), window=6)
    expect_states(made("xvlm", state, vision={**SWIN, "image_res": 24, "window_size": 6}), pixels, expected)


def test_albefs_pictures_of_another_size() -> None:
    state = albef_state()
    encoder, table = made("albef", state, image_size=80), state["visual_encoder.pos_embed"]
    grid = table[:, 1:].reshape(1, 3, 3, 24).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, (5, 5), mode="bicubic", align_corners=False)
    larger = {"visual_encoder.pos_embed": torch.cat([table[:, :1], grid.flatten(2).mT], 1)}
    pixels, _, _ = inputs(80)
    expect_states(encoder, pixels, vit(state | larger, PREFIX["albef"], pixels.double()))
    about = encoder.describe()
    assert about["image"]["size"] == 80
    assert about["checkpoint"]["tables"] == "interpolated from 48 to 80 pixels"
    # A pre-training checkpoint is fitted to 384 pixels unless another size is given.
    before, sizes = albef_state(stage="pre-training"), {"num_heads": 3}
    for size, more in ((384, {}), (96, {"image_size": 96})):
        fitted = made("albef", before, stage="pre-training", vision=sizes, **more)
        assert fitted.config.vision.image_size == size
    assert made("albef", state, vision=sizes).config.vision.image_size == 48


def test_xvlms_pictures_of_another_size() -> None:
    """Windows of 3 at 48 pixels become windows of 4 at 64, whether masks or the configuration say 48."""
    whole, (pixels, _, _) = xvlm_state(), inputs(64)
    stripped = {name: value for name, value in whole.items() if not name.endswith("attn_mask")}
    for state, vision in ((whole, {"num_heads": [2, 4]}), (stripped, SWIN)):
        encoder = made("xvlm", state, image_size=64, vision=vision)
        assert encoder.config.vision.window == 4
        tables = {name: value for name, value in state.items() if name.endswith("bias_table")}
        larger = state | {name: relative_bias_table(value, 4) for name, value in tables.items()}
        expect_states(encoder, pixels, swin(larger, PREFIX["xvlm"], pixels.double(), window=4))


@pytest.mark.parametrize("kind", KINDS)
def test_configurations_in_every_form(kind: str, tmp_path: Path) -> None:
    """Given in parts, as the published recipe, as files, or found next to the checkpoint: the same model."""
    parts = {"vision": VISION[kind], "text": TEXT}
    recipe = {"image_res": 48, "embed_dim": 12, "temp": 0.07, "k_test": 3, "max_tokens": 17}
    vision, text = ("vit", "bert_config") if kind == "albef" else ("vision_config", "text_config")
    named = {vision: parts["vision"], text: parts["text"]}
    whole = {"config": recipe, **named}
    for name, content in (*parts.items(), ("config", whole), ("list", [])):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    save_file(albef_state() if kind == "albef" else xvlm_state(), tmp_path / "x.safetensors")

    def load(**options: Any) -> Any:
        return CLASSES[kind].load_published(tmp_path / "x.safetensors", **options, device="cpu").config

    sizes = {"vision", "text", "width", "head", "head_width", "trained_size"}
    expected = load(**parts, config={"embed_dim": 12})
    assert expected.text_limit == CLASSES[kind].published_limit
    for options in (
        {"config": whole},
        {"config": {**recipe, **named}},
        {"config": tmp_path / "config.json"},
        {"vision": str(tmp_path / "vision.json"), "text": tmp_path / "text.json"},
        {},
    ):
        found = load(**options)
        assert found.model_dump(include=sizes) == expected.model_dump(include=sizes)
        assert found.text_limit == 17, options
    other, message = (
        {**whole, "config": recipe | {"embed_dim": 13}},
        "configuration says 13, the weights say 12",
    )
    refused(MismatchError, message, load, config=other)
    refused(StorageError, "absent.json does not exist", load, config=tmp_path / "absent.json")
    refused(StorageError, "is not a JSON object", load, vision=tmp_path / "list.json")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the golden values are not there")
@torch.inference_mode()
def test_a_tiny_albef_agrees_with_the_published_code() -> None:
    """States, rows, fused states, and the recall that the published code prints for the three best candidates."""
    golden = dict(np.load(FOLDER / "albef_tiny.npz", allow_pickle=False))
    about: dict[str, Any] = json.loads((FOLDER / "albef_tiny.json").read_text())
    file, options = FOLDER / "albef_tiny.safetensors", {"vision": about["vit"], "text": about["bert_config"]}
    encoder = AlbefEncoder.load_published(file, **options, device="cpu")
    pixels, words = golden["images"], (golden["input_ids"], golden["attention_mask"])
    unit_of = partial(torch.nn.functional.normalize, dim=-1)
    rows = encoder.pixel_rows(pixels), encoder.token_rows(*words)
    seen, read = encoder.pixel_inputs(pixels), encoder.token_inputs(*words)
    one, other = np.divmod(np.arange(35), 7)
    both = {"states": seen["states"][one]}, {name: value[other] for name, value in read.items()}
    reranked = rerank_prepared(encoder, *rows, seen, read, k=3)
    for found, name in (
        (encoder.pixel_states(pixels), "image_embeds"),
        (encoder.token_states(*words), "text_hidden"),
        (unit_of(encoder.pixel_features(pixels)), "image_feat"),
        (unit_of(encoder.token_features(*words)), "text_feat"),
        (encoder.fused(*both).numpy().reshape(5, 7, -1), "fusion_cls"),
        (encoder.matching_logits(*both).reshape(5, 7, 2), "itm_logits"),
        (rows[0] @ rows[1].T, "sims"),
        (reranked.matrix("i2t"), "score_i2t_k3"),
        (reranked.matrix("t2i"), "score_t2i_k3"),
    ):
        np.testing.assert_allclose(found, golden[name], atol=2e-5, rtol=0, err_msg=name)
    truth = GroundTruth.from_caption_image(np.array([about["txt2img"][str(row)] for row in range(7)]), 5)
    result = evaluate_reranked(reranked, truth, ["R@1", "R@5", "R@10"], unranked="published")
    for direction, name in (("i2t", "txt"), ("t2i", "img")):
        for k in (1, 5, 10):
            found = 100 * result.value(f"R@{k}", direction)
            assert found == pytest.approx(about["itm_eval"][f"{name}_r{k}"], abs=1e-9)


def test_tables_of_no_square() -> None:
    for call, shape, message in (
        (relative_bias_table, (48, 2), r"relative position biases of shape \(48, 2\)"),
        (relative_bias_table, (1, 2), r"biases of shape \(1, 2\)"),
    ):
        refused(StorageError, message, call, torch.zeros(shape), 4)


def test_another_file_is_no_blip() -> None:
    whole, parts = blip_state(), {"vision": BLIP_VISION, "text": BLIP_TEXT}
    lost = {name: value for name, value in whole.items() if "layer.3.output.dense" not in name}
    captioner = {name: one for name, one in blip_state(True).items() if not name.startswith("text_encoder.")}
    for state, options, error, message in (
        (albef_state(), {}, MismatchError, "is no checkpoint of BLIP: it looks like an ALBEF checkpoint"),
        (lost, parts, StorageError, r"missing 2 \(text_encoder.encoder.layer.3.output.dense.bias"),
        (captioner, {}, StorageError, r"lacks what retrieval needs: text_encoder\.\*"),
        (
            whole | {"text_proj.weight": torch.zeros(11, 32)},
            parts,
            StorageError,
            r"text_proj.weight has the shape \(11, 32\)",
        ),
    ):
        declared = Configuration(**options)
        refused(error, message, blip_state_from_official, Checkpoint(state, "x.pth"), declared)
