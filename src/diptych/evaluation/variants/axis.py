"""Axis: one thing that a protocol leaves open, and the choices there are.

Adding one is one new file in :mod:`diptych.evaluation.variants.axes` that calls ``AXES.add``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from diptych.core.registry import Registry
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.scored import Scored
from diptych.evaluation.variants.settings import Settings


@dataclass(frozen=True, eq=False)
class Inputs:
    """What variants are computed from.

    Attributes:
        sources: test sets by label, the one that is evaluated by default first.
        target: what was printed.
        warnings: what has to be said before any verdict, e.g. that the data are others.
    """

    sources: Mapping[str, Scored]
    target: Target
    warnings: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The label of the default source."""
        return next(iter(self.sources))


def _always(settings: Settings) -> bool:
    return True


@dataclass(frozen=True)
class Choice:
    """One way to settle an axis.

    Attributes:
        name: short, e.g. ``2``; printed behind the axis's name.
        words: what it means, to stand behind a colon.
        apply: settings with this choice made.
        applies: whether it can make a difference, given all other choices.
    """

    name: str
    words: str
    apply: Callable[[Settings], Settings] = field(compare=False, repr=False)
    applies: Callable[[Settings], bool] = field(default=_always, compare=False, repr=False)


@dataclass(frozen=True)
class Axis:
    """A declared axis.

    Attributes:
        name: as it is printed, e.g. ``k_test``.
        description: one line of what is left open.
        choices: what it offers for given inputs, the default first; a single one where nothing is open.
    """

    name: str
    description: str
    choices: Callable[[Inputs], Sequence[Choice]] = field(repr=False)


AXES: Registry[Axis] = Registry("axis of protocols", "diptych.evaluation.variants.axes")
