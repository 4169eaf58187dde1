"""Tiny random ALBEF and X-VLM checkpoints with the published names, and what the published code computes
of them: written here once more, in float64, from plain products and sums."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

State = dict[str, Tensor]

TEXT: dict[str, Any] = {"num_attention_heads": 4, "hidden_act": "gelu", "vocab_size": 90, "fusion_layer": 2}
VIT: dict[str, Any] = {"img_size": 48, "patch_size": 16, "embed_dim": 24, "depth": 2, "num_heads": 3}
SWIN: dict[str, Any] = {
    "image_res": 48,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 3,
    "vision_width": 32,
}
"""12 × 12 and 6 × 6 patches in windows of 3 × 3: both stages have a shifted block."""


class Maker:
    """Random weights by name."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.state: State = {}

    def add(self, name: str, *shape: int, scale: float = 0.25, around: float = 0.0) -> None:
        self.state[name] = around + scale * torch.randn(*shape, generator=self.generator)

    def linear(self, name: str, rows: int, columns: int, bias: bool = True) -> None:
        self.add(f"{name}.weight", rows, columns, scale=1.2 / math.sqrt(columns))
        if bias:
            self.add(f"{name}.bias", rows)

    def norm(self, name: str, width: int) -> None:
        self.add(f"{name}.weight", width, around=1.0)
        self.add(f"{name}.bias", width)

    def bert(
        self, prefix: str, width: int = 32, image_width: int = 24, depth: int = 4, first: int = 2
    ) -> None:
        for table, rows in (("word", 90), ("position", 40), ("token_type", 2)):
            self.add(f"{prefix}embeddings.{table}_embeddings.weight", rows, width, scale=0.5)
        self.state[f"{prefix}embeddings.position_ids"] = torch.arange(40)[None]
        self.norm(f"{prefix}embeddings.LayerNorm", width)
        for row in range(depth):
            layer = f"{prefix}encoder.layer.{row}."
            crossed = ["crossattention"] if row >= first else []
            for kind in ("attention", *crossed):
                context = width if kind == "attention" else image_width
                self.linear(f"{layer}{kind}.self.query", width, width)
                self.linear(f"{layer}{kind}.self.key", width, context)
                self.linear(f"{layer}{kind}.self.value", width, context)
                self.linear(f"{layer}{kind}.output.dense", width, width)
                self.norm(f"{layer}{kind}.output.LayerNorm", width)
            self.linear(f"{layer}intermediate.dense", 48, width)
            self.linear(f"{layer}output.dense", width, 48)
            self.norm(f"{layer}output.LayerNorm", width)

    def block(self, block: str, width: int, feed_forward: int) -> None:
        self.norm(f"{block}norm1", width)
        self.linear(f"{block}attn.qkv", 3 * width, width)
        self.linear(f"{block}attn.proj", width, width)
        self.norm(f"{block}norm2", width)
        self.linear(f"{block}mlp.fc1", feed_forward, width)
        self.linear(f"{block}mlp.fc2", width, feed_forward)

    def vit(self, prefix: str, width: int = 24, depth: int = 2, patch: int = 16, side: int = 3) -> None:
        self.add(f"{prefix}cls_token", 1, 1, width)
        self.add(f"{prefix}pos_embed", 1, 1 + side * side, width, scale=0.5)
        self.add(f"{prefix}patch_embed.proj.weight", width, 3, patch, patch, scale=0.1)
        self.add(f"{prefix}patch_embed.proj.bias", width)
        for row in range(depth):
            self.block(f"{prefix}blocks.{row}.", width, 4 * width)
        self.norm(f"{prefix}norm", width)

    def swin(
        self, prefix: str, width: int, depths: list[int], heads: list[int], window: int, side: int
    ) -> None:
        self.add(f"{prefix}patch_embed.proj.weight", width, 3, 4, 4, scale=0.2)
        self.add(f"{prefix}patch_embed.proj.bias", width)
        self.norm(f"{prefix}patch_embed.norm", width)
        for stage, depth in enumerate(depths):
            across = min(window, side)
            for row in range(depth):
                block = f"{prefix}layers.{stage}.blocks.{row}."
                self.block(block, width, 4 * width)
                table = (2 * across - 1) ** 2, heads[stage]
                self.add(f"{block}attn.relative_position_bias_table", *table, scale=0.5)
                index = f"{block}attn.relative_position_index"
                self.state[index] = torch.zeros(across**2, across**2, dtype=torch.int64)
                if row % 2 and side > window:
                    shape = (side // window) ** 2, window**2, window**2
                    self.state[f"{block}attn_mask"] = torch.zeros(*shape)
            if stage + 1 < len(depths):
                self.norm(f"{prefix}layers.{stage}.downsample.norm", 4 * width)
                self.linear(f"{prefix}layers.{stage}.downsample.reduction", 2 * width, 4 * width, bias=False)
                width, side = 2 * width, side // 2
        self.norm(f"{prefix}norm", width)


def albef_state(seed: int = 0, stage: str = "fine-tuned", side: int = 3) -> State:
    """A checkpoint of ALBEF: ViT of 24 columns, BERT of 32, rows of 12; momentum copies and queues too."""
    maker = Maker(seed)
    inner = "bert." if stage == "pre-training" else ""
    for momentum in ("", "_m"):
        maker.vit(f"visual_encoder{momentum}.", side=side)
        maker.bert(f"text_encoder{momentum}.{inner}")
        maker.linear(f"vision_proj{momentum}", 12, 24)
        maker.linear(f"text_proj{momentum}", 12, 32)
        if inner:
            maker.linear(f"text_encoder{momentum}.cls.predictions.decoder", 90, 32)
            maker.add(f"text_encoder{momentum}.cls.predictions.bias", 90)
    maker.linear("itm_head", 2, 32)
    maker.state["temp"] = torch.tensor(0.05)
    for queue in ("image_queue", "text_queue"):
        maker.add(queue, 12, 8)
    maker.state["idx_queue"] = torch.full((1, 8), -100)
    maker.state["queue_ptr"] = torch.zeros(1, dtype=torch.int64)
    return maker.state


def xvlm_state(seed: int = 0, stage: str = "fine-tuned", window: int = 3, side: int = 12) -> State:
    """A checkpoint of X-VLM: Swin of 16 and 32 columns in two stages, BERT of 32, rows of 12."""
    maker = Maker(seed)
    inner = "bert." if stage == "pre-training" else ""
    maker.swin("vision_encoder.", 16, [2, 2], [2, 4], window, side)
    maker.bert(f"text_encoder.{inner}", image_width=32)
    maker.linear("vision_proj", 12, 32)
    maker.linear("text_proj", 12, 32)
    heads = ("itm_head", 2), *((("bbox_head", 4),) if inner else ())
    for head, outputs in heads:
        maker.linear(f"{head}.0", 64, 32)
        maker.norm(f"{head}.1", 64)
        maker.linear(f"{head}.3", outputs, 64)
    if inner:
        maker.linear("text_encoder.cls.predictions.transform.dense", 32, 32)
    maker.state["temp"] = torch.tensor(0.06)
    return maker.state


def linear(state: State, name: str, rows: Tensor) -> Tensor:
    bias = state.get(f"{name}.bias")
    product = rows @ state[f"{name}.weight"].double().T
    return product if bias is None else product + bias.double()


def norm(state: State, name: str, rows: Tensor, eps: float) -> Tensor:
    centred = rows - rows.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return centred / spread * state[f"{name}.weight"].double() + state[f"{name}.bias"].double()


def gelu(rows: Tensor) -> Tensor:
    return rows * 0.5 * (1 + torch.erf(rows / math.sqrt(2)))


def attend(query: Tensor, key: Tensor, value: Tensor, heads: int, added: Tensor | float = 0.0) -> Tensor:
    """(n, q, w), (n, k, w), (n, k, w) and what is added to (n, heads, q, k) products → (n, q, w)."""
    size = query.shape[-1] // heads

    def split(rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], heads, size).transpose(1, 2)

    products = split(query) @ split(key).transpose(2, 3) / math.sqrt(size) + added
    return (products.softmax(-1) @ split(value)).transpose(1, 2).reshape(query.shape)


def patches(state: State, prefix: str, pixels: Tensor) -> Tensor:
    """(n, 3, s, s) → (n, g · g, w): each patch's pixels times the filters."""
    weight = state[f"{prefix}patch_embed.proj.weight"].double()
    size = weight.shape[-1]
    side = pixels.shape[-1] // size
    cut = pixels.reshape(len(pixels), 3, side, size, side, size).permute(0, 2, 4, 1, 3, 5)
    flat = cut.reshape(len(pixels), side * side, -1)
    return flat @ weight.reshape(len(weight), -1).T + state[f"{prefix}patch_embed.proj.bias"].double()


def thirds(state: State, name: str, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = linear(state, name, rows).chunk(3, dim=-1)
    return query, key, value


def vit(state: State, prefix: str, pixels: Tensor, heads: int = 3) -> Tensor:
    """As ALBEF's VisionTransformer: all tokens after the last norm."""
    rows = patches(state, prefix, pixels)
    first = state[f"{prefix}cls_token"].double().expand(len(rows), -1, -1)
    rows = torch.cat([first, rows], 1) + state[f"{prefix}pos_embed"].double()
    depth = 1 + max(int(name.split(".")[2]) for name in state if name.startswith(f"{prefix}blocks."))
    for row in range(depth):
        block = f"{prefix}blocks.{row}."
        query, key, value = thirds(state, f"{block}attn.qkv", norm(state, f"{block}norm1", rows, 1e-6))
        rows = rows + linear(state, f"{block}attn.proj", attend(query, key, value, heads))
        between = gelu(linear(state, f"{block}mlp.fc1", norm(state, f"{block}norm2", rows, 1e-6)))
        rows = rows + linear(state, f"{block}mlp.fc2", between)
    return norm(state, f"{prefix}norm", rows, 1e-6)


def window_places(side: int, window: int, shift: int) -> list[list[tuple[int, int]]]:
    """The places in the picture of each window of the shifted grid, window by window."""
    starts = range(0, side, window)
    return [
        [
            ((top + down + shift) % side, (left + right + shift) % side)
            for down in range(window)
            for right in range(window)
        ]
        for top in starts
        for left in starts
    ]


def region(place: int, side: int, window: int, shift: int) -> int:
    """Which of the three strips of the shifted grid a place (before shifting back) is in."""
    return 0 if place < side - window else 1 if place < side - shift else 2


def swin_block(
    state: State, block: str, rows: Tensor, side: int, heads: int, window: int, shift: int
) -> Tensor:
    """One block, window by window and pair of places by pair: nothing is rolled or masked in bulk."""
    table = state[f"{block}attn.relative_position_bias_table"].double()
    query, key, value = thirds(state, f"{block}attn.qkv", norm(state, f"{block}norm1", rows, 1e-5))
    attended = torch.zeros_like(rows)
    for places in window_places(side, window, shift):
        flat = torch.tensor([down * side + right for down, right in places])
        grid = [((down - shift) % side, (right - shift) % side) for down, right in places]
        bias = torch.zeros(heads, len(places), len(places), dtype=torch.float64)
        for one, (a, b) in enumerate(grid):
            for other, (c, d) in enumerate(grid):
                bias[:, one, other] = table[(a - c + window - 1) * (2 * window - 1) + b - d + window - 1]
                strips = [
                    (region(x, side, window, shift), region(y, side, window, shift))
                    for x, y in ((a, b), (c, d))
                ]
                if shift and strips[0] != strips[1]:
                    bias[:, one, other] -= 100.0
        attended[:, flat] = attend(query[:, flat], key[:, flat], value[:, flat], heads, bias)
    rows = rows + linear(state, f"{block}attn.proj", attended)
    between = gelu(linear(state, f"{block}mlp.fc1", norm(state, f"{block}norm2", rows, 1e-5)))
    return rows + linear(state, f"{block}mlp.fc2", between)


def swin(
    state: State, prefix: str, pixels: Tensor, heads: tuple[int, ...] = (2, 4), window: int = 3
) -> Tensor:
    """As X-VLM's SwinTransformer: the mean of the tokens, then the tokens."""
    rows = norm(state, f"{prefix}patch_embed.norm", patches(state, prefix, pixels), 1e-5)
    side = math.isqrt(rows.shape[1])
    for stage, count in enumerate(heads):
        across = min(side, window)
        for row in range(2):
            shift = window // 2 if row % 2 and side > window else 0
            rows = swin_block(
                state, f"{prefix}layers.{stage}.blocks.{row}.", rows, side, count, across, shift
            )
        if stage + 1 < len(heads):
            grid = rows.reshape(len(rows), side, side, -1)
            four = [grid[:, down::2, right::2] for right in (0, 1) for down in (0, 1)]
            side //= 2
            joined = torch.cat(four, -1).reshape(len(rows), side * side, -1)
            down_to = f"{prefix}layers.{stage}.downsample."
            rows = linear(state, f"{down_to}reduction", norm(state, f"{down_to}norm", joined, 1e-5))
    rows = norm(state, f"{prefix}norm", rows, 1e-5)
    return torch.cat([rows.mean(1, keepdim=True), rows], 1)


def bert_layer(state: State, layer: str, rows: Tensor, mask: Tensor, images: Tensor | None) -> Tensor:
    unseen = (1.0 - mask.double())[:, None, None, :] * -10000.0
    for kind in ("attention", *(() if images is None else ("crossattention",))):
        context = rows if kind == "attention" or images is None else images
        query, key, value = (
            linear(state, f"{layer}{kind}.self.{name}", source)
            for name, source in (("query", rows), ("key", context), ("value", context))
        )
        read = attend(query, key, value, 4, unseen if kind == "attention" else 0.0)
        joined = linear(state, f"{layer}{kind}.output.dense", read) + rows
        rows = norm(state, f"{layer}{kind}.output.LayerNorm", joined, 1e-12)
    between = gelu(linear(state, f"{layer}intermediate.dense", rows))
    return norm(
        state, f"{layer}output.LayerNorm", linear(state, f"{layer}output.dense", between) + rows, 1e-12
    )


def text(state: State, tokens: Tensor, mask: Tensor, prefix: str = "text_encoder.") -> Tensor:
    """The lower half, ``mode='text'``."""
    tables = f"{prefix}embeddings."
    rows = state[f"{tables}word_embeddings.weight"].double()[tokens]
    rows = rows + state[f"{tables}token_type_embeddings.weight"].double()[0]
    rows = rows + state[f"{tables}position_embeddings.weight"].double()[: tokens.shape[1]]
    rows = norm(state, f"{tables}LayerNorm", rows, 1e-12)
    for layer in (0, 1):
        rows = bert_layer(state, f"{prefix}encoder.layer.{layer}.", rows, mask, None)
    return rows


def fused(state: State, texts: Tensor, mask: Tensor, images: Tensor, prefix: str = "text_encoder.") -> Tensor:
    """The upper half, ``mode='fusion'``: the first state of each."""
    for layer in (2, 3):
        texts = bert_layer(state, f"{prefix}encoder.layer.{layer}.", texts, mask, images)
    return texts[:, 0]


def matched(state: State, first: Tensor) -> Tensor:
    """(n, 2) of ALBEF's linear head, or X-VLM's two layers."""
    if "itm_head.weight" in state:
        return linear(state, "itm_head", first)
    between = gelu(norm(state, "itm_head.1", linear(state, "itm_head.0", first), 1e-5))
    return linear(state, "itm_head.3", between)


def unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=-1, keepdim=True)


def inputs(size: int = 48, seed: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    """Five prepared pictures, seven texts of 3 to 9 tokens of 10, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(5, 3, 3, 3, generator=generator).repeat_interleave(-(-size // 3), dim=2)
    coarse = coarse.repeat_interleave(-(-size // 3), dim=3)[:, :, :size, :size]
    pixels = 2 * coarse + torch.randn(5, 3, size, size, generator=generator)
    tokens = torch.randint(1, 90, (7, 10), generator=generator)
    mask = (torch.arange(10) < torch.arange(3, 10)[:, None]).long()
    return pixels, tokens * mask, mask
