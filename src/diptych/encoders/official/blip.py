"""BLIP's retrieval checkpoints in their authors' layout, as the model of transformers.

Transformers has other defaults: 8 heads for the text, norms with an epsilon of 1e-5 for the image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from diptych.encoders.blip import BlipEncoder
from diptych.encoders.official.checkpoint import (
    LAYOUTS,
    Stage,
    read_checkpoint,
    retrieval_weights,
    split_stage,
)
from diptych.encoders.official.inputs import Squashed, configured, find_tokenizer
from diptych.encoders.official.model import PRE_TRAINED_SIZE, PUBLISHED_TEXT_WIDTH, filled
from diptych.encoders.official.vision import position_table, vit_config
from diptych.encoders.official.weights import Weights, given_heads, not_cut_off

_NAMES = {
    r"vision_model\.embeddings\.class_embedding": "visual_encoder.cls_token",
    r"vision_model\.embeddings\.position_embedding": "visual_encoder.pos_embed",
    r"vision_model\.embeddings\.patch_embedding\.(\w+)": r"visual_encoder.patch_embed.proj.\1",
    r"vision_model\.encoder\.layers\.(\d+)\.self_attn\.projection\.": r"visual_encoder.blocks.\1.attn.proj.",
    r"vision_model\.encoder\.layers\.(\d+)\.self_attn\.qkv\.": r"visual_encoder.blocks.\1.attn.qkv.",
    r"vision_model\.encoder\.layers\.(\d+)\.layer_norm(\d)\.": r"visual_encoder.blocks.\1.norm\2.",
    r"vision_model\.encoder\.layers\.(\d+)\.mlp\.": r"visual_encoder.blocks.\1.mlp.",
    r"vision_model\.post_layernorm\.": r"visual_encoder.norm.",
}
"""From the names of transformers to the published ones; the text encoder's are the same."""


def _published_name(name: str) -> str:
    for ours, theirs in _NAMES.items():
        name = re.sub(f"^{ours}", theirs, name)
    return name


def blip_state_from_official(
    state: Mapping[str, Tensor],
    *,
    vision: Mapping[str, Any] | None = None,
    text: Mapping[str, Any] | None = None,
    stage: Stage = "fine-tuned",
    source: str = "the checkpoint",
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return a checkpoint of BLIP's authors as configuration and weights of ``BlipForImageTextRetrieval``."""
    kept = retrieval_weights(state, LAYOUTS["blip"], stage, source)
    default = PRE_TRAINED_SIZE if stage == "pre-training" else None
    seen, _ = vit_config(Weights(kept, "visual_encoder.", source), vision, None, default)
    config = {
        "image_text_hidden_size": Weights(kept, "", source).shape("vision_proj.weight", 2)[0],
        "text_config": _text_config(Weights(kept, "text_encoder.", source), text),
        "vision_config": {
            "image_size": seen.image_size,
            "patch_size": seen.patch_size,
            "hidden_size": seen.width,
            "intermediate_size": seen.feed_forward,
            "num_hidden_layers": seen.depth,
            "num_attention_heads": seen.heads,
            "layer_norm_eps": seen.layer_norm_eps,
            "hidden_act": seen.activation,
        },
    }
    with torch.device("meta"):
        wanted = transformers.BlipForImageTextRetrieval(transformers.BlipConfig(**config)).state_dict()
    names = {name: _published_name(name) for name in wanted}
    side = seen.image_size // seen.patch_size

    def fitted(name: str, value: Tensor) -> Tensor:
        return position_table(value, side) if name == "pos_embed" else value

    return config, filled(wanted, names, kept, LAYOUTS["blip"], source, fitted)


def _text_config(weights: Weights, given: Mapping[str, Any] | None) -> dict[str, Any]:
    vocabulary, width = weights.shape("embeddings.word_embeddings.weight", 2)
    said = dict(given or {})
    depth = weights.count("encoder.layer.")
    if width == PUBLISHED_TEXT_WIDTH:
        not_cut_off(said, "num_hidden_layers", depth, 12, "text encoder", weights.source)
    return {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "encoder_hidden_size": weights.shape("encoder.layer.0.crossattention.self.key.weight", 2)[1],
        "intermediate_size": weights.shape("encoder.layer.0.intermediate.dense.weight", 2)[0],
        "num_hidden_layers": depth,
        "num_attention_heads": given_heads({"heads": said.get("num_attention_heads")}, width, "text encoder"),
        "max_position_embeddings": weights.shape("embeddings.position_embeddings.weight", 2)[0],
        "layer_norm_eps": said.get("layer_norm_eps", 1e-12),
        "hidden_act": said.get("hidden_act", "gelu"),
        "is_decoder": True,
    }


def open_official_blip(
    source: str | Path, *, tokenizer: Any = None, device: str | None = None
) -> BlipEncoder:
    """Load ``FILE``, a folder with one, or, on purpose, ``pretraining:FILE``: every number then says so."""
    stage, path = split_stage(source)
    found = read_checkpoint(path)
    said = configured(found)
    sizes, weights = blip_state_from_official(
        found.state, vision=said.vision, text=said.text, stage=stage, source=found.name
    )
    words = tokenizer or find_tokenizer(None, found.folder)
    with torch.random.fork_rng(devices=[]):
        model = transformers.BlipForImageTextRetrieval(transformers.BlipConfig(**sizes))
    model.load_state_dict(weights, strict=True)
    size = sizes["vision_config"]["image_size"]
    squashed = Squashed(size)
    processor = transformers.BlipImageProcessorPil(
        size={"height": size, "width": size}, image_mean=list(squashed.mean), image_std=list(squashed.std)
    )
    return BlipEncoder(model, words, processor, found.name, device=device, stage=stage)
