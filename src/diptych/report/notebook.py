"""What a notebook shows of a result besides its tables: its charts, and the images that a search found."""

from contextlib import suppress
from html import escape
from typing import Any

from diptych.core.errors import DiptychError
from diptych.core.table import Tabular
from diptych.report.figures import figure
from diptych.report.pictures import Thumbnail, read_picture

_SIDE = 160  # pixels of an image


def drawn(result: Tabular) -> str:
    """Return charts as SVG and found images as thumbnails, as HTML."""
    images = [_image(hit) for hit in getattr(result, "hits", ())]
    return "\n".join([*images, *(figure(chart) for chart in result.charts())])


def _image(hit: Any) -> str:
    with suppress(DiptychError):
        if hit.image is not None:
            small = Thumbnail.of(read_picture(hit.image, hit.name), _SIDE)
            words = escape(hit.text or hit.name)
            size = f'width="{small.width}" height="{small.height}"'
            return f'<img src="{small}" {size} alt="{words}" title="{words}">'
    return ""
