"""The sparse head: d → ω, layer norm, |V|, log(1 + max(0, ·)); one for both sides, or one each.

Parameter names are those of the published checkpoints (``proj``, ``vocab_layer_norm``,
``vocab_projector``); of two heads they begin with ``image.`` and ``text.``.

Source: Nguyen et al., Multimodal Learned Sparse Retrieval with Probabilistic Expansion Control, 2024, Eq. 4–5.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Kind = Literal["image", "text"]


def term_weights(outputs: Tensor) -> Tensor:
    """log(1 + max(0, x)) of each output of the second map."""
    return torch.log1p(torch.relu(outputs))


class SparseHead(nn.Module):
    """From dense rows to weights of terms."""

    def __init__(self, width: int, hidden: int, terms: int, *, bias: bool = True, eps: float = 1e-12) -> None:
        super().__init__()
        self.proj = nn.Linear(width, hidden, bias=bias)
        self.vocab_layer_norm = nn.LayerNorm(hidden, eps=eps)
        self.vocab_projector = nn.Linear(hidden, terms, bias=bias)

    @property
    def width(self) -> int:
        """d, of a dense row."""
        return self.proj.in_features

    @property
    def hidden_width(self) -> int:
        """ω, between the two linear maps."""
        return self.proj.out_features

    @property
    def terms(self) -> int:
        """|V|."""
        return self.vocab_projector.out_features

    def hidden(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, ω), what the second map reads."""
        # Of mixed precision the projection alone is in half.
        normed: Tensor = self.vocab_layer_norm(self.proj(rows).to(self.vocab_layer_norm.weight.dtype))
        return normed

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, |V|) weights, none negative."""
        return term_weights(self.vocab_projector(self.hidden(rows)))


class HeadPair(nn.Module):
    """A head for pictures and one for captions, with the same terms."""

    def __init__(self, image: SparseHead, text: SparseHead) -> None:
        super().__init__()
        self.image = image
        self.text = text


SparseHeads = SparseHead | HeadPair
"""One head for both sides, or one each."""


def head_of(heads: SparseHeads, kind: Kind) -> SparseHead:
    """The head of ``"image"`` or ``"text"`` rows."""
    if isinstance(heads, SparseHead):
        return heads
    return heads.image if kind == "image" else heads.text


def fresh_heads(
    width: int, hidden: int, terms: int, *, shared: bool, bias: bool, eps: float, seed: int
) -> SparseHeads:
    """Heads with PyTorch's default weights, the same for the same seed whatever was drawn before."""

    def one(number: int) -> SparseHead:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * 2 + number)
            return SparseHead(width, hidden, terms, bias=bias, eps=eps)

    return one(0) if shared else HeadPair(one(0), one(1))
