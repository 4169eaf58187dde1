"""Scores and regularisers of a batch without its activations: the second map, chunk by chunk.

A batch of n pairs has two (n, |V|) matrices of weights, which autograd keeps three or four times over.
Here the vocabulary is cut into chunks. A chunk's outputs become weights s = log(1 + max(0, x)) in place,
add their products to the (n, n) scores and their sums to the regularisers, and are kept once, or not at
all and computed again; the slope of x at s is exp(−s) where s > 0, so nothing else is needed.

Captions that may only have some terms (their own, before expansion begins) have no weights elsewhere:
columns outside those of the whole batch are computed for pictures alone, where only the regulariser is
left of the gradient.

The arithmetic of a step is 2n·|V|·(6ω + 3n) multiplications and additions when every caption may have
every term: n = 512, |V| = 30,522, ω = 768 make 0.19 TFLOP.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from diptych.sparse.chunked import Chunked, Penalty, Plan, activate, slope
from diptych.sparse.head import SparseHeads, head_of

__all__ = ["Fused", "FusedScores"]

_KEPT_BYTES = 4 << 30
# Columns that leave a chunk in a processor's cache, or give a graphics processor enough to do.
_CHUNK = {"cpu": 1024, "other": 8192}
# More of the columns than this: all of them are computed for captions too, without reordering.
_WORTH_REORDERING = 0.7


class FusedScores(NamedTuple):
    """Of one batch.

    Attributes:
        scores: (n, n) inner products of weights, pictures as rows, captions as columns.
        image_penalty: the regulariser of the pictures' weights, a number.
        text_penalty: the captions'.
    """

    scores: Tensor
    image_penalty: Tensor
    text_penalty: Tensor


class Fused:
    """Computes a batch's scores and regularisers; equal to the plain form in values and gradients.

    Args:
        penalty: ``"l1"`` or ``"flops"``, see :mod:`diptych.sparse.distillation`.
        dtype: what matrix products are computed in; sums are in the rows' type.
        chunk: columns at once; chosen by the device when not given.
        keep: keep each chunk's weights for the backward pass, or compute them again; when not given they
            are kept where they take up to 4 GiB.
        compiled: let ``torch.compile`` make one kernel of what happens to each output.
    """

    def __init__(
        self,
        penalty: Penalty = "l1",
        *,
        dtype: torch.dtype = torch.float32,
        chunk: int | None = None,
        keep: bool | None = None,
        compiled: bool = False,
    ) -> None:
        self._penalty: Penalty = penalty
        self._dtype = dtype
        self._chunk = chunk
        self._keep = keep
        self._activate, self._slope = activate, slope
        if compiled:
            self._activate = torch.compile(activate, dynamic=True)
            self._slope = torch.compile(slope, dynamic=True)

    def __call__(
        self, heads: SparseHeads, images: Tensor, texts: Tensor, allowed: Tensor | None = None
    ) -> FusedScores:
        """Score n pictures against n captions.

        Args:
            heads: one head or two.
            images: (n, d) dense rows.
            texts: (n, d) dense rows.
            allowed: (n, |V|) what the captions' weights are multiplied by, 0 or 1; all 1 when not given.
        """
        image_head, text_head = head_of(heads, "image"), head_of(heads, "text")
        shared = image_head is text_head
        with torch.autocast(images.device.type, self._dtype, enabled=self._dtype != torch.float32):
            if shared:
                hidden = image_head.hidden(torch.cat([images, texts]))
            else:
                hidden = torch.cat([image_head.hidden(images), text_head.hidden(texts)])
        maps = [one.vocab_projector for one in ((image_head,) if shared else (image_head, text_head))]
        parameters = [parameter for one in maps for parameter in (one.weight, one.bias)]
        text_columns, order = image_head.terms, None
        if allowed is not None:
            has_text = allowed.any(dim=0)
            columns = has_text.nonzero().squeeze(1)
            if len(columns) <= _WORTH_REORDERING * image_head.terms:
                text_columns = len(columns)
                order = torch.cat([columns, (~has_text).nonzero().squeeze(1)])
                allowed = allowed.index_select(1, columns)
        plan = self._plan(len(images), image_head.terms, text_columns, order, hidden)
        return FusedScores(*Chunked.apply(hidden, plan, allowed, *parameters))

    def _plan(self, pairs: int, terms: int, text_columns: int, order: Tensor | None, hidden: Tensor) -> Plan:
        dtype = hidden.dtype if hidden.dtype == torch.float64 else self._dtype
        keep = self._keep
        if keep is None:
            keep = pairs * (terms + text_columns) * dtype.itemsize <= _KEPT_BYTES
        chunk = self._chunk or _CHUNK["cpu" if hidden.device.type == "cpu" else "other"]
        return Plan(
            pairs, text_columns, order, self._penalty, chunk, dtype, keep, self._activate, self._slope
        )
