"""What a feature of granularity declares: its name, what is counted of a caption, and how the paper counted it.

Adding one is one new file in :mod:`diptych.analysis.granularity.features` that calls ``FEATURES.add``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from diptych.analysis.granularity.lexicon import Lexicon
from diptych.analysis.perturbations.caption import Caption
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.registry import Registry

Level = Literal["noun phrase", "caption"]
"""What a feature is about, as thesis section 5.3.1 sorts them."""

Count = Callable[[Caption, Lexicon], float]

COMPATS = ("none", "published")

ORDER = (
    "adjectives",
    "complement-phrases",
    "articles",
    "quantifiers",
    "concept-depth",
    "characters",
    "words",
    "concept-diversity",
)
"""Features in the order of thesis Table 5.1; any other comes after them."""


class Unmeasured(Exception):
    """A feature is not defined of this caption; the message says why, in words that many captions share."""


@dataclass(frozen=True)
class Feature:
    """One number of a caption.

    Attributes:
        name: as it is asked for and printed.
        description: its definition in one line.
        level: what it is about.
        unit: of one caption's value, e.g. ``per caption``.
        source: where it comes from.
        count: from a caption and what words mean to the number; raises ``Unmeasured`` where there is none.
        needs: ``"tags"`` and ``"wordnet"``, where it looks at them.
        published: the definition that gives the numbers of thesis Table 5.1, where that is another one and is
            known.
        published_description: that definition in one line.
        per_noun: whether the number per noun, by which the thesis's text defines it, is given besides.
        decimals: digits after the point in tables.
    """

    name: str
    description: str
    level: Level
    unit: str
    source: str
    count: Count = field(repr=False)
    needs: frozenset[str] = frozenset()
    published: Count | None = field(default=None, repr=False)
    published_description: str = ""
    per_noun: bool = False
    decimals: int = 2

    def counted_by(self, compat: str) -> Count:
        """The definition that ``compat`` asks for; the right one where no other is known."""
        return self.published if compat == "published" and self.published is not None else self.count

    def definition(self, compat: str) -> str:
        """That definition in one line."""
        other = compat == "published" and self.published is not None
        return self.published_description if other else self.description


FEATURES: Registry[Feature] = Registry("feature of granularity", "diptych.analysis.granularity.features")


def choose_features(names: Iterable[str] | None = None) -> list[Feature]:
    """The features of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    every = sorted(FEATURES, key=lambda one: (_place(one.name), one.name))
    if names is None:
        return every
    known = {one.name for one in every}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(FEATURES.kind, name, known)
    if not wanted:
        raise UsageError("no feature was asked for", f"for example {', '.join(ORDER[:2])}")
    return [one for one in every if one.name in wanted]


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)
