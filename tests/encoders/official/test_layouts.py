from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import save_file

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.official.checkpoint import (
    LAYOUTS,
    Checkpoint,
    find_checkpoint,
    read_checkpoint,
    retrieval_weights,
)
from diptych.encoders.official.encoder import AlbefEncoder, XvlmEncoder
from diptych.encoders.official.inputs import read_configuration

from .tiny_official import SWIN, TEXT, VIT, State, albef_state, xvlm_state


@pytest.mark.parametrize(("kind", "make"), [("albef", albef_state), ("xvlm", xvlm_state)])
def test_the_other_stage(kind: str, make: Any) -> None:
    for stage, other, message, fix in (
        ("pre-training", "fine-tuned", "holds text_encoder.bert.*not a fine-tuned", "pretraining:"),
        ("fine-tuned", "pre-training", "not a pre-training checkpoint", ""),
    ):
        arguments = Checkpoint(make(stage=stage), "x.pth"), LAYOUTS[kind], other
        assert f"{kind}:{fix}FILE" in refused(MismatchError, message, retrieval_weights, *arguments).fix


STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2)}


def same(found: Any) -> bool:
    return found.keys() == STATE.keys() and all(torch.equal(found[name], STATE[name]) for name in STATE)


def test_wrappings(tmp_path: Path) -> None:
    contents: list[dict[str, Any]] = [
        STATE,
        {"model": STATE, "optimizer": {"state": {}}, "config": {"image_res": 384}, "epoch": 3},
        {"state_dict": STATE},
        {"model": {f"module.{name}": value for name, value in STATE.items()}},
    ]
    for content in contents:
        name = "x.pth"
        torch.save(content, tmp_path / name)
        for source in (tmp_path / name, str(tmp_path), content):
            assert same(read_checkpoint(source).state)
        assert read_checkpoint(tmp_path).name == name
        assert read_checkpoint(tmp_path).folder == tmp_path
        assert read_checkpoint(content).folder is None


def test_safetensors(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "x.safetensors")
    assert same(read_checkpoint(tmp_path).state)
    content = (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").write_bytes(content[:-4])
    refused(StorageError, "is not a safetensors file", read_checkpoint, tmp_path)


@pytest.mark.parametrize("archive", [True, False])
@settings(max_examples=40)
@given(
    cut=st.just(1.0) | st.floats(0, 1),
    changes=st.dictionaries(st.floats(0, 0.999), st.integers(0, 255), max_size=4),
)
def test_any_damage_is_an_error_of_ours(archive: bool, cut: float, changes: dict[float, int]) -> None:
    buffer = io.BytesIO()
    torch.save({"model": STATE}, buffer, _use_new_zipfile_serialization=archive)
    content = bytearray(buffer.getvalue())
    for place, value in changes.items():
        content[int(place * len(content))] = value
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.pth"
        file.write_bytes(content[: round(cut * len(content))])
        try:
            found = read_checkpoint(file).state
        except StorageError:
            return
        assert all(isinstance(value, torch.Tensor) for value in found.values())


def test_files_that_unfold_to_any_size(tmp_path: Path) -> None:
    torch.save({"model": {"a": torch.zeros(1 << 20)}}, tmp_path / "whole.pth")
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(tmp_path / "whole.pth") as whole, zipfile.ZipFile(packed, "w", 8) as archive:
        for entry in whole.infolist():
            archive.writestr(entry.filename, whole.read(entry))
    assert packed.stat().st_size < 20_000
    refused(StorageError, "packed entries .* which PyTorch does not write", read_checkpoint, packed)
    torch.save({"a": torch.zeros(1, 1).expand(10**6, 10**6)}, tmp_path / "wide.pth")
    message = r"'a' of shape \(1000000, 1000000\) with fewer numbers"
    refused(StorageError, message, read_checkpoint, tmp_path / "wide.pth")
    torch.save({"position_ids": torch.arange(5).expand(1, -1)}, tmp_path / "row.pth")  # as BERT's is kept
    assert read_checkpoint(tmp_path / "row.pth").state["position_ids"].shape == (1, 5)


def test_no_weights(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ([torch.ones(2)], "holds a list, not weights by name"),
        ({}, "holds nothing"),
        ({"model": {}}, "holds nothing"),
        ({"epoch": 3, "a": torch.ones(1)}, "holds 'epoch', which is no tensor"),
        ({"model": {7: torch.ones(1)}}, "holds 7, which is no name"),
    ]
    for content, message in cases:
        torch.save(content, tmp_path / "x.pth")
        refused(StorageError, message, read_checkpoint, tmp_path)


def test_which_file(tmp_path: Path) -> None:
    refused(UsageError, "neither a file nor a folder", find_checkpoint, tmp_path / "absent.pth")
    refused(StorageError, "holds 0 checkpoints", find_checkpoint, tmp_path)
    for name in ("b.pth", "a.th"):
        torch.save(STATE, tmp_path / name)
    error = refused(StorageError, r"holds 2 checkpoints: a\.th, b\.pth", find_checkpoint, tmp_path)
    assert error.fix == "give the file itself"
    assert find_checkpoint(tmp_path / "b.pth").name == "b.pth"


ALBEF, XVLM = albef_state(), xvlm_state()


def load(state: State, **options: Any) -> Any:
    kind, vision = (AlbefEncoder, VIT) if "visual_encoder.cls_token" in state else (XvlmEncoder, SWIN)
    return kind.load_published(state, **({"vision": vision, "text": TEXT, "device": "cpu"} | options))


def test_another_model() -> None:
    for names, what, fix in (
        ([*xvlm_state()], "an X-VLM checkpoint", "load it with xvlm:FILE"),
        (
            ["visual_encoder.cls_token", "text_encoder.encoder.layer.0.crossattention.self.key.weight"],
            "a BLIP checkpoint in its authors' layout",
            "blip:FILE",
        ),
        (
            ["logit_scale", "visual.conv1.weight", "transformer.resblocks.0.x"],
            "a CLIP-like model",
            "open_clip",
        ),
        (
            ["cls_token", "pos_embed", "blocks.0.attn.qkv.weight"],
            "only an image encoder .ViT.",
            "the whole model",
        ),
        (["fc.weight"], "none that is known, with 1 .fc.weight.", "only checkpoints of ALBEF, X-VLM"),
    ):
        state = dict.fromkeys(names, torch.zeros(0))
        message = f"x.pth is no checkpoint of ALBEF: it looks like {what}"
        arguments = Checkpoint(state, "x.pth"), LAYOUTS["albef"], "fine-tuned"
        assert fix in refused(MismatchError, message, retrieval_weights, *arguments).fix


def without(state: State, part: str) -> State:
    kept = {name: value for name, value in state.items() if part not in name or "_m." in name}
    assert len(kept) < len(state)
    return kept


QKV = "vision_encoder.layers.1.blocks.1.attn.qkv.bias"

LOST = [f"text_encoder.encoder.layer.{row}.output.dense.bias" for row in range(4)]

FEWER = {name: value for name, value in ALBEF.items() if name not in LOST} | {
    "cls_head.weight": torch.ones(2, 2)
}


def test_weights_that_do_not_fit() -> None:
    for state, message in (
        (
            FEWER,
            rf"ALBEF: missing 4 \({LOST[0]}, {LOST[1]}, {LOST[2]}, …\), unexpected 1 \(cls_head.weight\)",
        ),
        (without(XVLM, QKV), rf"X-VLM: missing 1 \({QKV}\)"),
        (
            XVLM | {"vision_encoder.absolute_pos_embed": torch.zeros(1, 144, 16)},
            "unexpected 1 .vision_encoder.absolute_pos_embed",
        ),
        (without(ALBEF, "text_encoder.encoder.layer.1."), "lacks text_encoder.encoder.layer.1"),
        (without(ALBEF, "visual_encoder.blocks.0."), "lacks visual_encoder.blocks.0"),
        (
            without(ALBEF, "layer.3.crossattention"),
            r"of 4 layers of the text encoder, \[2\] have cross-attention",
        ),
        (ALBEF | {"text_proj.weight": torch.zeros(12, 31)}, r"has the shape \(12, 31\).*expected \(12, 32\)"),
        (
            ALBEF | {"visual_encoder.blocks.1.attn.qkv.weight": torch.zeros(70, 24)},
            r"blocks.1.attn.qkv.weight has the shape \(70, 24\)",
        ),
        (ALBEF | {"visual_encoder.pos_embed": torch.zeros(1, 9, 24)}, "8 positions, which is no square"),
        (ALBEF | {"temp": torch.tensor(float("nan"))}, "the temperature"),
        (
            ALBEF | {name: value for name, value in XVLM.items() if name.startswith("text_encoder.")},
            "tokens are 24 wide, cross-attention reads 32",
        ),
    ):
        refused(StorageError, message, load, state)


SAYS = "the configuration says"


def test_configurations_that_do_not_fit() -> None:
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({"vision": VIT | {"embed_dim": 48}}, MismatchError, f"width: {SAYS} 48, the weights say 24"),
        ({"vision": VIT | {"depth": 12}}, MismatchError, f"depth: {SAYS} 12, the weights say 2"),
        ({"vision": VIT | {"patch_size": 32}}, MismatchError, f"patch size: {SAYS} 32, the weights say 16"),
        ({"vision": VIT | {"mlp_ratio": 2}}, MismatchError, f"feed forward: {SAYS} 48, the weights say 96"),
        ({"vision": VIT | {"qkv_bias": False}}, MismatchError, f"bias: {SAYS} False, the weights say True"),
        ({"text": TEXT | {"fusion_layer": 3}}, MismatchError, f"fusion layer: {SAYS} 3, the weights say 2"),
        ({"text": TEXT | {"vocab_size": 30522}}, MismatchError, f"{SAYS} 30522, the weights say 90"),
        ({"vision": VIT | {"img_size": "48"}}, UsageError, "img_size='48'"),
        ({"vision": VIT | {"img_size": [48, 48]}}, UsageError, r"img_size=\[48, 48\]"),
        ({"vision": VIT | {"layer_norm_eps": "small"}}, UsageError, "layer_norm_eps='small'"),
        ({"text": TEXT | {"hidden_act": "jump"}}, UsageError, "hidden_act='jump'"),
        ({"vision": VIT | {"img_size": float("inf")}}, UsageError, "img_size=inf"),
        ({"text": TEXT | {"model_type": "roberta"}}, UsageError, "a text encoder of model_type 'roberta'"),
        ({"vision": VIT | {"vision_width": 12}}, UsageError, "embed_dim=24 and vision_width=12"),
        ({"vision": [VIT]}, UsageError, "the image encoder's configuration is a list"),
        ({"image_size": "48"}, UsageError, "images of 48 × 48"),
        ({"image_size": 50}, UsageError, "50 × 50 pixels do not divide into patches of 16"),
        ({"image_size": 0}, UsageError, "0 × 0 pixels"),
        ({"config": {"max_tokens": 0}}, UsageError, "texts of 0 tokens for a text encoder of 40 positions"),
        ({"config": {"max_tokens": 41}}, UsageError, "texts of 41 tokens"),
        ({"config": {"max_tokens": "30"}}, UsageError, "texts of '30' tokens"),
        ({"stage": "tuned"}, UsageError, "stage 'tuned'"),
        ({"vision": None}, UsageError, "how many attention heads the image encoder of width 24 has"),
        ({"text": None}, UsageError, "how many attention heads the text encoder of width 32 has"),
        ({"vision": VIT | {"num_heads": 5}}, UsageError, "5 is not how many"),
    ]
    for options, error, message in cases:
        refused(error, message, load, ALBEF, **options)


def test_windows_scale_with_the_pictures() -> None:
    error = refused(
        UsageError, "windows of 3 patches at 48 pixels do not scale to 56", load, XVLM, image_size=56
    )
    assert "a multiple of 16 pixels" in error.fix
    message = "do not divide into patches of 4 pixels and windows of 5"
    refused(UsageError, message, load, XVLM, vision=SWIN | {"window_size": 5})
    assert load(XVLM, image_size=96).config.vision.window == 6
    # What X-VLM's recipes call the patch size: pixels of a token of the output.
    assert load(XVLM, vision=SWIN | {"patch_size": 8}).config.vision.patch_size == 4
    assert load(XVLM, vision=None).config.vision.heads == (2, 4)  # the bias tables tell
    both = {"image_res": 384, "vision_config": {"image_res": 224}}
    message = "says image_res=384, and 224 for the image encoder"
    refused(UsageError, message, read_configuration, both)


def test_numbers_that_are_no_weights() -> None:
    """Found when the file is loaded, not when everything has been encoded."""
    for state, name in (
        (ALBEF, "visual_encoder.pos_embed"),
        (ALBEF, "itm_head.bias"),
        (XVLM, "vision_encoder.layers.0.blocks.0.attn.relative_position_bias_table"),
    ):
        bad = state[name].clone()
        bad.view(-1)[3 % bad.numel()] = float("nan")
        for size in (48, 96):  # 96: the tables are interpolated
            message = f"1 of {bad.numel():,} numbers of {name} are NaN"
            refused(StorageError, message, load, state | {name: bad}, image_size=size)
        for value in (bad.to(torch.int64), state[name].to(torch.complex64), state[name].to_sparse()):
            refused(StorageError, f"{name} holds numbers of type", load, state | {name: value})
