"""Forward and backward of :mod:`diptych.sparse.fused`: the second map, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor

from diptych.objectives.pairs import first_derivative_only

__all__ = ["Chunked", "Penalty", "Plan", "activate", "slope"]

Penalty = Literal["l1", "flops"]

_MIXED_PRODUCTS = "out_dtype" in (torch.mm.__doc__ or "")


@dataclass(frozen=True)
class Plan:
    """How a batch is computed: n pairs, the columns that captions have (the first ones), and the rest.

    ``order`` has those first; without, columns are in the vocabulary's order.
    """

    pairs: int
    text_columns: int
    order: Tensor | None
    penalty: Penalty
    chunk: int
    dtype: torch.dtype
    keep: bool
    activate: Callable[[Tensor, Tensor | None, int, torch.dtype], tuple[Tensor, Tensor]]
    slope: Callable[[Tensor, Tensor], Tensor]

    def chunks(self, terms: int) -> Iterator[tuple[slice, int]]:
        """Slices of columns, and the rows that have weights there: all 2n, or the pictures' n."""
        for first, stop, rows in (
            (0, self.text_columns, 2 * self.pairs),
            (self.text_columns, terms, self.pairs),
        ):
            for start in range(first, stop, self.chunk):
                yield slice(start, min(start + self.chunk, stop)), rows

    def take(self, parameter: Tensor, columns: slice) -> Tensor:
        """A map's rows (or biases) of some columns, in the type of the products."""
        some = parameter[columns] if self.order is None else parameter[self.order[columns]]
        return some.to(self.dtype)

    def put(self, parameter: Tensor, columns: slice, values: Tensor | float) -> None:
        """Write them."""
        parameter[columns if self.order is None else self.order[columns]] = values


def activate(outputs: Tensor, allowed: Tensor | None, pairs: int, sums: torch.dtype) -> tuple[Tensor, Tensor]:
    """A chunk's outputs → its weights in the outputs' type, and their sums per side and column, (2, columns).

    log(1 + x) is ten times as fast as log1p on a processor, and as near as 1's next number is to 1. In half
    precision 1 + x would be nearer to 1 than that: the arithmetic is in the sums' type.
    """
    weights = outputs.to(sums).clamp_min_(0).add_(1).log_()
    if allowed is not None and len(weights) > pairs:
        weights[pairs:].mul_(allowed)
    totals = torch.stack([weights[:pairs].sum(dim=0), weights[pairs:].sum(dim=0)])
    return weights.to(outputs.dtype), totals


def slope(gradient: Tensor, weights: Tensor) -> Tensor:
    """The gradient of a chunk's outputs from that of its weights."""
    product = weights.neg().exp_().mul_(gradient)
    where_positive: Tensor = torch.ops.aten.threshold_backward(product, weights, 0)
    return where_positive


class Chunked(torch.autograd.Function):
    """Scores and regularisers as a function of hidden rows and the second maps."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, plan: Plan, allowed: Tensor | None, *parameters: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, and the regulariser of either side.

        Args:
            ctx: what the way back needs.
            hidden: (2n, ω), pictures first.
            plan: how it is computed.
            allowed: (n, text columns) what captions' weights are multiplied by, 0 or 1.
            parameters: weight and bias of one map for both sides, or of the pictures' and the captions'.
        """
        maps = _maps(plan, parameters)
        rows = hidden.to(plan.dtype)
        scores = hidden.new_zeros(plan.pairs, plan.pairs)
        means = hidden.new_empty(2, maps[0].weight.shape[0])
        kept = []
        for columns, count in plan.chunks(means.shape[1]):
            weights, sums = _chunk_weights(plan, maps, rows[:count], columns, allowed, hidden.dtype)
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
        """Gradients of the hidden rows and of every weight and bias."""
        first_derivative_only("fused scores")
        plan: Plan = ctx.plan
        hidden, allowed, means, *saved = ctx.saved_tensors
        parameters, kept = saved[: ctx.parameters], saved[ctx.parameters :]
        gradients = [None if parameter is None else torch.empty_like(parameter) for parameter in parameters]
        maps, by_map = _maps(plan, parameters), _maps(plan, gradients)
        rows, by_score = hidden.to(plan.dtype), by_score.to(plan.dtype)
        by_hidden = torch.zeros_like(hidden)
        by_sum = torch.stack([by_image, by_text]).unsqueeze(1) / plan.pairs
        for number, (columns, count) in enumerate(plan.chunks(means.shape[1])):
            if plan.keep:
                weights = kept[number]
            else:
                weights, _ = _chunk_weights(plan, maps, rows[:count], columns, allowed, hidden.dtype)
            some = means[:, columns]
            by_weight = (by_sum.expand_as(some) if plan.penalty == "l1" else 2 * by_sum * some).to(plan.dtype)
            outputs = _slope_of(plan, by_score, by_weight, weights)
            for one, of_map in zip(maps, by_map, strict=True):
                mine = slice(one.first, min(one.stop, count))
                if one.first >= count:  # columns that captions do not have
                    plan.put(of_map.weight, columns, 0.0)
                    if of_map.bias is not None:
                        plan.put(of_map.bias, columns, 0.0)
                    continue
                by_hidden[mine] += outputs[mine] @ plan.take(one.weight, columns)
                plan.put(of_map.weight, columns, (outputs[mine].T @ rows[mine]).to(hidden.dtype))
                if of_map.bias is not None:
                    plan.put(of_map.bias, columns, outputs[mine].sum(dim=0, dtype=hidden.dtype))
        return by_hidden, None, None, *gradients


class _Map(NamedTuple):
    """A second map and the rows it is for."""

    weight: Tensor
    bias: Tensor | None
    first: int
    stop: int


def _maps(plan: Plan, parameters: Sequence[Tensor | None]) -> list[_Map]:
    """One map for all rows, or one for the pictures' and one for the captions'."""
    count = len(parameters) // 2
    height = 2 * plan.pairs // count
    return [
        _Map(cast(Tensor, parameters[2 * i]), parameters[2 * i + 1], i * height, (i + 1) * height)
        for i in range(count)
    ]


def _chunk_weights(
    plan: Plan, maps: list[_Map], rows: Tensor, columns: slice, allowed: Tensor | None, sums: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Weights of ``rows`` at ``columns``, and their sums."""
    parts = []
    for one in maps:
        mine = rows[one.first : one.stop]
        if len(mine) == 0:
            continue
        weight = plan.take(one.weight, columns).T
        if one.bias is None:
            parts.append(mine @ weight)
        else:
            parts.append(torch.addmm(plan.take(one.bias, columns), mine, weight))
    outputs = parts[0] if len(parts) == 1 else torch.cat(parts)
    chosen = None if allowed is None or len(rows) == plan.pairs else allowed[:, columns]
    return plan.activate(outputs, chosen, plan.pairs, sums)


def _slope_of(plan: Plan, by_score: Tensor, by_weight: Tensor, weights: Tensor) -> Tensor:
    """The gradient of a chunk's outputs from those of scores and of each column's sums."""
    n = plan.pairs
    gradient = torch.empty_like(weights)
    if len(weights) == n:
        gradient[:] = by_weight[0]
    else:
        torch.addmm(by_weight[0], by_score, weights[n:], out=gradient[:n])
        torch.addmm(by_weight[1], by_score.T, weights[:n], out=gradient[n:])
    return plan.slope(gradient, weights)


def _product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix product in ``dtype``; of half precision it is rounded at the end where the device must."""
    if left.is_cuda and left.dtype != dtype and _MIXED_PRODUCTS:
        return torch.mm(left, right, out_dtype=dtype)
    return (left @ right).to(dtype)
