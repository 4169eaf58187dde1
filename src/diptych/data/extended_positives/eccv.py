"""ECCV Caption: machine-and-human-verified positives of COCO's test split, as its package ships them.

``eccv_image_to_caption.json`` and ``eccv_caption_to_image.json``: ``{id: [ids]}`` with COCO's image
ids and sentence ids, for 1,261 images and 1,332 captions that ask; the galleries are the whole split.
Its measures are R@1, R-precision and mAP@R. The same folder holds ``original_*`` and ``cxc_*``.

Source: Chun, Kim, Park, Chang and Oh, ECCV Caption, ECCV 2022 (package ``eccv_caption``, ``data/``).
"""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, PositivesReader
from diptych.data.extended_positives.lists import listed_of, read_lists

_I2T, _T2I = "image_to_caption", "caption_to_image"


def read_eccv(path: Path | str, variant: str = "eccv") -> Listed:
    """Read the two JSON files of one variant."""
    folder = Path(path)
    if folder.is_file():
        variant = folder.name.split(f"_{_I2T}")[0].split(f"_{_T2I}")[0]
        folder = folder.parent
    files = [folder / f"{variant}_{name}.json" for name in (_I2T, _T2I)]
    for file in files:
        if not file.is_file():
            raise DataError(f"{file} does not exist", "give the data folder of the package eccv_caption")
    i2t, t2i = (read_lists(file) for file in files)
    return listed_of(f"{variant} of ECCV Caption", i2t, t2i)


EXTENDED_POSITIVES.add(
    PositivesReader(
        "eccv",
        "ECCV Caption: verified COCO positives, the data folder of the package eccv_caption",
        "Chun et al., ECCV 2022",
        read_eccv,
        {"variant": "which of the folder's lists: eccv, cxc, original or pm (default: eccv)"},
    )
)
