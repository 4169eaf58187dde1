from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BlipConfig, BlipForImageTextRetrieval

from diptych.core.errors import MismatchError, StorageError
from diptych.encoders.official.checkpoint import (
    FOLLOWING,
    LAYOUTS,
    advice,
    is_pre_training,
    listed,
    looks_like,
    retrieval_weights,
)
from diptych.encoders.official.model import MatchingConfig, MatchingModel, filled, model_config_of

from ..tiny_pretrained import transformers_model
from .tiny_official import State, albef_state, xvlm_state

PUBLISHED = Path(__file__).parents[4] / "shared" / "checkpoint-layouts"
NONE = torch.zeros(0)


def blip_of_transformers() -> State:
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BlipConfig(
        text_config={**small, "vocab_size": 30, "encoder_hidden_size": 16, "max_position_embeddings": 8},
        vision_config={**small, "image_size": 16, "patch_size": 8},
    )
    return dict(BlipForImageTextRetrieval(config).state_dict())


def of_transformers(kind: str) -> State:
    return dict(transformers_model(kind)[0].state_dict())


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
    ("state", "expected"),
    [
        (albef_state(), "albef"),
        (albef_state(stage="pre-training"), "albef"),
        (xvlm_state(), "xvlm"),
        (xvlm_state(stage="pre-training"), "xvlm"),
        (OTHERS["blip"], "blip"),
        (OTHERS["a BLIP captioner"], "blip"),
        (blip_of_transformers(), "blip of transformers"),
        (of_transformers("clip"), "clip"),
        (of_transformers("siglip"), "clip"),
        (OTHERS["clip of OpenAI"], "clip"),
        (OTHERS["vit"], "vit"),
        (OTHERS["swin"], "swin"),
        (OTHERS["bert"], "bert"),
        (OTHERS["x-vlm with a ViT"], ""),
        ({"fc.weight": NONE}, ""),
    ],
)
def test_what_a_file_looks_like(state: State, expected: str) -> None:
    assert looks_like(state) == expected


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
        MismatchError, match=f"x.pth is not an ALBEF checkpoint: it looks like {what}"
    ) as caught:
        retrieval_weights(state, LAYOUTS["albef"], "fine-tuned", "x.pth")
    assert fix.strip(".").split(" .")[0] in caught.value.fix


@pytest.mark.parametrize(("kind", "make"), [("albef", albef_state), ("xvlm", xvlm_state)])
def test_the_other_stage(kind: str, make: Any) -> None:
    with pytest.raises(MismatchError, match="of pre-training .it holds text_encoder.bert") as caught:
        retrieval_weights(make(stage="pre-training"), LAYOUTS[kind], "fine-tuned", "x.pth")
    assert f"{kind}:pretraining:FILE" in caught.value.fix
    with pytest.raises(MismatchError, match="is a fine-tuned") as caught:
        retrieval_weights(make(), LAYOUTS[kind], "pre-training", "x.pth")
    assert f"{kind}:FILE" in caught.value.fix


def test_how_a_file_is_loaded() -> None:
    assert advice("xvlm", "m/itr.th") == ("an X-VLM checkpoint", "load it with xvlm:m/itr.th")
    assert advice("")[0] == "none that is known"
    assert is_pre_training(xvlm_state(stage="pre-training"), "xvlm")
    assert not is_pre_training(xvlm_state(), "xvlm")


@pytest.mark.parametrize(("kind", "make"), [("albef", albef_state), ("xvlm", xvlm_state)])
def test_what_is_kept(kind: str, make: Any) -> None:
    tuned = retrieval_weights(make(), LAYOUTS[kind], "fine-tuned", "x")
    started = retrieval_weights(make(stage="pre-training"), LAYOUTS[kind], "pre-training", "x")
    assert tuned.keys() == started.keys()
    assert not [
        name for name in tuned if "_m." in name or "queue" in name or ".bert." in name or "bbox" in name
    ]


def test_another_task() -> None:
    state = {
        name: value for name, value in albef_state().items() if not name.startswith(("itm_head", "text_proj"))
    }
    with pytest.raises(StorageError, match=r"lacks what retrieval needs: text_proj\.\*, itm_head\.\*"):
        retrieval_weights(state, LAYOUTS["albef"], "fine-tuned", "vqa.pth")


def test_listed() -> None:
    assert listed([]) == "0 ()"
    assert listed(["a", "b"]) == "2 (a, b)"
    assert listed(list("abcd")) == "4 (a, b, c, …)"


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
        found = filled(model, kept, LAYOUTS[kind], kind)
    assert {name: value.shape for name, value in found.items()} == {
        name: value.shape for name, value in model.state_dict().items()
    }
    used = {model.official_name(name, LAYOUTS[kind])[0] for name in found}
    assert kept.keys() - used == {"temp", *(name for name in kept if FOLLOWING.match(name))}
    parameters = sum(value.numel() for value in found.values()) + 1
    assert parameters == {"albef": 209560835, "xvlm": 213959547}[kind]
