"""A classifier by name: how it is built, and what is done about unequal classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from diptych.core.registry import Registry

Weighting = Literal["class_weight", "sample_weight", "none"]


@dataclass(frozen=True)
class IntentModel:
    """One classifier.

    Attributes:
        name: e.g. ``random-forest``.
        label: as tables print it, e.g. ``RF``.
        description: one line, with the settings that matter.
        presets: which of ``paper`` and ``fast`` it belongs to.
        build: a scikit-learn pipeline from (balanced, seed): imputation and scaling are inside, so that they are
            fitted on training rows alone.
        weighting: how classes are balanced; ``none`` where the model has no way, which reports say.
        output: whether its scores are probabilities, or decisions that have to be calibrated first.
        has_impurity: whether its last step tells the importance of the columns that it is given, by impurity.
    """

    name: str
    label: str
    description: str
    presets: tuple[str, ...]
    build: Callable[[bool, int], Any]
    weighting: Weighting
    output: Literal["probability", "decision"] = "probability"
    has_impurity: bool = False

    @property
    def threshold(self) -> float:
        """The score from which on a purchase is predicted when nothing is tuned: 0.5, or 0 of a decision."""
        return 0.5 if self.output == "probability" else 0.0


MODELS: Registry[IntentModel] = Registry("model", "diptych.commerce.purchase_intent.models.kinds")
"""All classifiers; each is declared in a file of its own."""
