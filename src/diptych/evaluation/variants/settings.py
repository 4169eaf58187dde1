"""Settings and axes: everything a variant of the protocol is, one field per stage, and what changes the fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.evaluation.printed.target import Target
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.ranks import TieGroups

if TYPE_CHECKING:
    from diptych.evaluation.variants.recompute import Scored

LEAST_SHRUNK = 10  # candidates that are left at least, so that R@10 is that of a ranking

F = TypeVar("F", bound=Callable[..., object])

Keep = Callable[[GroundTruth, np.ndarray], np.ndarray]
"""From a ground truth and a number for every image to the rows of the texts that stay, ascending."""

Relevance = Callable[[GroundTruth], GroundTruth]  # of the same sizes, with other pairs
Counting = Callable[[TieGroups, int], np.ndarray]  # from a cut-off to one value in [0, 1] per query
Renaming = Callable[[str], str]  # from the name of a measure to that of the one computed in its place
Rewrite = Callable[[Mapping[str, float]], dict[str, float]]  # from cells to cells: what is printed where
Depth = int | Literal["everything"]  # how many candidates of each query are ranked


class NotPossible(UsageError):
    """A variant that these inputs cannot give; it is left out, with its reason."""


@dataclass(frozen=True)
class Step(Generic[F]):
    """A function with a name that tells it from others of its kind."""

    name: str  # equal names mean the same function
    of: F = field(compare=False, repr=False)  # the function


View = tuple[str, Step[Keep] | None, str, Step[Relevance] | None]
"""What is ranked: source, texts, galleries, relevance."""


@dataclass(frozen=True)
class Settings:
    """One variant; the default of every field but the first is the default protocol."""

    source: str  # label of the embeddings
    keep: Step[Keep] | None = None  # which texts stay; None for all
    partition: str = "full"  # how the images are cut into galleries
    relevance: Step[Relevance] | None = None  # what is relevant; None for the ground truth
    depth: Depth = "everything"  # of the best by contrastive score
    matched: bool = False  # whether the matching score ranks the candidates, or the contrastive score
    shrinks: bool = False  # whether :data:`LEAST_SHRUNK` stored candidates will do in a smaller gallery
    # what becomes of the others; see :mod:`diptych.evaluation.reranking`. Empty for ``published`` where a
    # matching score ranks some, which no published evaluation does otherwise, and ``miss`` for a ranking that
    # is cut, and for all candidates that are stored
    unranked: str = ""
    ties: str = ""  # empty for ``compat`` where what is not ranked ties as published, else ``expected``
    counting: Step[Counting] | None = None  # how R@K counts a query's hits; None for any-of-k
    precision: Step[Renaming] | None = None  # which measure an average precision's name means
    rewrite: Step[Rewrite] | None = None  # what is printed in which column; None for its own
    rule: str = "round"  # what is done with further digits, ``round`` or ``truncate``

    @property
    def view(self) -> View:
        return self.source, self.keep, self.partition, self.relevance

    @property
    def unranked_rule(self) -> str:
        return self.unranked or ("published" if self.matched and not self.shrinks else "miss")

    @property
    def tie_rule(self) -> str:
        if self.ties:
            return self.ties
        return "compat" if self.depth != "everything" and self.unranked_rule == "published" else "expected"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What variants are computed from."""

    sources: Mapping[str, Scored]  # test sets by label, the one that is evaluated by default first
    target: Target
    warnings: tuple[str, ...] = ()  # what has to be said before any verdict, e.g. that the data are others

    @property
    def first(self) -> str:
        """Return the label of the default source."""
        return next(iter(self.sources))


@dataclass(frozen=True)
class Choice:
    """One way to settle an axis."""

    name: str  # short, e.g. ``2``; printed behind the axis's name
    words: str  # what it means, to stand behind a colon
    apply: Callable[[Settings], Settings] = field(compare=False, repr=False)  # settings with this choice made
    # whether it can make a difference, given all other choices
    applies: Callable[[Settings], bool] = field(default=lambda settings: True, compare=False, repr=False)


@dataclass(frozen=True)
class Axis:
    name: str  # as it is printed, e.g. ``k_test``
    description: str  # one line of what is left open
    choices: Callable[[Inputs], Sequence[Choice]] = field(repr=False)  # the default first


AXES: Registry[Axis] = Registry("axis of protocols", "diptych.evaluation.variants.axes")
