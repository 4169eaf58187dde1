"""Images made worse: compression, blur, light, crop, occlusion and digits, each in five severities.

Amounts that are lengths are shares of an image's shorter side, so that they mean the same at every size.
"""

import io
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from PIL.Image import Image
from pydantic import Field, create_model, model_validator

from diptych.analysis.perturbations.caption import Unchanged
from diptych.analysis.perturbations.declaration import (
    DECLARED,
    F,
    NoOptions,
    PicturePerturbation,
    registering,
)
from diptych.core.draws import Draws

_GREY = (128, 128, 128)
_LONGEST = 65_500  # the longest side that libjpeg writes
DEFAULT_SEVERITY = 3


class SeverityOptions(NoOptions):
    """``severity``, 1 (hardly to be seen) to 5, or the amount behind it; None where that is none of the five."""

    amount: ClassVar[str]
    amounts: ClassVar[tuple[float, ...]]

    severity: int | None = Field(DEFAULT_SEVERITY, ge=1, le=5, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _both(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        severity, amount = given.get("severity"), given.get(cls.amount)
        if amount is None:
            severity = DEFAULT_SEVERITY if severity is None else severity
            # others are refused where the field is checked
            known = type(severity) is int and 1 <= severity <= 5
            return {**given, "severity": severity, cls.amount: cls.amounts[severity - 1 if known else 0]}
        stands_for = cls.amounts.index(amount) + 1 if amount in cls.amounts else None
        if severity not in (None, stands_for):
            raise ValueError(f"severity {severity} and {cls.amount} {amount} are two amounts: give one")
        return {**given, "severity": stands_for}


def _declare(name: str, **more: Any) -> Callable[[F], F]:
    """Register a function of an image, its draws and options; its severities are in ``declared.toml``."""
    given = DECLARED[name]
    amounts = tuple(one / given["of"] if "of" in given else one for one in given["amounts"])
    bounds = {key: given[key] for key in ("gt", "ge", "le") if key in given}
    field = Field(amounts[DEFAULT_SEVERITY - 1], description=given["about"], **bounds)
    fields: dict[str, Any] = {given["amount"]: (type(amounts[0]), field), **more}
    options: Any = create_model(f"{name}-options", __base__=SeverityOptions, **fields)
    options.amount, options.amounts = given["amount"], amounts
    return registering(PicturePerturbation, name, options=options)


@_declare("blur")
def _blurred(picture: Image, draws: Draws, options: Any) -> Image:
    from PIL import ImageFilter

    return picture.filter(ImageFilter.GaussianBlur(options.sigma * min(picture.size)))


@_declare("brightness")
def _lit(picture: Image, draws: Draws, options: Any) -> Image:
    """Multiply as exposure does; Hendrycks and Dietterich add, which makes all brighter and black ones grey."""
    factor = draws.choice((1 / options.factor, options.factor))
    values = [min(255, round(value * factor)) for value in range(256)]
    return picture.point(values * 3)


@_declare("crop")
def _cropped(picture: Image, draws: Draws, options: Any) -> Image:
    """Keep a part of the image's own proportions; what a caption describes may be cut away."""
    width, height = (max(1, round(side * math.sqrt(options.keep))) for side in picture.size)
    left, top = draws.below(picture.width - width + 1), draws.below(picture.height - height + 1)
    return picture.crop((left, top, left + width, top + height))


@_declare("digit-overlay")
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


@_declare("jpeg")
def _saved_again(picture: Image, draws: Draws, options: Any) -> Image:
    from PIL import Image as pillow

    if max(picture.size) > _LONGEST:
        raise Unchanged(f"a side longer than the {_LONGEST:,} pixels that JPEG holds")
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=options.quality)
    with pillow.open(file, formats=("JPEG",)) as saved:
        return saved.convert("RGB")


@_declare("occlusion", colour=(Literal["mean", "grey"], "mean"))
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
