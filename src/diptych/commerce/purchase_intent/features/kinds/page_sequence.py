"""Whether the pages so far came in the order of buyers or of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.markov import ABSENT, MarkovRatio, fit_markov
from diptych.commerce.purchase_intent.features.view import NO_PAGE, SessionsView
from diptych.core.errors import UsageError

__all__ = ["OTHER_PAGE", "PAGE_SEQUENCE_SCORE", "FittedPageSequence"]

OTHER_PAGE = "(other)"
"""What page types are called together that have no code of their own."""


@dataclass(frozen=True)
class FittedPageSequence:
    """Chains of page types.

    Attributes:
        chains: of buyers and of others.
    """

    chains: MarkovRatio

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return ("page-sequence-score",)

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, 1)."""
        return self.chains.scores(self._codes(view))[:, None]

    def gains(self, view: SessionsView) -> np.ndarray:
        """(n, steps): what each page adds to the score."""
        return self.chains.gains(self._codes(view))

    def _codes(self, view: SessionsView) -> np.ndarray:
        """The pages of a view, whatever its vocabulary, as states of the chains."""
        place = {name: code for code, name in enumerate(self.chains.states)}
        names = (*view.vocabulary, OTHER_PAGE)
        codes = [place.get(name, len(place)) for name in names]
        states: np.ndarray = np.array([*codes, ABSENT])[view.page_types]  # NO_PAGE is -1: the last
        return states

    def to_dict(self) -> dict[str, Any]:
        """The chains."""
        return self.chains.to_dict()


def _fit(view: SessionsView) -> FittedPageSequence:
    if view.labels is None:
        raise UsageError("chains need sessions whose outcome is known", "give a view with labels")
    codes = view.page_types.astype(np.int64)
    if view.pages_before_purchase is not None:
        behind = np.arange(codes.shape[1]) >= view.pages_before_purchase[:, None]
        codes[behind] = NO_PAGE
    return FittedPageSequence(fit_markov(codes, view.labels, (*view.vocabulary, OTHER_PAGE)))


PAGE_SEQUENCE_SCORE = FEATURES.add(
    Feature(
        name="page-sequence-score",
        label="page sequence score",
        description="sum over pages of ln P(type | type before) of buyers less that of others, two Markov chains of "
        "training sessions; page types that they do not have add nothing (ours)",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_fit,
        load=lambda values: FittedPageSequence(MarkovRatio.from_dict(values)),
    )
)
