from __future__ import annotations

import io
import json
import pickle
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
    FOLLOWING,
    LAYOUTS,
    find_checkpoint,
    read_checkpoint,
    retrieval_weights,
)
from diptych.encoders.official.inputs import read_configuration
from diptych.encoders.official.model import MatchingConfig, MatchingModel, model_config_of

from .tiny_official import State, albef_state, xvlm_state

PUBLISHED = Path(__file__).parents[4] / "shared" / "checkpoint-layouts"
NONE = torch.zeros(0)


OTHERS = {
    "blip": {
        "visual_encoder.cls_token": NONE,
        "text_encoder.encoder.layer.0.crossattention.self.key.weight": NONE,
    },
    "a BLIP captioner": {"visual_encoder.cls_token": NONE, "text_decoder.bert.embeddings.x": NONE},
    "clip of OpenAI": {"logit_scale": NONE, "visual.conv1.weight": NONE, "transformer.resblocks.0.x": NONE},
    "vit": {"cls_token": NONE, "pos_embed": NONE, "blocks.0.attn.qkv.weight": NONE},
    "swin": {"patch_embed.norm.weight": NONE, "layers.0.blocks.0.norm1.weight": NONE},
    "bert": {"bert.embeddings.word_embeddings.weight": NONE, "cls.predictions.bias": NONE},
    "x-vlm with a ViT": {"vision_encoder.pos_embed.weight": NONE, "text_encoder.embeddings.x": NONE},
}


@pytest.mark.parametrize(
    ("state", "what", "fix"),
    [
        (xvlm_state(), "an X-VLM checkpoint", "load it with xvlm:FILE"),
        (OTHERS["blip"], "a BLIP checkpoint in its authors' layout", "blip:FILE"),
        (OTHERS["clip of OpenAI"], "a CLIP-like model", "open_clip"),
        (OTHERS["vit"], "an image encoder .ViT. alone", "the whole model"),
        ({"fc.weight": NONE}, "none that is known, with 1 .fc.weight.", "only checkpoints of ALBEF, X-VLM"),
    ],
)
def test_another_model(state: State, what: str, fix: str) -> None:
    with pytest.raises(
        MismatchError, match=f"x.pth is no checkpoint of ALBEF: it looks like {what}"
    ) as caught:
        retrieval_weights(state, LAYOUTS["albef"], "fine-tuned", "x.pth")
    assert fix.strip(".").split(" .")[0] in caught.value.fix


@pytest.mark.parametrize(("kind", "make"), [("albef", albef_state), ("xvlm", xvlm_state)])
def test_the_other_stage(kind: str, make: Any) -> None:
    with pytest.raises(MismatchError, match="holds text_encoder.bert.*not a fine-tuned checkpoint") as caught:
        retrieval_weights(make(stage="pre-training"), LAYOUTS[kind], "fine-tuned", "x.pth")
    assert f"{kind}:pretraining:FILE" in caught.value.fix
    with pytest.raises(MismatchError, match="not a pre-training checkpoint") as caught:
        retrieval_weights(make(), LAYOUTS[kind], "pre-training", "x.pth")
    assert f"{kind}:FILE" in caught.value.fix


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published lists of names are not there")
@pytest.mark.parametrize(("kind", "count"), [("albef", 831), ("xvlm", 631)])
def test_published_names(kind: str, count: int) -> None:
    """Every weight of the published checkpoints is used or knowingly left out, none of the model's is missing."""
    keys = json.loads((PUBLISHED / f"{kind}.json").read_text())["keys"]
    assert len(keys) == count
    state = {
        name: torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        for name, (shape, dtype) in keys.items()
    }
    kept = retrieval_weights(state, LAYOUTS[kind], "fine-tuned", kind)
    left_out = state.keys() - kept.keys()
    assert all("_m." in name or "queue" in name for name in left_out)
    fields = model_config_of(
        kept, LAYOUTS[kind], kind, vision=None, text=None, image_size=None, default_size=None
    )
    config = MatchingConfig(**fields, text_limit=30)
    vision, text = config.vision, config.text
    assert (vision.image_size, config.width, config.trained_size) == (384, 256, 384)
    assert (text.heads, text.depth, text.fusion_layer, text.vocabulary) == (12, 12, 6, 30522)
    expected = {"albef": (12, 768), "xvlm": ((4, 8, 16, 32), 1024)}
    assert (vision.heads, text.image_width) == expected[kind]
    with torch.device("meta"):
        model = MatchingModel(config)
        found = model.weights_of(kept, LAYOUTS[kind], kind)
    assert {name: value.shape for name, value in found.items()} == {
        name: value.shape for name, value in model.state_dict().items()
    }
    used = {model.official_name(name, LAYOUTS[kind]) for name in found}
    assert kept.keys() - used == {"temp", *(name for name in kept if FOLLOWING.match(name))}
    parameters = sum(value.numel() for value in found.values()) + 1
    assert parameters == {"albef": 209560835, "xvlm": 213959547}[kind]


VIT, BERT = {"depth": 2}, {"num_attention_heads": 4, "hidden_size": 32}


def test_two_sizes() -> None:
    with pytest.raises(UsageError, match="says image_res=384, and 224 for the image encoder"):
        read_configuration({"image_res": 384, "vision_config": {"image_res": 224}})


STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2)}


def same(found: Any) -> bool:
    return found.keys() == STATE.keys() and all(torch.equal(found[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize(
    "content",
    [
        STATE,
        {"model": STATE, "optimizer": {"state": {}}, "config": {"image_res": 384}, "epoch": 3},
        {"state_dict": STATE},
        {"model": {f"module.{name}": value for name, value in STATE.items()}},
    ],
)
@pytest.mark.parametrize("name", ["x.th", "x.pth", "x.pt", "x.bin"])
def test_wrappings(content: dict[str, Any], name: str, tmp_path: Path) -> None:
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


class _Code:
    def __reduce__(self) -> Any:
        return print, ("this must not be printed",)


def test_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": STATE, "more": _Code()}, tmp_path / "x.pth")
    with pytest.raises(StorageError, match=r"more than tensors .* asks for print") as caught:
        read_checkpoint(tmp_path)
    assert 'torch.load("x.pth", map_location="cpu", weights_only=False)["model"]' in caught.value.fix
    (tmp_path / "x.pth").write_bytes(pickle.dumps(_Code()))
    with pytest.raises(StorageError):
        read_checkpoint(tmp_path)
    assert "must not" not in capsys.readouterr().out


@pytest.mark.parametrize("archive", [True, False])
@settings(max_examples=60)
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
    with pytest.raises(StorageError, match=r"'a' of shape \(1000000, 1000000\) with fewer numbers"):
        read_checkpoint(tmp_path / "wide.pth")
    torch.save({"position_ids": torch.arange(5).expand(1, -1)}, tmp_path / "row.pth")  # as BERT's is kept
    assert read_checkpoint(tmp_path / "row.pth").state["position_ids"].shape == (1, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.ones(2)], "holds a list, not weights by name"),
        ({}, "holds nothing"),
        ({"model": {}}, "holds nothing"),
        ({"epoch": 3, "a": torch.ones(1)}, "holds 'epoch', which is no tensor"),
        ({"model": {7: torch.ones(1)}}, "holds 7, which is no name"),
    ],
)
def test_no_weights(content: Any, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "x.pth")
    refused(StorageError, message, read_checkpoint, tmp_path)


def test_which_file(tmp_path: Path) -> None:
    refused(UsageError, "neither a file nor a folder", find_checkpoint, tmp_path / "absent.pth")
    refused(StorageError, "holds 0 checkpoints", find_checkpoint, tmp_path)
    for name in ("b.pth", "a.th"):
        torch.save(STATE, tmp_path / name)
    with pytest.raises(StorageError, match=r"holds 2 checkpoints: a\.th, b\.pth") as caught:
        find_checkpoint(tmp_path)
    assert caught.value.fix == "give the file itself"
    assert find_checkpoint(tmp_path / "b.pth").name == "b.pth"
