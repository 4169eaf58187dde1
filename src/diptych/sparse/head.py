"""The sparse head: d → ω, layer norm, |V|, log(1 + max(0, ·)); one for both sides, or one each.

Parameter names are those of the published checkpoints; of two heads they begin with ``image.`` and ``text.``.

A batch of n pairs has two (n, |V|) matrices of weights, which autograd keeps three or four times over. :class:`Fused`
cuts the vocabulary into chunks. A chunk's outputs become weights s = log(1 + max(0, x)) in place, add their products
to the (n, n) scores and their sums to the regularisers, and are kept once, or not at all and computed again; the slope
of x at s is exp(−s) where s > 0, so nothing else is needed. Captions that may only have some terms have no weights
elsewhere: columns outside those of the whole batch are computed only for images.

Source: Nguyen et al., Multimodal Learned Sparse Retrieval with Probabilistic Expansion Control, 2024, Eq. 4–5.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from diptych.objectives.pairs import first_derivative_only

Kind = Literal["image", "text"]


class SparseHead(nn.Module):
    """From dense rows to weights of terms: d = ``width``, ω = ``hidden_width``, |V| = ``terms``."""

    def __init__(self, width: int, hidden: int, terms: int, *, bias: bool = True, eps: float = 1e-12) -> None:
        super().__init__()
        self.width, self.hidden_width, self.terms = width, hidden, terms
        self.proj: nn.Linear = nn.Linear(width, hidden, bias=bias)
        self.vocab_layer_norm: nn.LayerNorm = nn.LayerNorm(hidden, eps=eps)
        self.vocab_projector: nn.Linear = nn.Linear(hidden, terms, bias=bias)

    def hidden(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, ω), what the second map reads."""
        # In mixed precision only the projection is in half precision.
        normed: Tensor = self.vocab_layer_norm(self.proj(rows).to(self.vocab_layer_norm.weight.dtype))
        return normed

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) dense rows → (n, |V|) weights, none negative."""
        return torch.log1p(torch.relu(self.vocab_projector(self.hidden(rows))))


class HeadPair(nn.Module):
    """A head for images and one for captions, with the same terms."""

    def __init__(self, image: SparseHead, text: SparseHead) -> None:
        super().__init__()
        self.image: SparseHead = image
        self.text: SparseHead = text


SparseHeads = SparseHead | HeadPair  # one head for both sides, or one each


def head_of(heads: SparseHeads, kind: Kind) -> SparseHead:
    """Return the head of ``"image"`` or ``"text"`` rows."""
    if isinstance(heads, SparseHead):
        return heads
    return heads.image if kind == "image" else heads.text


def each_head(heads: SparseHeads) -> list[SparseHead]:
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


Penalty = Literal["l1", "flops"]
# weight and bias of one map for all rows, or of the images' and captions'
Maps = list[tuple[Tensor, Tensor | None]]

_MIXED_PRODUCTS = "out_dtype" in (torch.mm.__doc__ or "")
_KEPT_BYTES = 4 << 30
# Columns that leave a chunk in a CPU's cache, or give a GPU enough to do.
_CHUNK = {"cpu": 1024, "other": 8192}
# More of the columns than this: all of them are computed for captions too, without reordering.
_WORTH_REORDERING = 0.7


@dataclass(frozen=True)
class _Plan:
    """The plan of computing a batch."""

    pairs: int  # n
    height: int  # rows of a map: all 2n, or n where images and captions have one each
    text_columns: int  # columns that captions have: the first ones
    order: Tensor | None  # of the columns, so that these are first; None: as in the vocabulary
    penalty: Penalty
    chunk: int
    dtype: torch.dtype
    keep: bool
    activate: Callable[[Tensor, Tensor | None, int, torch.dtype], tuple[Tensor, Tensor]]
    slope: Callable[[Tensor, Tensor], Tensor]

    def chunks(self, terms: int) -> Iterator[tuple[slice, int]]:
        for first, stop, rows in (
            (0, self.text_columns, 2 * self.pairs),
            (self.text_columns, terms, self.pairs),
        ):
            for start in range(first, stop, self.chunk):
                yield slice(start, min(start + self.chunk, stop)), rows

    def columns(self, columns: slice) -> slice | Tensor:
        return columns if self.order is None else self.order[columns]

    def take(self, parameter: Tensor, columns: slice) -> Tensor:
        return parameter[self.columns(columns)].to(self.dtype)

    def weights(
        self, maps: Maps, rows: Tensor, columns: slice, allowed: Tensor | None, sums: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return the weights of ``rows`` at ``columns``, and their sums."""
        parts = []
        for (weight, bias), mine in zip(maps, torch.split(rows, self.height), strict=False):
            map_weight = self.take(weight, columns).T
            mapped = (
                mine @ map_weight if bias is None else torch.addmm(self.take(bias, columns), mine, map_weight)
            )
            parts.append(mapped)
        outputs = parts[0] if len(parts) == 1 else torch.cat(parts)
        chosen = None if allowed is None or len(rows) == self.pairs else allowed[:, columns]
        return self.activate(outputs, chosen, self.pairs, sums)

    def gradient(self, by_score: Tensor, by_weight: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of a chunk's outputs from those of scores and of each column's sums."""
        n, gradient = self.pairs, torch.empty_like(weights)
        if len(weights) == n:
            gradient[:] = by_weight[0]
        else:
            torch.addmm(by_weight[0], by_score, weights[n:], out=gradient[:n])
            torch.addmm(by_weight[1], by_score.T, weights[:n], out=gradient[n:])
        return self.slope(gradient, weights)


def _activate(
    outputs: Tensor, allowed: Tensor | None, pairs: int, sums: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Turn a chunk's outputs into weights of their type, and their sums per side and column, (2, columns)."""
    # log(1 + x) is ten times as fast as log1p on a CPU, and as near as 1's next number is to 1. In half precision
    # 1 + x would be nearer to 1 than that: the arithmetic is in the sums' type.
    weights = outputs.to(sums).clamp_min_(0).add_(1).log_()
    if allowed is not None and len(weights) > pairs:
        weights[pairs:].mul_(allowed)
    totals = torch.stack([weights[:pairs].sum(dim=0), weights[pairs:].sum(dim=0)])
    return weights.to(outputs.dtype), totals


def _slope(gradient: Tensor, weights: Tensor) -> Tensor:
    product = weights.neg().exp_().mul_(gradient)
    where_positive: Tensor = torch.ops.aten.threshold_backward(product, weights, 0)
    return where_positive


class _Chunked(torch.autograd.Function):
    """Scores and regularisers as a function of (2n, ω) hidden rows, images first, and the second maps."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, plan: _Plan, allowed: Tensor | None, *parameters: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores, and the regulariser of either side; ``allowed``: (n, text columns)."""
        maps, rows = _maps(parameters), hidden.to(plan.dtype)
        scores = hidden.new_zeros(plan.pairs, plan.pairs)
        means = hidden.new_empty(2, len(maps[0][0]))
        kept = []
        for columns, count in plan.chunks(means.shape[1]):
            weights, sums = plan.weights(maps, rows[:count], columns, allowed, hidden.dtype)
            means[:, columns] = sums / plan.pairs
            if count > plan.pairs:
                scores += _product(weights[: plan.pairs], weights[plan.pairs :].T, hidden.dtype)
            kept.append(weights)
        ctx.plan, ctx.parameters = plan, len(parameters)
        ctx.save_for_backward(hidden, allowed, means, *parameters, *(kept if plan.keep else []))
        penalties = means.sum(dim=1) if plan.penalty == "l1" else means.square().sum(dim=1)
        return scores, penalties[0].clone(), penalties[1].clone()

    @staticmethod
    def backward(ctx: Any, by_score: Tensor, by_image: Tensor, by_text: Tensor) -> tuple[Any, ...]:
        """Return the gradients of the hidden rows and of every weight and bias."""
        first_derivative_only("fused scores")
        plan: _Plan = ctx.plan
        hidden, allowed, means, *saved = ctx.saved_tensors
        parameters, kept = saved[: ctx.parameters], saved[ctx.parameters :]
        gradients = [None if parameter is None else torch.zeros_like(parameter) for parameter in parameters]
        maps, by_map = _maps(parameters), _maps(gradients)
        rows, by_score, by_hidden = hidden.to(plan.dtype), by_score.to(plan.dtype), torch.zeros_like(hidden)
        by_sum = torch.stack([by_image, by_text]).unsqueeze(1) / plan.pairs
        for number, (columns, count) in enumerate(plan.chunks(means.shape[1])):
            if plan.keep:
                weights = kept[number]
            else:
                weights, _ = plan.weights(maps, rows[:count], columns, allowed, hidden.dtype)
            some = means[:, columns]
            by_weight = (by_sum.expand_as(some) if plan.penalty == "l1" else 2 * by_sum * some).to(plan.dtype)
            outputs = plan.gradient(by_score, by_weight, weights)
            where = plan.columns(columns)
            # Where captions have no weights, a map of their own has no rows here.
            parts = (torch.split(one[:count], plan.height) for one in (outputs, rows, by_hidden))
            for (weight, _), (by_w, by_bias), mine, inputs, by_inputs in zip(
                maps, by_map, *parts, strict=False
            ):
                by_inputs += mine @ plan.take(weight, columns)
                by_w[where] = (mine.T @ inputs).to(hidden.dtype)
                if by_bias is not None:
                    by_bias[where] = mine.sum(dim=0, dtype=hidden.dtype)
        return by_hidden, None, None, *gradients


def _maps(parameters: Sequence[Any]) -> Maps:
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def _product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a matrix product in ``dtype``; of half precision it is rounded at the end where the device must."""
    if left.is_cuda and left.dtype != dtype and _MIXED_PRODUCTS:
        return torch.mm(left, right, out_dtype=dtype)
    return (left @ right).to(dtype)


class FusedScores(NamedTuple):
    """Of one batch."""

    scores: Tensor  # (n, n) inner products of weights, images as rows, captions as columns
    image_penalty: Tensor  # the regulariser of the images' weights, a number
    text_penalty: Tensor  # the captions'


@dataclass(frozen=True)
class Fused:
    """Computes a batch's scores and regularisers; equal to the plain form in values and gradients."""

    penalty: Penalty = "l1"
    dtype: torch.dtype = torch.float32
    chunk: int | None = None  # columns; as many as suit the device when not given
    # whether weights are kept for the gradient; where there is memory when not given
    keep: bool | None = None
    compiled: bool = False

    @cached_property
    def _functions(self) -> Any:
        functions = (_activate, _slope)
        return tuple(torch.compile(one, dynamic=True) for one in functions) if self.compiled else functions

    def __call__(
        self, heads: SparseHeads, images: Tensor, texts: Tensor, allowed: Tensor | None = None
    ) -> FusedScores:
        """Score (n, d) dense rows of images against (n, d) of captions.

        ``allowed``: (n, |V|) what the captions' weights are multiplied by, 0 or 1; all 1 when not given.
        """
        given, device = each_head(heads), images.device.type
        rows = [torch.cat([images, texts])] if len(given) == 1 else [images, texts]
        with torch.autocast(device, self.dtype, enabled=self.dtype != torch.float32):
            hidden = torch.cat([one.hidden(some) for one, some in zip(given, rows, strict=True)])
        maps = [one.vocab_projector for one in given]
        parameters = [parameter for one in maps for parameter in (one.weight, one.bias)]
        pairs, terms, order = len(images), given[0].terms, None
        text_columns = terms
        if allowed is not None:
            has_text = allowed.any(dim=0)
            columns = has_text.nonzero().squeeze(1)
            if len(columns) <= _WORTH_REORDERING * terms:
                text_columns = len(columns)
                order = torch.cat([columns, (~has_text).nonzero().squeeze(1)])
                allowed = allowed.index_select(1, columns)
        dtype = hidden.dtype if hidden.dtype == torch.float64 else self.dtype
        keep = self.keep
        if keep is None:
            keep = pairs * (terms + text_columns) * dtype.itemsize <= _KEPT_BYTES
        chunk = self.chunk or _CHUNK["cpu" if device == "cpu" else "other"]
        height = 2 * pairs // len(maps)
        plan = _Plan(pairs, height, text_columns, order, self.penalty, chunk, dtype, keep, *self._functions)
        return FusedScores(*_Chunked.apply(hidden, plan, allowed, *parameters))
