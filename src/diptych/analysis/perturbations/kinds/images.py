"""Images made worse: compression, blur, light, crop, occlusion and digits, each in five severities.

Amounts that are lengths are shares of an image's shorter side, so that they mean the same at every size.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from diptych.analysis.perturbations.caption import Unchanged
from diptych.analysis.perturbations.declaration import (
    DEFAULT_SEVERITY,
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


def _declare(
    name: str,
    description: str,
    source: str,
    amount: str,
    amounts: tuple[float, ...],
    of_amount: str,
    more: dict[str, Any] | None = None,
    **bounds: Any,
) -> Callable[[F], F]:
    """Register a function of an image, its draws and options: the severity, or the amount that it stands for."""
    kind: type = type(amounts[0])
    field = Field(amounts[DEFAULT_SEVERITY - 1], description=of_amount, **bounds)
    options: Any = create_model(
        f"{name}-options", __base__=SeverityOptions, **{amount: (kind, field), **(more or {})}
    )
    options.amount, options.amounts = amount, amounts
    return registering(
        PicturePerturbation,
        name=name,
        description=description,
        group="pictures",
        source=source,
        keeps_meaning=True,
        options=options,
    )


@_declare(
    "blur",
    "out of focus: a Gaussian of a share of the shorter side",
    "Hendrycks and Dietterich, ICLR 2019: gaussian blur",
    "sigma",
    (1 / 224, 2 / 224, 3 / 224, 4 / 224, 6 / 224),  # theirs, whose images are 224 pixels wide and high
    "standard deviation, as a share of the shorter side",
    gt=0,
    le=1,
)
def _blurred(picture: Image, draws: Draws, options: Any) -> Image:
    from PIL import ImageFilter

    return picture.filter(ImageFilter.GaussianBlur(options.sigma * min(picture.size)))


@_declare(
    "brightness",
    "too dark or too bright",
    "after Hendrycks and Dietterich, ICLR 2019: brightness",
    "factor",
    (1.3, 1.6, 2.0, 2.5, 3.2),
    "pixels are multiplied by it or by 1 / factor, each as likely",
    gt=1,
    le=255,
)
def _lit(picture: Image, draws: Draws, options: Any) -> Image:
    """Multiply as exposure does; Hendrycks and Dietterich add, which makes all brighter and black ones grey."""
    factor = draws.choice((1 / options.factor, options.factor))
    values = [min(255, round(value * factor)) for value in range(256)]
    return picture.point(values * 3)


@_declare(
    "crop",
    "a part of the picture, from any place",
    "ours; Szegedy et al., CVPR 2015, for random crops",
    "keep",
    (0.8, 0.65, 0.5, 0.35, 0.2),
    "share of the area; no side is shorter than a pixel",
    gt=0,
    le=1,
)
def _cropped(picture: Image, draws: Draws, options: Any) -> Image:
    """Keep a part of the image's own proportions; what a caption describes may be cut away."""
    width, height = (max(1, round(side * math.sqrt(options.keep))) for side in picture.size)
    left, top = draws.below(picture.width - width + 1), draws.below(picture.height - height + 1)
    return picture.crop((left, top, left + width, top + height))


@_declare(
    "digit-overlay",
    "six digits that mean nothing, along the top",
    "thesis 4.D.4, for the places",
    "size",
    # a shortcut has 28 of 224 pixels; a sixth of the shorter side is the most at which none covers another
    (14 / 224, 21 / 224, 28 / 224, 32 / 224, 37 / 224),
    "side of a digit, as a share of the shorter side",
    gt=0,
    le=1 / 6,
)
def _overlaid(picture: Image, draws: Draws, options: Any) -> Image:
    """Lay digits over the image itself where shortcuts have theirs; what a tower crops away it does not see."""
    from PIL import Image as pillow

    from diptych.analysis.shortcuts.codes import digit_places
    from diptych.analysis.shortcuts.digits import DRAWN_OF_EACH, drawn_digits

    size = max(1, int(options.size * min(picture.size)))
    drawn = drawn_digits().at_size(size)
    overlaid = picture.copy()
    for place in digit_places(picture.width, 1, size):
        grey = drawn.grey(draws.below(10), draws.below(DRAWN_OF_EACH))
        overlaid.paste(pillow.fromarray(grey).convert("RGB"), place)
    return overlaid


@_declare(
    "jpeg",
    "saved once more as JPEG of low quality",
    "Hendrycks and Dietterich, ICLR 2019: jpeg compression",
    "quality",
    (25, 18, 15, 10, 7),  # theirs; of blocks of 8 × 8 pixels, which harms a small image more than a large one
    "libjpeg's; less is worse",
    ge=1,
    le=95,
)
def _saved_again(picture: Image, draws: Draws, options: Any) -> Image:
    from PIL import Image as pillow

    if max(picture.size) > _LONGEST:
        raise Unchanged(f"a side longer than the {_LONGEST:,} pixels that JPEG holds")
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=options.quality)
    with pillow.open(file, formats=("JPEG",)) as saved:
        return saved.convert("RGB")


@_declare(
    "occlusion",
    "a part hidden behind a rectangle of one colour",
    "DeVries and Taylor, 2017; Zhong et al., AAAI 2020",
    "share",
    (0.05, 0.1, 0.2, 0.3, 0.45),  # ours; random erasing in training takes 2 % to 33 %
    "of the area; no side is shorter than a pixel",
    more={"colour": (Literal["mean", "grey"], "mean")},
    gt=0,
    le=1,
)
def _occluded(picture: Image, draws: Draws, options: Any) -> Image:
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
