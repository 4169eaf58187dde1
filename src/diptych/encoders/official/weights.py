"""Weights by name as the source of a model's sizes, and what a configuration says beside them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from torch import Tensor
from transformers.activations import ACT2FN

from diptych.core.errors import MismatchError, StorageError, UsageError

__all__ = ["Weights", "agreed", "canonical", "given_heads"]

logger = logging.getLogger(__name__)

A = TypeVar("A")

_WHOLE = frozenset(
    ("image_size", "patch_size", "window", "width", "depth", "feed_forward", "vocabulary", "fusion_layer")
)
"""What is a number of things."""


class Weights:
    """The weights of one part of a checkpoint.

    Args:
        state: weights by name.
        prefix: what the part's names begin with; left out of the names here.
        source: what to call the file in errors.
    """

    def __init__(self, state: Mapping[str, Tensor], prefix: str, source: str) -> None:
        self.state, self.prefix, self.source = state, prefix, source

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.state

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """The shape of one weight.

        Raises:
            StorageError: it is not there, or of another number of dimensions.
        """
        value = self.state.get(self.prefix + name)
        if value is None or value.ndim != dimensions:
            what = f"lacks {self.prefix}{name}" if value is None else f"has {self.prefix}{name} of shape "
            raise StorageError(
                f"{self.source} {what}{'' if value is None else tuple(value.shape)}",
                "it is damaged, cut off or of another model: compare it with the published one",
            )
        return tuple(value.shape)

    def count(self, before: str) -> int:
        """How many numbers follow ``before`` in the names.

        Raises:
            StorageError: none, or one between them is missing.
        """
        pattern = re.compile(re.escape(self.prefix + before) + r"(\d+)\.")
        numbers = sorted({int(found[1]) for found in map(pattern.match, self.state) if found})
        if not numbers or numbers != list(range(len(numbers))):
            gap = next((row for row, number in enumerate(numbers) if row != number), 0)
            raise StorageError(
                f"{self.source} lacks {self.prefix}{before}{gap}.*",
                "it is damaged, cut off or of another model: compare it with the published one",
            )
        return len(numbers)


def canonical(
    given: Mapping[str, Any] | None, aliases: Mapping[str, Iterable[str]], what: str, ignored: Iterable[str]
) -> dict[str, Any]:
    """A configuration under one set of names; None stands for what is not said.

    Args:
        given: as somebody wrote it, in the names of the published code or of transformers.
        aliases: our name → the names it goes by.
        what: what to call it in messages.
        ignored: names that change no row; others that are not known are logged.

    Raises:
        UsageError: two names of one thing with two values, or a value that cannot be.
    """
    found: dict[str, Any] = {}
    left = {key for key, value in (given or {}).items() if value is not None} - set(ignored)
    for name, keys in aliases.items():
        said = {key: (given or {})[key] for key in (name, *keys) if key in left}
        left -= said.keys()
        values = list(said.values())
        if any(value != values[0] for value in values):
            raise UsageError(
                f"the {what} says {' and '.join(f'{k}={v!r}' for k, v in said.items())}", "say one"
            )
        if values:
            found[name] = values[0]
            _check_value(name, values[0], f"the {what} says {next(iter(said))}={values[0]!r}")
    if left:
        logger.warning("the %s says %s, which is not used", what, ", ".join(sorted(left)))
    return found


def _check_value(name: str, value: Any, said: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _WHOLE and not (number and value == int(value) > 0):
        raise UsageError(said, "give a whole number above 0")
    if name in ("layer_norm_eps", "mlp_ratio") and not (number and value > 0):
        raise UsageError(said, "give a number above 0")
    if name == "activation" and value not in ACT2FN:
        raise UsageError(said, f"known: {', '.join(sorted(ACT2FN))}")


def agreed(given: Mapping[str, Any], name: str, found: A, what: str) -> A:
    """``found``, what the weights say, when the configuration says the same or nothing.

    Raises:
        MismatchError: the two differ.
    """
    said = given.get(name)
    said = tuple(said) if isinstance(said, list) else said
    if said is not None and said != found:
        raise MismatchError(
            f"{what}: the configuration says {said}, the weights say {found}",
            "give the configuration that the weights were made with, or none: sizes are taken from the weights",
        )
    return found


def given_heads(given: Mapping[str, Any], width: int, what: str) -> int:
    """How many attention heads: as said, else one of every 64 columns, as BERT and ViT base have.

    Raises:
        UsageError: nothing is said of a width that is no multiple of 64, or a number that does not divide it.
    """
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
