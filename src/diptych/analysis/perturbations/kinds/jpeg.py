"""JPEG: a picture saved once more, with much loss.

The five qualities are those of Hendrycks and Dietterich. JPEG works on blocks of 8 × 8 pixels whatever a
picture's size, so that the same quality harms a small picture more than a large one: that is so in the world,
too, and the picture is not resized for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from diptych.analysis.perturbations.caption import Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws

_LONGEST = 65_500
"""The longest side that libjpeg writes."""


class JpegOptions(SeverityOptions):
    """How much is lost.

    Attributes:
        quality: libjpeg's, 1 to 95; less is worse.
    """

    amount = "quality"
    amounts = (25, 18, 15, 10, 7)

    quality: int = Field(amounts[2], ge=1, le=95)


def _saved_again(picture: Image, draws: Draws, options: JpegOptions) -> Image:
    import io

    from PIL import Image as pillow

    if max(picture.size) > _LONGEST:
        raise Unchanged(f"a side longer than the {_LONGEST:,} pixels that JPEG holds")
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=options.quality)
    with pillow.open(file, formats=("JPEG",)) as saved:
        return saved.convert("RGB")


JPEG = PERTURBATIONS.add(
    PicturePerturbation(
        name="jpeg",
        description="saved once more as JPEG of low quality",
        group="pictures",
        source="Hendrycks and Dietterich, ICLR 2019: jpeg compression",
        keeps_meaning=True,
        options=JpegOptions,
        apply=_saved_again,
    )
)
