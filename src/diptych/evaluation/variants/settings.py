"""Settings and axes: everything a variant of the protocol is, one field per stage, and what changes the fields.

Stages, in order: which embeddings, which texts stay, how they are cut into galleries, what is relevant, how
many candidates are ranked and by what, what becomes of the others, how ties stand, how hits are counted,
which value is printed in which column, and what is done with the digits that are not printed.
"""

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

LEAST_SHRUNK = 10
"""Candidates that are left at least, so that R@10 is that of a ranking."""

F = TypeVar("F", bound=Callable[..., object])

Keep = Callable[[GroundTruth, np.ndarray], np.ndarray]
"""From a ground truth and a number for every image to the rows of the texts that stay, ascending."""

Relevance = Callable[[GroundTruth], GroundTruth]
"""From a ground truth to one of the same sizes with other pairs."""

Counting = Callable[[TieGroups, int], np.ndarray]
"""From a ranking and a cut-off to one value in [0, 1] per query."""

Renaming = Callable[[str], str]
"""From the name of a measure to that of the one that is computed in its place."""

Rewrite = Callable[[Mapping[str, float]], dict[str, float]]
"""From cells to cells: what is printed where."""

Depth = int | Literal["everything"]
"""How many candidates of each query are ranked."""


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
    depth: Depth = "everything"  # how many candidates of each query are ranked, the best by contrastive score
    matched: bool = False  # whether the matching score ranks the candidates, or the contrastive score
    # whether fewer will do in a smaller gallery, where no more stored candidates are left; not fewer than
    # :data:`LEAST_SHRUNK`
    shrinks: bool = False
    # what becomes of the others; see :mod:`diptych.evaluation.reranking`. Empty for ``published`` where a
    # matching score ranks some, which no published evaluation does otherwise, and ``miss`` for a ranking that
    # is cut, and for all candidates that are stored
    unranked: str = ""
    # the tie rule; empty for ``compat`` where what is not ranked ties as published, else ``expected``
    ties: str = ""
    counting: Step[Counting] | None = None  # how R@K counts a query's hits; None for any-of-k
    # which measure is meant by the name of an average precision; None for that of the name
    precision: Step[Renaming] | None = None
    rewrite: Step[Rewrite] | None = None  # what is printed in which column; None for its own
    rule: str = "round"  # what is done with further digits, ``round`` or ``truncate``

    @property
    def view(self) -> View:
        """What is ranked."""
        return self.source, self.keep, self.partition, self.relevance

    @property
    def unranked_rule(self) -> str:
        """What becomes of items that are no candidates, by name."""
        return self.unranked or ("published" if self.matched and not self.shrinks else "miss")

    @property
    def tie_rule(self) -> str:
        """The tie rule by name."""
        if self.ties:
            return self.ties
        return "compat" if self.depth != "everything" and self.unranked_rule == "published" else "expected"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What variants are computed from."""

    sources: Mapping[str, Scored]  # test sets by label, the one that is evaluated by default first
    target: Target  # what was printed
    warnings: tuple[str, ...] = ()  # what has to be said before any verdict, e.g. that the data are others

    @property
    def first(self) -> str:
        """The label of the default source."""
        return next(iter(self.sources))


def _always(settings: Settings) -> bool:
    return True


@dataclass(frozen=True)
class Choice:
    """One way to settle an axis."""

    name: str  # short, e.g. ``2``; printed behind the axis's name
    words: str  # what it means, to stand behind a colon
    apply: Callable[[Settings], Settings] = field(compare=False, repr=False)  # settings with this choice made
    # whether it can make a difference, given all other choices
    applies: Callable[[Settings], bool] = field(default=_always, compare=False, repr=False)


@dataclass(frozen=True)
class Axis:
    """A declared axis."""

    name: str  # as it is printed, e.g. ``k_test``
    description: str  # one line of what is left open
    # what it offers for given inputs, the default first; a single one where nothing is open
    choices: Callable[[Inputs], Sequence[Choice]] = field(repr=False)


AXES: Registry[Axis] = Registry("axis of protocols", "diptych.evaluation.variants.axes")
