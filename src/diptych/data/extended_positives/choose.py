"""From a format's name and a path to extended positives of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES
from diptych.data.extended_positives.match import ExtendedPositives, match

_ORIGINALS = "originals"


def read_extended_positives(
    source: str,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    **options: Any,
) -> ExtendedPositives:
    """Read relevant pairs beyond a collection's own.

    Args:
        caption_image: (n_captions,) the picture of each caption.
    """
    name, colon, path = source.partition(":")
    if not colon or not path:
        known = ", ".join(EXTENDED_POSITIVES.names())
        raise UsageError(
            f"positives {source!r} are not FORMAT:PATH", f"for example cxc:FOLDER; formats: {known}"
        )
    reader = EXTENDED_POSITIVES.get(name)
    originals = options.pop(_ORIGINALS, False)
    if not isinstance(originals, bool):
        raise UsageError(f"{_ORIGINALS} is {originals!r}, it must be true or false")
    for key in options:
        if key not in reader.options:
            own = ", ".join([*reader.options, _ORIGINALS])
            raise UsageError(f"positives {name!r} have no option {key!r}", f"their options: {own}")
    listed = reader.read(Path(path), **options)
    return match(listed, image_ids, caption_ids, caption_image, originals=originals)
