"""Occlusion: something without a pattern in front of a part of the picture.

A rectangle of one colour in a place that is drawn, with proportions that are drawn. Its share of the picture
is exact but for the rounding of its sides to pixels. Random erasing in training takes 2 % to 33 %; the five
shares here are ours.

Source: DeVries and Taylor, Improved Regularization of Convolutional Neural Networks with Cutout, 2017; Zhong
et al., Random Erasing Data Augmentation, AAAI 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws

_GREY = (128, 128, 128)


class OcclusionOptions(SeverityOptions):
    """How much is hidden, and behind what.

    Attributes:
        share: of the area; a side of the rectangle is never shorter than one pixel.
        colour: the picture's ``mean`` colour, or ``grey``.
    """

    amount = "share"
    amounts = (0.05, 0.1, 0.2, 0.3, 0.45)

    share: float = Field(amounts[2], gt=0, le=1)
    colour: Literal["mean", "grey"] = "mean"


def _occluded(picture: Image, draws: Draws, options: OcclusionOptions) -> Image:
    from PIL import ImageStat

    colour = _GREY
    if options.colour == "mean":
        red, green, blue = (round(mean) for mean in ImageStat.Stat(picture).mean)
        colour = (red, green, blue)
    # share^across of the width times share^(1 - across) of the height is the share, and always fits.
    across = 0.3 + 0.4 * draws.uniform()
    width = max(1, round(picture.width * options.share**across))
    height = max(1, round(picture.height * options.share ** (1 - across)))
    left, top = draws.below(picture.width - width + 1), draws.below(picture.height - height + 1)
    hidden = picture.copy()
    hidden.paste(colour, (left, top, left + width, top + height))
    return hidden


OCCLUSION = PERTURBATIONS.add(
    PicturePerturbation(
        name="occlusion",
        description="a part hidden behind a rectangle of one colour",
        group="pictures",
        source="DeVries and Taylor, 2017; Zhong et al., AAAI 2020",
        keeps_meaning=True,
        options=OcclusionOptions,
        apply=_occluded,
    )
)
