"""Losses over (query, positive) pairs, in blocks of pairs.

A ranking loss compares each positive p of a query with every candidate of that query: a row of
candidates per pair. Written plainly that is a (pairs × candidates) matrix and several copies of it
for the gradient. Here a block of pairs is worked on at a time, and its gradient is worked out anew on the
way back, so the peak is one matrix the size of the scores and a few blocks, whatever the batch.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from diptych.core.errors import UsageError

# How many scores are worked on at a time, at least: half a megabyte in single precision, which a cache holds.
BLOCK_ELEMENTS = 2**17


class PairBlock(NamedTuple):
    """Some (query, positive) pairs, each with the row of its query."""

    rows: Tensor  # (pairs, candidates) scores of the pair's query
    relevant: Tensor  # (pairs, candidates) which of them are positives of that query
    places: Tensor  # (pairs, 1) the column of the pair's own positive
    own: Tensor  # (pairs, 1) its score


class PairLoss(Protocol):
    """A loss of one (query, positive) pair that depends only on differences s_j − s_p."""

    def value(self, block: PairBlock) -> Tensor:
        """(pairs,) the losses."""

    def slope(self, block: PairBlock) -> Tensor:
        """(pairs, candidates) their derivatives by s_j, 0 at the pair's own positive."""


def first_derivative_only(what: str) -> None:
    """To be called in a backward pass that is itself not differentiable."""
    if torch.is_grad_enabled():
        raise UsageError(f"{what} has no second derivative", "call backward without create_graph")


def sum_per_query(pairs: Tensor, queries: Tensor, n_queries: int) -> Tensor:
    """(n_queries,) the sum of the ``pairs`` whose query is each; ``queries`` says whose they are."""
    return pairs.new_zeros(n_queries).index_add(0, queries, pairs)


def mean_per_query(pairs: Tensor, queries: Tensor, n_queries: int) -> Tensor:
    """(n_queries,) the mean of the ``pairs`` whose query is each; every query has one at least."""
    if len(pairs) == n_queries:  # one each, in order
        return pairs
    return sum_per_query(pairs, queries, n_queries) / torch.bincount(queries, minlength=n_queries)


def pair_losses(form: PairLoss, scores: Tensor, positives: Tensor) -> Tensor:
    """(pairs,) ``form`` of every (query, positive) pair, in the order of ``positives.nonzero()``."""
    values: Tensor = _InBlocks.apply(scores, positives, form)
    return values


def _blocks(scores: Tensor, positives: Tensor) -> Iterator[tuple[slice, Tensor, PairBlock]]:
    """Yield which pairs, whose queries, and the block itself."""
    queries, places = positives.nonzero(as_tuple=True)
    # A quarter of a large batch is still less than its gradient, and keeps many cores busy.
    size = max(1, max(BLOCK_ELEMENTS, scores.numel() // 4) // scores.shape[1])
    one_each = len(queries) == len(scores)
    for start in range(0, len(queries), size):
        which = slice(start, start + size)
        # With one positive in every row, pair i belongs to query i and nothing need be copied.
        rows = scores[which] if one_each else scores[queries[which]]
        relevant = positives[which] if one_each else positives[queries[which]]
        column = places[which, None]
        yield which, queries[which], PairBlock(rows, relevant, column, rows.gather(1, column))


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, positives: Tensor, form: PairLoss) -> Tensor:
        scores, positives = scores.contiguous(), positives.contiguous()
        ctx.save_for_backward(scores, positives)
        ctx.form = form
        return torch.cat([form.value(block) for _, _, block in _blocks(scores, positives)])

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Tensor, None, None]:
        first_derivative_only("a loss worked on in blocks")
        scores, positives = ctx.saved_tensors
        gradient = torch.zeros_like(scores)
        for which, queries, block in _blocks(scores, positives):
            slope = ctx.form.slope(block).mul_(weights[which, None])
            # Only differences count, so what the others gain the pair's own positive loses.
            slope.scatter_(1, block.places, -slope.sum(dim=1, keepdim=True))
            gradient.index_add_(0, queries, slope)
        return gradient, None, None
