"""Digit overlay: six digits that mean nothing, along the top of the picture.

The places are those of the synthetic shortcuts (thesis, 4.D.4), the digits drawn with our own pen, so that no
file is needed. There a digit has 28 of 224 pixels, which is severity 3; a sixth of the shorter side is the most
at which none covers another. Shortcuts are pasted on what a tower sees; these are on the picture itself, as
somebody who stamps pictures would have it, and what a tower crops away it does not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from diptych.analysis.perturbations.declaration import PERTURBATIONS, PicturePerturbation, SeverityOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.core.draws import Draws


class DigitOverlayOptions(SeverityOptions):
    """How large the digits are.

    Attributes:
        size: side of a digit as a share of the picture's shorter side, at least one pixel.
    """

    amount = "size"
    amounts = (14 / 224, 21 / 224, 28 / 224, 32 / 224, 37 / 224)

    size: float = Field(amounts[2], gt=0, le=1 / 6)


def _overlaid(picture: Image, draws: Draws, options: DigitOverlayOptions) -> Image:
    from PIL import Image as pillow

    from diptych.analysis.shortcuts.drawn_digits import DRAWN_OF_EACH, drawn_digits
    from diptych.analysis.shortcuts.overlay import digit_places

    size = max(1, int(options.size * min(picture.size)))
    drawn = drawn_digits().at_size(size)
    overlaid = picture.copy()
    for place in digit_places(picture.width, 1, size):
        grey = drawn.grey(draws.below(10), draws.below(DRAWN_OF_EACH))
        overlaid.paste(pillow.fromarray(grey).convert("RGB"), place)
    return overlaid


DIGIT_OVERLAY = PERTURBATIONS.add(
    PicturePerturbation(
        name="digit-overlay",
        description="six digits that mean nothing, along the top",
        group="pictures",
        source="thesis 4.D.4, for the places",
        keeps_meaning=True,
        options=DigitOverlayOptions,
        apply=_overlaid,
    )
)
