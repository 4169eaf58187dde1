"""Position tables for pictures of another size than a model was trained with, as ALBEF and X-VLM do it.

Both forms are those of the published code: another way of interpolating gives other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import transformers
from scipy.interpolate import RectBivariateSpline
from torch import Tensor, nn
from torch.nn.functional import interpolate

from diptych.core.errors import StorageError, UsageError
from diptych.core.options import Options
from diptych.encoders.official.weights import (
    Renaming,
    Weights,
    agreed,
    agreed_sizes,
    canonical,
    given_heads,
    not_cut_off,
)


def position_table(table: Tensor, side: int) -> Tensor:
    """ViT's position rows for a grid of ``side`` × ``side`` patches.

    The first row, of the class token, stays; the others are resized as a picture, bicubic (ALBEF's
    ``interpolate_pos_embed``).
    """
    old = _square(table.shape[1] - 1, "position table", table)
    if old == side:
        return table
    grid = table[:, 1:].reshape(1, old, old, -1).permute(0, 3, 1, 2)
    grid = interpolate(grid.float(), size=(side, side), mode="bicubic", align_corners=False)
    return torch.cat([table[:, :1].float(), grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def relative_bias_table(table: Tensor, window: int) -> Tensor:
    """Swin's relative position biases for windows of ``window`` × ``window`` patches.

    The old biases are put at distances that grow geometrically, so that the nearest stay where they are
    and the outermost fall on the new edge; a cubic spline through them is read at whole distances (the
    form that X-VLM takes from BEiT). A table of fewer than four rows has a spline of lower order.
    """
    old = _square(len(table), "table of relative position biases", table)
    new = 2 * window - 1
    if old == new:
        return table
    if old < 3:
        raise StorageError(
            f"a table of relative position biases of {len(table)} row holds no distances to interpolate",
            f"load it at the size of its own, instead of windows of {window}",
        )
    at, wanted = _distances(old // 2, new // 2), np.arange(-(new // 2), new // 2 + 1, dtype=np.float64)
    order = min(3, old - 1)
    columns = []
    for head in table.float().T.numpy():
        spline = RectBivariateSpline(at, at, head.reshape(old, old), kx=order, ky=order)
        columns.append(spline(wanted, wanted).reshape(-1))
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _distances(old: int, new: int) -> np.ndarray:
    """(2 · old + 1,) places of the old biases: 0, ±1, ±(1 + q), ±(1 + q + q²) …, the last near ``new``."""
    low, high = 1.01, 1.5
    while high - low > 1e-6:
        ratio = (low + high) / 2.0
        reach = (1.0 - ratio**old) / (1.0 - ratio)
        low, high = (low, ratio) if reach > new else (ratio, high)
    steps = np.cumsum([ratio**power for power in range(old)])
    return np.concatenate([-steps[::-1], [0.0], steps])


def _square(count: int, what: str, table: Tensor) -> int:
    side = math.isqrt(max(count, 0))
    if side * side != count or not side:
        raise StorageError(
            f"a {what} of shape {tuple(table.shape)} is of no square picture",
            "the checkpoint is damaged or of another model",
        )
    return side


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


class VitConfig(Options):
    """The sizes of a ViT.

    Attributes:
        image_size: side of the pictures it takes, in pixels.
        patch_size: side of a patch, in pixels.
        width, depth, heads, feed_forward: of its layers.
        bias: whether queries, keys and values have one.
        layer_norm_eps, activation: what no shape tells.
    """

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
        heads=given_heads(said, width, "image encoder"),
        layer_norm_eps=said.get("layer_norm_eps", 1e-6),
        activation=said.get("activation", "gelu"),
        **agreed_sizes(
            said,
            "image encoder",
            patch_size=patch,
            width=width,
            depth=depth,
            feed_forward=feed_forward,
            bias="blocks.0.attn.qkv.bias" in weights,
        ),
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
