"""How maps are learned from pairs, and how strongly they are pulled towards changing nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.core.options import Options

Method = Literal["gaussian", "infonce"]


class AdaptationOptions(Options):
    """Options of :func:`~diptych.training.adaptation.fit.fit_linear`.

    Attributes:
        method: ``gaussian`` is in closed form: the rows of a pair are taken as jointly normal, with a
            prior under which the encoder is right as it is; ``infonce`` lowers the InfoNCE loss of the
            pairs from the identity, with a penalty on leaving it.
        strength: of the pull towards the encoder as it is: the number of pairs that the prior is worth
            (``gaussian``), or the weight of the penalty (``infonce``). Chosen by the pairs when not
            given: see :mod:`~diptych.training.adaptation.fit`.
    """

    method: Method = "gaussian"
    strength: float | None = Field(None, ge=1e-6, allow_inf_nan=False)
