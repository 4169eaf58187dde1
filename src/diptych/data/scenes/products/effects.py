"""What is planted in a shop of product scenes: what each modality tells of a product, how often, how truly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.scenes.products.facets import SAID

MODALITIES = ("picture", "title", "attributes")

ALWAYS_SHOWN = ("department", "shape", "colour", "finish")
"""What a picture cannot but show, rightly or wrongly: background, shape, colour and finish."""


@dataclass(frozen=True)
class Telling:
    """How a modality tells a facet.

    Attributes:
        told: probability that it says a value at all; where the product's category depends on the facet.
        right: probability that the value is the product's own; else it is one of the others, each as likely.
    """

    told: float
    right: float = 1.0


def _texts(right: float, **told: float) -> dict[str, Telling]:
    return {facet: Telling(share, right) for facet, share in told.items()}


@dataclass(frozen=True)
class Effects:
    """All of them.

    Attributes:
        picture: facet → how pictures tell it; all of :data:`ALWAYS_SHOWN`, each with ``told`` 1, and no other.
        title: facet → how titles tell it; also of ``noun``. A facet that is absent is never told.
        attributes: facet → how attributes tell it.
        beside: how often titles and attributes tell a facet that the product's category does not depend on, as a
            share of how often they tell it otherwise.
        synonyms: probability that a title says a value by another word than the category's.
    """

    picture: Mapping[str, Telling] = field(
        default_factory=lambda: {
            "department": Telling(1.0, 0.92),
            "shape": Telling(1.0, 0.92),
            "colour": Telling(1.0, 0.8),
            "finish": Telling(1.0, 0.5),
        }
    )
    title: Mapping[str, Telling] = field(
        default_factory=lambda: _texts(
            0.98,
            noun=0.25,
            shape=0.9,
            colour=0.75,
            finish=0.75,
            size=0.75,
            use=0.7,
            style=0.7,
            feature=0.7,
            occasion=0.7,
        )
    )
    attributes: Mapping[str, Telling] = field(
        default_factory=lambda: _texts(
            0.96,
            department=0.1,
            colour=0.6,
            finish=0.75,
            size=0.7,
            use=0.65,
            style=0.65,
            feature=0.65,
            occasion=0.65,
        )
    )
    beside: float = 0.3
    synonyms: float = 0.4

    def of(self, modality: str) -> Mapping[str, Telling]:
        """How one of :data:`MODALITIES` tells each facet."""
        told: Mapping[str, Telling] = getattr(self, modality)
        return told

    def check(self) -> None:
        """See that they can be."""
        shares = {"beside": self.beside, "synonyms": self.synonyms}
        for modality in MODALITIES:
            for facet, telling in self.of(modality).items():
                if facet not in SAID:
                    raise UnknownNameError("facet", facet, SAID)
                shares[f"{modality}: {facet}, told"] = telling.told
                shares[f"{modality}: {facet}, right"] = telling.right
        for what, share in shares.items():
            if not 0 <= share <= 1:
                raise UsageError(f"effects: {what} is {share}", "give a probability, 0 to 1")
        shown = {facet for facet, telling in self.picture.items() if telling.told == 1}
        if shown != set(self.picture) or shown != set(ALWAYS_SHOWN):
            raise UsageError(
                f"effects: pictures tell {', '.join(sorted(self.picture)) or 'nothing'}",
                f"give {', '.join(ALWAYS_SHOWN)}, each told with probability 1: a picture shows some value of each",
            )
        if "noun" in self.attributes:
            raise UsageError("effects: attributes tell the noun", "give it to titles alone")
        if "department" in self.title:
            raise UsageError("effects: titles tell the department", "titles tell it by the noun")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Effects:
        """What :meth:`to_dict` made of them."""
        told = {
            modality: {facet: Telling(**how) for facet, how in given[modality].items()}
            for modality in MODALITIES
        }
        return Effects(**told, beside=given["beside"], synonyms=given["synonyms"])
