"""What an evaluation's numbers depend on: a folder that holds some of them goes on with the same only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS
from diptych.core.fingerprint import fingerprint


@dataclass(frozen=True)
class Protocol:
    """What is evaluated, and how.

    Attributes:
        features: fingerprint of the table.
        models, settings, sets, steps: what the grid is made of.
        split: name of the way of splitting.
        folds: how many.
        balanced: whether classes weigh the same.
        inner: whether thresholds and probabilities are fitted on an inner part of every training part.
        importance: whether the importance of features is computed.
        seed: of splits, models and permutations.
        scikit_learn: its version.
        scorer: of given scores, what gave them; nothing is fitted then.
    """

    features: str
    models: tuple[str, ...]
    settings: tuple[str, ...]
    sets: tuple[str, ...]
    steps: tuple[int, ...]
    split: str
    folds: int
    balanced: bool
    inner: bool
    importance: bool
    seed: int
    scikit_learn: str
    scorer: str = ""

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return fingerprint(self.to_dict())

    @property
    def importance_model(self) -> str:
        """Whose importances are computed: the first that has impurities, else the first; empty for none."""
        if not self.importance:
            return ""
        return next((name for name in self.models if MODELS.get(name).has_impurity), self.models[0])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Protocol:
        """The inverse of :meth:`to_dict`."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        return cls(**known)

    def line(self) -> str:
        """One line, to be printed with every number."""
        if self.scorer:
            return f"scores of {self.scorer} as given, nothing fitted"
        folds = "one fold" if self.folds == 1 else f"{self.folds} folds"
        parts = [
            f"split {self.split}, {folds}",
            "classes weighed equally where a model can" if self.balanced else "classes not weighed",
            "threshold and calibration from inside the training part" if self.inner else "nothing calibrated",
            f"seed {self.seed}",
            f"scikit-learn {self.scikit_learn}",
        ]
        return "; ".join(parts)

    def differences(self, other: Protocol) -> list[str]:
        """What is not the same, e.g. ``folds 10 and 5``."""
        mine, theirs = self.to_dict(), other.to_dict()
        return [f"{name} {mine[name]} and {theirs[name]}" for name in mine if mine[name] != theirs[name]]
