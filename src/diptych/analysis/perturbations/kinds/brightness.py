"""Brightness: a picture taken with too much light or too little, whichever is drawn.

Hendrycks and Dietterich add to the value of every pixel, which makes all pictures brighter and black ones
grey. Here values are multiplied, as exposure does, and half of the pictures become darker; the five factors
are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws


class BrightnessOptions(SeverityOptions):
    """How much light too much or too little.

    Attributes:
        factor: pixels are multiplied by it or by 1 / factor, each as likely; what exceeds white is white.
    """

    amount = "factor"
    amounts = (1.3, 1.6, 2.0, 2.5, 3.2)

    factor: float = Field(amounts[2], gt=1, le=255)


def _lit(picture: Image, draws: Draws, options: BrightnessOptions) -> Image:
    factor = draws.choice((1 / options.factor, options.factor))
    values = [min(255, round(value * factor)) for value in range(256)]
    return picture.point(values * 3)


BRIGHTNESS = PERTURBATIONS.add(
    PicturePerturbation(
        name="brightness",
        description="too dark or too bright",
        group="pictures",
        source="after Hendrycks and Dietterich, ICLR 2019: brightness",
        keeps_meaning=True,
        options=BrightnessOptions,
        apply=_lit,
    )
)
