from __future__ import annotations

from typing import Any

import pytest
import torch
from refusals import refused

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.official.encoder import AlbefEncoder, XvlmEncoder

from .tiny_official import SWIN, TEXT, VIT, State, albef_state, xvlm_state

ALBEF, XVLM = albef_state(), xvlm_state()


def load(state: State, **options: Any) -> Any:
    kind, vision = (AlbefEncoder, VIT) if "visual_encoder.cls_token" in state else (XvlmEncoder, SWIN)
    return kind.from_checkpoint(state, **({"vision": vision, "text": TEXT, "device": "cpu"} | options))


def without(state: State, *names: str) -> State:
    assert all(name in state for name in names)
    return {name: value for name, value in state.items() if name not in names}


def test_missing_and_unexpected_weights() -> None:
    lost = [f"text_encoder.encoder.layer.{row}.output.dense.bias" for row in range(4)]
    with pytest.raises(
        StorageError,
        match=rf"ALBEF: missing 4 \({lost[0]}, {lost[1]}, {lost[2]}, …\), unexpected 1 \(cls_head.weight\)",
    ):
        load(without(ALBEF, *lost) | {"cls_head.weight": torch.ones(2, 2)})
    with pytest.raises(
        StorageError, match=r"X-VLM: missing 1 \(vision_encoder.layers.1.blocks.1.attn.qkv.bias\)"
    ):
        load(without(XVLM, "vision_encoder.layers.1.blocks.1.attn.qkv.bias"))
    with pytest.raises(StorageError, match="unexpected 1 .vision_encoder.absolute_pos_embed"):
        load(XVLM | {"vision_encoder.absolute_pos_embed": torch.zeros(1, 144, 16)})


def test_a_layer_is_missing() -> None:
    for layer in ("text_encoder.encoder.layer.1.", "visual_encoder.blocks.0."):
        state = {name: value for name, value in ALBEF.items() if not name.startswith(layer)}
        refused(StorageError, f"lacks {layer[:-1]}", load, state)
    crossed = [name for name in ALBEF if "layer.3.crossattention" in name and "_m." not in name]
    with pytest.raises(StorageError, match=r"of 4 layers of the text encoder, \[2\] have cross-attention"):
        load(without(ALBEF, *crossed))


def test_strange_shapes() -> None:
    with pytest.raises(StorageError, match=r"text_proj.weight has the shape \(12, 31\).*wanted \(12, 32\)"):
        load(ALBEF | {"text_proj.weight": torch.zeros(12, 31)})
    with pytest.raises(StorageError, match=r"blocks.1.attn.qkv.weight has the shape \(70, 24\)"):
        load(ALBEF | {"visual_encoder.blocks.1.attn.qkv.weight": torch.zeros(70, 24)})
    with pytest.raises(StorageError, match="8 positions, which is no square"):
        load(ALBEF | {"visual_encoder.pos_embed": torch.zeros(1, 9, 24)})
    refused(StorageError, "the temperature", load, ALBEF | {"temp": torch.tensor(float("nan"))})
    swapped = ALBEF | {name: value for name, value in XVLM.items() if name.startswith("text_encoder.")}
    refused(StorageError, "tokens are 24 wide, cross-attention reads 32", load, swapped)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vision": VIT | {"embed_dim": 48}}, "width: the configuration says 48, the weights say 24"),
        ({"vision": VIT | {"depth": 12}}, "depth: the configuration says 12, the weights say 2"),
        ({"vision": VIT | {"patch_size": 32}}, "patch size: the configuration says 32, the weights say 16"),
        ({"vision": VIT | {"mlp_ratio": 2}}, "feed forward: the configuration says 48, the weights say 96"),
        ({"vision": VIT | {"qkv_bias": False}}, "bias: the configuration says False, the weights say True"),
        (
            {"text": TEXT | {"fusion_layer": 3}},
            "fusion layer: the configuration says 3, the weights say 2",
        ),
        ({"text": TEXT | {"vocab_size": 30522}}, "the configuration says 30522, the weights say 90"),
    ],
)
def test_another_configuration(options: dict[str, Any], message: str) -> None:
    refused(MismatchError, message, load, ALBEF, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vision": VIT | {"img_size": "48"}}, "img_size='48'"),
        ({"vision": VIT | {"img_size": [48, 48]}}, r"img_size=\[48, 48\]"),
        ({"vision": VIT | {"layer_norm_eps": "small"}}, "layer_norm_eps='small'"),
        ({"text": TEXT | {"hidden_act": "jump"}}, "hidden_act='jump'"),
        ({"vision": VIT | {"img_size": float("inf")}}, "img_size=inf"),
        ({"text": TEXT | {"hidden_act": "jump", "model_type": "roberta"}}, "hidden_act='jump'"),
        ({"text": TEXT | {"model_type": "roberta"}}, "a text encoder of type 'roberta'"),
        ({"vision": VIT | {"vision_width": 12}}, "embed_dim=24 and vision_width=12"),
        ({"vision": [VIT]}, "the image encoder's configuration is a list"),
        ({"image_size": "48"}, "pictures of 48 × 48"),
        ({"text_limit": 0}, "texts of 0 tokens for a text encoder of 40 positions"),
        ({"text_limit": 41}, "texts of 41 tokens"),
        ({"text_limit": "30"}, "texts of '30' tokens"),
    ],
)
def test_values_that_cannot_be(options: dict[str, Any], message: str) -> None:
    refused(UsageError, message, load, ALBEF, **options)


def test_heads_are_never_guessed() -> None:
    with pytest.raises(UsageError, match="how many attention heads the image encoder of width 24 has"):
        load(ALBEF, vision=None)
    refused(UsageError, "how many attention heads the text encoder of width 32 has", load, ALBEF, text=None)
    refused(UsageError, "5 is not how many", load, ALBEF, vision=VIT | {"num_heads": 5})
    assert load(XVLM, vision=None).config.vision.heads == (2, 4)  # the bias tables tell


def test_sizes_of_pictures() -> None:
    refused(UsageError, "50 × 50 pixels do not divide into patches of 16", load, ALBEF, image_size=50)
    refused(UsageError, "0 × 0 pixels", load, ALBEF, image_size=0)
    with pytest.raises(UsageError, match=r"windows of 3 patches at 48 pixels do not scale to 56") as caught:
        load(XVLM, image_size=56)
    assert "a multiple of 16 pixels" in caught.value.fix
    with pytest.raises(UsageError, match="do not divide into patches of 4 pixels and windows of 5"):
        load(XVLM, vision=SWIN | {"window_size": 5})
    assert load(XVLM, image_size=96).config.vision.window == 6
    # What X-VLM's recipes call the patch size: pixels of a token of the output.
    assert load(XVLM, vision=SWIN | {"patch_size": 8}).config.vision.patch_size == 4
    assert load(XVLM, image_size=64, vision=SWIN).config.vision.window == 4
    refused(UsageError, "stage 'tuned'", load, XVLM, stage="tuned")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("albef", "visual_encoder.blocks.1.attn.qkv.weight"),
        ("albef", "visual_encoder.pos_embed"),
        ("albef", "itm_head.bias"),
        ("xvlm", "vision_encoder.layers.0.blocks.0.attn.relative_position_bias_table"),
        ("xvlm", "text_encoder.encoder.layer.2.crossattention.self.value.weight"),
    ],
)
def test_numbers_that_are_no_weights(kind: str, name: str) -> None:
    """Found when the file is loaded, not when everything has been encoded."""
    state = ALBEF if kind == "albef" else XVLM
    bad = state[name].clone()
    bad.view(-1)[3 % bad.numel()] = float("nan")
    for size in (48, 96):  # 96: the tables are interpolated
        with pytest.raises(StorageError, match=f"1 of {bad.numel():,} numbers of {name} are NaN"):
            load(state | {name: bad}, image_size=size)
    for value in (bad.to(torch.int64), state[name].to(torch.complex64), state[name].to_sparse()):
        refused(StorageError, f"{name} holds numbers of type", load, state | {name: value})
