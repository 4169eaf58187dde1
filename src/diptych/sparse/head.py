"""The sparse head: d → ω, layer norm, |V|, log(1 + max(0, ·)); one for both sides, or one each.

Parameter names are those of the published checkpoints; of two heads they begin with ``image.`` and ``text.``.

Source: Nguyen et al., Multimodal Learned Sparse Retrieval with Probabilistic Expansion Control, 2024, Eq. 4–5.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

Kind = Literal["image", "text"]


class SparseHead(nn.Module):
    """From dense rows to weights of terms: d = ``width``, ω = ``hidden_width``, |V| = ``terms``."""

    def __init__(self, width: int, hidden: int, terms: int, *, bias: bool = True, eps: float = 1e-12) -> None:
        super().__init__()
        self.width, self.hidden_width, self.terms = width, hidden, terms
        self.proj = nn.Linear(width, hidden, bias=bias)
        self.vocab_layer_norm = nn.LayerNorm(hidden, eps=eps)
        self.vocab_projector = nn.Linear(hidden, terms, bias=bias)

    def hidden(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, ω), what the second map reads."""
        # Of mixed precision the projection alone is in half.
        normed: Tensor = self.vocab_layer_norm(self.proj(rows).to(self.vocab_layer_norm.weight.dtype))
        return normed

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, |V|) weights, none negative."""
        return torch.log1p(torch.relu(self.vocab_projector(self.hidden(rows))))


class HeadPair(nn.Module):
    """A head for images and one for captions, with the same terms."""

    def __init__(self, image: SparseHead, text: SparseHead) -> None:
        super().__init__()
        self.image, self.text = image, text


SparseHeads = SparseHead | HeadPair  # one head for both sides, or one each


def head_of(heads: SparseHeads, kind: Kind) -> SparseHead:
    """Return the head of ``"image"`` or ``"text"`` rows."""
    if isinstance(heads, SparseHead):
        return heads
    return heads.image if kind == "image" else heads.text


def each_head(heads: SparseHeads) -> list[SparseHead]:
    """Return the one head, or both."""
    return [heads] if isinstance(heads, SparseHead) else [heads.image, heads.text]


def fresh_heads(
    width: int, hidden: int, terms: int, *, shared: bool, bias: bool, eps: float, seed: int
) -> SparseHeads:
    """Make heads with PyTorch's default weights, the same for the same seed whatever was drawn before."""

    def one(number: int) -> SparseHead:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * 2 + number)
            return SparseHead(width, hidden, terms, bias=bias, eps=eps)

    return one(0) if shared else HeadPair(one(0), one(1))


def term_mask(rows: csr_array, device: torch.device) -> Tensor:
    """Return (n, |V|) booleans on ``device``: where sparse ``rows`` have something."""
    mask = torch.zeros(rows.shape, dtype=torch.bool, device=device)
    mask[tuple(torch.from_numpy(places.astype(np.int64)).to(device) for places in rows.nonzero())] = True
    return mask
