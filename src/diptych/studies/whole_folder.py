"""A part of a collection with every picture of its folder beside it, as thesis chapter 5 searched from text.

Its published runs embedded every ``*.jpg`` of the folder they were given: 40,504 pictures of COCO's val2014 and
31,783 of Flickr30k, of which 5,000 and 1,000 have captions that ask.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.images import FolderSource

BESIDE = "beside"
"""The split of pictures that are beside the part's own."""

_ENDING = ".jpg"


def with_whole_folder(part: Collection) -> Collection:
    """The part's pictures and captions, then all other ``.jpg`` files of the same folders, without captions."""
    source = part.source
    if not isinstance(source, FolderSource):
        raise UsageError(
            f"the pictures of {part.name} are no files of a folder: there is none to search",
            "take the gallery of the split: --set measure.gallery=split",
        )
    if not part.pictured.all():
        raise UsageError(
            f"{int((~part.pictured).sum()):,} items of {part.name} have no picture to be searched",
            "take the gallery of the split: --set measure.gallery=split",
        )
    names = [source.names[row] for row in part.source_rows.tolist()]
    folders = sorted({str(Path(name).parent) for name in names})
    found = {
        str(Path(folder) / file.name)
        for folder in folders
        for file in (source.root / folder).glob("*")
        if file.suffix.lower() == _ENDING
    }
    beside = sorted(found - {str(Path(name)) for name in names})
    return replace(
        part,
        image_ids=[*part.image_ids, *beside],
        splits=[*part.splits, *([BESIDE] * len(beside))],
        source=FolderSource(source.root, [*names, *beside]),
        source_rows=np.arange(len(names) + len(beside), dtype=np.int64),
        records=None if part.records is None else [*part.records, *({} for _ in beside)],
        notes=(*part.notes, f"{len(beside):,} more pictures of its folder are searched"),
    )
