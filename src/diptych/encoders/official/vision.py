"""The image encoders of ALBEF (ViT) and X-VLM (Swin), as timm builds them.

Position tables for images of another size are interpolated as the published code does it.
"""

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from scipy.interpolate import RectBivariateSpline
from timm.layers import resample_abs_pos_embed
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from transformers.activations import ACT2FN

from diptych.core.errors import StorageError, UsageError
from diptych.core.options import Options
from diptych.encoders.official.checkpoint import Checkpoint, Stage
from diptych.encoders.official.inputs import agreed, canonical, given_heads, not_cut_off


def position_table(table: Tensor, side: int) -> Tensor:
    """Return ViT's position rows for ``side`` × ``side`` patches: all but the first are resized, bicubic (ALBEF)."""
    resized: Tensor = resample_abs_pos_embed(table, [side, side], antialias=False)
    return resized


def relative_bias_table(table: Tensor, window: int) -> Tensor:
    """Return Swin's relative position biases for windows of ``window`` × ``window`` patches.

    A cubic spline through the old ones, at geometric distances, is read at whole distances (X-VLM, from BEiT).
    """
    old, new = math.isqrt(len(table)), 2 * window - 1
    if old == new:
        return table
    if old * old != len(table) or old < 3:
        raise StorageError(
            f"relative position biases of shape {tuple(table.shape)} cannot be interpolated to windows of {window}",
            "load it at the size of its own; of another shape than 9, 25, 49 … rows it is corrupt",
        )
    at, new_places = _distances(old // 2, new // 2), np.arange(-(new // 2), new // 2 + 1, dtype=np.float64)
    order = min(3, old - 1)  # of small tables, a spline of lower order
    columns = []
    for head in table.float().T.numpy():
        spline = RectBivariateSpline(at, at, head.reshape(old, old), kx=order, ky=order)
        columns.append(spline(new_places, new_places).reshape(-1))
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _distances(old: int, new: int) -> np.ndarray:
    """Return (2 · old + 1,) places of the old biases: 0, ±1, ±(1 + q), ±(1 + q + q²) …, the last near ``new``."""
    low, high = 1.01, 1.5
    while high - low > 1e-6:
        ratio = (low + high) / 2.0
        reach = (1.0 - ratio**old) / (1.0 - ratio)
        low, high = (low, ratio) if reach > new else (ratio, high)
    steps = np.cumsum([ratio**power for power in range(old)])
    return np.concatenate([-steps[::-1], [0.0], steps])


_TABLE = "attn.relative_position_bias_table"
_DEFAULT_SIZES = {
    "pre-training": 384
}  # of images, unless another is given: as the published retrieval recipes
_PUBLISHED_WIDTHS = {"vit": 768, "swin": 128}


class _ImageConfig(Options):
    image_size: Annotated[int, "image_res", "img_size"]
    patch_size: int
    bias: Annotated[bool, "qkv_bias"] = True
    activation: Annotated[str, "hidden_act"] = "gelu"


class VitConfig(_ImageConfig):
    """The sizes of a ViT; no shape determines epsilon and activation."""

    width: Annotated[int, "embed_dim", "hidden_size", "vision_width"]
    depth: Annotated[int, "num_hidden_layers"]
    heads: Annotated[int, "num_heads", "num_attention_heads"]
    feed_forward: Annotated[int, "intermediate_size"]
    layer_norm_eps: float = 1e-6

    @property
    def last_width(self) -> int:
        return self.width


def vit_config(
    weights: Checkpoint, given: Mapping[str, Any] | None, image_size: int | None, stage: Stage
) -> tuple[VitConfig, int]:
    """Return the sizes that the weights and ``given`` say, and for which images the weights were trained."""
    declared = canonical(given, VitConfig, "image encoder's configuration", "mlp_ratio")
    width, _, patch, _ = weights.shape("patch_embed.proj.weight", 4)
    rows = weights.shape("pos_embed", 3)[1] - 1
    side = math.isqrt(max(rows, 0))
    if side * side != rows:
        raise StorageError(
            f"{weights.name} has {rows} positions, which is no square", "its pos_embed is of another model"
        )
    if "mlp_ratio" in declared:
        declared["feed_forward"] = int(width * declared.pop("mlp_ratio"))
    size = image_size or declared.get("image_size") or _DEFAULT_SIZES.get(stage) or side * patch
    if size % patch:
        raise UsageError(
            f"images of {size} × {size} pixels do not divide into patches of {patch} × {patch}",
            f"choose a multiple of {patch}; the weights were trained at {side * patch}",
        )
    depth = weights.count("blocks.")
    if width == _PUBLISHED_WIDTHS["vit"]:
        not_cut_off(declared, "depth", depth, 12, "image encoder", weights.name)
    config = VitConfig(
        image_size=size,
        patch_size=patch,
        width=width,
        depth=depth,
        heads=given_heads(declared, width, "image encoder"),
        feed_forward=weights.shape("blocks.0.mlp.fc1.weight", 2)[0],
        bias="blocks.0.attn.qkv.bias" in weights,
        **{name: declared[name] for name in ("layer_norm_eps", "activation") if name in declared},
    )
    agreed(declared, config, "image encoder's", "image_size")
    return config, side * patch


class SwinConfig(_ImageConfig):
    """The sizes of a Swin Transformer; a stage that is smaller than the window has one window."""

    width: Annotated[int, "embed_dim"]
    depths: tuple[int, ...]
    heads: Annotated[tuple[int, ...], "num_heads", "num_attention_heads"]
    window: Annotated[int, "window_size"]
    mlp_ratio: float = 4.0
    layer_norm_eps: float = 1e-5

    @property
    def last_width(self) -> int:
        return self.width * int(2 ** (len(self.depths) - 1))

    def sides(self) -> list[int]:
        """Return the sides of the stages, in patches."""
        sides = [self.image_size // self.patch_size // 2**stage for stage in range(len(self.depths))]
        whole = self.patch_size * sides[-1] * 2 ** (len(sides) - 1) == self.image_size and sides[-1]
        if not whole or any(side % min(side, self.window) for side in sides):
            raise UsageError(
                f"images of {self.image_size} × {self.image_size} pixels do not divide into patches of "
                f"{self.patch_size} pixels and windows of {self.window} patches in {len(sides)} stages",
                "choose another image_size, or the window that goes with it: "
                "image_size = patch × window × 2^(stages − 1) fits",
            )
        return sides


def swin_config(
    weights: Checkpoint, given: Mapping[str, Any] | None, image_size: int | None, stage: Stage
) -> tuple[SwinConfig, int]:
    """Return the sizes that the weights and ``given`` say, and for which images the weights were trained.

    The window grows with the images, as X-VLM's does, unless ``given`` says another.
    """
    declared = canonical(
        given, SwinConfig, "image encoder's configuration", "last_width=vision_width=hidden_size"
    )
    width, _, patch, _ = weights.shape("patch_embed.proj.weight", 4)
    stages = range(weights.count("layers."))
    depths = tuple(weights.count(f"layers.{stage}.blocks.") for stage in stages)
    if width == _PUBLISHED_WIDTHS["swin"]:
        not_cut_off(declared, "depths", depths, (2, 2, 18, 2), "image encoder", weights.name)
    tables = [weights.shape(f"layers.{stage}.blocks.0.{_TABLE}", 2) for stage in stages]
    trained_window = max((math.isqrt(rows) + 1) // 2 for rows, _ in tables)
    trained = _trained_size(weights, patch, trained_window, depths)
    if declared.get("patch_size") == patch * 2 ** (len(depths) - 1):
        del declared["patch_size"]  # what X-VLM's recipes call so: pixels of one token of the output
    size = image_size or declared.get("image_size") or _DEFAULT_SIZES.get(stage) or trained
    window = declared.get("window")
    if window is None:
        window = _scaled(trained_window, size, trained)
    elif image_size is not None and declared.get("image_size") not in (None, image_size):
        window = _scaled(window, image_size, declared["image_size"])
    config = SwinConfig(
        image_size=size,
        patch_size=patch,
        width=width,
        depths=depths,
        heads=tuple(heads for _, heads in tables),
        window=window,
        mlp_ratio=weights.shape("layers.0.blocks.0.mlp.fc1.weight", 2)[0] / width,
        bias="layers.0.blocks.0.attn.qkv.bias" in weights,
        layer_norm_eps=declared.get("layer_norm_eps", 1e-5),
    )
    # Of activations the published code and timm have one, GELU.
    agreed(declared, config, "image encoder's", "image_size", "window")
    config.sides()
    return config, trained


def _trained_size(weights: Checkpoint, patch: int, window: int, depths: tuple[int, ...]) -> int:
    """Return for which images a checkpoint was made: by its shift masks, else by its window filling the last stage."""
    blocks = [(stage, block) for stage, depth in enumerate(depths) for block in range(depth)]
    for stage, block in blocks:
        if (name := f"layers.{stage}.blocks.{block}.attn_mask") in weights:
            windows, positions, _ = weights.shape(name, 3)
            return math.isqrt(windows) * math.isqrt(positions) * patch * int(2**stage)
    return window * patch * int(2 ** (len(depths) - 1))


def _scaled(window: int, size: int, trained: int) -> int:
    if window * size % trained:
        raise UsageError(
            f"windows of {window} patches at {trained} pixels do not scale to {size} pixels",
            f"choose a multiple of {trained // math.gcd(window, trained)} pixels, or give "
            "vision={'window_size': …}",
        )
    return window * size // trained


class ImageEncoder(nn.Module):
    """Images to tokens: the class token first (ViT), or the mean of the others (Swin)."""

    def __init__(self, config: VitConfig | SwinConfig) -> None:
        super().__init__()
        common: dict[str, Any] = {
            "img_size": config.image_size,
            "patch_size": config.patch_size,
            "embed_dim": config.width,
            "num_heads": config.heads,
            "qkv_bias": config.bias,
            "num_classes": 0,
            "global_pool": "",
            "norm_layer": partial(nn.LayerNorm, eps=config.layer_norm_eps),
            "weight_init": "skip",
        }
        self.model: Any
        if isinstance(config, SwinConfig):
            self.sides = config.sides()
            self.windows = [min(side, config.window) for side in self.sides]
            self.model = SwinTransformer(
                depths=config.depths, window_size=config.window, mlp_ratio=config.mlp_ratio, **common
            )
        else:
            self.sides, self.windows = [config.image_size // config.patch_size], []
            self.model = VisionTransformer(
                depth=config.depth,
                mlp_ratio=config.feed_forward / config.width,
                act_layer=lambda: ACT2FN[config.activation],
                **common,
            )
        self.tokens = 1 + self.sides[-1] ** 2

    def official_name(self, name: str) -> str:
        """Return what the published code calls a weight of ``model``: timm counts downsampling to the next stage."""
        return re.sub(
            r"^layers\.(\d+)\.downsample", lambda found: f"layers.{int(found[1]) - 1}.downsample", name
        )

    def fitted(self, name: str, value: Tensor) -> Tensor:
        """Return a weight of the checkpoint for the images taken here: tables of positions are interpolated."""
        if name == "pos_embed":
            return position_table(value, self.sides[0])
        if name.endswith(_TABLE):
            return relative_bias_table(value, self.windows[int(name.split(".")[1])])
        return value

    def forward(self, pixels: Tensor) -> Tensor:
        """Map (n, 3, size, size) → (n, tokens, width)."""
        states: Tensor = self.model.forward_features(pixels)
        if not self.windows:
            return states
        states = states.flatten(1, 2)
        return torch.cat([states.mean(dim=1, keepdim=True), states], dim=1)
