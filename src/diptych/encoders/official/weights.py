"""Weights by name: what their shapes tell, and what a configuration says beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers.activations import ACT2FN

from diptych.core.errors import MismatchError, StorageError, UsageError

A = TypeVar("A")

_WHOLE = frozenset(
    ("image_size", "patch_size", "window", "width", "depth", "feed_forward", "vocabulary", "fusion_layer")
)
"""What is a number of things."""


class Weights:
    """The weights of one part of a checkpoint."""

    def __init__(self, state: Mapping[str, Tensor], prefix: str, source: str) -> None:
        self.state, self.prefix, self.source = state, prefix, source

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.state

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        value = self.state.get(self.prefix + name)
        if value is None or value.ndim != dimensions:
            what = "lacks" if value is None else f"has a {tuple(value.shape)}"
            raise StorageError(
                f"{self.source} {what} {self.prefix}{name}",
                "it is corrupt, cut off or of another model: compare it with the published one",
            )
        return tuple(value.shape)

    def count(self, before: str) -> int:
        """Count the numbers that follow ``before`` in the names."""
        pattern = re.compile(re.escape(self.prefix + before) + r"(\d+)\.")
        numbers = sorted({int(found[1]) for found in map(pattern.match, self.state) if found})
        if not numbers or numbers != list(range(len(numbers))):
            gap = next((row for row, number in enumerate(numbers) if row != number), 0)
            raise StorageError(
                f"{self.source} lacks {self.prefix}{before}{gap}.*",
                "it is corrupt, cut off or of another model: compare it with the published one",
            )
        return len(numbers)


def usable(value: Tensor, name: str, source: str) -> Tensor:
    if not value.is_floating_point() or value.layout != torch.strided:
        kind = f"{value.dtype}, {value.layout}".replace("torch.", "")
        raise StorageError(
            f"{source}: {name} holds numbers of type {kind}, which are no weights",
            "it was compressed or is of another model: give the checkpoint as it was published",
        )
    value = value.float()
    if not value.is_meta and not bool(torch.isfinite(value).all()):
        bad = int((~torch.isfinite(value)).sum())
        raise StorageError(
            f"{source}: {bad:,} of {value.numel():,} numbers of {name} are NaN or infinite",
            "the training diverged, or the file is corrupt: give another checkpoint",
        )
    return value


def canonical(
    given: Mapping[str, Any] | None, aliases: Mapping[str, Iterable[str]], what: str
) -> dict[str, Any]:
    """Return what a configuration says of ``aliases``, under their first names, without what is None."""
    found: dict[str, Any] = {}
    for name, keys in aliases.items():
        said = {key: value for key in (name, *keys) if (value := (given or {}).get(key)) is not None}
        values = list(said.values())
        if any(value != values[0] for value in values):
            raise UsageError(
                f"the {what} says {' and '.join(f'{k}={v!r}' for k, v in said.items())}",
                "say one; a recipe, whose embed_dim is the width of the rows, is given as config=",
            )
        if values:
            found[name] = values[0]
            _check_value(name, values[0], f"the {what} says {next(iter(said))}={values[0]!r}")
    return found


def _check_value(name: str, value: Any, said: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _WHOLE and not (number and math.isfinite(value) and value == int(value) > 0):
        raise UsageError(said, "give a whole number above 0")
    if name in ("layer_norm_eps", "mlp_ratio") and not (number and 0 < value < math.inf):
        raise UsageError(said, "give a number above 0")
    if name == "activation" and value not in ACT2FN:
        raise UsageError(said, f"known: {', '.join(sorted(ACT2FN))}")


def agreed(given: Mapping[str, Any], name: str, found: A, what: str) -> A:
    """Return ``found``, what the weights say, when the configuration says the same or nothing."""
    said = given.get(name)
    said = tuple(said) if isinstance(said, list) else said
    if said is not None and said != found:
        raise MismatchError(
            f"{what}: the configuration says {said}, the weights say {found}",
            "give the configuration that the weights were made with, or none: sizes are taken from the weights",
        )
    return found


def agreed_sizes(given: Mapping[str, Any], what: str, **found: Any) -> dict[str, Any]:
    """Return what the weights of a part say, when its configuration says the same or nothing."""
    return {
        name: agreed(given, name, value, f"{what}'s {name.replace('_', ' ')}")
        for name, value in found.items()
    }


def not_cut_off(
    given: Mapping[str, Any], name: str, found: Any, published: Any, what: str, source: str
) -> None:
    """Raise unless a file has as many layers as published ones, or a configuration says how many."""
    if name not in given and found != published:
        raise StorageError(
            f"{source}: the {what} has {found} layers, published ones of its width have {published}",
            f"it is cut off; or, where it was made so, give a configuration that says {name}",
        )


def given_heads(given: Mapping[str, Any], width: int, what: str) -> int:
    """Return the number of attention heads: as said, else one of every 64 columns, as BERT and ViT base have."""
    heads = given.get("heads")
    if heads is None and width % 64 == 0:
        return width // 64
    if not isinstance(heads, int) or heads < 1 or width % heads:
        said = "nothing says" if heads is None else f"{heads!r} is not"
        raise UsageError(
            f"{said} how many attention heads the {what} of width {width} has",
            f"give a number that divides {width}: vision={{'num_heads': …}}, "
            "text={'num_attention_heads': …}, or a config.json beside the checkpoint",
        )
    return heads
