"""Blur: a picture out of focus.

The five amounts are those of Hendrycks and Dietterich, whose pictures are 224 pixels wide and high: 1, 2, 3,
4 and 6 of them, here as shares of the shorter side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws


class BlurOptions(SeverityOptions):
    """How far out of focus.

    Attributes:
        sigma: standard deviation of the Gaussian, as a share of the shorter side.
    """

    amount = "sigma"
    amounts = (1 / 224, 2 / 224, 3 / 224, 4 / 224, 6 / 224)

    sigma: float = Field(amounts[2], gt=0, le=1)


def _blurred(picture: Image, draws: Draws, options: BlurOptions) -> Image:
    from PIL import ImageFilter

    return picture.filter(ImageFilter.GaussianBlur(options.sigma * min(picture.size)))


BLUR = PERTURBATIONS.add(
    PicturePerturbation(
        name="blur",
        description="out of focus: a Gaussian of a share of the shorter side",
        group="pictures",
        source="Hendrycks and Dietterich, ICLR 2019: gaussian blur",
        keeps_meaning=True,
        options=BlurOptions,
        apply=_blurred,
    )
)
