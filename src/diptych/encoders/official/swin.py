"""X-VLM's image encoder: a Swin Transformer of transformers under the names of the published code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import transformers
from torch import Tensor, cat, nn

from diptych.core.errors import UsageError
from diptych.core.options import Options
from diptych.encoders.official.vit import relative_bias_table
from diptych.encoders.official.weights import Renaming, Weights, agreed, agreed_sizes, canonical, not_cut_off

_ALIASES = {
    "image_size": ("image_res", "img_size"),
    "patch_size": (),
    "width": ("embed_dim",),
    "last_width": ("vision_width", "hidden_size"),
    "depths": (),
    "heads": ("num_heads", "num_attention_heads"),
    "window": ("window_size",),
    "mlp_ratio": (),
    "bias": ("qkv_bias",),
    "layer_norm_eps": (),
    "activation": ("hidden_act",),
}
_NO_EFFECT = (
    *("ckpt", "model_type", "in_chans", "num_channels", "num_classes", "patch_norm", "ape", "num_layers"),
    *("use_checkpoint", "drop_rate", "attn_drop_rate", "drop_path_rate", "hidden_dropout_prob"),
    *("attention_probs_dropout_prob", "use_absolute_embeddings", "encoder_stride", "initializer_range"),
)
_TABLE = "attn.relative_position_bias_table"

_BASE = 128
"""First width of the published image encoder."""


class SwinConfig(Options):
    """The sizes of a Swin Transformer.

    Attributes:
        image_size: side of the pictures it takes, in pixels.
        patch_size: side of a patch, in pixels.
        width: of the first stage; every further one has twice the width of the one before.
        depths, heads: of each stage.
        window: side of a window, in patches; a stage that is smaller than it has one window.
        mlp_ratio: of feed-forward width to width.
        bias: whether queries, keys and values have one.
        layer_norm_eps, activation: what no shape tells.
    """

    image_size: int
    patch_size: int
    width: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    window: int
    mlp_ratio: float = 4.0
    bias: bool = True
    layer_norm_eps: float = 1e-5
    activation: str = "gelu"

    def sides(self) -> list[int]:
        sides = [self.image_size // self.patch_size // 2**stage for stage in range(len(self.depths))]
        whole = self.patch_size * sides[-1] * 2 ** (len(sides) - 1) == self.image_size and sides[-1]
        if not whole or any(side % min(side, self.window) for side in sides):
            raise UsageError(
                f"pictures of {self.image_size} × {self.image_size} pixels do not divide into patches of "
                f"{self.patch_size} pixels and windows of {self.window} patches in {len(sides)} stages",
                "choose another image_size, or the window that goes with it: "
                "image_size = patch × window × 2^(stages − 1) fits",
            )
        return sides


def swin_config(
    weights: Weights, given: Mapping[str, Any] | None, image_size: int | None, default: int | None
) -> tuple[SwinConfig, int]:
    """The sizes that the weights and ``given`` say, and for which pictures the weights were trained.

    The window grows with the pictures, as X-VLM's does (7 at 224 pixels, 12 at 384), unless ``given`` says
    another. For which pictures a checkpoint was made is told by its shift masks; without them, by its
    window filling the last stage.
    """
    said = canonical(given, _ALIASES, "image encoder's configuration", _NO_EFFECT)
    width, _, patch, _ = weights.shape("patch_embed.proj.weight", 4)
    stages = range(weights.count("layers."))
    depths = tuple(weights.count(f"layers.{stage}.blocks.") for stage in stages)
    if width == _BASE:
        not_cut_off(said, "depths", depths, (2, 2, 18, 2), "image encoder", weights.source)
    tables = [weights.shape(f"layers.{stage}.blocks.0.{_TABLE}", 2) for stage in stages]
    trained_window = max((math.isqrt(rows) + 1) // 2 for rows, _ in tables)
    trained = _trained_size(weights, patch, trained_window, depths)
    if said.get("patch_size") == patch * 2 ** (len(depths) - 1):
        del said["patch_size"]  # what X-VLM's recipes call so: pixels of one token of the output
    size = image_size or said.get("image_size") or default or trained
    window = said.get("window")
    if window is None:
        window = _scaled(trained_window, size, trained)
    elif image_size is not None and said.get("image_size") not in (None, image_size):
        window = _scaled(window, image_size, said["image_size"])
    config = SwinConfig(
        image_size=size,
        window=window,
        layer_norm_eps=said.get("layer_norm_eps", 1e-5),
        activation=said.get("activation", "gelu"),
        **agreed_sizes(
            said,
            "image encoder",
            patch_size=patch,
            width=width,
            depths=depths,
            heads=tuple(heads for _, heads in tables),
            mlp_ratio=weights.shape("layers.0.blocks.0.mlp.fc1.weight", 2)[0] / width,
            bias="layers.0.blocks.0.attn.qkv.bias" in weights,
        ),
    )
    agreed(said, "last_width", width * 2 ** (len(depths) - 1), "image encoder's last width")
    config.sides()
    return config, trained


def _trained_size(weights: Weights, patch: int, window: int, depths: tuple[int, ...]) -> int:
    for stage, depth in enumerate(depths):
        for name in (f"layers.{stage}.blocks.{block}.attn_mask" for block in range(depth)):
            if name in weights:  # (windows, positions, positions)
                windows, positions, _ = weights.shape(name, 3)
                across: int = math.isqrt(windows) * math.isqrt(positions)
                return int(across * patch * 2**stage)
    return int(window * patch * 2 ** (len(depths) - 1))


def _scaled(window: int, size: int, trained: int) -> int:
    if window * size % trained:
        raise UsageError(
            f"windows of {window} patches at {trained} pixels do not scale to {size} pixels",
            f"choose a multiple of {trained // math.gcd(window, trained)} pixels, or give "
            "vision={'window_size': …}",
        )
    return window * size // trained


class SwinImages(nn.Module):
    """Pictures to tokens, their mean first.

    Attributes:
        width: of a token.
        tokens: how many a picture becomes.
    """

    names = Renaming(
        (r"embeddings\.patch_embeddings\.projection\.(\w+)", r"patch_embed.proj.\1"),
        (r"embeddings\.norm\.(\w+)", r"patch_embed.norm.\1"),
        (r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.layernorm_before\.(\w+)", r"layers.\1.blocks.\2.norm1.\3"),
        (r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.layernorm_after\.(\w+)", r"layers.\1.blocks.\2.norm2.\3"),
        (
            r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.attention\.(?P<part>[qkv])_proj\.(\w+)",
            r"layers.\1.blocks.\2.attn.qkv.\4",
        ),
        (
            r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.attention\.o_proj\.(\w+)",
            r"layers.\1.blocks.\2.attn.proj.\3",
        ),
        (
            r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.attention\.relative_position_bias\.(\w+)",
            r"layers.\1.blocks.\2.attn.\3",
        ),
        (r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.mlp\.(fc\d)\.(\w+)", r"layers.\1.blocks.\2.mlp.\3.\4"),
        (r"encoder\.layers\.(\d+)\.downsample\.(\w+)\.(\w+)", r"layers.\1.downsample.\2.\3"),
        (r"layernorm\.(\w+)", r"norm.\1"),
    )

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        sides = config.sides()
        self.width, self.tokens = config.width * 2 ** (len(sides) - 1), 1 + sides[-1] ** 2
        self.windows = [min(side, config.window) for side in sides]
        self.model: Any = transformers.SwinModel(
            transformers.SwinConfig(
                image_size=config.image_size,
                patch_size=config.patch_size,
                embed_dim=config.width,
                depths=list(config.depths),
                num_heads=list(config.heads),
                window_size=config.window,
                mlp_ratio=config.mlp_ratio,
                qkv_bias=config.bias,
                layer_norm_eps=config.layer_norm_eps,
                hidden_act=config.activation,
            ),
            add_pooling_layer=False,
        )
        for stage, window in zip(self.model.encoder.layers, self.windows, strict=True):
            for block in stage.blocks if window < config.window else ():
                # Transformers gives every stage tables of the whole window; the published code does not.
                biases = block.attention.relative_position_bias
                heads = biases.relative_position_bias_table.shape[1]
                block.attention.relative_position_bias = type(biases)(heads, (window, window))
        for module in self.model.modules():
            if isinstance(module, nn.LayerNorm):  # transformers leaves some at the default
                module.eps = config.layer_norm_eps

    def fitted(self, name: str, value: Tensor) -> Tensor:
        """A weight of the checkpoint for the pictures taken here: bias tables are interpolated."""
        if not name.endswith(_TABLE):
            return value
        return relative_bias_table(value, self.windows[int(name.split(".")[1])])

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, 3, size, size) → (n, tokens, width)."""
        states = self.model(pixel_values=pixels).last_hidden_state
        return cat([states.mean(dim=1, keepdim=True), states], dim=1)
