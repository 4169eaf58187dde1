"""What the numbers of a grid depend on: a folder goes on with the same only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diptych.core.fingerprint import fingerprint

_GRID = ("models", "settings", "seeds")


@dataclass(frozen=True)
class GridProtocol:
    """What is evaluated, and how.

    Attributes:
        models, settings: what the grid is made of.
        seeds: of trained models; others are measured once.
        train, validation, test: fingerprints of the three catalogues; empty where there is none.
        encoders: fingerprint of what made the features.
        relevance: ``label`` or ``path``.
        query: what stands for a category: its ``name`` or its ``path``.
        published: whether models are trained as the thesis says.
        options: of training, as given; modality, setting and seed are each cell's own.
        judged_seed: of the draws that judge the test products.
        given: of models that were trained before, what they are; nothing is fitted then.
        pictures: which products stand without one; empty where all have one, and then not written down.
    """

    models: tuple[str, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    train: str
    validation: str
    test: str
    encoders: str
    relevance: str
    query: str
    published: bool
    options: dict[str, Any]
    judged_seed: int
    given: str = ""
    pictures: str = ""

    @property
    def key(self) -> str:
        """A short name of what every cell depends on; the grid may grow by models, settings and seeds."""
        return fingerprint({name: value for name, value in self.to_dict().items() if name not in _GRID})

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name != "pictures" or value
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> GridProtocol:
        """The inverse of :meth:`to_dict`."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        return cls(**known)

    def differences(self, other: GridProtocol) -> list[str]:
        """What is not the same besides the grid itself, e.g. ``query name and path``."""
        mine, theirs = asdict(self), asdict(other)
        found = []
        for name in mine:
            if name in _GRID or mine[name] == theirs[name]:
                continue
            if name == "options":
                both = dict.fromkeys([*mine[name], *theirs[name]])
                found += [
                    f"{key} {mine[name].get(key)} and {theirs[name].get(key)}"
                    for key in both
                    if mine[name].get(key) != theirs[name].get(key)
                ]
            else:
                found.append(f"{name} {_said(mine[name])} and {_said(theirs[name])}")
        return found

    def line(self) -> str:
        """How it was made, for the line under every table."""
        way = "as the chapter says (compat published)" if self.published else "by our defaults"
        seeds = ", ".join(map(str, self.seeds))
        return "; ".join(
            [
                f"relevance by {self.relevance}",
                f"a category's text is its {self.query}",
                f"{self.given}, nothing fitted" if self.given else f"trained {way}, seeds {seeds}",
                f"judged with seed {self.judged_seed}",
                "P@k over k, mAP@k over min(k, relevant products), mAP-hits@k over those found (compat), R-precision "
                "over relevant products",
                "ties expected",
            ]
        )


def _said(value: Any) -> str:
    return "none" if value == "" else str(value)
