"""Crop: a part of the picture, of its own proportions, from a place that is drawn.

The only change of a picture's size. Training crops pictures as well, to between 8 % and all of their area
(Szegedy et al., Going Deeper with Convolutions, CVPR 2015); the five shares here are ours. What a caption
speaks of may be cut away.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import Field

from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws


class CropOptions(SeverityOptions):
    """How much is kept.

    Attributes:
        keep: share of the area; a side is never shorter than one pixel.
    """

    amount = "keep"
    amounts = (0.8, 0.65, 0.5, 0.35, 0.2)

    keep: float = Field(amounts[2], gt=0, le=1)


def _cropped(picture: Image, draws: Draws, options: CropOptions) -> Image:
    width, height = (max(1, round(side * math.sqrt(options.keep))) for side in picture.size)
    left, top = draws.below(picture.width - width + 1), draws.below(picture.height - height + 1)
    return picture.crop((left, top, left + width, top + height))


CROP = PERTURBATIONS.add(
    PicturePerturbation(
        name="crop",
        description="a part of the picture, from any place",
        group="pictures",
        source="ours; Szegedy et al., CVPR 2015, for random crops",
        keeps_meaning=True,
        options=CropOptions,
        apply=_cropped,
    )
)
