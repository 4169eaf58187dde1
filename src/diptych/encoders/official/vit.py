"""ALBEF's image encoder: a ViT of transformers under the names of the published code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import transformers
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from diptych.core.errors import StorageError, UsageError
from diptych.encoders.official.interpolation import position_table
from diptych.encoders.official.weights import Renaming, Weights, agreed, canonical, given_heads, not_cut_off

_ALIASES = {
    "image_size": ("image_res", "img_size"),
    "patch_size": (),
    "width": ("embed_dim", "hidden_size", "vision_width"),
    "depth": ("num_hidden_layers",),
    "heads": ("num_heads", "num_attention_heads"),
    "feed_forward": ("intermediate_size",),
    "mlp_ratio": (),
    "bias": ("qkv_bias",),
    "layer_norm_eps": (),
    "activation": ("hidden_act",),
}
_NO_EFFECT = (
    *("model_type", "in_chans", "num_channels", "num_classes", "representation_size", "initializer_range"),
    *("drop_rate", "attn_drop_rate", "drop_path_rate", "hidden_dropout_prob", "attention_probs_dropout_prob"),
)

_BASE = 768
"""Width of the published image encoder."""


class VitConfig(BaseModel):
    """The sizes of a ViT.

    Attributes:
        image_size: side of the pictures it takes, in pixels.
        patch_size: side of a patch, in pixels.
        width, depth, heads, feed_forward: of its layers.
        bias: whether queries, keys and values have one.
        layer_norm_eps, activation: what no shape tells.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    image_size: int
    patch_size: int
    width: int
    depth: int
    heads: int
    feed_forward: int
    bias: bool = True
    layer_norm_eps: float = 1e-6
    activation: str = "gelu"


def vit_config(
    weights: Weights, given: Mapping[str, Any] | None, image_size: int | None, default: int | None
) -> tuple[VitConfig, int]:
    """The sizes that the weights and ``given`` say, and for which pictures the weights were trained."""
    said = canonical(given, _ALIASES, "image encoder's configuration", _NO_EFFECT)
    width, _, patch, _ = weights.shape("patch_embed.proj.weight", 4)
    rows = weights.shape("pos_embed", 3)[1] - 1
    side = math.isqrt(max(rows, 0))
    if side * side != rows:
        raise StorageError(
            f"{weights.source} has {rows} positions, which is no square", "its pos_embed is of another model"
        )
    feed_forward = weights.shape("blocks.0.mlp.fc1.weight", 2)[0]
    if "mlp_ratio" in said:
        agreed({"feed_forward": int(width * said["mlp_ratio"])}, "feed_forward", feed_forward, "feed-forward")
    size = image_size or said.get("image_size") or default or side * patch
    if size % patch:
        raise UsageError(
            f"pictures of {size} × {size} pixels do not divide into patches of {patch} × {patch}",
            f"choose a multiple of {patch}; the weights were trained at {side * patch}",
        )
    depth = weights.count("blocks.")
    if width == _BASE:
        not_cut_off(said, "depth", depth, 12, "image encoder", weights.source)
    config = VitConfig(
        image_size=size,
        patch_size=agreed(said, "patch_size", patch, "image encoder's patch size"),
        width=agreed(said, "width", width, "image encoder's width"),
        depth=agreed(said, "depth", depth, "image encoder's depth"),
        heads=given_heads(said, width, "image encoder"),
        feed_forward=agreed(said, "feed_forward", feed_forward, "image encoder's feed-forward width"),
        bias=agreed(said, "bias", "blocks.0.attn.qkv.bias" in weights, "image encoder's bias"),
        layer_norm_eps=said.get("layer_norm_eps", 1e-6),
        activation=said.get("activation", "gelu"),
    )
    return config, side * patch


class VitImages(nn.Module):
    """Pictures to tokens, the class token first.

    Attributes:
        width: of a token.
        tokens: how many a picture becomes.
    """

    names = Renaming(
        (r"embeddings\.cls_token", "cls_token"),
        (r"embeddings\.position_embeddings", "pos_embed"),
        (r"embeddings\.patch_embeddings\.projection\.(\w+)", r"patch_embed.proj.\1"),
        (r"layers\.(\d+)\.layernorm_before\.(\w+)", r"blocks.\1.norm1.\2"),
        (r"layers\.(\d+)\.layernorm_after\.(\w+)", r"blocks.\1.norm2.\2"),
        (r"layers\.(\d+)\.attention\.(?P<part>[qkv])_proj\.(\w+)", r"blocks.\1.attn.qkv.\3"),
        (r"layers\.(\d+)\.attention\.o_proj\.(\w+)", r"blocks.\1.attn.proj.\2"),
        (r"layers\.(\d+)\.mlp\.(fc\d)\.(\w+)", r"blocks.\1.mlp.\2.\3"),
        (r"layernorm\.(\w+)", r"norm.\1"),
    )

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.side = config.image_size // config.patch_size
        self.width, self.tokens = config.width, 1 + self.side**2
        self.model: Any = transformers.ViTModel(
            transformers.ViTConfig(
                image_size=config.image_size,
                patch_size=config.patch_size,
                hidden_size=config.width,
                num_hidden_layers=config.depth,
                num_attention_heads=config.heads,
                intermediate_size=config.feed_forward,
                qkv_bias=config.bias,
                layer_norm_eps=config.layer_norm_eps,
                hidden_act=config.activation,
            ),
            add_pooling_layer=False,
        )

    def fitted(self, name: str, value: Tensor) -> Tensor:
        """A weight of the checkpoint for the pictures taken here: the position table is interpolated."""
        return position_table(value, self.side) if name == "pos_embed" else value

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, 3, size, size) → (n, tokens, width)."""
        states: Tensor = self.model(pixel_values=pixels).last_hidden_state
        return states
