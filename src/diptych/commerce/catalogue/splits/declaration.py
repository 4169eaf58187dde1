"""A way of telling training from test products."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import UsageError
from diptych.core.registry import Registry

Together = Literal["none", "title", "title-picture"]
"""Which products are one for the draw: none, those of one title, or those of one title and one picture's bytes."""


@dataclass(frozen=True)
class SplitOptions:
    """What a split can be told; each kind says which of it it takes.

    Attributes:
        shares: of products per split, adding up to 1.
        seed: of the draws.
        together: which products are never parted.
        setting: whose categories are held out.
        held_out: share of those categories.
        test: the split that asks for seen and unseen categories alike.
        moved_to: the split that the other products of held-out categories go to.
    """

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "val": 0.1, "test": 0.1})
    seed: int = 0
    together: Together = "none"
    setting: str = "most-specific"
    held_out: float = 0.2
    test: str = "test"
    moved_to: str = "held-out"

    def __post_init__(self) -> None:
        sizes = list(self.shares.values())
        if (
            not sizes
            or any(not share >= 0 for share in sizes)
            or not math.isclose(sum(sizes), 1, abs_tol=1e-6)
        ):
            given = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
            raise UsageError(
                f"shares {given or 'of nothing'} do not add up to 1", "for instance train=0.8, test=0.2"
            )
        if not 0 < self.held_out < 1:
            raise UsageError(f"a share of {self.held_out:g} categories cannot be held out", "between 0 and 1")
        if self.together not in ("none", "title", "title-picture"):
            raise UsageError(f"together {self.together!r} is none", "one of none, title, title-picture")
        if not self.test or not self.moved_to:
            raise UsageError("a split needs a name", "name test and moved_to")


@dataclass(frozen=True)
class SplitKind:
    """One way.

    Attributes:
        name: ``given``, ``product`` or ``category``.
        description: one line.
        takes: names of the options that it reads.
        assign: the split of every product, and one line per thing that was done.
    """

    name: str
    description: str
    takes: frozenset[str]
    assign: Callable[[Catalogue, SplitOptions], tuple[list[str], tuple[str, ...]]]


SPLITS: Registry[SplitKind] = Registry("split of a catalogue", "diptych.commerce.catalogue.splits.kinds")
"""All ways; each is declared in a file of its own."""
