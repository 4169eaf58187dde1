"""The half of BERT that reads a text and a picture together, and the matching head on top.

Each layer is BERT's, with cross-attention to the picture's tokens between self-attention and feed-forward.
Transformers' own BERT cannot be used for it: with cross-attention it masks the text causally, and its keys
and values are as wide as the text, which X-VLM's pictures are not.

Sources: Li et al., Align before Fuse, NeurIPS 2021, Section 3.1; Zeng et al., X-VLM, ICML 2022, Section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers.activations import ACT2FN

__all__ = ["Fusion", "FusionLayer", "matching_head"]


class _Attention(nn.Module):
    """Attention with its output projection, residual and norm; the names are BERT's."""

    def __init__(self, width: int, context_width: int, heads: int, eps: float) -> None:
        super().__init__()
        self.heads = heads
        self.self = nn.ModuleDict(
            {
                "query": nn.Linear(width, width),
                "key": nn.Linear(context_width, width),
                "value": nn.Linear(context_width, width),
            }
        )
        self.output = nn.ModuleDict(
            {"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=eps)}
        )

    def forward(self, states: Tensor, context: Tensor, rows: Tensor | None, mask: Tensor | None) -> Tensor:
        """Attend from (n, t, width) states to (m, …) context; ``rows`` are (n,) which item each looks at."""

        def split(name: str, values: Tensor) -> Tensor:
            values = self.self[name](values)
            return values.view(*values.shape[:2], self.heads, values.shape[2] // self.heads).transpose(1, 2)

        query, key, value = split("query", states), split("key", context), split("value", context)
        if rows is not None and len(context) == 1:
            key, value = key.expand(len(states), -1, -1, -1), value.expand(len(states), -1, -1, -1)
        elif rows is not None:
            key, value = key[rows], value[rows]
        read = scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        joined: Tensor = self.output["LayerNorm"](self.output["dense"](read) + states)
        return joined


class FusionLayer(nn.Module):
    """One layer.

    Args:
        width: of a text state.
        image_width: of a picture's token.
        heads: of both attentions.
        feed_forward: width in between.
        eps: of the norms.
        activation: transformers' name of it.
    """

    def __init__(
        self, width: int, image_width: int, heads: int, feed_forward: int, eps: float, activation: str
    ) -> None:
        super().__init__()
        self.attention = _Attention(width, width, heads, eps)
        self.crossattention = _Attention(width, image_width, heads, eps)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, feed_forward)})
        self.output = nn.ModuleDict(
            {"dense": nn.Linear(feed_forward, width), "LayerNorm": nn.LayerNorm(width, eps=eps)}
        )
        self._activation: Callable[[Tensor], Tensor] = ACT2FN[activation]

    def forward(self, texts: Tensor, mask: Tensor, images: Tensor, rows: Tensor) -> Tensor:
        """As :meth:`Fusion.forward`, with (n, 1, 1, t) ``mask``."""
        states = self.attention(texts, texts, None, mask)
        states = self.crossattention(states, images, rows, None)
        between = self._activation(self.intermediate["dense"](states))
        joined: Tensor = self.output["LayerNorm"](self.output["dense"](between) + states)
        return joined


class Fusion(nn.Module):
    """All layers.

    Args:
        depth: how many.
        width, image_width, heads, feed_forward, eps, activation: of each.
    """

    def __init__(
        self,
        depth: int,
        width: int,
        image_width: int,
        heads: int,
        feed_forward: int,
        eps: float,
        activation: str,
    ) -> None:
        super().__init__()
        self.layer = nn.ModuleList(
            FusionLayer(width, image_width, heads, feed_forward, eps, activation) for _ in range(depth)
        )

    def forward(self, texts: Tensor, mask: Tensor, images: Tensor, rows: Tensor) -> Tensor:
        """Read pairs: text i with image ``rows[i]``.

        Args:
            texts: (n, t, width) states of the text half.
            mask: (n, t) bool, which of them are tokens.
            images: (m, tokens, image_width); keys and values of each are computed once.
            rows: (n,) which image.

        Returns:
            (n, t, width) states.
        """
        keys = mask[:, None, None, :]
        for layer in self.layer:
            texts = layer(texts, keys, images, rows)
        return texts


def matching_head(kind: Literal["linear", "mlp"], width: int, between: int) -> nn.Module:
    """Two scores of a fused state: "they do not belong together", "they do".

    Args:
        kind: ALBEF's linear map, or X-VLM's two layers with a norm between.
        width: of the state.
        between: width between two layers.
    """
    if kind == "linear":
        return nn.Linear(width, 2)
    return nn.Sequential(nn.Linear(width, between), nn.LayerNorm(between), nn.GELU(), nn.Linear(between, 2))
