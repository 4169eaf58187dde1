"""Images made worse: compression, blur, light, crop, occlusion and digits, each in five severities.

Amounts that are lengths are shares of an image's shorter side, so that they mean the same at every size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from diptych.analysis.perturbations.caption import Unchanged
from diptych.analysis.perturbations.declaration import (
    F,
    PicturePerturbation,
    SeverityOptions,
    registering,
)

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws

_GREY = (128, 128, 128)
_LONGEST = 65_500  # the longest side that libjpeg writes


def _declare(name: str, description: str, source: str, options: type[SeverityOptions]) -> Callable[[F], F]:
    """Register a function of an image, its draws and options."""
    return registering(
        PicturePerturbation,
        name=name,
        description=description,
        group="pictures",
        source=source,
        keeps_meaning=True,
        options=options,
    )


class BlurOptions(SeverityOptions):
    """How far out of focus.

    The amounts are those of Hendrycks and Dietterich, whose images are 224 pixels wide and high: 1 to 6 of them.
    """

    amount = "sigma"
    amounts = (1 / 224, 2 / 224, 3 / 224, 4 / 224, 6 / 224)

    sigma: float = Field(
        amounts[2], gt=0, le=1, description="standard deviation, as a share of the shorter side"
    )


@_declare(
    "blur",
    "out of focus: a Gaussian of a share of the shorter side",
    "Hendrycks and Dietterich, ICLR 2019: gaussian blur",
    BlurOptions,
)
def _blurred(picture: Image, draws: Draws, options: BlurOptions) -> Image:
    from PIL import ImageFilter

    return picture.filter(ImageFilter.GaussianBlur(options.sigma * min(picture.size)))


class BrightnessOptions(SeverityOptions):
    """How much light too much or too little, as exposure does it.

    Hendrycks and Dietterich add to the value of every pixel, which makes all images brighter and black ones grey.
    Here values are multiplied, and half of the images become darker; the five factors are ours.
    """

    amount = "factor"
    amounts = (1.3, 1.6, 2.0, 2.5, 3.2)

    factor: float = Field(
        amounts[2], gt=1, le=255, description="pixels are multiplied by it or by 1 / factor, each as likely"
    )


@_declare(
    "brightness",
    "too dark or too bright",
    "after Hendrycks and Dietterich, ICLR 2019: brightness",
    BrightnessOptions,
)
def _lit(picture: Image, draws: Draws, options: BrightnessOptions) -> Image:
    factor = draws.choice((1 / options.factor, options.factor))
    values = [min(255, round(value * factor)) for value in range(256)]
    return picture.point(values * 3)


class CropOptions(SeverityOptions):
    """How much is kept, of the image's own proportions, from a place that is drawn.

    The only change of an image's size. Training crops images as well, to between 8 % and all of their area (Szegedy
    et al., CVPR 2015); the five shares here are ours. What a caption describes may be cut away.
    """

    amount = "keep"
    amounts = (0.8, 0.65, 0.5, 0.35, 0.2)

    keep: float = Field(
        amounts[2], gt=0, le=1, description="share of the area; no side is shorter than a pixel"
    )


@_declare(
    "crop",
    "a part of the picture, from any place",
    "ours; Szegedy et al., CVPR 2015, for random crops",
    CropOptions,
)
def _cropped(picture: Image, draws: Draws, options: CropOptions) -> Image:
    width, height = (max(1, round(side * math.sqrt(options.keep))) for side in picture.size)
    left, top = draws.below(picture.width - width + 1), draws.below(picture.height - height + 1)
    return picture.crop((left, top, left + width, top + height))


class DigitOverlayOptions(SeverityOptions):
    """How large six meaningless digits along the top are.

    The places are those of the synthetic shortcuts (thesis, 4.D.4), where a digit has 28 of 224 pixels, severity 3; a
    sixth of the shorter side is the most at which none covers another. Shortcuts are pasted on what a tower sees;
    these are on the image itself, and what a tower crops away it does not see.
    """

    amount = "size"
    amounts = (14 / 224, 21 / 224, 28 / 224, 32 / 224, 37 / 224)

    size: float = Field(
        amounts[2], gt=0, le=1 / 6, description="side of a digit, as a share of the shorter side"
    )


@_declare(
    "digit-overlay",
    "six digits that mean nothing, along the top",
    "thesis 4.D.4, for the places",
    DigitOverlayOptions,
)
def _overlaid(picture: Image, draws: Draws, options: DigitOverlayOptions) -> Image:
    from PIL import Image as pillow

    from diptych.analysis.shortcuts.digits import DRAWN_OF_EACH, drawn_digits
    from diptych.analysis.shortcuts.overlay import digit_places

    size = max(1, int(options.size * min(picture.size)))
    drawn = drawn_digits().at_size(size)
    overlaid = picture.copy()
    for place in digit_places(picture.width, 1, size):
        grey = drawn.grey(draws.below(10), draws.below(DRAWN_OF_EACH))
        overlaid.paste(pillow.fromarray(grey).convert("RGB"), place)
    return overlaid


class JpegOptions(SeverityOptions):
    """How much is lost; the qualities are those of Hendrycks and Dietterich.

    JPEG works on blocks of 8 × 8 pixels, so the same quality harms a small image more than a large one.
    """

    amount = "quality"
    amounts = (25, 18, 15, 10, 7)

    quality: int = Field(amounts[2], ge=1, le=95, description="libjpeg's; less is worse")


@_declare(
    "jpeg",
    "saved once more as JPEG of low quality",
    "Hendrycks and Dietterich, ICLR 2019: jpeg compression",
    JpegOptions,
)
def _saved_again(picture: Image, draws: Draws, options: JpegOptions) -> Image:
    import io

    from PIL import Image as pillow

    if max(picture.size) > _LONGEST:
        raise Unchanged(f"a side longer than the {_LONGEST:,} pixels that JPEG holds")
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=options.quality)
    with pillow.open(file, formats=("JPEG",)) as saved:
        return saved.convert("RGB")


class OcclusionOptions(SeverityOptions):
    """How much a rectangle of one colour hides, and its colour.

    Its place and proportions are drawn; its share of the image is exact but for the rounding of its sides to pixels.
    Random erasing in training takes 2 % to 33 %; the five shares here are ours.
    """

    amount = "share"
    amounts = (0.05, 0.1, 0.2, 0.3, 0.45)

    share: float = Field(amounts[2], gt=0, le=1, description="of the area; no side is shorter than a pixel")
    colour: Literal["mean", "grey"] = "mean"


@_declare(
    "occlusion",
    "a part hidden behind a rectangle of one colour",
    "DeVries and Taylor, 2017; Zhong et al., AAAI 2020",
    OcclusionOptions,
)
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
